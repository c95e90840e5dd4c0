"""When a domain sends a batch, and in which turns it cannot be reached."""

from math import ceil

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.heartbeats.values import TURN, Cut, Scale

_MIN_PARTITION_S, _MAX_PARTITION_S = 12.0, 15.0  # seconds of a partition
_BEFORE, _AFTER = 6.0, 8.0  # seconds around a partition in which nothing else happens to a domain
_REST = 34.0  # seconds between two partitions of a domain: by then it has been told that the first is over


class Turns:
    """Domains send one after the other, each once in a turn.

    Args:
        domains: How many there are.
    """

    def __init__(self, domains: int) -> None:
        self._domains = domains

    def at(self, domain: int, turn: int) -> float:
        """When a domain sends its batch of a turn."""
        return (turn + domain / self._domains) * TURN

    def first(self, domain: int, second: float) -> int:
        """The first turn of a domain at or after a second."""
        return ceil(second / TURN - domain / self._domains - 1e-9)


def cuts_of(scale: Scale, seed: str, exposed: tuple[int, ...]) -> tuple[Cut, ...]:
    """Partitions, in the order of domain and time."""
    chance, turns, cuts = Chance(seed, "partitions"), Turns(scale.domains), []
    for place, domain in enumerate(exposed):
        count = len(range(place, scale.cuts, len(exposed)))
        for number in range(count):
            stretch = scale.seconds / count
            begin = scale.warm_up + number * stretch
            rest = _REST if number + 1 < count else _AFTER
            since = chance.between(begin + 2.0, begin + max(2.5, stretch - _MAX_PARTITION_S - rest))
            lasts = chance.between(_MIN_PARTITION_S + TURN, _MAX_PARTITION_S)
            cuts.append(Cut(domain, turns.first(domain, since), turns.first(domain, since + lasts)))
    return tuple(cuts)


class Reach:
    """Which domain cannot be reached when."""

    def __init__(self, cuts: tuple[Cut, ...], turns: Turns) -> None:
        self._spans: dict[int, list[tuple[float, float]]] = {}
        for cut in cuts:
            span = turns.at(cut.domain, cut.since), turns.at(cut.domain, cut.until)
            self._spans.setdefault(cut.domain, []).append(span)

    def clear(self, domain: int, since: float, until: float) -> bool:
        """Whether no partition of a domain is near to any second of a stretch."""
        spans = self._spans.get(domain, ())
        return all(until < begin - _BEFORE or since > end + _AFTER for begin, end in spans)

    def open(self, domain: int, second: float) -> float:
        """The second itself, or one after the partition that it falls into."""
        for begin, end in self._spans.get(domain, ()):
            if begin - _BEFORE <= second <= end + _AFTER:
                return end + _AFTER
        return second
