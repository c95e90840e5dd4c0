"""Runs of a live run end with it, however it ends, and what they printed is told."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import killed_at_end
from live.processes import eventually, processes_of

from kuayu.engine.runs.protocol import EngineError
from kuayu.live.launcher import Launcher

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(600)")

LEAVES_A_PROCESS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
time.sleep(600)
"""
"""Two processes that heed no SIGTERM, one of them in a session of its own."""

COMMAND = f"""
import sys, time
from pathlib import Path
from signal import SIGSTOP
from kuayu.live.launcher import Launcher
folder = Path(sys.argv[1])
with Launcher(folder) as launcher:
    for name in ("bay-1", "bay-2"):
        launcher.start(name, [sys.executable, "-S", "-c", {LEAVES_A_PROCESS!r}, str(folder)])
    launcher.signal("bay-2", SIGSTOP)
    print("stopped", flush=True)
    time.sleep(600)
"""


def test_whoever_is_killed_leaves_neither_workers_nor_what_they_have_started(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process, killed_at_end(process):
        assert process.stdout is not None
        assert process.stdout.readline() == b"stopped\n"
        assert eventually(lambda: len(processes_of(tmp_path)) == 1 + 2 * 2), "the command, and two of each worker"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert eventually(lambda: not processes_of(tmp_path))


def test_whoever_leaves_has_ended_them_and_nothing_is_left(tmp_path: Path) -> None:
    with Launcher(tmp_path) as launcher:
        for name in ("bay-1", "bay-2"):
            launcher.start(name, [*SLEEP, str(tmp_path)])
        launcher.signal("bay-2", signal.SIGSTOP)
        assert len(processes_of(tmp_path)) == 2
    assert not processes_of(tmp_path)
    assert not list((tmp_path / "engine" / "runs").iterdir())


def test_a_worker_that_was_killed_has_ended_at_once_and_one_that_is_stopped_when_it_is_ended(tmp_path: Path) -> None:
    with Launcher(tmp_path) as launcher:
        for name in ("bay-1", "bay-2"):
            launcher.start(name, SLEEP)
            assert not launcher.ended(name)
        launcher.signal("bay-1", signal.SIGKILL)
        killed_at = time.monotonic()
        assert eventually(lambda: launcher.ended("bay-1"))
        assert time.monotonic() - killed_at < 3.0
        assert "SIGKILL" in launcher.last_words("bay-1")
        launcher.signal("bay-1", signal.SIGCONT)  # to nobody
        launcher.signal("bay-2", signal.SIGSTOP)
        launcher.end("bay-2")
        assert launcher.ended("bay-2")


def test_the_last_words_of_a_worker_are_told(tmp_path: Path) -> None:
    with Launcher(tmp_path) as launcher:
        launcher.start("bay-1", [sys.executable, "-S", "-c", "raise SystemExit('no memory')"])
        assert eventually(lambda: launcher.ended("bay-1"))
        assert launcher.last_words("bay-1") == "no memory"


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with Launcher(tmp_path) as launcher, pytest.raises(EngineError, match="no program no-such-program"):
        launcher.start("bay-1", ["no-such-program"])
