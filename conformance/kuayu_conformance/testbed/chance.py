"""Chance that follows from a seed: one stream for each purpose, so that a draw more here moves nothing there."""

import random
from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")


def stream(seed: str, purpose: str) -> np.random.Generator:
    """Numbers for arrays, by Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""
    digest = sha256(f"{seed}/{purpose}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "big")))


def normal(chance: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.float32]:
    """Normal noise. Drawn in double precision: what C libraries disagree about is lost when it becomes single."""
    return chance.standard_normal(shape).astype(np.float32)


class Chance:
    """Single draws; all come from Python's own fractions, a sequence that no version changes."""

    def __init__(self, seed: str, purpose: str) -> None:
        self._random = random.Random(f"{seed}/{purpose}")  # noqa: S311 - reproducible by design, not secret

    def fraction(self) -> float:
        """A number of [0, 1)."""
        return self._random.random()

    def between(self, low: float, high: float) -> float:
        """A number of [low, high)."""
        return low + (high - low) * self._random.random()

    def below(self, bound: int) -> int:
        """A whole number of 0 … bound - 1."""
        return int(self._random.random() * bound)

    def pick(self, choices: Sequence[_T]) -> _T:
        """One of some."""
        return choices[self.below(len(choices))]

    def weighted(self, choices: Sequence[tuple[_T, float]]) -> _T:
        """One of some, the likelier the greater its weight."""
        left = self.fraction() * sum(weight for _, weight in choices)
        for choice, weight in choices:
            left -= weight
            if left < 0:
                return choice
        return choices[-1][0]

    def order(self, choices: Sequence[tuple[_T, float]]) -> list[_T]:
        """All of some, each place drawn by weight among those that are left."""
        left, drawn = list(choices), []
        while left:
            choice = self.weighted(left)
            left = [entry for entry in left if entry[0] != choice]
            drawn.append(choice)
        return drawn
