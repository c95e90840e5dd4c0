"""How long it takes from `kuayu submit` to the first step, and how long a job stands still when a rank of it is killed.

    python tests/benchmarks/first_minutes.py [--kills N] [--devices N] [--json FILE]

`kuayu up` and all commands are processes that begin with nothing imported, as whoever types them has them. The job has
a process for each device, takes a step every 50 ms, writes a checkpoint every ten and writes down when each step was
made. Ranks are killed one after the other with SIGKILL, each once the job has made 40 steps in its attempt;
*interruption* is the longest time without a step that had not been made before. The exit status is 1 where a step is
missing in the end, or has two losses. What the job says of itself (`kuayu why`) is printed last.
"""

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

KUAYU = (sys.executable, "-c", "from kuayu.cli import main; main()")
PATIENCE_S = 300.0
POLL_S = 0.05
STEPS_BETWEEN = 40
"""Steps that an attempt makes before a rank of it is killed."""

TRAINING = """
import json, os, pathlib, time

rank, attempt = int(os.environ["RANK"]), os.environ["KUAYU_ATTEMPT"]
folder = pathlib.Path(os.environ["KUAYU_CHECKPOINT"])
folder.mkdir(parents=True, exist_ok=True)
last = folder / "last.json"
step, weight = json.loads(last.read_text()) if last.exists() else (0, 10.0)
fresh = folder / f"{attempt}-{rank}.fresh"
fresh.write_text(str(os.getpid()))
fresh.replace(fresh.with_suffix(".pid"))
with open(folder / f"{attempt}-{rank}.steps", "w", buffering=1) as diary:
    while True:
        step, weight = step + 1, 0.99 * weight
        time.sleep(0.05)
        if rank:
            continue
        print(time.monotonic(), step, weight**2, file=diary)
        if step % 10 == 0:
            (folder / "fresh.json").write_text(json.dumps([step, weight]))
            (folder / "fresh.json").replace(last)
            print("kuayu checkpoint", step, flush=True)
"""


class Step(NamedTuple):
    """A step of the job.

    Attributes:
        instant: When it was made, by the steady clock.
        number: Its number.
        loss: Its loss.
    """

    instant: float
    number: int
    loss: float


