"""How long it takes from `kuayu submit` to the first step, and how long a job stands still when a rank of it is killed.

    PYTHONPATH=tests python tests/benchmarks/first_minutes.py [--kills N] [--devices N] [--json FILE]

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
import shutil
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
from typing import Any

KUAYU = (sys.executable, "-c", "from kuayu.cli import main; main()")
PATIENCE_S = 300.0
LOOK_S = 0.05
STEPS_BETWEEN = 40
"""Steps that an attempt makes before a rank of it is killed."""

TRAINING = """
import json, os, pathlib, time

rank, attempt = int(os.environ["RANK"]), os.environ["KUAYU_ATTEMPT"]
folder = pathlib.Path(os.environ["KUAYU_CHECKPOINT"])
folder.mkdir(parents=True, exist_ok=True)
last = folder / "last.json"
step, weight = json.loads(last.read_text()) if last.exists() else (0, 10.0)
(folder / f"{attempt}-{rank}.pid").write_text(str(os.getpid()))
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

Made = tuple[float, int, float]
"""A step: when, by the steady clock; its number; its loss."""


class Household:
    """A folder in which somebody types commands.

    Args:
        folder: It.
        devices: Devices that this host counts as.
    """

    def __init__(self, folder: Path, devices: int) -> None:
        self._folder, self._devices = folder, devices
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("KUAYU_")}
        (folder / "code").mkdir()
        (folder / "code/train.py").write_text(TRAINING, encoding="utf-8")
        lines = [f"command: [{sys.executable}, -S, -E, train.py]", "name: job-1", "code: code", f"devices: {devices}"]
        (folder / "train.yaml").write_text("\n".join([*lines, "checkpoint: steps", "retries: 100", "grace: 1s"]) + "\n")

    @contextmanager
    def up(self) -> Iterator[float]:
        """`kuayu up`, until the end; yields the seconds until it is there."""
        began, said = time.monotonic(), self._folder / "up.log"
        command = [*KUAYU, "up", "--port", "0", "--devices", str(self._devices)]
        with said.open("wb") as log:
            process = subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
        try:
            self.until(lambda: "Ctrl-C ends it" in said.read_text("utf-8"))
            yield time.monotonic() - began
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)

    def type(self, *arguments: str) -> str:
        """What a command prints."""
        command = [*KUAYU, *arguments]
        environment = {**self._environment, "COLUMNS": "200"}
        ended = subprocess.run(
            command, check=False, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        if ended.returncode:
            raise SystemExit(f"kuayu {' '.join(arguments)}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def made(self) -> list[list[Made]]:
        """Steps of each attempt, in its order; a line that is not whole is left out."""
        attempts = []
        for file in sorted((self._folder / "steps").glob("*-0.steps"), key=lambda file: int(file.name.split("-")[0])):
            lines = file.read_text("utf-8").splitlines(keepends=True)
            rows = [line.split() for line in lines if line.endswith("\n")]
            attempts.append([(float(at), int(step), float(loss)) for at, step, loss in rows])
        return attempts

    def kill(self, rank: int) -> None:
        """Kill a rank of the attempt that runs."""
        file = max((self._folder / "steps").glob(f"*-{rank}.pid"), key=lambda file: int(file.name.split("-")[0]))
        os.kill(int(file.read_text("utf-8")), signal.SIGKILL)

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait for something."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > deadline:
                log = (self._folder / "up.log").read_text("utf-8")
                raise SystemExit(f"it does not go on: {log}")
            time.sleep(LOOK_S)


def interruptions(attempts: list[list[Made]], kills: list[float]) -> list[float]:
    """The longest time without a new step that ends between each kill and the next one."""
    first: dict[int, float] = {}
    for at, step, _ in itertools.chain.from_iterable(attempts):
        first[step] = min(at, first.get(step, at))
    gaps = list(itertools.pairwise(sorted(first.values())))
    ends = [*kills[1:], float("inf")]
    return [
        max(after - before for before, after in gaps if kill < after <= end)
        for kill, end in zip(kills, ends, strict=True)
    ]


def faults(attempts: list[list[Made]]) -> list[str]:
    """What must not be: steps that are missing, and those with two losses."""
    losses: dict[int, set[float]] = defaultdict(set)
    for _, step, loss in itertools.chain.from_iterable(attempts):
        losses[step].add(loss)
    missing = sorted(set(range(1, max(losses) + 1)) - losses.keys())
    return [f"step {step} is missing" for step in missing] + [
        f"step {step} has {len(found)} losses" for step, found in sorted(losses.items()) if len(found) > 1
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    folder = Path(tempfile.mkdtemp(prefix="kuayu-"))
    household, kills = Household(folder, options.devices), []
    with household.up() as up:
        submitted = time.monotonic()
        household.type("submit", "train.yaml")
        for number in range(options.kills + 1):
            household.until(
                lambda number=number: len(made := household.made()) > number and len(made[number]) >= STEPS_BETWEEN
            )
            if number < options.kills:
                kills.append(time.monotonic())
                household.kill(number % options.devices)
        attempts, why = household.made(), household.type("why", "job-1")
        household.type("cancel", "job-1", "--wait")
    first, gaps, wrong = attempts[0][0][0] - submitted, sorted(interruptions(attempts, kills)), faults(attempts)
    decided = re.search(r"^job-1 start .*$", why, re.MULTILINE)
    median, last = statistics.median(gaps), max(step for _, step, _ in attempts[-1])
    print(f"until kuayu up is there          {up:.2f} s")
    print(f"from kuayu submit to first step  {first:.2f} s")
    print(f"interruption by a killed rank    median {median:.2f} s, most {gaps[-1]:.2f} s, of {len(gaps)}")
    print(f"steps                            {last}, {len(wrong)} wrong; load {load:.1f} before")
    print(*wrong, decided[0] if decided else why, sep="\n")
    if options.json is not None:
        figures: dict[str, Any] = {"up": up, "first": first, "interruptions": gaps, "wrong": wrong, "load": load}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
