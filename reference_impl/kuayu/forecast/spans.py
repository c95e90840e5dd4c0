"""How long periods last: log-normal through the median and both ends of an ``Estimate``.

Where the ends lie at unlike ratios from the median, each side has its own width (a split log-normal), so that all three
values of the estimate hold. Its median stays the median.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from kuayu.forecast.values import Floats, Plain

WIDEST = 5.0
"""Widest side in logarithms; an interval from nought would be wider than any."""

SURE = 1e-4
"""A coverage closer to nought or one than this says nothing of a width."""


@dataclass(frozen=True)
class Spans:
    """Durations of N periods.

    Attributes:
        median: Seconds, N.
        below: Standard deviation of the logarithm below the median, N.
        above: The same above it, N.
    """

    median: Floats
    below: Floats
    above: Floats

    @staticmethod
    def of(estimates: Sequence[Plain]) -> "Spans":
        """Durations that estimates tell of."""
        raw = [(each["expected"], each["low"], each["high"], each["coverage"]) for each in estimates]
        median, low, high, coverage = np.array(raw, dtype=float).reshape(-1, 4).T
        ends = ndtri((1 + np.clip(coverage, SURE, 1 - SURE)) / 2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            below, above = np.log(median / low) / ends, np.log(high / median) / ends
        sides = (np.clip(np.nan_to_num(side, nan=0.0, posinf=WIDEST), 0.0, WIDEST) for side in (below, above))
        return Spans(median, *sides)

    def within(self, seconds: Floats) -> Floats:
        """Chance that a period is over after so many seconds, N × T for seconds of N × T; nought before nought."""
        median, below, above = self.median[:, None], self.below[:, None], self.above[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far = np.log(np.maximum(seconds, 0.0) / median)
            scores = far / np.where(far < 0, below, above)
        over: Floats = ndtr(scores)
        # a duration that is sure, or none at all, ends at its instant
        sharp = np.isnan(scores)
        over = np.where(sharp, (seconds >= median).astype(float), over)
        return np.where(seconds < 0, 0.0, over)

    def at(self, scores: Floats) -> Floats:
        """Durations at standard normal scores, N × M for scores of N × M or M."""
        width = np.where(scores < 0, self.below[:, None], self.above[:, None])
        drawn: Floats = self.median[:, None] * np.exp(width * scores)
        return drawn
