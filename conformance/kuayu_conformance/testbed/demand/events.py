"""What is announced: maintenance, and campaigns of users, some of which do not come.

How often, how long and how much is assumed: a domain has one or the other about every day, so that a few days show
some.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.kinds import Kind
from kuayu_conformance.testbed.demand.law import gauss

if TYPE_CHECKING:
    from kuayu_schemas import documents

EVERY = 2 * 86_400.0
"""Seconds from one maintenance of a domain to the next, on average; campaigns likewise."""
AHEAD = 86_400.0
"""Seconds before its begin at which it is announced."""
COMES = 0.75
"""Share of campaigns that come."""
DEVICES = (0.05, 0.12)
"""Devices of an event over those of the domain's large trainings."""
LASTS = (7_200.0, 21_600.0)
"""Seconds that it is to last."""
_LATE = 600.0


@dataclass(frozen=True, slots=True)
class Event:
    """What is announced, and what comes of it.

    Attributes:
        kind: As on the wire.
        begin: Seconds, as announced.
        end: Likewise.
        devices: Devices that it adds or takes out, as announced.
        actual: Seconds of its true begin and end, and devices; None where it does not come.
    """

    kind: "documents.EventKind"
    begin: float
    end: float
    devices: int
    actual: tuple[float, float, int] | None


def events(kind: Kind, span: tuple[float, float], chance: Chance) -> tuple[Event, ...]:
    """Events of a domain in a span of seconds, in the order of their begin."""
    made = [*_of("maintenance", kind, span, chance), *_of("campaign", kind, span, chance)]
    return tuple(sorted(made, key=lambda event: event.begin))


def _of(what: "documents.EventKind", kind: Kind, span: tuple[float, float], chance: Chance) -> Iterator[Event]:
    count = int((span[1] - span[0]) / EVERY + chance.fraction())
    for _ in range(count):
        # people announce full quarters of an hour
        begin = 900.0 * round(chance.between(*span) / 900.0)
        end = begin + 900.0 * round(chance.between(*LASTS) / 900.0)
        devices = int(kind.room * chance.between(*DEVICES))
        late, later = (float(round(_LATE * abs(gauss(chance)))) for _ in range(2))
        comes, share = chance.fraction() < COMES, chance.between(0.7, 1.1)
        if what == "maintenance":
            yield Event(what, begin, end, devices, (begin, end + later, devices))
        else:
            actual = (begin + late, end + late, int(devices * share)) if comes else None
            yield Event(what, begin, end, devices, actual)
