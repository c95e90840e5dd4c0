"""Sequential throughput of the store for data and checkpoints.

Method: write a file of incompressible bytes in large blocks and fsync it, then read it from its beginning; the value is
the smaller of the two rates, as the indicator register defines it. The page cache is kept out by O_DIRECT (open(2)),
or, where the file system does not have it, by posix_fadvise(2) with POSIX_FADV_DONTNEED once everything is on the disk.
Caches below the kernel, of a controller or a hypervisor, belong to the store and are measured with it.

The file has no name from the start, so the kernel removes it however the probe ends.
"""

import fcntl
import mmap
import os
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Final

import psutil

from kuayu.engine.probes.repetition import MIN_REPETITIONS, Step, median_and_spread, repeat
from kuayu.engine.probes.result import ProbeFailedError, ProbeResult, ProbeUnavailableError

BLOCK: Final = 8 << 20
"""Bytes of one call of write or read; large enough for the disk to work on many of its own blocks at once."""
SMALLEST: Final = 64 << 20
MAX_FILE_BYTES: Final = 1 << 30
SHARE_OF_FREE: Final = 10
"""The file takes at most one part in so many of what is free."""
MEMORY_FILE_SYSTEMS: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def probe_storage(budget_s: float, step: Step, *, path: Path) -> ProbeResult:
    """Measure the store that holds the directory ``path``.

    Raises:
        ProbeUnavailableError: The directory cannot be written, lies in memory, or its disk is nearly full.
        ProbeFailedError: The disk gave an error meanwhile.
    """
    began = time.perf_counter()
    size = file_bytes(path)
    try:
        with (
            tempfile.TemporaryFile(dir=path, prefix=".kuayu-probe-", buffering=0) as raw,
            mmap.mmap(-1, BLOCK) as block,
        ):
            file = _File(raw, block, size)
            # Two passes of the smallest file say how large a file the budget allows.
            seconds = file.write() + file.read()
            file.resize(min(size, int(SMALLEST * budget_s / (2 * MIN_REPETITIONS) / seconds)))
            repetitions = repeat(file.round, max(0.0, budget_s - (time.perf_counter() - began)), step)
    except OSError as error:
        raise ProbeFailedError(
            f"{path}: {error.strerror or error}", "choose another directory with --storage-path"
        ) from error
    rates = {
        "write": median_and_spread([file.bytes / seconds for seconds in file.writes]),
        "read": median_and_spread([file.bytes / seconds for seconds in file.reads]),
    }
    value, spread = min(rates.values())
    return ProbeResult(
        probe="storage",
        measure="storage_throughput",
        unit="By/s",
        value=value,
        spread=spread,
        n=repetitions.n,
        seconds=time.perf_counter() - began,
        stack=f"{_file_system(path)}, {'O_DIRECT' if file.direct else 'fsync and fadvise'}, {file.bytes >> 20} MiB",
        detail={name: rate for name, (rate, _) in rates.items()},
    )


def file_bytes(path: Path) -> int:
    """Bytes that the file may have, whole blocks.

    Raises:
        ProbeUnavailableError: There is no such writable directory, it lies in memory, or its disk is nearly full.
    """
    hint = "choose another directory with --storage-path"
    if not path.is_dir() or not os.access(path, os.W_OK):
        raise ProbeUnavailableError(f"{path} is no directory that can be written", hint)
    if (kind := _file_system(path)) in MEMORY_FILE_SYSTEMS:
        raise ProbeUnavailableError(f"{path} lies in memory ({kind}), not on a store", hint)
    free = int(psutil.disk_usage(str(path)).free)
    if free < SHARE_OF_FREE * SMALLEST:
        raise ProbeUnavailableError(
            f"{path} has {free >> 20} MiB free, and the probe takes at most a tenth of that and at least"
            f" {SMALLEST >> 20} MiB",
            hint,
        )
    return min(MAX_FILE_BYTES, free // SHARE_OF_FREE) // BLOCK * BLOCK


class _File:
    """The file and the time that its passes took."""

    def __init__(self, raw: BinaryIO, block: mmap.mmap, largest: int) -> None:
        """Begin with the smallest size; ``block`` is aligned to a page, as O_DIRECT asks."""
        self._raw, self._block, self._largest = raw, block, largest
        self._block[:] = os.urandom(BLOCK)
        self.bytes = SMALLEST
        self.writes: list[float] = []
        self.reads: list[float] = []
        self.direct = self._set_direct()

    def _set_direct(self) -> bool:
        flags = fcntl.fcntl(self._raw, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self._raw, fcntl.F_SETFL, flags | os.O_DIRECT)
            self._raw.write(self._block)
        except OSError:
            fcntl.fcntl(self._raw, fcntl.F_SETFL, flags)
            return False
        return True

    def resize(self, size: int) -> None:
        """Go on with a file of about ``size`` bytes, within the bounds."""
        self.bytes = max(SMALLEST, min(size, self._largest) // BLOCK * BLOCK)
        self.writes.clear()
        self.reads.clear()

    def round(self) -> float:
        """Write and read once; return the seconds of both."""
        self.writes.append(self.write())
        self.reads.append(self.read())
        return self.writes[-1] + self.reads[-1]

    def write(self) -> float:
        """Write the file anew, down to the disk; return the seconds."""
        self._raw.seek(0)
        began = time.perf_counter()
        for _ in range(self.bytes // BLOCK):
            if self._raw.write(self._block) != BLOCK:
                raise OSError("a block was written in part, the disk is full")
        os.fsync(self._raw.fileno())
        return time.perf_counter() - began

    def read(self) -> float:
        """Read the file from the disk; return the seconds."""
        if not self.direct:
            os.posix_fadvise(self._raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._raw.seek(0)
        began = time.perf_counter()
        for _ in range(self.bytes // BLOCK):
            if os.readv(self._raw.fileno(), [self._block]) != BLOCK:
                raise OSError("a block was read in part")
        return time.perf_counter() - began


def _file_system(path: Path) -> str:
    """Kind of the file system that holds ``path``."""
    place = path.resolve()
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    return next((mounts[parent] for parent in (place, *place.parents) if parent in mounts), "unknown")
