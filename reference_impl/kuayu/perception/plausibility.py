"""What cannot be taken: instants of clocks that are off, and values that cannot be.

1. Where a sender's clock is off by more than :data:`TOLERATED_OFFSET`, its instants are corrected; observed and
   received instants are both kept. An instant may lie little ahead of its receipt, and no further back than samples are
   kept.
2. A blank is what exporters write where they have nothing: the largest or smallest number of an integer or floating
   type of 32 or 64 bits, or one that the register names for the exporter. It is compared with the field as it stands on
   the page, before the factor.
3. A ceiling of the register bounds what one series of a device or node gives.
4. What a device was registered with bounds what is measured of it. Registered figures are those of data sheets:
   capacities are often given in GB where the driver counts GiB (7.4 % more), and power limits are exceeded for moments.

Sources: the standard's rule on time; NVIDIA DCGM ``dcgm_structs.h`` (``DCGM_INT32_BLANK`` 0x7ffffff0,
``DCGM_INT64_BLANK`` 0x7ffffffffffffff0, ``DCGM_FP64_BLANK`` 140737488355328.0, each with four more kinds);
NVIDIA/dcgm-exporter#418 and NVIDIA/DCGM#199 (4294967295 now and then); ROCm amdsmi, which fills what a device lacks
with the largest number of the field's type.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kuayu_schemas.models import Exporter, Measure

TOLERATED_OFFSET = 2_000
"""Milliseconds by which a sender's clock may be off before its instants are corrected."""

TOLERATED_FUTURE = 60_000
"""Milliseconds by which an instant may lie ahead of its receipt."""

BLANKS = frozenset(
    {
        float(2**31 - 1),
        float(-(2**31)),
        float(2**32 - 1),
        float(2**63),  # 2^63 − 1 and the blanks of DCGM below it, as a double
        float(-(2**63)),
        float(2**64),  # 2^64 − 1
        3.4028234663852886e38,
        -3.4028234663852886e38,
        1.7976931348623157e308,
        -1.7976931348623157e308,
    }
)
"""Limits of the types in which exporters hold what they publish."""

CAPACITY_MARGIN = 1.1
"""Times the registered capacity that is still taken as measured."""

POWER_MARGIN = 2.0
"""Times the registered power limit that is still taken as measured."""


class TimeFault(StrEnum):
    """Why an instant cannot be taken; the values are names of problem types."""

    clock_skew = "clock-skew"
    too_old = "too-old"


def clock_offset(sent: int | None, received: int) -> int:
    """Milliseconds to add to every instant of a sender whose clock showed ``sent`` when it was ``received`` here."""
    if sent is None or abs(received - sent) <= TOLERATED_OFFSET:
        return 0
    return received - sent


def time_fault(observed: int, received: int, retention: int) -> TimeFault | None:
    """Tell why an instant cannot be taken, or None where it can.

    Args:
        observed: The instant after correction, in milliseconds.
        received: When it was received, in milliseconds.
        retention: How long samples are kept, in milliseconds.
    """
    if observed > received + TOLERATED_FUTURE:
        return TimeFault.clock_skew
    if observed < received - retention:
        return TimeFault.too_old
    return None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device was registered with, in By and W; None where the registration does not say."""

    memory_capacity: float | None = None
    power_limit: float | None = None

    def largest(self, measure: str) -> float | None:
        """The largest value of a measure that the device can have, by its registration."""
        if measure in {"accelerator_memory_capacity", "accelerator_memory_used"} and self.memory_capacity:
            return CAPACITY_MARGIN * self.memory_capacity
        if measure == "power" and self.power_limit:
            return POWER_MARGIN * self.power_limit
        return None


DeviceLimits = Mapping[str, Limits]
"""Limits by device."""

UNLIMITED = Limits()


def is_blank(exporter: Exporter, value: float) -> bool:
    """Whether a field's value says that the exporter has none."""
    return value in BLANKS or value in (exporter.blanks or ())


def above_ceiling(measure: Measure, term: float) -> str | None:
    """Why no single series can give so much of a measure, or None where one can; in the measure's unit."""
    if measure.ceiling is not None and term > measure.ceiling:
        return f"is above {measure.ceiling:g}, more than one device, disk or port can have"
    return None


def excess(measure: Measure, value: float, limits: Limits = UNLIMITED) -> str | None:
    """Why a measure cannot have the value, or None where it can; in the measure's unit."""
    if not math.isfinite(value):
        return "is not finite"
    if measure.minimum is not None and value < measure.minimum:
        return f"is below {measure.minimum:g}, the least of the register"
    if measure.maximum is not None and value > measure.maximum:
        return f"is above {measure.maximum:g}, the most of the register"
    largest = limits.largest(measure.name)
    if largest is not None and value > largest:
        return f"is above {largest:g}, more than the device was registered with"
    return None
