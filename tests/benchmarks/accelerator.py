"""What an NVIDIA accelerator shows in thirteen phases of work and rest, read once a second.

    python tests/benchmarks/accelerator.py FILE.csv [--unit SECONDS]

Needs a PyTorch with CUDA, and nobody else on the first accelerator. Columns and phases are those of
``tests/perception/recordings/README.md``; each lasts a third of a unit to one, ten units in all. What is written can
be laid beside the recordings there, and is tested with them then.
"""

import argparse
import csv
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pynvml as nvml

HEAD = "import time, torch; device = 'cuda:0'; torch.manual_seed(1)\n"
HOLD = HEAD + "held = torch.empty(40 << 30, dtype=torch.uint8, device=device); time.sleep(1e6)"
MULTIPLY = (
    HEAD
    + """
matrix = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
while True:
    for _ in range(50): product = matrix @ matrix
    torch.cuda.synchronize()
"""
)
BURST = (
    HEAD
    + """
matrix = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
while True:
    until = time.time() + 0.4
    while time.time() < until: product = matrix @ matrix; torch.cuda.synchronize()
    time.sleep(1.6)
"""
)
COPY = (
    HEAD
    + """
source = torch.empty(8 << 30, dtype=torch.uint8, device=device); target = torch.empty_like(source)
while True:
    for _ in range(20): target.copy_(source)
    torch.cuda.synchronize()
"""
)
SPIN = (
    HEAD
    + """
held = torch.empty(30 << 30, dtype=torch.uint8, device=device)
while True: torch.cuda._sleep(int(2e10))
"""
)
TRAIN = (
    HEAD
    + """
layer = lambda: torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
model = torch.nn.Sequential(*[layer() for _ in range(12)]).to(device)
optimiser = torch.optim.AdamW(model.parameters(), fused=True); samples = torch.randn(16, 1024, 1024, device=device)
step = 0
while True:
    with torch.autocast("cuda", torch.bfloat16): loss = model(samples).square().mean()
    loss.backward(); optimiser.step(); optimiser.zero_grad(); torch.cuda.synchronize(); step += 1
    if {every} and step % {every} == 0: kept = [each.cpu() for each in model.state_dict().values()]; time.sleep(4)
    time.sleep({waits})
"""
)


def training(every: int = 0, waits: float = 0.0) -> str:
    """A training that keeps its weights every so many steps, and waits so many seconds before each."""
    return TRAIN.format(every=every, waits=waits)


@dataclass
class Phases:
    """Plays what is to be seen.

    Attributes:
        unit: Seconds of the longest phases.
        name: What is being done.
    """

    unit: float
    name: str = "start"

    def play(self) -> None:
        """All phases."""
        self._wait("idle", 0.7)
        self._while("held", HOLD)
        self._while("steady", MULTIPLY)
        self._while("checkpoints", training(every=100))
        self._while("starved", training(waits=0.5), 0.7)
        self._while("bursts", BURST, 0.7)
        self._while("memory-bound", COPY, 0.7)
        self._while("stopped-before", training(), 0.6, self._stop)
        self._while("spinning-before", training(), 0.6)
        self._while("spinning", SPIN)
        self._wait("end", 0.3)

    def _wait(self, name: str, units: float) -> None:
        self.name = name
        print(f"{name}, {units * self.unit:.0f} s", flush=True)
        time.sleep(units * self.unit)

    def _while(
        self, name: str, program: str, units: float = 1.0, then: Callable[[subprocess.Popen[bytes]], None] | None = None
    ) -> None:
        """A phase while a program runs; it is ended after it, and after what comes then."""
        with subprocess.Popen([sys.executable, "-c", program]) as process:
            try:
                self._wait(name, units)
                if process.poll() is not None:
                    raise SystemExit(
                        f"the program of {name} ended; is there a PyTorch with CUDA, and memory that is free?"
                    )
                if then:
                    then(process)
            finally:
                process.kill()

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGSTOP)
        self._wait("stopped", 1.0)
        process.send_signal(signal.SIGCONT)
        self._wait("resumed", 0.5)


def main() -> None:
    """Run the recording as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--unit", type=float, default=18.0)
    asked = parser.parse_args()
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
    except nvml.NVMLError as error:
        raise SystemExit(f"no accelerator can be read ({error}); this needs an NVIDIA driver") from None
    phases = Phases(asked.unit)
    with ThreadPoolExecutor(1) as pool, asked.file.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("second", "phase", "utilisation_percent", "memory_used_MB", "power_W"))
        began = time.monotonic()
        playing = pool.submit(phases.play)
        while not playing.done():
            used = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used
            utilisation, watts = (
                nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
                nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            )
            second = time.monotonic() - began
            table.writerow((f"{second:.2f}", phases.name, utilisation, round(used / 1e6), f"{watts:.0f}"))
            file.flush()
            time.sleep(1.0 - second % 1.0)
        playing.result()  # says what went wrong, if anything did


if __name__ == "__main__":
    main()
