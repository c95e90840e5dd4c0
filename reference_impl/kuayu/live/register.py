"""Which checkpoints there are, and who holds their pieces."""

from collections.abc import Set as AbstractSet
from typing import Any, Self

from kuayu.live.plan import FILE, Restore


class Register:
    """Holders of every piece, by step and generation of the checkpoint."""

    KEPT = 4
    """Checkpoints that are remembered."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], list[set[str]]] = {}

    def stored(self, worker: str, step: int, generation: int, piece: int, world: int) -> bool:
        """A worker holds a piece; whether the checkpoint is now whole, with a replica of each piece, by that."""
        pieces = self._held.setdefault((step, generation), [set() for _ in range(world)])
        before = _replicated(pieces)
        pieces[piece].add(worker)
        for old in sorted(self._held)[: -self.KEPT]:
            del self._held[old]
        return not before and _replicated(pieces)

    def dropped(self, after: int) -> None:
        """The job goes on from a step: later checkpoints are void."""
        self._held = {key: pieces for key, pieces in self._held.items() if key[0] <= after}

    def latest(self, alive: AbstractSet[str]) -> Restore | None:
        """The latest checkpoint of which somebody who is there holds each piece; None for the very beginning."""
        for (step, generation), pieces in sorted(self._held.items(), reverse=True):
            left = [[each for each in sorted(piece) if each in alive] for piece in pieces]
            holders = [
                tuple(here) or ((FILE,) if FILE in piece else ()) for here, piece in zip(left, pieces, strict=True)
            ]
            if all(holders):
                return Restore(step, generation, tuple(holders))
        return None

    def to_json(self) -> list[Any]:
        """All of it."""
        return [[*key, [sorted(piece) for piece in pieces]] for key, pieces in self._held.items()]

    @classmethod
    def of_json(cls, held: list[Any]) -> Self:
        """From all of it."""
        register = cls()
        register._held = {(step, generation): [set(piece) for piece in pieces] for step, generation, pieces in held}
        return register


def _replicated(pieces: list[set[str]]) -> bool:
    return all(len(piece - {FILE}) > 1 for piece in pieces)
