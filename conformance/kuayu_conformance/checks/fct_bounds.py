"""Bounds of ratios of totals over blocks: days of worlds are drawn whole, as demand within a day hangs together.

Source: H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", The Annals of Statistics 17
(1989) 1217-1241, with blocks that do not overlap; days of independent worlds are exchangeable but for the weekday.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from kuayu_conformance.testbed.chance import stream

RESAMPLES = 4000
CONFIDENCE = 0.95

Totals = tuple[list[float], list[float]]
"""Totals by block: what is divided, and by what."""


def gathered(parts: Iterable[tuple[Hashable, float, float]]) -> Totals:
    """Totals by block, from blocks with what is divided and by what, in any number."""
    over: dict[Hashable, float] = {}
    under: dict[Hashable, float] = {}
    for block, above, below in parts:
        over[block] = over.get(block, 0.0) + above
        under[block] = under.get(block, 0.0) + below
    return list(over.values()), list(under.values())


def ratio(totals: Totals) -> float:
    """The ratio itself; nought over nought is nought."""
    over, under = sum(totals[0]), sum(totals[1])
    return over / under if under else (0.0 if over == 0.0 else float("inf"))


def ratio_bounds(totals: Totals, seed: str, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """One-sided lower and upper bounds of the ratio, by the percentiles of bootstrap ratios.

    Resamples in which nothing is divided by are left out.

    Raises:
        ValueError: There are no blocks.
    """
    over, under = (np.array(each) for each in totals)
    if not len(over):
        raise ValueError("a bootstrap needs blocks")
    drawn = drawn_blocks(len(over), seed)
    above, below = over[drawn].sum(axis=1), under[drawn].sum(axis=1)
    ratios = np.sort(above[below > 0.0] / below[below > 0.0])
    if not len(ratios):
        return 0.0, float("inf")
    place = int(np.ceil(confidence * len(ratios))) - 1
    return float(ratios[len(ratios) - 1 - place]), float(ratios[place])


def drawn_blocks(blocks: int, seed: str) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Numbers of blocks of every resample, shape (resamples, blocks)."""
    return (stream(seed, "blocks").random((RESAMPLES, blocks)) * blocks).astype(np.intp)


def upper_of(samples: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """The percentile of resampled figures that is their one-sided upper bound."""
    return sorted(samples)[int(np.ceil(confidence * len(samples))) - 1]
