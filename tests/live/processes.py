"""Processes of the live mode that are there, as the system tells."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[int]:
    """Identifiers of living processes that a folder is an argument of."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line, status = process.info["cmdline"] or [], process.info["status"]
        if status != psutil.STATUS_ZOMBIE and any(str(folder) in each for each in line):
            found.append(process.pid)
    return found


def eventually(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes to hold; a long limit, since it is no measurement."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()
