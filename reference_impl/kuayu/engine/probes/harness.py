"""What a probe is: how often its work is repeated, what it gives, and how it says that it cannot.

1. A probe warms up and repeats its work until a stated time has passed and the spread is small, and gives the median
   with the interquartile range.
2. One that cannot be done here raises ``ProbeUnavailableError``, one that went wrong ``ProbeFailedError``.
3. PyTorch is never required: it is imported only when a probe asks for it and it is installed.
4. Energy counters of devices are in joules, without the wrapping of the counters beneath.
"""

import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kuayu.engine.host import DEVICE_ID, Counters, Host

Progress = Callable[[str, float], None]
"""Told the name of what runs and the share of the whole that is done, between nought and one."""


class ProbeUnavailableError(Exception):
    """The probe cannot be carried out here.

    Attributes:
        cause: Why.
        hint: What would make it possible.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint


class ProbeFailedError(ProbeUnavailableError):
    """The probe ran and its outcome is wrong, or part of it died."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Outcome of a probe.

    Attributes:
        probe: Name of the probe.
        measure: Measure of the information model that it yields.
        unit: UCUM unit of ``value``, ``spread`` and ``detail``.
        value: Median over the repetitions.
        spread: Interquartile range over the repetitions.
        n: Repetitions.
        seconds: Time that they took, warm-up included.
        stack: Software that the work ran on.
        device: Device that it is about; None where it is about the node.
        precision: Numeric precision, where there is one figure for each.
        per_joule: Operations for each joule that the device used meanwhile; None where the energy cannot be known.
        detail: Medians of the parts that ``value`` was made of, by name.
    """

    probe: str
    measure: str
    unit: str
    value: float
    spread: float
    n: int
    seconds: float
    stack: str
    device: str | None = None
    precision: str | None = None
    per_joule: float | None = None
    detail: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Probe, precision and device for people."""
        return " ".join(part for part in (self.probe, self.precision, self.device) if part)


@dataclass(frozen=True, slots=True)
class SkippedProbe:
    """A probe that could not be carried out, with the cause and what would make it possible."""

    name: str
    cause: str
    hint: str


ENOUGH_SECONDS = 1.0
"""Repetitions go on for at least this long, where the budget allows."""
SMALL_SPREAD = 0.05
"""They go on until the interquartile range is at most this share of the median, where the budget allows."""
MIN_REPETITIONS = 3
"""Repetitions that are made whatever the budget: fewer have no quartiles."""

Step = Callable[[float], None]
"""Told the share of the budget that has been used."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Seconds that each repetition took, and that all of them took with what lay between."""

    durations: tuple[float, ...]
    total: float

    @property
    def n(self) -> int:
        """How many there were."""
        return len(self.durations)

    def rate(self, amount: float) -> tuple[float, float]:
        """Median and interquartile range of ``amount`` over the durations."""
        return median_and_spread([amount / duration for duration in self.durations])


def median_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Median and interquartile range, quartiles interpolated linearly."""
    low, middle, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75])
    return float(middle), float(high - low)


def repeat(work: Callable[[], float], budget_s: float, step: Step) -> Repetitions:
    """Carry out ``work``, which returns its own duration in seconds, again and again.

    Ends when :data:`ENOUGH_SECONDS` have passed and the spread is small, or when the next repetition would most likely
    overrun the budget, but never before :data:`MIN_REPETITIONS` repetitions.
    """
    began, durations = time.perf_counter(), list[float]()
    while True:
        durations.append(max(work(), math.ulp(1.0)))
        used = time.perf_counter() - began
        step(min(1.0, used / budget_s) if budget_s > 0 else 1.0)
        if len(durations) < MIN_REPETITIONS:
            continue
        middle, spread = median_and_spread(durations)
        settled = used >= ENOUGH_SECONDS and spread <= SMALL_SPREAD * middle
        if settled or used + used / len(durations) > budget_s:
            step(1.0)
            return Repetitions(tuple(durations), used)


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """``work`` as something that returns how long it took, in seconds."""

    def run() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return run


def has_pytorch() -> bool:
    """Whether PyTorch is installed; looking does not import it."""
    return importlib.util.find_spec("torch") is not None


def load_pytorch() -> Any:
    """The module ``torch``.

    Raises:
        ProbeUnavailableError: It is not installed, or a library that it needs is not.
    """
    if not has_pytorch():
        raise ProbeUnavailableError("PyTorch is not installed", "pip install 'kuayu[training]'")
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:  # the latter where a library does not load
        cause = str(error).partition("\n")[0]
        raise ProbeUnavailableError(f"PyTorch cannot be loaded ({cause})", "pip install 'kuayu[training]'") from error


def cuda_index(uuid: str) -> int:
    """Index under which PyTorch knows the accelerator that the driver gives ``uuid``; the two count differently.

    Raises:
        ProbeUnavailableError: PyTorch is not installed, or cannot use that accelerator.
    """
    torch = load_pytorch()
    for index in range(torch.cuda.device_count()):
        if uuid.endswith(str(torch.cuda.get_device_properties(index).uuid)):
            return index
    raise ProbeUnavailableError("PyTorch cannot use this accelerator", "install a build of PyTorch with CUDA")


def stack(torch: Any, cuda: int | None) -> str:
    """Software that PyTorch's work runs on."""
    return f"torch {torch.__version__}" + (f", CUDA {torch.version.cuda}" if cuda is not None else "")


Joules = Callable[[], float | None]
"""Energy that the device has used since some moment, in joules; None where it cannot be known."""


def energy(host: Host, device: str) -> Joules:
    """Energy counter of the device of that name: an accelerator of ``host``, or its processors."""
    if host.nvidia is not None and device != DEVICE_ID:
        return partial(host.nvidia.joules, device)
    meter, counters, total = host.processor.energy, Counters(host.processor.energy.spans), 0.0

    def joules() -> float | None:
        nonlocal total
        readings = meter.read()
        growth = counters.step(time.monotonic(), readings)
        total += growth.amount if growth else 0.0
        return total if readings else None

    return joules
