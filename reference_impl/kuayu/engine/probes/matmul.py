"""Sustained dense matrix throughput for each precision.

Method: C = A·B with square matrices of N rows, 2N³ operations by convention (LAPACK Working Note 41, appendix on
operation counts). N doubles until one product takes long enough for the fixed cost of a call to vanish; that search
is the warm-up. On processors NumPy's BLAS computes fp64 and fp32 with all its threads, PyTorch bf16 and int8 where it
is installed; fp16 is left out there, for processors emulate it at a thousandth of the speed of bf16. On accelerators
PyTorch computes every precision.

Where the device has an energy counter, the operations of all repetitions over the energy used meanwhile give the energy
efficiency.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kuayu.engine.probes import pytorch
from kuayu.engine.probes.energy import Joules
from kuayu.engine.probes.repetition import Step, repeat, timed
from kuayu.engine.probes.result import ProbeResult, ProbeUnavailableError

SMALLEST: Final = 256
MAX_ROWS: Final = 16384
"""Rows of the largest matrices; three of them take 6.4 GB in fp64."""
LONG_ENOUGH_S: Final = 0.05
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


def _maker(precision: str, cuda: int | None) -> tuple[Callable[[int], Product], str]:
    """What makes a product of N rows, and the software that computes it."""
    if cuda is None and precision in _NUMPY:
        return lambda rows: _numpy_product(precision, rows), _numpy_stack()
    torch = pytorch.load()
    return lambda rows: _torch_product(torch, precision, rows, cuda), pytorch.stack(torch, cuda)


def _sized(make: Callable[[int], Product], budget_s: float) -> tuple[int, Product]:
    """Rows for which a product takes long enough, and that product, warm."""
    rows = SMALLEST
    while True:
        product = make(rows)
        product()
        seconds = timed(product)()
        # The next size takes eight times as long, twice in this search and then for the repetitions.
        if seconds >= LONG_ENOUGH_S or rows >= MAX_ROWS or 8 * seconds * 5 > budget_s:
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
