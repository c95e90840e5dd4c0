"""What disturbs a window, and when: loads that rise and fall, latencies that rise and fall back.

Events are ``APART_S`` apart: long enough that a service which stages its changes over some windows is through with one
before the next begins, and irregular, so that nobody can foresee them. What they change by is what the sentence names,
and more: a load by 25 to 80 % of itself, a latency to 1.6 to 10 times of what it was. Loads stay within ``BOUNDS``:
above 0.65, a load that is off by the tenth that counts as calm takes a tenth of the speed of a job of two domains, and
more of one of several, and nobody may do anything about it then. An adjuster that divides parts by what was measured
last, and not by a level that is still on its way, is not off by so much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.adjustment.law import Floats
from kuayu_conformance.testbed.chance import Chance

CELL_S = 0.5
"""Seconds for which load and latency stay as they are; everything that happens does so at the begin of such a cell."""
RISE, FALL, SLOW, QUICK = "load rises", "load falls", "latency rises", "latency falls back"
KINDS = (RISE, FALL, SLOW)
"""Those that are judged."""
JUDGED = 5
"""Judged events of a window."""
APART_S = (60.0, 120.0)
BEGINS, BOUNDS = (0.25, 0.6), (0.15, 0.65)
"""Loads at the begin, and at any time."""
BY, RAMP_S = (0.25, 0.8), 10.0
"""Part of itself by which a load changes; the longest that takes, half of the time; else it takes none."""
SLOWED = (1.6, 10.0)
"""Times a latency, of the links from and to a domain."""
_LATENCY_SHARE, _BACK_SHARE, _RAMP_SHARE = 0.4, 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Event:
    """Something changes.

    Attributes:
        instant: Seconds from the begin of the window.
        kind: ``RISE``, ``FALL``, ``SLOW`` or ``QUICK``.
        domain: Whose load, or whose links, by number.
        times: What it is afterwards, over what it was.
        lasts_s: Seconds over which it changes.
    """

    instant: float
    kind: str
    domain: int
    times: float
    lasts_s: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether the sentence names it; that latencies fall back is none of its matters."""
        return self.kind in KINDS


def draw(chance: Chance, loads: Sequence[float], domains: Sequence[int]) -> tuple[tuple[Event, ...], float]:
    """Events in the order of time, and when the window ends.

    Args:
        chance: What is drawn from.
        loads: At the begin, by domain.
        domains: Those that may be disturbed.
    """
    now, slowed, found = list(loads), {}, []  # type: list[float], dict[int, float], list[Event]
    instant = _on_a_cell(chance.between(0.5 * APART_S[0], APART_S[0]))
    while sum(event.judged for event in found) < JUDGED:
        if slowed and chance.fraction() < _BACK_SHARE:
            domain, times = slowed.popitem()
            event = Event(instant, QUICK, domain, 1.0 / times)
        elif not slowed and chance.fraction() < _LATENCY_SHARE:
            domain, times = chance.pick(domains), chance.between(*SLOWED)
            slowed[domain] = times
            event = Event(instant, SLOW, domain, times)
        else:
            event = _of_load(chance, instant, chance.pick(domains), now)
        found.append(event)
        instant += _on_a_cell(chance.between(*APART_S))
    return tuple(found), instant


def _of_load(chance: Chance, instant: float, domain: int, now: list[float]) -> Event:
    """A load rises or falls, whichever its bounds allow."""
    room = {RISE: BOUNDS[1] / now[domain] - 1.0, FALL: 1.0 - BOUNDS[0] / now[domain]}
    kind = chance.pick([kind for kind, most in room.items() if most > BY[0]])
    by = chance.between(BY[0], min(BY[1], room[kind]))
    times = 1.0 + by if kind == RISE else 1.0 - by
    now[domain] *= times
    lasts = _on_a_cell(chance.between(0.0, RAMP_S)) if chance.fraction() < _RAMP_SHARE else 0.0
    return Event(instant, kind, domain, times, lasts)


def _on_a_cell(seconds: float) -> float:
    return CELL_S * int(seconds / CELL_S)


def over_time(begins: Floats, events: Sequence[Event], kinds: Sequence[str], cells: int) -> Floats:
    """What events of some kinds make of levels that stand by domain, ``(cells, domains)``."""
    made: Floats = np.tile(begins, (cells, 1))
    for event in events:
        if event.kind in kinds:
            first, lasts = round(event.instant / CELL_S), round(event.lasts_s / CELL_S)
            grown = np.minimum(1.0, np.arange(1, cells - first + 1) / max(1, lasts))
            made[first:, event.domain] *= 1.0 + (event.times - 1.0) * grown
    return made
