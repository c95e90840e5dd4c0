"""Probes of one host by itself: matrix products, memory bandwidth, and the store for data and checkpoints.

1. *Sustained dense matrix throughput* for each precision: C = A·B with square matrices of N rows, 2N³ operations by
   convention (LAPACK Working Note 41, appendix on operation counts). N doubles until one product takes long enough for
   the fixed cost of a call to vanish; that search is the warm-up. On processors NumPy's BLAS computes fp64 and fp32
   with all its threads, PyTorch bf16 and int8 where it is installed; fp16 is left out there, for processors emulate it
   at a thousandth of the speed of bf16. On accelerators PyTorch computes every precision. Where the device has an
   energy counter, the operations of all repetitions over the energy used meanwhile give the energy efficiency.
2. *Sustained memory bandwidth* by the triad a = b + q·c: three arrays of doubles, each at least four times as large as
   all last-level caches together; 24 bytes count for each element, as STREAM counts them (what a write first fetches
   into the cache does not count). On processors each thread has its own part of the arrays, filled by itself so that
   the pages lie near it, and goes through it in pieces whose product q·c stays in its cache; NumPy lets go of the
   interpreter meanwhile, so that the figure is the node's. On accelerators PyTorch computes the triad in one pass.
3. *Sequential throughput of the store*: write a file of incompressible bytes in large blocks and fsync it, then read it
   from its beginning; the value is the smaller of the two rates, as the indicator register defines it. The page cache
   is kept out by O_DIRECT (open(2)), or, where the file system does not have it, by posix_fadvise(2) with
   POSIX_FADV_DONTNEED once everything is on the disk. Caches below the kernel, of a controller or a hypervisor, belong
   to the store and are measured with it. The file has no name from the start, so the kernel removes it however the
   probe ends.

Source of the triad: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE
TCCA Newsletter, December 1995 (STREAM).
"""

import fcntl
import mmap
import os
import re
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import psutil

from kuayu.engine.probes import harness
from kuayu.engine.probes.harness import (
    MIN_REPETITIONS,
    Joules,
    ProbeFailedError,
    ProbeResult,
    ProbeUnavailableError,
    Step,
    median_and_spread,
    repeat,
    timed,
)

MIN_ROWS: Final = 256
MAX_ROWS: Final = 16384
"""Rows of the largest matrices; three of them take 6.4 GB in fp64."""
MIN_PRODUCT_S: Final = 0.05
"""One product takes at least this long, where :data:`MAX_ROWS` and a quarter of the budget allow."""

PROCESSOR_PRECISIONS: Final = ("fp64", "fp32", "bf16", "int8")
ACCELERATOR_PRECISIONS: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "int8")
_NUMPY: Final = {"fp64": np.float64, "fp32": np.float32}

Product = Callable[[], object]


def probe_matmul(
    precision: str,
    budget_s: float,
    step: Step,
    *,
    device: str,
    cuda: int | None = None,
    joules: Joules = lambda: None,
) -> ProbeResult:
    """Measure one precision.

    Args:
        precision: Name of the slot in PrecisionThroughput.
        budget_s: Seconds to spend.
        step: Told how far it is.
        device: Identifier of the device for the result.
        cuda: Index of the accelerator for PyTorch, None for the processors.
        joules: Energy counter of the device.

    Raises:
        ProbeUnavailableError: The software for this precision is not installed, or does not do it on this device.
    """
    began = time.perf_counter()
    make, stack = _maker(precision, cuda)
    try:
        rows, product = _sized(make, budget_s)
    except RuntimeError as error:  # what PyTorch raises for what a device cannot do
        raise ProbeUnavailableError(
            f"{stack} does no {precision} product here ({str(error).partition(chr(10))[0]})",
            "nothing need be done unless the device should be able to",
        ) from error
    before = joules()
    repetitions = repeat(timed(product), max(0.0, budget_s - (time.perf_counter() - began)), step)
    after = joules()
    used = after - before if before is not None and after is not None else None
    operations = 2.0 * rows**3
    value, spread = repetitions.rate(operations)
    return ProbeResult(
        probe="matmul",
        measure="sustained_matrix_throughput",
        unit="{OP}/s" if precision == "int8" else "{FLOP}/s",
        value=value,
        spread=spread,
        n=repetitions.n,
        seconds=time.perf_counter() - began,
        stack=stack,
        device=device,
        precision=precision,
        per_joule=operations * repetitions.n / used if used else None,
    )


