"""Distribution of the devices that independent jobs hold together, from its characteristic function.

Each job holds one of a few counts, each with its chance; the product of their characteristic functions on the roots of
unity, transformed back, is the distribution of the sum (Y. Hong, "On computing the distribution function for the
Poisson binomial distribution", Computational Statistics & Data Analysis 59, 2013).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from kuayu.forecast.values import Floats, Whole

Waves = npt.NDArray[np.complex128]

LATTICE = 4096
"""Most points of a distribution; sums that are wider are told in larger units."""

FAR = 9.0
"""Standard deviations on each side of the mean beyond which a sum of many is not looked for."""

SURE = 1e-12
"""A chance that is closer to nought or to one is taken for it."""

TOGETHER = 200_000
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
        found: Floats = self.first + self.mass @ (self.unit * np.arange(self.mass.shape[1]))
        return found

    def at(self, levels: Floats) -> Floats:
        """Quantiles, T × Q: the least point that is not exceeded in so large a share."""
        summed = np.cumsum(self.mass, axis=1)
        summed /= summed[:, -1:]
        found = np.array([np.searchsorted(row, levels - SURE) for row in summed], dtype=float)
        last = self.mass.shape[1] - 1
        quantiles: Floats = np.maximum(self.first[:, None] + self.unit * np.minimum(found, last), 0.0)
        return quantiles


def total(job: Whole, devices: Floats, chance: Floats) -> Spread:
    """Add up what jobs hold.

    Args:
        job: Number of the job of each row, rows of a job next to each other, R.
        devices: Devices that a row stands for, R.
        chance: Chance that the row holds, R × T; those of a job sum up to one at most.
    """
    instants = chance.shape[1]
    if not len(job):
        return Spread(1.0, np.zeros(instants), np.ones((instants, 1)))
    starts = np.flatnonzero(np.diff(job, prepend=job[0] - 1))
    single = np.add.reduceat(devices[:, None] * chance, starts, axis=0)
    square = np.add.reduceat(devices[:, None] ** 2 * chance, starts, axis=0)
    middle, wide = single.sum(axis=0), np.sqrt(np.maximum(square - single**2, 0.0).sum(axis=0))
    most = float(np.maximum.reduceat(devices, starts).sum())
    width = min(most, float((2 * (FAR * wide + 2 * devices.max())).max()))
    # where all counts are multiples of one, nothing lies between its multiples
    common = max(1.0, float(np.gcd.reduce(devices.astype(np.int64))))
    unit = common * max(1.0, float(np.ceil(width / common / (LATTICE - 2))))
    points = 1 << int(np.ceil(np.log2(width / unit + 2)))
    # what lies outside of the points comes back in at the other end, so they may begin anywhere
    first = np.floor(np.where(most <= width, 0.0, np.maximum(middle / unit - points / 2, 0.0)))
    product = _product(starts, devices / unit, chance, points)
    mass = np.fft.irfft(product, points, axis=1)
    mass = np.stack([np.roll(row, -int(at)) for row, at in zip(mass, first, strict=True)])
    mass = np.where(mass < SURE, 0.0, mass)
    mass /= mass.sum(axis=1, keepdims=True)
    if unit == 1 or points * unit > 4 * LATTICE:
        return Spread(unit, first * unit, mass)
    single = np.zeros((instants, points * int(unit)))
    single[:, :: int(unit)] = mass
    return Spread(1.0, first * unit, single)


def _product(starts: Whole, values: Floats, chance: Floats, points: int) -> Waves:
    """Characteristic function of the sum, T × W."""
    distinct, which = np.unique(values, return_inverse=True)
    waves = _waves(distinct, points)
    product = np.ones((chance.shape[1], points // 2 + 1), dtype=complex)
    rows_at_once = max(1, TOGETHER // product.size)
    bounds = np.append(starts, len(values))
    at = 0
    while at < len(starts):
        upto = int(np.searchsorted(bounds, bounds[at] + rows_at_once, side="right")) - 1
        upto = min(max(upto, at + 1), len(starts))
        rows = slice(int(bounds[at]), int(bounds[upto]))
        terms = chance[rows, :, None] * (waves[which[rows]] - 1)[:, None, :]
        product *= (1 + np.add.reduceat(terms, starts[at:upto] - bounds[at], axis=0)).prod(axis=0)
        at = upto
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
    found = mean.sum(axis=0)[:, None] + wide * (scores + skew * (scores**2 - 1) / 6)
    highest = float(np.maximum.reduceat(devices, starts).sum())
    return np.maximum.accumulate(np.clip(np.round(found), 0.0, highest), axis=1)


def added(spread: Spread, cases: Floats) -> Spread:
    """The sum with something independent that takes each of some values equally often.

    Args:
        spread: Distributions at T instants.
        cases: Its values, T × M.
    """
    least = cases.min(axis=1)
    own = (np.arange(spread.mass.shape[1]) * spread.unit).astype(np.float64)
    most = float(own[-1] + (cases - least[:, None]).max())
    unit = max(spread.unit, float(np.ceil(most / (2 * LATTICE))))
    points = 1 << int(np.ceil(np.log2(most / unit + 4)))
    mine = np.stack([_laid(own / unit, row, points) for row in spread.mass])
    even: Floats = np.full(cases.shape[1], 1 / cases.shape[1])
    other = np.stack([_laid(row / unit, even, points) for row in cases - least[:, None]])
    both = np.fft.irfft(np.fft.rfft(mine, axis=1) * np.fft.rfft(other, axis=1), points, axis=1)
    mass = np.where(both < SURE, 0.0, both)
    return Spread(unit, spread.first + least, mass / mass.sum(axis=1, keepdims=True))


def visited(spread: Spread, count: Floats, sizes: Floats, shape: Floats) -> Spread:
    """The sum with visitors who come in groups and hold each of some sizes equally often.

    How many come is distributed by Poisson's law with a mean that is itself distributed as gamma: negative binomial.

    Args:
        spread: Distributions at T instants.
        count: Visitors on average, T.
        sizes: Devices, M.
        shape: Shape of the gamma distribution, T; the less, the more do visitors come together.
    """
    if not len(sizes) or not (count > SURE).any():
        return spread
    mean = count * sizes.mean()
    square = count * np.square(sizes).mean() + mean**2 / shape
    most = float((mean + FAR * np.sqrt(square) + 2 * sizes.max()).max())
    own = (np.arange(spread.mass.shape[1]) * spread.unit).astype(np.float64)
    unit = max(spread.unit, float(np.ceil((own[-1] + most) / (2 * LATTICE))))
    points = 1 << int(np.ceil(np.log2((own[-1] + most) / unit + 4)))
    mine = np.stack([_laid(own / unit, row, points) for row in spread.mass])
    visitor = np.fft.rfft(_laid(sizes / unit, np.full(len(sizes), 1 / len(sizes)), points))
    visitors = (1 + (count / shape)[:, None] * (1 - visitor)) ** -shape[:, None]
    both = np.fft.irfft(np.fft.rfft(mine, axis=1) * visitors, points, axis=1)
    mass = np.where(both < SURE, 0.0, both)
    return Spread(unit, spread.first, mass / mass.sum(axis=1, keepdims=True))


def _waves(values: Floats, points: int) -> Waves:
    """Characteristic function of each value, V × W; between two points it stands on both, so that its mean is kept."""
    low = np.floor(values)
    part = (values - low)[:, None]
    circle = np.exp(-2j * np.pi * np.arange(points) / points)
    places = low.astype(np.int64)[:, None] % points * np.arange(points // 2 + 1) % points
    waves: Waves = circle[places] * (1 - part + part * circle[: points // 2 + 1])
    return waves


def _laid(places: Floats, mass: Floats, points: int) -> Floats:
    """Mass laid on whole places, each on its two neighbours."""
    low = np.floor(places).astype(np.int64)
    part = places - low
    laid = np.zeros(points)
    np.add.at(laid, low, mass * (1 - part))
    np.add.at(laid, low + 1, mass * part)
    return laid
