"""The canonical JSON (RFC 8785) of a scheduling state and its digest, from state to state.

Nearly all of a large state are the specifications and placements of its jobs. These stay from one epoch to the next, so
that they are written once.
"""

import secrets
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

from kuayu import canonical

Json = dict[str, Any]

_MARK = secrets.token_hex(16)
"""Stands in the place of what has been written already. No text that somebody sends can be it."""

_MARKED = b'"%s"' % _MARK.encode()


class CanonicalState:
    """A scheduling state and its canonical JSON.

    Args:
        state: A valid SchedulingState, which nobody changes any more.
        before: A state before: specifications and placements that are the very same objects are not written again.

    Attributes:
        state: The state.
    """

    def __init__(self, state: Json, before: Self | None = None) -> None:
        self.state = state
        self._before = before

    @cached_property
    def parts(self) -> dict[int, bytes]:
        """Canonical JSON of specifications and placements by the number of the object, which lives as long as this.

        Raises:
            NotCanonicalError: One has none, as it holds an integer that a double cannot hold.
        """
        # numbers are known for as long as the state before lives, since no other object has them until then
        known = self._before.parts if self._before else {}
        shared = {id(each): each for each in _shared(self.state)}
        missing = {number: each for number, each in shared.items() if number not in known}
        fresh = dict(zip(missing, _each(list(missing.values())), strict=True))
        self._before = None
        return {number: known.get(number) or fresh[number] for number in shared}

    def written(self) -> bytes:
        """The canonical JSON, in UTF-8.

        Raises:
            NotCanonicalError: It has none.
        """
        state = self.state
        frame = state | {
            "running": [{**entry, "placement": _MARK, "spec": _MARK} for entry in state["running"]],
            "waiting": [{**entry, "spec": _MARK} for entry in state["waiting"]],
        }
        between = canonical.dumps(frame).split(_MARKED)
        pieces = [b""] * (2 * len(between) - 1)
        pieces[::2] = between
        pieces[1::2] = [self.parts[id(each)] for each in _shared(state)]
        return b"".join(pieces)

    @property
    def digest(self) -> str:
        """The digest: ``sha256:`` and the hexadecimal SHA-256 of the canonical JSON.

        Raises:
            NotCanonicalError: It has none.
        """
        return self._summary[0]

    @property
    def size(self) -> int:
        """Bytes of the canonical JSON.

        Raises:
            NotCanonicalError: It has none.
        """
        return self._summary[1]

    @cached_property
    def _summary(self) -> tuple[str, int]:
        # what is written is not kept: it would double what a state takes in memory
        written = self.written()
        return canonical.digest_of(written), len(written)


def _shared(state: Json) -> Iterator[Any]:
    """What is written once, in the order in which it stands in the canonical JSON."""
    for entry in state["running"]:
        yield entry["placement"]
        yield entry["spec"]
    for entry in state["waiting"]:
        yield entry["spec"]


def _each(values: list[Any]) -> list[bytes]:
    """Canonical JSON of each of some objects; to write them together takes a third of the time."""
    if not values:
        return []
    together: list[Any] = [_MARK] * (2 * len(values) - 1)
    together[::2] = values
    return canonical.dumps(together)[1:-1].split(b",%s," % _MARKED)
