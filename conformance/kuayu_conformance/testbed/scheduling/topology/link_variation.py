"""How the capacity of links, tariffs and prices vary with time: pure functions, without a horizon.

1. **Hours.** Tariffs of links and the price of electricity follow the time of day. A scenario begins at midnight; China
   keeps one time, so that all domains share the hour.
2. **Chance.** It needs no order: the fraction of a number of a purpose is the same whenever it is asked for. Numbers
   are mixed as in SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
   OOPSLA 2014), in whole numbers modulo 2**64, so that every processor finds the same.
3. **Capacity.** Measured is this: of the same pair of cloud regions, throughput five days later was 1.32 times as much
   at the median, and 0.94 to 2.81 times from the 5th to the 95th percentile
   (:mod:`kuayu_conformance.testbed.scheduling.topology.parameters`); nearly nine in ten pairs rose. Such ratios cannot
   be those between two moments of one steady state, which would be as often below one as above. So here the network has
   two states, as the days had: *free*, in which links offer their capacity, and *busy*, in which each offers it divided
   by a ratio of the measured distribution, drawn anew for every cell of a few hours. From a busy time to a free one
   ratios are distributed as measured, from a free one to a busy one as their inverses. One link in ten is a little
   better off in busy times, as was measured too: its factor is then above one, at most 1.41.

   Link faults (cuts, collapses) come on top, by the family.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.topology.parameters import parameters

HOUR, DAY = 3600.0, 86_400.0
TARIFF = ((0.0, 0.5), (8.0, 1.0))
"""Hours from which on a factor holds: outbound traffic of a large Chinese cloud is 0.25 yuan a gigabyte from midnight
to eight, then 0.50 (Alibaba Cloud, price list of its object storage; replication to another region costs 0.50)."""
ELECTRICITY = ((0.0, 0.5), (7.0, 1.0), (10.0, 1.5), (12.0, 1.0), (17.0, 1.5), (23.0, 0.5))
"""The same for electricity: peak three times the valley, the least that 发改价格〔2021〕1093号 asks for. The hours
differ by province, these are an assumption. The mean of a day is one."""
Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_WHOLE = np.uint64(11)
_FINE = 2.0**-53
_MAX_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Daily:
    """A factor that repeats every day, constant between some hours.

    Attributes:
        steps: Hours of the day, rising from zero, each with the factor from then on.
    """

    steps: tuple[tuple[float, float], ...]

    def at(self, second: float) -> float:
        """The factor at a second of the scenario."""
        hour = (second - DAY * (second // DAY)) / HOUR
        return next(factor for since, factor in reversed(self.steps) if since <= hour)

    def integral(self, since: float, until: float) -> float:
        """Integral over time, in seconds."""
        return self._from_midnight(until) - self._from_midnight(since)

    @property
    def mean(self) -> float:
        """Mean over a day."""
        return self._from_midnight(DAY) / DAY

    def _from_midnight(self, second: float) -> float:
        days = second // DAY
        ends = (*(hour for hour, _ in self.steps[1:]), 24.0)
        lengths = [(end - since) * HOUR for (since, _), end in zip(self.steps, ends, strict=True)]
        whole = sum(length * factor for length, (_, factor) in zip(lengths, self.steps, strict=True))
        left, total = second - days * DAY, days * whole
        for length, (_, factor) in zip(lengths, self.steps, strict=True):
            total += min(left, length) * factor
            left = max(left - length, 0.0)
        return total


class Lots:
    """Fractions of one purpose of a seed, for pairs of whole numbers."""

    def __init__(self, seed: str, purpose: str) -> None:
        digest = sha256(f"{seed}/{purpose}".encode()).digest()
        self._key = np.array([int.from_bytes(digest[:8], "big")], dtype=np.uint64)

    def of(self, who: Numbers, which: Numbers) -> Floats:
        """Numbers of [0, 1), one for each of some pairs, none of which may be negative; shape of ``who``."""
        once = _mixed(self._key + who.astype(np.uint64) * _STEP)
        return (_mixed(once + which.astype(np.uint64) * _STEP) >> _WHOLE).astype(np.float64) * _FINE


@dataclass(frozen=True, slots=True)
class LinkFault:
    """What befalls both directions of a link now and then: at most once in each of its periods, at any time of it.

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
        cell: Seconds for which a link keeps its factor, a whole number.
        tide: Seconds after which the network may turn from free to busy or back, a whole number.
        busy: Share of the time in which it is busy.
        depth: How much of the measured loss links have in busy times.
    """

    cell: int
    tide: int
    busy: float
    depth: float


class LinkVariation:
    """What varies with time alone. Seconds are those of the scenario, from zero on; it begins at midnight."""

    def __init__(
        self,
        ends: Sequence[tuple[int, int]],
        rhythm: Rhythm,
        link_faults: Sequence[LinkFault],
        electric: float,
        seed: str,
    ) -> None:
        """Set up.

        Args:
            ends: Number of the place where each link begins, and of that where it ends.
            rhythm: How the network varies in calm times.
            link_faults: What befalls links.
            electric: Share of electricity in the price of a device.
            seed: What all is drawn from.
        """
        self._rhythm, self._link_faults, self._electric = rhythm, tuple(link_faults), electric
        self._tariff, self._electricity = Daily(TARIFF), Daily(ELECTRICITY)
        lines = {pair: number for number, pair in enumerate(sorted({(min(end), max(end)) for end in ends}))}
        self._line = np.array([lines[min(end), max(end)] for end in ends], dtype=np.intp)
        begins = np.array([end[0] for end in ends], dtype=np.intp)
        zeros = np.zeros(len(ends), dtype=np.intp)
        self._shift = np.floor(Lots(seed, "cells").of(begins, zeros) * rhythm.cell)
        self._tide_shift = float(np.floor(Lots(seed, "tide").of(zeros[:1], zeros[:1])[0] * rhythm.tide))
        self._states, self._depths = Lots(seed, "states"), Lots(seed, "depths")
        self._lots = [(Lots(seed, one.name), Lots(seed, f"{one.name} begins")) for one in self._link_faults]
        self._levels, self._ratios = np.array(parameters().levels), np.array(parameters().ratios)
        # what was seen last of each link, and from when until when it holds: most who ask do so again before it changes
        self._seen, self._since, self._until = np.ones(len(ends)), np.zeros(len(ends)), np.zeros(len(ends))

    def factor(self, links: Numbers, instant: float) -> Floats:
        """Share of its capacity that each of some links offers, zero while it is cut; shape of ``links``.

        Raises:
            ValueError: ``instant`` is before the scenario.
        """
        links = np.asarray(links, dtype=np.intp)
        self._look(links, instant)
        seen: Floats = self._seen[links]
        return seen

    def until(self, links: Numbers, instant: float) -> Floats:
        """When each factor changes next, later than ``instant``; infinite where it does not; shape of ``links``.

        Raises:
            ValueError: ``instant`` is before the scenario.
        """
        links = np.asarray(links, dtype=np.intp)
        self._look(links, instant)
        until: Floats = self._until[links]
        return until

    def tariff(self, instant: float) -> float:
        """Factor of all tariffs by the time of day."""
        return self._tariff.at(instant)

    def tariff_seconds(self, since: float, until: float) -> float:
        """Integral of ``tariff``, in seconds: what holding a bit a second costs is that times the link's tariff."""
        return self._tariff.integral(since, until)

    def price(self, instant: float) -> float:
        """Factor of the prices of devices by the time of day: their share of electricity follows its tariff."""
        return 1.0 + self._electric * (self._electricity.at(instant) - 1.0)

    def _look(self, links: Numbers, instant: float) -> None:
        """See to it that what was seen last of some links holds now."""
        if instant < 0:
            raise ValueError(f"the scenario begins at second 0, nothing varies at {instant}")
        stale = np.unique(links[(instant < self._since[links]) | (instant >= self._until[links])])
        if not len(stale):
            return
        times = np.full(stale.shape, float(instant))
        self._since[stale], self._seen[stale] = instant, self._factors(stale, times)
        self._until[stale] = self._changes(stale, times)

    def _changes(self, links: Numbers, times: Floats) -> Floats:
        """When the factors of some links, as they were seen last, change next."""
        instants = np.full(links.shape, np.inf)
        left = np.flatnonzero(np.full(links.shape, self._varies()))
        for _ in range(_MAX_STEPS):
            if not len(left):
                break
            times[left] = self._next(links[left], times[left])
            changed = self._factors(links[left], times[left]) != self._seen[links[left]]
            instants[left[changed]] = times[left[changed]]
            left = left[~changed]
        return instants

    def _varies(self) -> bool:
        ebbs = self._rhythm.depth > 0 and self._rhythm.busy > 0
        return ebbs or any(one.chance > 0 and one.factor != 1 for one in self._link_faults)

    def _factors(self, links: Numbers, times: Floats) -> Floats:
        """Factors, each at a time of its own."""
        factors = self._calm(links, times)
        for number, fault in enumerate(self._link_faults):
            since, until = self._spell(number, links, times)
            factors = np.where((since <= times) & (times < until), factors * fault.factor, factors)
        return factors

    def _calm(self, links: Numbers, times: Floats) -> Floats:
        """Factors without link faults: the state of the network is that at the beginning of the link's cell."""
        cells, begins = self._cells(links, times)
        ratios = _read_off(self._depths.of(links, cells.astype(np.intp)), self._levels, self._ratios)
        return np.where(self._busy(begins), 1.0 / (1.0 + self._rhythm.depth * (ratios - 1.0)), 1.0)

    def _cells(self, links: Numbers, times: Floats) -> tuple[Floats, Floats]:
        """Numbers of the cells that some links are in, and when these begin."""
        cells = np.floor((times + self._shift[links]) / self._rhythm.cell)
        return cells, np.maximum(cells * self._rhythm.cell - self._shift[links], 0.0)

    def _busy(self, times: Floats) -> NDArray[np.bool_]:
        tides = np.floor((times + self._tide_shift) / self._rhythm.tide).astype(np.intp)
        return self._states.of(np.zeros(tides.shape, dtype=np.intp), tides) < self._rhythm.busy

    def _spell(self, number: int, links: Numbers, times: Floats) -> tuple[Floats, Floats]:
        """When the fault of the present period begins and ends; both infinite where there is none."""
        fault, (whether, when) = self._link_faults[number], self._lots[number]
        period = np.floor(times / fault.period)
        line, which = self._line[links], period.astype(np.intp)
        begin = np.floor(when.of(line, which) * (fault.period - fault.lasting + 1)) + period * fault.period
        begin = np.where(whether.of(line, which) < fault.chance, begin, np.inf)
        return begin, begin + fault.lasting

    def _next(self, links: Numbers, times: Floats) -> Floats:
        """When factors may change next: in busy times the end of a cell, else the first cell of the next tide.

        With link faults, also when one of them begins or ends, and at the end of its period.
        """
        cell, shift, tide, ahead = self._rhythm.cell, self._shift[links], self._rhythm.tide, self._tide_shift
        cells, begins = self._cells(links, times)
        change = (np.floor((begins + ahead) / tide) + 1.0) * tide - ahead
        later = np.where(self._busy(begins), cells + 1.0, np.ceil((change + shift) / cell))
        soonest = later * cell - shift
        for number, fault in enumerate(self._link_faults):
            since, until = self._spell(number, links, times)
            soonest = np.minimum(soonest, np.where(times < since, since, np.where(times < until, until, np.inf)))
            soonest = np.minimum(soonest, (np.floor(times / fault.period) + 1.0) * fault.period)
        return soonest


def rhythm(assumed: dict[str, float]) -> Rhythm:
    """How the network varies, by what is assumed of it."""
    return Rhythm(int(assumed["cell"] * HOUR), int(assumed["tide"] * HOUR), assumed["busy"], assumed["depth"])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    numbers = numbers + _STEP
    numbers = (numbers ^ (numbers >> _SHIFTS[0])) * _FIRST
    numbers = (numbers ^ (numbers >> _SHIFTS[1])) * _SECOND
    return numbers ^ (numbers >> _SHIFTS[2])


def _read_off(shares: Floats, levels: Floats, values: Floats) -> Floats:
    """Values between those of a table, straight between two; ends are kept. Products and sums alone."""
    shares = np.clip(shares, levels[0], levels[-1])
    place = np.clip(np.searchsorted(levels, shares, side="right") - 1, 0, len(levels) - 2)
    part = (shares - levels[place]) / (levels[place + 1] - levels[place])
    inside: Floats = values[place] + (values[place + 1] - values[place]) * part
    return inside