CACHES = Path("/sys/devices/system/cpu")
TIMES_CACHE: Final = 4
"""An array is so many times as large as the last-level caches (STREAM's run rules)."""
MIN_ARRAY_BYTES: Final = 64 << 20
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
    size = max(MIN_ARRAY_BYTES, TIMES_CACHE * last_level_cache())
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


BLOCK: Final = 8 << 20
"""Bytes of one call of write or read; large enough for the disk to work on many of its own blocks at once."""
MIN_FILE_BYTES: Final = 64 << 20
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
            file.resize(min(size, int(MIN_FILE_BYTES * budget_s / (2 * MIN_REPETITIONS) / seconds)))
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
    if free < SHARE_OF_FREE * MIN_FILE_BYTES:
        raise ProbeUnavailableError(
            f"{path} has {free >> 20} MiB free, and the probe takes at most a tenth of that and at least"
            f" {MIN_FILE_BYTES >> 20} MiB",
            hint,
        )
    return min(MAX_FILE_BYTES, free // SHARE_OF_FREE) // BLOCK * BLOCK


def _maker(precision: str, cuda: int | None) -> tuple[Callable[[int], Product], str]:
    """What makes a product of N rows, and the software that computes it."""
    if cuda is None and precision in _NUMPY:
        return lambda rows: _numpy_product(precision, rows), _numpy_stack()
    torch = harness.load_pytorch()
    return lambda rows: _torch_product(torch, precision, rows, cuda), harness.stack(torch, cuda)


def _sized(make: Callable[[int], Product], budget_s: float) -> tuple[int, Product]:
    """Rows for which a product takes long enough, and that product, warm."""
    rows = MIN_ROWS
    while True:
        product = make(rows)
        product()
        seconds = timed(product)()
        # The next size takes eight times as long, twice in this search and then for the repetitions.
        if seconds >= MIN_PRODUCT_S or rows >= MAX_ROWS or 8 * seconds * 5 > budget_s:
            return rows, product
        rows *= 2


def _numpy_product(precision: str, rows: int) -> Product:
    kind = _NUMPY[precision]
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal((rows, rows)).astype(kind) for _ in range(2))
    out = np.empty((rows, rows), dtype=kind)
    return lambda: np.matmul(left, right, out=out)


def _numpy_stack() -> str:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"numpy {np.__version__}, {blas['name']} {blas.get('version', '')}".strip()


def _torch_product(torch: Any, precision: str, rows: int, cuda: int | None) -> Product:
    where = "cpu" if cuda is None else f"cuda:{cuda}"
    if precision == "int8":
        left, right = (torch.randint(-128, 128, (rows, rows), dtype=torch.int8, device=where) for _ in range(2))

        right = right.t()  # by columns, as matrix units take 8-bit integers; by rows an H100 reached 7 % of its peak

        def multiply() -> object:
            return torch._int_mm(left, right)  # noqa: SLF001 - the only product of 8-bit integers that PyTorch has
    else:
        kinds = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
        left, right = (torch.randn((rows, rows), dtype=getattr(torch, kinds[precision]), device=where) for _ in "ab")
        out = torch.empty_like(left)

        def multiply() -> object:
            torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
            return torch.mm(left, right, out=out)

    def on_accelerator() -> None:
        multiply()
        torch.cuda.synchronize(cuda)

    return multiply if cuda is None else on_accelerator


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
    torch = harness.load_pytorch()
    elements = ACCELERATOR_ARRAY // BYTES
    try:
        a, b, c = (torch.ones(elements, dtype=torch.float64, device=f"cuda:{cuda}") for _ in range(ARRAYS))
    except RuntimeError as error:
        raise ProbeUnavailableError("the accelerator has too little free memory", "free its memory first") from error

    def run() -> None:
        torch.add(b, c, alpha=FACTOR, out=a)
        torch.cuda.synchronize(cuda)

    return _Triad(run, elements * ARRAYS * BYTES, harness.stack(torch, cuda))


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


class _File:
    """The file and the time that its passes took."""

    def __init__(self, raw: BinaryIO, block: mmap.mmap, largest: int) -> None:
        """Begin with the smallest size; ``block`` is aligned to a page, as O_DIRECT asks."""
        self._raw, self._block, self._largest = raw, block, largest
        self._block[:] = os.urandom(BLOCK)
        self.bytes = MIN_FILE_BYTES
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
        self.bytes = max(MIN_FILE_BYTES, min(size, self._largest) // BLOCK * BLOCK)
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
