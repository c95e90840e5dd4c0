"""A folder in which somebody types commands, with a job that trains and can be killed."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import TYPED, Started, prefork_server, run

PATIENCE_S = 300.0
"""A busy machine takes minutes to start a service and what it imports."""

JobObject = dict[str, Any]

TRAINING = """
import json, os, pathlib, time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
folder = pathlib.Path(os.environ["KUAYU_CHECKPOINT"])
folder.mkdir(parents=True, exist_ok=True)
checkpoint = folder / "last.json"
step, weight = 0, 10.0
if checkpoint.exists():
    step, weight = json.loads(checkpoint.read_text())
print(f"rank {rank} of {world}, process {os.getpid()}, from step {step}, told {os.environ['KUAYU_STEP']}", flush=True)
with open(os.environ["KUAYU_STEP_FILE"], "a", buffering=1) as steps:
    while step < int(os.environ["STEPS"]):
        step, weight = step + 1, weight - 0.1 * weight
        time.sleep(float(os.environ["STEP_SECONDS"]))
        print(f"{os.environ['KUAYU_JOB']} {rank} {step}", file=steps)
        if rank == 0:
            print(f"step {step} loss {weight ** 2:.6f}", flush=True)
        if rank == 0 and step % 5 == 0:
            fresh = folder / "fresh.json"
            fresh.write_text(json.dumps([step, weight]))
            fresh.replace(checkpoint)
            print(f"{os.environ['KUAYU_JOB']} {rank} {step} checkpoint", file=steps)
    print(f"{os.environ['KUAYU_JOB']} {rank} ended", file=steps)
"""

JOB = f"""
name: job-1
command: [{sys.executable}, -S, -E, train.py]
code: code
environment:
  STEPS: 100000
  STEP_SECONDS: 0.2
devices: 2
checkpoint: checkpoints
grace: 5s
retries: 5
"""


class Folder:
    """A folder in which somebody types commands.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._up: Started | None = None
        (path / "code").mkdir()
        (path / "code" / "train.py").write_text(TRAINING, encoding="utf-8")
        (path / "train.yaml").write_text(JOB, encoding="utf-8")

    def up(self, *options: str) -> None:
        """Type ``kuayu up`` and wait until it says what to type next."""
        said = self.path / "up.log"
        with said.open("wb") as log, Path(os.devnull).open("rb") as nothing:
            arguments = ["up", "--port", "0", "--devices", "2", *options]
            environment = {**os.environ, "no_proxy": "127.0.0.1"}
            self._up = prefork_server(TYPED).start(arguments, [nothing, log, log], environment)
        up = self._up
        until(lambda: up.poll() is not None or "Ctrl-C ends it" in said.read_text("utf-8"), "it does not come up")
        assert up.poll() is None, said.read_text("utf-8") + self.complaints()

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Type Ctrl-C, or worse; the exit status."""
        assert self._up is not None
        self._up.send_signal(number)
        return self._up.wait(PATIENCE_S)

    def kuayu(self, *arguments: str, status: int = 0) -> str:
        """What a command prints."""
        ended = run(*arguments, timeout=PATIENCE_S, no_proxy="127.0.0.1", COLUMNS="200")
        assert ended.returncode == status, ended.stdout + ended.stderr + self.complaints()
        return ended.stdout

    def job(self, name: str = "job-1") -> JobObject:
        """A job as it stands."""
        found: JobObject = json.loads(self.kuayu("jobs", name, "--json"))
        return found

    def await_job(self, reached: Callable[[JobObject], bool], what: str, name: str = "job-1") -> JobObject:
        """A job once something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached(job := self.job(name)):
            assert time.monotonic() < deadline, f"{what}: {job} {self.complaints()}"
            time.sleep(0.5)
        return job

    def ranks(self) -> list[int]:
        """Processes of all ranks so far, in the order in which they began."""
        return [int(found) for found in re.findall(r"process ([0-9]+),", self.kuayu("logs", "job-1"))]

    def complaints(self) -> str:
        """What service and domains have said."""
        logs = sorted((self.path / "kuayu-data" / "log").glob("*.log"))
        return "".join(f"\n--- {log.name}\n{log.read_text('utf-8', 'replace')[-3000:]}" for log in logs)

    def close(self) -> None:
        """End what is left."""
        if self._up is not None and self._up.poll() is None:
            self.end()


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.chdir(tmp_path)
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made = Folder(tmp_path)
    yield made
    made.close()
