"""Sustained memory bandwidth by the triad a = b + q·c.

Method: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA
Newsletter, December 1995 (STREAM). Three arrays of doubles, each at least four times as large as all last-level caches
together; 24 bytes count for each element, as STREAM counts them (what a write first fetches into the cache does not
count).

On processors each thread has its own part of the arrays, filled by itself so that the pages lie near it, and goes
through it in pieces whose product q·c stays in its cache; NumPy lets go of the interpreter meanwhile, so that the
figure is the node's. On accelerators PyTorch computes the triad in one pass.
"""

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from kuayu.engine.probes import pytorch
from kuayu.engine.probes.repetition import Step, repeat, timed
from kuayu.engine.probes.result import ProbeResult, ProbeUnavailableError

CACHES = Path("/sys/devices/system/cpu")
TIMES_CACHE: Final = 4
"""An array is so many times as large as the last-level caches (STREAM's run rules)."""
SMALLEST_ARRAY: Final = 64 << 20
"""Bytes of an array where no cache size can be read."""
ACCELERATOR_ARRAY: Final = 1 << 30
"""Bytes of an array on an accelerator, far more than any of them has as cache."""
PIECE: Final = 32768
"""Elements of a piece; its product is 256 KiB, within the second-level cache of a server's core."""
FACTOR: Final = 3.0
BYTES: Final = 8
ARRAYS: Final = 3


def probe_memory(budget_s: float, step: Step, *, device: str, cuda: int | None = None) -> ProbeResult:
    """Measure the memory of the processors, or of the accelerator that PyTorch knows as ``cuda``.

    Raises:
        ProbeUnavailableError: There is not enough free memory, or PyTorch is needed and not installed.
    """
    began = time.perf_counter()
    with ThreadPoolExecutor(processors()) as pool:
        triad = _processor_triad(pool) if cuda is None else _accelerator_triad(cuda)
        triad.run()
        repetitions = repeat(timed(triad.run), max(0.0, budget_s - (time.perf_counter() - began)), step)
    value, spread = repetitions.rate(float(triad.moved))
    return ProbeResult(
        probe="memory",
        measure="accelerator_memory_bandwidth",
        unit="By/s",
        value=value,
        spread=spread,
        n=repetitions.n,
        seconds=time.perf_counter() - began,
        stack=triad.stack,
        device=device,
    )


def array_bytes() -> int:
    """Bytes of one array of the triad.

    Raises:
        ProbeUnavailableError: The three would take more than half of the memory that is available.
    """
    size = max(SMALLEST_ARRAY, TIMES_CACHE * last_level_cache())
    available = psutil.virtual_memory().available
    if ARRAYS * size > available // 2:
        raise ProbeUnavailableError(
            f"the triad needs {ARRAYS * size >> 20} MiB and {available >> 20} MiB of memory are available",
            "free memory first; the probe takes at most half of it",
        )
    return size


def last_level_cache(root: Path = CACHES) -> int:
    """Bytes of all last-level caches together; nought where the kernel does not say."""
    caches: dict[tuple[int, str], int] = {}
    for index in root.glob("cpu[0-9]*/cache/index*"):
        try:
            level = int((index / "level").read_text(encoding="ascii"))
            shared = (index / "shared_cpu_list").read_text(encoding="ascii").strip()
            size = re.fullmatch(r"(\d+)K", (index / "size").read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            continue
        if size:
            caches[level, shared] = int(size[1]) << 10
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last)


def processors() -> int:
    """Logical processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class _Triad:
    """A triad ready to run, the bytes that one run moves, and the software that runs it."""

    run: Callable[[], object]
    moved: int
    stack: str


def _processor_triad(pool: ThreadPoolExecutor) -> _Triad:
    threads = processors()
    parts = list(pool.map(_Part, [max(1, array_bytes() // BYTES // threads)] * threads))

    def run() -> None:
        list(pool.map(_Part.triad, parts))

    return _Triad(run, sum(part.bytes for part in parts), f"numpy {np.__version__}, {threads} threads")


def _accelerator_triad(cuda: int) -> _Triad:
    torch = pytorch.load()
    elements = ACCELERATOR_ARRAY // BYTES
    try:
        a, b, c = (torch.ones(elements, dtype=torch.float64, device=f"cuda:{cuda}") for _ in range(ARRAYS))
    except RuntimeError as error:
        raise ProbeUnavailableError("the accelerator has too little free memory", "free its memory first") from error

    def run() -> None:
        torch.add(b, c, alpha=FACTOR, out=a)
        torch.cuda.synchronize(cuda)

    return _Triad(run, elements * ARRAYS * BYTES, pytorch.stack(torch, cuda))


class _Part:
    """One thread's part of the three arrays."""

    def __init__(self, elements: int) -> None:
        """Fill the arrays, in the thread that will work on them."""
        self._a, self._b, self._c = np.zeros(elements), np.full(elements, 2.0), np.full(elements, 0.5)
        self._a += 1.0  # zeros alone are not backed by memory yet
        self._product = np.empty(min(PIECE, elements))
        self.bytes = elements * ARRAYS * BYTES

    def triad(self) -> None:
        """Go through the arrays once."""
        for start in range(0, len(self._a), PIECE):
            c = self._c[start : start + PIECE]
            product = self._product[: len(c)]
            np.multiply(c, FACTOR, out=product)
            np.add(self._b[start : start + PIECE], product, out=self._a[start : start + PIECE])
