"""Pieces of checkpoints: what one rank owns, kept in memory, by a peer, and at times in a file.

A piece has 12 bytes for each parameter: its value and both of its moments, in single precision.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from kuayu.live.optimiser import Moments, Vector

KEPT = 3
"""Checkpoints that are kept in memory and in files; the newest."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which piece it is.

    Attributes:
        step: Step after which it was taken.
        generation: Generation in which it was taken.
        piece: Its rank.
    """

    step: int
    generation: int
    piece: int

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.step:08}-{self.generation}-{self.piece}.piece"


@dataclass(frozen=True, slots=True)
class State:
    """Parameters with their moments, or a stretch of them."""

    values: Vector
    moments: Moments

    def to_bytes(self) -> bytes:
        """As one block, 12 bytes for each parameter."""
        return np.stack([self.values, self.moments.first, self.moments.second]).tobytes()

    @classmethod
    def of_bytes(cls, block: bytes) -> Self:
        """From such a block."""
        values, first, second = np.frombuffer(block, dtype=np.float32).reshape(3, -1).copy()
        return cls(values, Moments(first, second))

    @classmethod
    def joined(cls, pieces: list[bytes]) -> Self:
        """The whole from its pieces, in their order."""
        rows = np.concatenate([np.frombuffer(each, dtype=np.float32).reshape(3, -1) for each in pieces], axis=1)
        values, first, second = rows.copy()
        return cls(values, Moments(first, second))


class Store:
    """Pieces that a worker holds, its own and replicas of a peer's. Safe for several threads.

    Args:
        folder: Where files go; None for none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._held: dict[Key, bytes] = {}
        self._folder = folder

    def put(self, key: Key, block: bytes) -> None:
        """Hold a piece; of steps, the newest are kept."""
        with self._lock:
            self._held[key] = block
            kept = sorted({each.step for each in self._held})[-KEPT:]
            self._held = {each: held for each, held in self._held.items() if each.step in kept}

    def get(self, key: Key) -> bytes | None:
        """A piece, from memory alone."""
        with self._lock:
            return self._held.get(key)

    def write(self, key: Key, block: bytes) -> bool:
        """Write a piece to its file, whole or not at all; whether there is a folder for it."""
        if self._folder is None:
            return False
        part = self._folder / f"{key.file}.part"
        part.write_bytes(block)
        part.replace(self._folder / key.file)
        for old in sorted(self._folder.glob(f"*-{key.piece}.piece"))[:-KEPT]:
            old.unlink(missing_ok=True)
        return True

    def read(self, key: Key) -> bytes | None:
        """A piece from its file; None where there is none."""
        if self._folder is None:
            return None
        try:
            return (self._folder / key.file).read_bytes()
        except FileNotFoundError:
            return None
