"""Near-misses and controls of what the compute index makes of measurements that it has not seen."""

from itertools import pairwise
from math import sqrt

from typing_extensions import override

from mutants.declaration import control, near_miss
from mutants.oracle import Held, Oracle

Estimate = tuple[float, float, float]
"""Value and ends of its interval."""


class TooHigh(Oracle):
    """Every index is too high by the same factor, which keeps the order of devices."""

    factor = 1.0

    @override
    def foretold(self, held: Held) -> Estimate:
        return held.truth * self.factor, held.truth / 1.2, held.truth * 1.2


@near_miss("IDX-001")
class IndicesAreTenAndAHalfPercentTooHigh(TooHigh):
    """Indices are 10.5 % too high, where they may be 10 % off."""

    factor = 1.105


@control("IDX-001")
class IndicesAreNineAndAHalfPercentTooHigh(TooHigh):
    """Indices are 9.5 % too high, where they may be 10 % off."""

    factor = 1.095


class CloseOnesAreSwapped(Oracle):
    """Two devices whose throughputs on a task are close are told in the wrong order, each next to their mean."""

    close = 1.0

    @override
    def foretold(self, held: Held) -> Estimate:
        other = self.swapped(held).get(held.device)
        value = held.truth
        if other is not None:
            mine, theirs = (held.table.truth[device, held.task] for device in (held.device, other))
            value = sqrt(mine * theirs) * (0.999 if mine > theirs else 1.001) / held.unit
        return value, min(value, held.truth) / 1.05, max(value, held.truth) * 1.05

    def swapped(self, held: Held) -> dict[str, str]:
        """Devices of the task that change places, each with the other; the closest first."""
        ranking = sorted(
            (throughput, device) for (device, task), throughput in held.table.truth.items() if task == held.task
        )
        pairs: dict[str, str] = {}
        for (low, one), (high, other) in sorted(pairwise(ranking), key=lambda pair: pair[1][0] / pair[0][0]):
            if high < low * self.close and one not in pairs and other not in pairs:
                pairs |= {one: other, other: one}
        return pairs


@near_miss("IDX-002", "IDX-001")
class DevicesWithinAFactorOfTwoAreSwapped(CloseOnesAreSwapped):
    """Devices whose throughputs differ by less than a factor of two are told in the wrong order.

    Whoever keeps the order this badly is further off than 10 %, too: nine tenths of the pairs in order is not much.
    """

    close = 2.0


@control("IDX-002")
class DevicesWithinATwentiethAreSwapped(CloseOnesAreSwapped):
    """Devices whose throughputs differ by less than a twentieth are told in the wrong order."""

    close = 1.05


class SomeIntervalsMiss(Oracle):
    """Of the intervals, one in so many begins above the measured value."""

    one_in = 0

    @override
    def foretold(self, held: Held) -> Estimate:
        if held.number % self.one_in:
            return super().foretold(held)
        return held.truth * 1.05, held.truth * 1.02, held.truth * 1.08


@near_miss("IDX-003")
class AQuarterOfIntervalsMisses(SomeIntervalsMiss):
    """Three intervals in four hold the measured value, where four in five are to."""

    one_in = 4


@control("IDX-003")
class ATenthOfIntervalsMisses(SomeIntervalsMiss):
    """Nine intervals in ten hold the measured value, where four in five are to."""

    one_in = 10


class SomeIntervalsAreWide(Oracle):
    """Of so many intervals, some are wider than the tolerance."""

    wide, of = 0, 1

    @override
    def foretold(self, held: Held) -> Estimate:
        if held.number % self.of >= self.wide:
            return super().foretold(held)
        return held.truth, held.truth / 1.5, held.truth * 1.5


@near_miss("IDX-004")
class TwoFifthsAreAbstainedFrom(SomeIntervalsAreWide):
    """Two indices in five are abstained from, where one in three may be."""

    wide, of = 2, 5


@control("IDX-004")
class ATenthIsAbstainedFrom(SomeIntervalsAreWide):
    """One index in ten is abstained from, where one in three may be."""

    wide, of = 1, 10
