"""A file that one process alone may use."""

import fcntl
from pathlib import Path
from typing import IO


def lock_of(file: Path) -> Path:
    """Where the lock of a file stands: beside it."""
    return file.with_name(file.name + ".lock")


def lock(file: Path) -> IO[str]:
    """Keep other processes off a file for as long as the answer is open.

    Raises:
        BlockingIOError: Another one has it.
        OSError: Its folder cannot be written.
    """
    lock_file = lock_of(file).open("w", encoding="utf-8")
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock_file.close()
        raise
    return lock_file
