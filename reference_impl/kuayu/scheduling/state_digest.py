"""The canonical JSON (RFC 8785) of a scheduling state and its digest, from state to state.

Nearly all of a large state are jobs that wait, and specifications and placements of those that run. These stay from one
epoch to the next, so that they are written once; what changes in jobs that run is written column by column.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from kuayu import canonical

if TYPE_CHECKING:
    from kuayu_schemas import documents

STAYING = ("placement", "spec")
"""Members of a running job that stay as long as it runs where it does."""

SLACK = 1.5
"""How many times as many parts as a state has are carried along before those that are gone are let go."""

_MARK = secrets.token_hex(16)
"""Stands in the place of what is written by itself. No text that somebody sends can be it."""

_MARKED = b'"%s"' % _MARK.encode()


class CanonicalState:
    """A scheduling state and its canonical JSON.

    Args:
        state: A valid state, which nobody changes any more.
        before: A state before: what is the very same object in both is not written again.

    Attributes:
        state: The state.
    """

    def __init__(self, state: "documents.SchedulingState", before: Self | None = None) -> None:
        self.state = state
        self._before = before

    @cached_property
    def parts(self) -> dict[int, tuple[Any, bytes]]:
        """By its number each waiting job, specification and placement of a running one, with its canonical JSON.

        Numbers are those of Python; as the object stands beside it, no other has its number. Some may be of states
        before.

        Raises:
            NotCanonicalError: One has none, as it holds an integer that a double cannot hold.
        """
        known = self._before.parts if self._before else {}
        self._before = None
        staying = _staying(self.state)
        missing = [part for part in staying if id(part) not in known]
        if len(known) + len(missing) > SLACK * len(staying):
            known = {id(part): known[id(part)] for part in staying if id(part) in known}
        fresh = zip(missing, _texts(missing), strict=True)
        return known | {id(part): (part, written) for part, written in fresh}

    def written(self) -> bytes:
        """The canonical JSON, in UTF-8.

        Raises:
            NotCanonicalError: It has none.
        """
        frame = canonical.dumps({**self.state, "running": _MARK, "waiting": _MARK})
        parts = self.parts
        waiting = [parts[id(entry)][1] for entry in self.state["waiting"]]
        before, between, after = frame.split(_MARKED)
        running = b",".join(_rows(self.state["running"], parts))
        return b"".join((before, b"[", running, b"]", between, b"[", b",".join(waiting), b"]", after))

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


def grouped(entries: Sequence[Mapping[str, object]]) -> dict[tuple[str, ...], list[int]]:
    """Places of entries by the names of their members, in whose order the columns of a group can be read."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault(tuple(entry), []).append(place)
    return groups


def _staying(state: "documents.SchedulingState") -> list[Any]:
    running = state["running"]
    return [*state["waiting"], *(value for name in STAYING for value in map(itemgetter(name), running))]


def _texts(values: list[Any]) -> list[bytes]:
    """Canonical JSON of each of some values; to write them together takes a third of the time."""
    if not values:
        return []
    together: list[Any] = [_MARK] * (2 * len(values) - 1)
    together[::2] = values
    return canonical.dumps(together)[1:-1].split(b",%s," % _MARKED)


def _rows(entries: "Sequence[documents.RunningJob]", parts: dict[int, tuple[Any, bytes]]) -> list[bytes]:
    """Canonical JSON of each of the jobs that run."""
    rows = [b""] * len(entries)
    for names, places in grouped(entries).items():
        group = [entries[place] for place in places]
        pieces: list[Iterable[bytes]] = []
        before = "{"
        for name in sorted(names):
            values = list(map(itemgetter(name), group))
            texts = [parts[id(value)][1] for value in values] if name in STAYING else _column(values)
            pieces += repeat(f'{before}"{name}":'.encode()), texts
            before = ","
        joined = map(b"".join, zip(*pieces, repeat(b"}")))
        for place, row in zip(places, joined, strict=True):
            rows[place] = row
    return rows


def _column(values: list[Any]) -> list[bytes]:
    """Canonical JSON of numbers, or of texts and the like."""
    if {*map(type, values)} <= {int, float}:
        return canonical.dumps(values)[1:-1].split(b",")
    return _texts(values)
