"""How the capacity of wires, tariffs and prices vary with time: pure functions, without a horizon.

Measured is this: of the same pair of cloud regions, throughput five days later was 1.32 times as much at the median,
and 0.94 to 2.81 times from the 5th to the 95th percentile (``fitting``); nearly nine in ten pairs rose. Such ratios
cannot be those between two moments of one steady state, which would be as often below one as above. So here the
network has two states, as the days had: *free*, in which wires offer their capacity, and *busy*, in which each offers
it divided by a ratio of the measured distribution, drawn anew for every cell of a few hours. From a busy time to a free
one ratios are distributed as measured, from a free one to a busy one as their inverses. One wire in ten is a little
better off in busy times, as was measured too: its factor is then above one, at most 1.41.

Troubles (cuts, collapses) come on top, by the family.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.topology.clock import ELECTRICITY, HOUR, TARIFF, Daily
from kuayu_conformance.testbed.scheduling.topology.fitted import fitted
from kuayu_conformance.testbed.scheduling.topology.lots import Floats, Lots, Numbers

_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """What befalls both directions of a wire now and then: at most once in each of its periods, at any time of it.

    Attributes:
        name: What it is called, for its stream of chance.
        period: Seconds, a whole number.
        chance: How likely it is in a period.
        lasting: Seconds, a whole number, at most ``period``.
        factor: Share of the capacity that is left.
    """

    name: str
    period: int
    chance: float
    lasting: int
    factor: float


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How the network varies in calm times.

    Attributes:
        cell: Seconds for which a wire keeps its factor, a whole number.
        tide: Seconds after which the network may turn from free to busy or back, a whole number.
        busy: Share of the time in which it is busy.
        depth: How much of the measured loss wires have in busy times.
    """

    cell: int
    tide: int
    busy: float
    depth: float


