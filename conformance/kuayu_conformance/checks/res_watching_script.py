"""Who beats, falls silent, fails and comes back in the check of what is watched, and when.

Three domains beat twice a second. Once services have learnt that, much happens side by side: what lasts is to be told
in ten seconds, what is over to be cleared in thirty. Seconds count from the first beat.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

PERIOD = 0.5
"""Seconds between two beats of a node."""

WARM = 12.0
"""Seconds before anything happens."""

TOLD, CLEARED = 10.0, 30.0
"""Seconds in which a fault is told that lasts, and in which one is cleared that is over (res-05-faults)."""

BACK, HEARD = 24.0, 27.0
"""When nodes that died or failed were started anew, and when the silent domain is heard again."""

HANGS, HUNG, GOES_ON = 14.0, 44.0, 54.0
"""When a job makes its last step, from when on that is a hang (30 s at least), and when it goes on."""

LAST_RETURN = 37.0
"""When the node that comes and goes has come to stay."""

LEAST, LONGEST = 56.0, 86.0
"""Seconds that are played at least, and at most where not everything is over before."""

DEVICES = 4


@dataclass(frozen=True)
class Course:
    """What a node does.

    Attributes:
        domain: Label of its domain.
        silent: From when until when it does not beat.
        anew: When it was started anew, so that its numbers begin anew.
        deleted: When it is deleted.
    """

    domain: str
    silent: tuple[tuple[float, float], ...] = ()
    anew: tuple[float, ...] = ()
    deleted: float = inf

    def beats(self, second: float) -> bool:
        """Whether it beats then."""
        return second < self.deleted and not any(since <= second < until for since, until in self.silent)

    def number(self, second: float) -> int:
        """Number of its beat: those since it was started."""
        return round((second - max((at for at in self.anew if at <= second), default=0.0)) / PERIOD)


DIES, RESTARTS, RETURNS, FAILS, DELETED, BURIED = "a0", "a1", "a2", "a3", "a4", "a5"
LOST, FLAPS = "b5", "c0"
SILENT = "b"
HANGING, ENDING = "hangs", "ends"

COURSES: Mapping[str, Course] = {
    DIES: Course("a", silent=((WARM, inf),)),
    RESTARTS: Course("a", anew=(WARM,)),
    RETURNS: Course("a", silent=((WARM + 1.5, BACK),), anew=(BACK,)),
    FAILS: Course("a", silent=((BACK - 1, BACK),), anew=(BACK,)),
    DELETED: Course("a", deleted=WARM + 1),
    BURIED: Course("a", silent=((WARM + 3, inf),), deleted=LAST_RETURN),
    **{f"a{number}": Course("a") for number in range(6, 14)},
    **{f"b{number}": Course("b", silent=((WARM, HEARD),)) for number in range(5)},
    LOST: Course("b", silent=((WARM, inf),)),
    FLAPS: Course("c", silent=tuple((since, since + 4) for since in (WARM, WARM + 7, WARM + 14, LAST_RETURN - 4))),
    **{f"c{number}": Course("c") for number in range(1, 10)},
}
"""Nodes by label; the digits are those of their domain."""

RANKS: Mapping[str, tuple[str, int]] = {
    **{f"c{number}": (HANGING, number - 1) for number in range(1, 5)},
    **{f"c{number}": (ENDING, number - 5) for number in range(5, 7)},
}
"""Job and rank that run on a node."""

KEPT_BACK = (WARM - 2.0, WARM - 1.5)
"""Beats of ``DIES`` that are on their way until it is dead."""

REPEATED = 10
"""Beats of ``DIES`` that are repeated."""


def step(node: str, second: float) -> dict[str, Any] | None:
    """What a node's beat tells of its rank, but for the job's name; None where it tells nothing."""
    if node not in RANKS:
        return None
    job, rank = RANKS[node]
    if job == ENDING:
        if second >= HANGS + 2:
            return None
        ended = {"ended": True} if second >= HANGS else {}
        return {"job": job, "rank": rank, "step": round(min(second, HANGS) / PERIOD), **ended}
    paused = min(max(0.0, second - HANGS), GOES_ON - HANGS)
    return {"job": job, "rank": rank, "step": round((second - paused) / PERIOD)}


def kept_back(node: str, second: float) -> bool:
    """Whether the beat of a node is late, very late."""
    return node == DIES and second in KEPT_BACK


def old(second: float) -> Iterator[float]:
    """When those beats of ``DIES`` were due that the network gives again after its death."""
    if not WARM < second < WARM + TOLD:
        return
    turn = round((second - WARM) / PERIOD)
    newest = WARM - PERIOD
    if turn == 2:
        yield from KEPT_BACK
    in_order, backwards = turn % REPEATED, REPEATED - 1 - turn % REPEATED
    yield from (newest - PERIOD * (REPEATED - 1 - place) for place in (in_order, backwards))
