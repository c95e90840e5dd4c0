"""Yardsticks of fault detection: a fixed timeout, and plain φ accrual."""

import numpy as np
from scipy.special import log_ndtr

from kuayu.resilience.detection import Beats


class Timeout:
    """Dead after so many seconds without a beat; alive with the next."""

    def __init__(self, nodes: int, seconds: float) -> None:
        self.heard = np.full(nodes, np.nan)
        self.seconds = seconds

    def hear(self, beats: Beats) -> None:
        """Take in beats in the order of their arrival."""
        self.heard[beats.node] = beats.received

    def dead(self, now: float) -> np.ndarray:
        """Who is taken for dead."""
        return now - self.heard > self.seconds


class PlainPhi:
    """φ accrual as published (Hayashibara et al. 2004): gaps are normal, φ of 8; no gap spreads less than 0.1 s.

    The window of 1 000 gaps is an exponential one, so that thousands of nodes can be held at once.
    """

    def __init__(self, nodes: int, phi: float = 8.0) -> None:
        self.heard = np.full(nodes, np.nan)
        self.mean = np.full(nodes, 0.5)
        self.square = np.full(nodes, 0.26)
        self.count = np.zeros(nodes)
        self.limit = -phi * np.log(10)

    def hear(self, beats: Beats) -> None:
        """Take in beats in the order of their arrival."""
        order = np.lexsort((beats.received, beats.node))
        node, received = beats.node[order], beats.received[order]
        before = np.where(np.diff(node, prepend=-1) == 0, np.roll(received, 1), self.heard[node])
        gap = received - before
        for each in (np.diff(node, prepend=-1) != 0, np.diff(node, prepend=-1) == 0):
            known = each & ~np.isnan(gap)
            to = node[known]
            weight = np.maximum(1 / (self.count[to] + 1), 1e-3)
            self.mean[to] += weight * (gap[known] - self.mean[to])
            self.square[to] += weight * (gap[known] ** 2 - self.square[to])
            self.count[to] += 1
        self.heard[node] = received

    def dead(self, now: float) -> np.ndarray:
        """Who is taken for dead."""
        spread = np.sqrt(np.maximum(self.square - self.mean**2, 0.01))
        return log_ndtr(-(now - self.heard - self.mean) / spread) < self.limit