class Weather:
    """What varies with time alone. Seconds are those of the scenario, from nought on; it begins at midnight."""

    def __init__(
        self, ends: Sequence[tuple[int, int]], rhythm: Rhythm, troubles: Sequence[Trouble], electric: float, seed: str
    ) -> None:
        """Set up.

        Args:
            ends: Number of the place where each wire begins, and of that where it ends.
            rhythm: How the network varies in calm times.
            troubles: What befalls wires.
            electric: Share of electricity in the price of a device.
            seed: What all is drawn from.
        """
        self._rhythm, self._troubles, self._electric = rhythm, tuple(troubles), electric
        self._tariff, self._electricity = Daily(TARIFF), Daily(ELECTRICITY)
        lines = {pair: number for number, pair in enumerate(sorted({(min(end), max(end)) for end in ends}))}
        self._line = np.array([lines[min(end), max(end)] for end in ends], dtype=np.intp)
        begins = np.array([end[0] for end in ends], dtype=np.intp)
        nought = np.zeros(len(ends), dtype=np.intp)
        self._shift = np.floor(Lots(seed, "cells").of(begins, nought) * rhythm.cell)
        self._tide_shift = float(np.floor(Lots(seed, "tide").of(nought[:1], nought[:1])[0] * rhythm.tide))
        self._states, self._depths = Lots(seed, "states"), Lots(seed, "depths")
        self._lots = [(Lots(seed, one.name), Lots(seed, f"{one.name} begins")) for one in self._troubles]
        self._levels, self._ratios = np.array(fitted().levels), np.array(fitted().ratios)
        # what was seen last of each wire, and from when until when it holds: most who ask do so again before it changes
        self._seen, self._since, self._until = np.ones(len(ends)), np.zeros(len(ends)), np.zeros(len(ends))

    def factor(self, wires: Numbers, instant: float) -> Floats:
        """Share of its capacity that each of some wires offers, zero while it is cut; shape of ``wires``.

        Raises:
            ValueError: ``instant`` is before the scenario.
        """
        wires = np.asarray(wires, dtype=np.intp)
        self._look(wires, instant)
        seen: Floats = self._seen[wires]
        return seen

    def until(self, wires: Numbers, instant: float) -> Floats:
        """When each factor changes next, later than ``instant``; infinite where it does not; shape of ``wires``.

        Raises:
            ValueError: ``instant`` is before the scenario.
        """
        wires = np.asarray(wires, dtype=np.intp)
        self._look(wires, instant)
        until: Floats = self._until[wires]
        return until

    def tariff(self, instant: float) -> float:
        """Factor of all tariffs by the time of day."""
        return self._tariff.at(instant)

    def tariff_seconds(self, since: float, until: float) -> float:
        """Integral of ``tariff``, in seconds: what holding a bit a second costs is that times the wire's tariff."""
        return self._tariff.integral(since, until)

    def price(self, instant: float) -> float:
        """Factor of the prices of devices by the time of day: their share of electricity follows its tariff."""
        return 1.0 + self._electric * (self._electricity.at(instant) - 1.0)

    def _look(self, wires: Numbers, instant: float) -> None:
        """See to it that what was seen last of some wires holds now."""
        if instant < 0:
            raise ValueError(f"the scenario begins at second 0, there is no weather at {instant}")
        stale = np.unique(wires[(instant < self._since[wires]) | (instant >= self._until[wires])])
        if not len(stale):
            return
        times = np.full(stale.shape, float(instant))
        self._since[stale], self._seen[stale] = instant, self._factors(stale, times)
        self._until[stale] = self._changes(stale, times)

    def _changes(self, wires: Numbers, times: Floats) -> Floats:
        """When the factors of some wires, as they were seen last, change next."""
        found = np.full(wires.shape, np.inf)
        left = np.flatnonzero(np.full(wires.shape, self._varies()))
        for _ in range(_MOST_STEPS):
            if not len(left):
                break
            times[left] = self._next(wires[left], times[left])
            changed = self._factors(wires[left], times[left]) != self._seen[wires[left]]
            found[left[changed]] = times[left[changed]]
            left = left[~changed]
        return found

    def _varies(self) -> bool:
        ebbs = self._rhythm.depth > 0 and self._rhythm.busy > 0
        return ebbs or any(one.chance > 0 and one.factor != 1 for one in self._troubles)

    def _factors(self, wires: Numbers, times: Floats) -> Floats:
        """Factors, each at a time of its own."""
        factors = self._calm(wires, times)
        for number, trouble in enumerate(self._troubles):
            since, until = self._spell(number, wires, times)
            factors = np.where((since <= times) & (times < until), factors * trouble.factor, factors)
        return factors

    def _calm(self, wires: Numbers, times: Floats) -> Floats:
        """Factors without troubles: the state of the network is that at the beginning of the wire's cell."""
        cells, begins = self._cells(wires, times)
        ratios = _read_off(self._depths.of(wires, cells.astype(np.intp)), self._levels, self._ratios)
        return np.where(self._busy(begins), 1.0 / (1.0 + self._rhythm.depth * (ratios - 1.0)), 1.0)

    def _cells(self, wires: Numbers, times: Floats) -> tuple[Floats, Floats]:
        """Numbers of the cells that some wires are in, and when these begin."""
        cells = np.floor((times + self._shift[wires]) / self._rhythm.cell)
        return cells, np.maximum(cells * self._rhythm.cell - self._shift[wires], 0.0)

    def _busy(self, times: Floats) -> NDArray[np.bool_]:
        tides = np.floor((times + self._tide_shift) / self._rhythm.tide).astype(np.intp)
        return self._states.of(np.zeros(tides.shape, dtype=np.intp), tides) < self._rhythm.busy

    def _spell(self, number: int, wires: Numbers, times: Floats) -> tuple[Floats, Floats]:
        """When the trouble of the present period begins and ends; both infinite where there is none."""
        trouble, (whether, when) = self._troubles[number], self._lots[number]
        period = np.floor(times / trouble.period)
        line, which = self._line[wires], period.astype(np.intp)
        begin = np.floor(when.of(line, which) * (trouble.period - trouble.lasting + 1)) + period * trouble.period
        begin = np.where(whether.of(line, which) < trouble.chance, begin, np.inf)
        return begin, begin + trouble.lasting

    def _next(self, wires: Numbers, times: Floats) -> Floats:
        """When factors may change next: in busy times the end of a cell, else the first cell of the next tide.

        With troubles, also when one of them begins or ends, and at the end of its period.
        """
        cell, shift, tide, ahead = self._rhythm.cell, self._shift[wires], self._rhythm.tide, self._tide_shift
        cells, begins = self._cells(wires, times)
        turn = (np.floor((begins + ahead) / tide) + 1.0) * tide - ahead
        later = np.where(self._busy(begins), cells + 1.0, np.ceil((turn + shift) / cell))
        soonest = later * cell - shift
        for number, trouble in enumerate(self._troubles):
            since, until = self._spell(number, wires, times)
            soonest = np.minimum(soonest, np.where(times < since, since, np.where(times < until, until, np.inf)))
            soonest = np.minimum(soonest, (np.floor(times / trouble.period) + 1.0) * trouble.period)
        return soonest


def rhythm(assumed: dict[str, float]) -> Rhythm:
    """How the network varies, by what is assumed of it."""
    return Rhythm(int(assumed["cell"] * HOUR), int(assumed["tide"] * HOUR), assumed["busy"], assumed["depth"])


def _read_off(shares: Floats, levels: Floats, values: Floats) -> Floats:
    """Values between those of a table, straight between two; ends are kept. Products and sums alone."""
    shares = np.clip(shares, levels[0], levels[-1])
    place = np.clip(np.searchsorted(levels, shares, side="right") - 1, 0, len(levels) - 2)
    part = (shares - levels[place]) / (levels[place + 1] - levels[place])
    inside: Floats = values[place] + (values[place + 1] - values[place]) * part
    return inside
