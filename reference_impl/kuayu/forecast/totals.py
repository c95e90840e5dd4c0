"""Distributions of the devices that independent jobs hold together, from their characteristic functions.

1. Each job holds one of a few counts, each with its chance; the product of their characteristic functions on the roots
   of unity, transformed back, is the distribution of the sum (Y. Hong, "On computing the distribution function for the
   Poisson binomial distribution", Computational Statistics & Data Analysis 59, 2013).
2. A job that surely holds what it holds moves the sum and widens nothing.
3. Sums of many series are transformed together, those on lattices of one size in one array.

Example: two jobs of 8 and 16 devices that each stay with a chance of one half hold 0, 8, 16 or 24, a quarter each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from kuayu.forecast.requests import Floats, Whole

Waves = npt.NDArray[np.complex128]

LATTICE = 4096
"""Most points of a distribution; sums that are wider are told in larger units."""

RESOLUTION = 2000.0
"""Most points of a sum with what comes to jobs: a quantile is off by no more than so small a part of its range."""

FAR = 9.0
"""Standard deviations on each side of the mean beyond which a sum of many is not looked for."""

FAR_VISITORS = 14.0
"""The same above the mean of visitors, whose numbers have longer tails."""

SURE = 1e-12
"""A chance that is closer to zero or to one is taken for it."""

MAX_NUMBERS = 400_000
"""Most numbers in a table of characteristic functions."""


@dataclass(frozen=True)
class Spread:
    """Distributions of sums at T instants.

    Attributes:
        unit: Devices from one point to the next.
        first: Devices at the first point, T.
        mass: Chance of each point, T × G.
    """

    unit: float
    first: Floats
    mass: Floats

    @property
    def mean(self) -> Floats:
        """Devices on average, T."""
        devices: Floats = self.first + self.mass @ (self.unit * np.arange(self.mass.shape[1]))
        return devices

    def at(self, levels: Floats) -> Floats:
        """Quantiles, T × Q: the least point that is not exceeded in so large a share."""
        return quantiles(self.first, np.full(len(self.first), self.unit), self.mass, levels)


@dataclass(frozen=True)
class Additions:
    """What comes to the jobs of one series, all independent of them.

    Attributes:
        cases: Equally frequent values of what they do not explain, T × M.
        count: Visitors on average, T.
        sizes: Devices of a visitor, each equally often, K.
        shape: Shape of the gamma distribution by which the count varies, T; the less, the more come together.
    """

    cases: Floats
    count: Floats
    sizes: Floats
    shape: Floats


def quantiles(first: Floats, unit: Floats, mass: Floats, levels: Floats) -> Floats:
    """Quantiles of N distributions, N × Q, for first points and units of N and masses of N × G."""
    summed = np.cumsum(mass, axis=1)
    summed /= summed[:, -1:]
    places = np.array([row.searchsorted(levels - SURE) for row in summed], dtype=float).reshape(len(mass), len(levels))
    last = mass.shape[1] - 1
    values: Floats = np.maximum(first[:, None] + unit[:, None] * np.minimum(places, last), 0.0)
    return values


def total(job: Whole, devices: Floats, chance: Floats) -> Spread:
    """Add up what jobs hold.

    Args:
        job: Number of the job of each row, rows of a job next to each other, R.
        devices: Devices that a row stands for, R.
        chance: Chance that the row holds, R × T; those of a job sum up to one at most.
    """
    return totals(np.zeros(len(job), dtype=np.int64), job, devices, chance, 1)[0]


def totals(owner: Whole, job: Whole, devices: Floats, chance: Floats, count: int) -> list[Spread]:
    """Add up what the jobs of several series hold.

    Args:
        owner: Number of the series of each row, rising, R.
        job: Number of the job of each row, rows of a job and series next to each other, R.
        devices: Devices that a row stands for, R.
        chance: Chance that the row holds, R × T; those of a job sum up to one at most.
        count: How many series there are.
    """
    instants = chance.shape[1]
    base = np.zeros((count, instants))
    spreads = [Spread(1.0, row, np.ones((instants, 1))) for row in base]
    if not len(job):
        return spreads
    starts = _starts(owner, job)
    single = np.add.reduceat(devices[:, None] * chance, starts, axis=0)
    square = np.add.reduceat(devices[:, None] ** 2 * chance, starts, axis=0)
    sure = (square - single**2 <= SURE * np.maximum.reduceat(devices, starts)[:, None] ** 2).all(axis=1)
    np.add.at(base, owner[starts[sure]], np.round(single[sure], 6))
    rows = np.repeat(~sure, np.diff(np.append(starts, len(job))))
    if not rows.any():
        return spreads
    owner, job, devices, chance = owner[rows], job[rows], devices[rows], chance[rows]
    lattice = _Lattices.of(owner, job, devices, single[~sure], square[~sure])
    for points, unit in sorted(set(zip(lattice.points.tolist(), lattice.unit.tolist(), strict=True))):
        alike = np.flatnonzero((lattice.points == points) & (lattice.unit == unit))
        most = max(1, MAX_NUMBERS // (instants * (points // 2 + 1)))
        for some in (alike[number : number + most] for number in range(0, len(alike), most)):
            picked = np.isin(owner, lattice.owner[some])
            waves = _products(owner[picked], job[picked], devices[picked] / unit, chance[picked], points)
            for series, first, mass in zip(lattice.owner[some], lattice.first[some], _back(waves, points), strict=True):
                turned = np.take_along_axis(
                    mass, (np.arange(points) + first[:, None].astype(np.int64)) % points, axis=1
                )
                spreads[series] = _plain(unit, base[series] + first * unit, turned)
    return spreads


def _starts(owner: Whole, job: Whole) -> Whole:
    """First rows of the jobs of each series."""
    return np.flatnonzero((np.diff(job, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0))


@dataclass(frozen=True)
class _Lattices:
    """Points on which the sums of some series lie.

    Attributes:
        owner: Numbers of the series, N.
        unit: Devices from one point to the next, N.
        points: How many, powers of two, N.
        first: Units of the first point, N × T.
    """

    owner: Whole
    unit: Floats
    points: Whole
    first: Floats

    @staticmethod
    def of(owner: Whole, job: Whole, devices: Floats, single: Floats, square: Floats) -> "_Lattices":
        """Lattices of rows, R, whose jobs have these first and second moments, J × T."""
        starts = _starts(owner, job)
        jobs = np.flatnonzero(np.diff(owner[starts], prepend=-1))
        rows = starts[jobs]
        middle = np.add.reduceat(single, jobs, axis=0)
        wide = np.sqrt(np.add.reduceat(np.maximum(square - single**2, 0.0), jobs, axis=0))
        most = np.add.reduceat(np.maximum.reduceat(devices, starts), jobs)
        largest = np.maximum.reduceat(devices, rows)
        width = np.minimum(most, 2 * (FAR * wide.max(axis=1) + 2 * largest))
        # where all counts are multiples of one, nothing lies between its multiples
        common = np.maximum(1.0, np.gcd.reduceat(devices.astype(np.int64), rows).astype(float))
        unit = common * np.maximum(1.0, np.ceil(width / common / (LATTICE - 2)))
        points = 1 << np.ceil(np.log2(width / unit + 2)).astype(np.int64)
        # what lies outside of the points comes back in at the other end, so they may begin anywhere
        first = np.maximum(middle / unit[:, None] - points[:, None] / 2, 0.0)
        first = np.floor(np.where((most <= width)[:, None], 0.0, first))
        return _Lattices(owner[rows], unit, points, first)


def _back(waves: Waves, points: int) -> Floats:
    """Masses of characteristic functions, … × points, nothing below SURE."""
    mass = np.fft.irfft(waves, points, axis=-1)
    mass = np.where(mass < SURE, 0.0, mass)
    masses: Floats = mass / mass.sum(axis=-1, keepdims=True)
    return masses


def _plain(unit: float, first: Floats, mass: Floats) -> Spread:
    """A distribution in single devices, where that is not too long."""
    points = mass.shape[1]
    if unit == 1 or points * unit > 4 * LATTICE:
        return Spread(unit, first, mass)
    single = np.zeros((len(mass), points * int(unit)))
    single[:, :: int(unit)] = mass
    return Spread(1.0, first, single)


def _products(owner: Whole, job: Whole, values: Floats, chance: Floats, points: int) -> Waves:
    """Characteristic functions of the sums of each series, S × T × W."""
    distinct, which = np.unique(values, return_inverse=True)
    waves = _waves(distinct, points) - 1
    starts = _starts(owner, job)
    of_job = owner[starts]
    series = np.flatnonzero(np.diff(of_job, prepend=-1))
    product = np.ones((len(series), chance.shape[1], points // 2 + 1), dtype=complex)
    place = np.cumsum(np.diff(of_job, prepend=-1) != 0) - 1
    width = max(1, MAX_NUMBERS // product[0].size)
    bounds = np.append(starts, len(values))
    offset = 0
    while offset < len(starts):
        upto = int(np.searchsorted(bounds, bounds[offset] + width, side="right")) - 1
        upto = min(max(upto, offset + 1), len(starts))
        rows = slice(int(bounds[offset]), int(bounds[upto]))
        terms = chance[rows, :, None] * waves[which[rows]][:, None, :]
        if bounds[upto] - bounds[offset] > upto - offset:
            terms = np.add.reduceat(terms, starts[offset:upto] - bounds[offset], axis=0)
        terms += 1
        own = np.flatnonzero(np.diff(place[offset:upto], prepend=-1))
        product[place[offset:upto][own]] *= np.multiply.reduceat(terms, own, axis=0)
        offset = upto
    return product


def near(job: Whole, devices: Floats, chance: Floats, levels: Floats) -> Floats:
    """Quantiles of what many jobs hold, T × Q, from three moments (Cornish and Fisher's expansion).

    Args:
        job: Number of the job of each row, rows of a job next to each other, R.
        devices: Devices that a row stands for, R.
        chance: Chance that the row holds, R × T; those of a job sum up to one at most.
        levels: Levels, rising, Q.
    """
    starts = np.flatnonzero(np.diff(job, prepend=-1))
    raw = [np.add.reduceat(devices[:, None] ** power * chance, starts, axis=0) for power in (1, 2, 3)]
    mean, square, cube = raw
    variance = np.maximum(square - mean**2, 0.0).sum(axis=0)
    third = (cube - 3 * mean * square + 2 * mean**3).sum(axis=0)
    wide = np.sqrt(variance)[:, None]
    skew = np.clip(third[:, None] / np.maximum(wide, SURE) ** 3, -1.0, 1.0)
    scores = ndtri(levels)
    quantiles_of = mean.sum(axis=0)[:, None] + wide * (scores + skew * (scores**2 - 1) / 6)
    highest = float(np.maximum.reduceat(devices, starts).sum())
    return np.maximum.accumulate(np.clip(np.round(quantiles_of), 0.0, highest), axis=1)


def added(spread: Spread, cases: Floats) -> Spread:
    """The sum with something independent that takes each of some values equally often, T × M."""
    none = np.zeros(len(cases))
    return convolved([spread], [Additions(cases, none, none[:0], none + 1)])[0]


def convolved(spreads: Sequence[Spread], additions: Sequence[Additions]) -> list[Spread]:
    """Sums of what jobs hold, of what they do not explain, and of visitors.

    How many visitors come is distributed by Poisson's law with a mean that is itself distributed as gamma: negative
    binomial.

    Args:
        spreads: Of jobs, for each series.
        additions: What comes to them, for each series.
    """
    groups: dict[tuple[int, float, float, int], list[int]] = {}
    for number, (spread, addition) in enumerate(zip(spreads, additions, strict=True)):
        groups.setdefault(_lattice(spread, addition), []).append(number)
    sums: list[Spread] = list(spreads)
    for (_, own, unit, points), numbers in groups.items():
        instants = len(spreads[numbers[0]].first)
        most = max(1, MAX_NUMBERS // (instants * points))
        for some in (numbers[number : number + most] for number in range(0, len(numbers), most)):
            summed = _summed([spreads[one] for one in some], [additions[one] for one in some], own, unit, points)
            for one, spread in zip(some, summed, strict=True):
                sums[one] = spread
    return sums


def _lattice(spread: Spread, addition: Additions) -> tuple[int, float, float, int]:
    """Length and unit of a distribution, and unit and points of the sum."""
    cases, count, sizes = addition.cases, addition.count, addition.sizes
    length = spread.mass.shape[1]
    most = (length - 1) * spread.unit + float((cases.max(axis=1) - cases.min(axis=1)).max())
    if len(sizes) and count.max() > SURE:
        mean = count * float(sizes.mean())
        square = count * float(sizes @ sizes) / len(sizes) + mean**2 / addition.shape
        most += float((mean + FAR_VISITORS * np.sqrt(square)).max()) + 2 * float(sizes.max())
    unit = max(spread.unit, float(np.ceil(most / RESOLUTION)))
    return length, spread.unit, unit, 1 << int(np.ceil(np.log2(most / unit + 4)))


def _summed(
    spreads: Sequence[Spread], additions: Sequence[Additions], own: float, unit: float, points: int
) -> Iterator[Spread]:
    """Sums of distributions on one lattice with additions."""
    instants = len(spreads[0].first)
    mass = np.concatenate([spread.mass for spread in spreads])
    if own != unit:
        places = np.broadcast_to(np.arange(mass.shape[1]) * (own / unit), mass.shape)
        mass = _laid(places, mass, points)
    waves = np.fft.rfft(mass, points, axis=1)
    cases = np.concatenate([addition.cases for addition in additions])
    least = cases.min(axis=1)
    if np.ptp(cases, axis=1).any():
        even = np.full(cases.shape, 1 / cases.shape[1])
        waves *= np.fft.rfft(_laid((cases - least[:, None]) / unit, even, points), axis=1)
    count = np.concatenate([addition.count for addition in additions])
    unsure = count > SURE
    if unsure.any():
        waves[unsure] *= _visitors(additions, count, unsure, unit, points)
    masses = _back(waves, points)
    for number, spread in enumerate(spreads):
        rows = slice(number * instants, (number + 1) * instants)
        yield Spread(unit, spread.first + least[rows], masses[rows])


def _visitors(
    additions: Sequence[Additions], count: Floats, chosen: npt.NDArray[np.bool_], unit: float, points: int
) -> Waves:
    """Characteristic functions of visitors where some come, N × W."""
    longest = max(len(addition.sizes) for addition in additions)
    sizes, weights = np.zeros((2, len(additions), longest))
    for row, weight, addition in zip(sizes, weights, additions, strict=True):
        row[: len(addition.sizes)] = addition.sizes / unit
        weight[: len(addition.sizes)] = 1 / max(len(addition.sizes), 1)
    visitor = np.fft.rfft(_laid(sizes, weights, points), axis=1)
    shape = np.concatenate([addition.shape for addition in additions])[chosen, None]
    owner = np.repeat(np.arange(len(additions)), [len(addition.count) for addition in additions])[chosen]
    mean = count[chosen, None] / shape
    # the power of a complex number by its modulus and its angle, which take less time apart
    real, imaginary = 1 + mean * (1 - visitor.real[owner]), -mean * visitor.imag[owner]
    size = np.exp(-shape / 2 * np.log(real**2 + imaginary**2))
    angle = -shape * np.arctan2(imaginary, real)
    waves: Waves = size * np.cos(angle) + 1j * (size * np.sin(angle))
    return waves


def _waves(values: Floats, points: int) -> Waves:
    """Characteristic function of each value, V × W; between two points it stands on both, so that its mean is kept."""
    low = np.floor(values)
    part = (values - low)[:, None]
    circle = np.exp(-2j * np.pi * np.arange(points) / points)
    places = low.astype(np.int64)[:, None] % points * np.arange(points // 2 + 1) % points
    waves: Waves = circle[places] * (1 - part + part * circle[: points // 2 + 1])
    return waves


def _laid(places: Floats, mass: Floats, points: int) -> Floats:
    """Mass laid on whole places, each on its two neighbours, N × points for N × M."""
    low = np.floor(places)
    part = places - low
    index = (low.astype(np.int64) + np.arange(len(places))[:, None] * points).ravel()
    size = len(places) * points
    lower: Floats = (mass * (1 - part)).ravel()
    laid: Floats = np.bincount(index, lower, size)[:size].astype(np.float64)
    upper = (mass * part).ravel()
    if upper.any():
        laid = laid + np.bincount(index + 1, upper, size)[:size]
    table: Floats = laid.reshape(len(places), points)
    return table
