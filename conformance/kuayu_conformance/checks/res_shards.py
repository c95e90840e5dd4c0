"""Waiting for data, and blocked transfers, against fixed shards on demand: RES-005 and RES-006.

The service plans the shards of windows in which two jobs train on data from afar
(:mod:`kuayu_conformance.testbed.transfers`), asked every ten seconds; the suite carries its plans out. Fixed shards
play the same windows. An answer that is no plan leaves the suite with the plan before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_shards_report import exhibits, fall, parts
from kuayu_conformance.checks.res_windows import FULL, QUICK, Played, Player, every, played
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, holds
from kuayu_conformance.testbed.transfers.shards_world import MILD

WAITING, BLOCKED = "RES-005", "RES-006"

_BOUND = "One-sided 95 % bootstrap bound over windows"


@dataclass(frozen=True)
class Observation:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        bad: The first answer that was no shard plan.
        bad_answers: How many there were.
    """

    windows: tuple[Played, ...]
    wanted: int
    bad: Answer | None
    bad_answers: int


def observe(episode: Episode) -> Observation:
    """Play windows of all families that the run has."""
    extent = FULL if episode.settings.full else QUICK
    player = Player(episode)
    windows = played(player, extent, episode.passed)
    return Observation(windows, len(every(extent)), player.bad, player.bad_answers)


def judge(o: Observation) -> Iterator[Finding]:
    """By how much less is waited for and blocked at ±30 %."""
    planned = sum(window.plans > 0 for window in o.windows)
    found = f"{planned} of {o.wanted} windows had one"
    if o.bad_answers:
        found += f"; {o.bad_answers} answers were no shard plan"
    for requirement in (WAITING, BLOCKED):
        expected = "a shard plan at least for every window"
        yield holds(requirement, planned == o.wanted, expected, found, o.bad if planned < o.wanted else None)
    judged = [window for window in o.windows if window.family == MILD]
    yield _waiting(o.windows, judged)
    yield _blocked(o.windows, judged)


def _waiting(windows: Sequence[Played], judged: Sequence[Played]) -> Figure:
    its = fall(judged, "waiting", WAITING)
    tables, plots = exhibits(windows, ("waiting",))
    return Figure(
        WAITING,
        its.estimate,
        its.bound,
        len(judged),
        "1 − share of time in which compute waits for data under the service ÷ that under fixed shards on demand, both "
        f"summed over windows at ±30 %. {_BOUND}",
        parts(windows, "waiting"),
        tables=tables,
        plots=plots,
        ceiling=its.ceiling,
    )


def _blocked(windows: Sequence[Played], judged: Sequence[Played]) -> Figure:
    falls = [fall(judged, measure, BLOCKED) for measure in ("blocked", "blocked_bytes")]
    tables, plots = exhibits(windows, ("blocked", "blocked_bytes"))
    return Figure(
        BLOCKED,
        min(its.estimate for its in falls),
        min(its.bound for its in falls),
        len(judged),
        "1 − share of transfers that are blocked under the service ÷ that under fixed shards on demand, both summed "
        f"over windows at ±30 %, by number and by bytes, the lesser. {_BOUND}. Parts: by number, then by bytes",
        [*parts(windows, "blocked"), *parts(windows, "blocked_bytes")],
        tables=tables,
        plots=plots,
        ceiling=min(its.ceiling for its in falls),
    )


CHECK = Check("res_shards", (WAITING, BLOCKED), observe, judge, heavy=True)