class CommandFolder:
    """A folder in which somebody types commands.

    Args:
        folder: The folder.
        devices: Devices that this host counts as.
    """

    def __init__(self, folder: Path, devices: int) -> None:
        self._folder, self._devices = folder, devices
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("KUAYU_")}
        self._service: subprocess.Popen[bytes] | None = None
        (folder / "code").mkdir()
        (folder / "code/train.py").write_text(TRAINING, encoding="utf-8")
        lines = [f"command: [{sys.executable}, -S, -E, train.py]", "name: job-1", "code: code", f"devices: {devices}"]
        (folder / "train.yaml").write_text("\n".join([*lines, "checkpoint: steps", "retries: 100", "grace: 1s"]) + "\n")

    @contextmanager
    def up(self) -> Iterator[float]:
        """`kuayu up`, until the end; yields the seconds until it is there."""
        start = time.monotonic()
        command = [*KUAYU, "up", "--port", "0", "--devices", str(self._devices)]
        with (self._folder / "up.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
        self._service = process
        try:
            self.until(lambda: "Ctrl-C ends it" in self._log())
            yield time.monotonic() - start
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                process.wait()
                raise SystemExit(f"kuayu up did not end by Ctrl-C and was killed: {self._log()}") from error

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        command = [*KUAYU, *arguments]
        environment = {**self._environment, "COLUMNS": "200"}
        result = subprocess.run(
            command, check=False, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        if result.returncode:
            raise SystemExit(f"kuayu {' '.join(arguments)}: {result.stdout}{result.stderr}")
        return result.stdout

    def steps_by_attempt(self) -> dict[int, list[Step]]:
        """Steps of each attempt, the last one last; a line that is not whole is left out."""
        attempts = {}
        for file in self._folder.glob("steps/*-0.steps"):
            lines = file.read_text("utf-8").splitlines(keepends=True)
            rows = [line.split() for line in lines if line.endswith("\n")]
            attempts[int(file.name.partition("-")[0])] = [
                Step(float(instant), int(number), float(loss)) for instant, number, loss in rows
            ]
        return dict(sorted(attempts.items()))

    def next_attempt(self, after: int) -> int:
        """The last attempt once it is later than another one and has made 40 steps."""
        attempt = after

        def has_steps() -> bool:
            nonlocal attempt
            attempts = self.steps_by_attempt()
            attempt = max(attempts, default=after)
            return attempt > after and len(attempts[attempt]) >= STEPS_BETWEEN

        self.until(has_steps)
        return attempt

    def kill(self, attempt: int, rank: int) -> float:
        """Kill a rank of an attempt; when."""
        file = self._folder / "steps" / f"{attempt}-{rank}.pid"
        self.until(file.exists)
        process, instant = int(file.read_text("utf-8")), time.monotonic()
        os.kill(process, signal.SIGKILL)
        return instant

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something for which `kuayu up` has to run."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if self._service is None or self._service.poll() is not None:
                raise SystemExit(f"kuayu up has ended: {self._log()}")
            if time.monotonic() > deadline:
                raise SystemExit(f"it does not go on: {self._log()}")
            time.sleep(POLL_S)

    def _log(self) -> str:
        """What `kuayu up` has printed."""
        return (self._folder / "up.log").read_text("utf-8")


def interruptions(steps: list[Step], kills: list[float]) -> list[float]:
    """The longest time without a new step that ends between each kill and the next one."""
    first: dict[int, float] = {}
    for step in steps:
        first[step.number] = min(step.instant, first.get(step.number, step.instant))
    gaps = list(itertools.pairwise(sorted(first.values())))
    result: list[float] = []
    for kill, end in itertools.pairwise([*kills, float("inf")]):
        seconds = [after - before for before, after in gaps if kill < after <= end]
        if not seconds:
            raise SystemExit(f"no new step after kill {len(result) + 1}")
        result.append(max(seconds))
    return result


def find_faults(steps: list[Step]) -> list[str]:
    """What must not be: steps that are missing, and those with two losses."""
    losses: dict[int, set[float]] = defaultdict(set)
    for step in steps:
        losses[step.number].add(step.loss)
    missing = sorted(set(range(1, max(losses) + 1)) - losses.keys())
    return [f"step {number} is missing" for number in missing] + [
        f"step {number} has {len(values)} losses" for number, values in sorted(losses.items()) if len(values) > 1
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if min(options.kills, options.devices) < 1:
        parser.error("--kills and --devices are 1 or more")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell lets what it starts in the background ignore Ctrl-C, and so would `kuayu up`.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    load = os.getloadavg()[0]
    kills: list[float] = []
    with tempfile.TemporaryDirectory(prefix="kuayu-", ignore_cleanup_errors=True) as path:
        folder = CommandFolder(Path(path), options.devices)
        with folder.up() as up:
            submitted = time.monotonic()
            folder.run("submit", "train.yaml")
            attempt = folder.next_attempt(0)
            for number in range(options.kills):
                kills.append(folder.kill(attempt, number % options.devices))
                attempt = folder.next_attempt(attempt)
            attempts, why = folder.steps_by_attempt(), folder.run("why", "job-1")
            folder.run("cancel", "job-1", "--wait")
    steps = [*itertools.chain.from_iterable(attempts.values())]
    gaps, faults = sorted(interruptions(steps, kills)), find_faults(steps)
    decision, median = re.search(r"^job-1 start .*$", why, re.MULTILINE), statistics.median(gaps)
    first, last = min(step.instant for step in steps) - submitted, max(step.number for step in steps)
    print(f"until kuayu up is there          {up:.2f} s")
    print(f"from kuayu submit to first step  {first:.2f} s")
    print(f"interruption by a killed rank    median {median:.2f} s, most {gaps[-1]:.2f} s, of {len(gaps)}")
    print(f"steps                            {last}, {len(faults)} wrong; load {load:.1f} before")
    print(*faults, decision[0] if decision else why, sep="\n")
    if options.json is not None:
        figures: dict[str, Any] = {"up": up, "first": first, "interruptions": gaps, "faults": faults, "load": load}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
