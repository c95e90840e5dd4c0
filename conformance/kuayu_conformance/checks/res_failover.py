"""Jobs whose nodes fail: how soon they are whole again, and how long no new step is made: RES-003 and RES-004.

The service is asked for a backup plan at the begin of a window (:mod:`kuayu_conformance.testbed.recovery`), and for
failover plans 3 s after each fault and every ten seconds while a job is not whole, every minute once nothing has
happened for five; the suite holds and carries out what is sound of them. What is not over at the end of a window counts
as without end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_failover_report import exhibits, parts, predictions
from kuayu_conformance.checks.res_failover_scores import MEASURES, NEVER, incidents, score
from kuayu_conformance.checks.res_failover_windows import FULL, QUICK, SERVICE, Played, Player, played
from kuayu_conformance.checks.res_windows import Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, holds

SWITCH, INTERRUPTION = "RES-003", "RES-004"
_MEASURES = {SWITCH: "switch_s", INTERRUPTION: "interruption_s"}


@dataclass(frozen=True)
class Observation:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        bad: The first answer that was no plan.
        bad_answers: How many there were.
        unsound: Failover plans with recoveries that were not carried out, the first of them.
        unsound_plans: How many there were.
        left_out: What of backup plans was not held, the first of it.
    """

    windows: tuple[Played, ...]
    wanted: int
    bad: Answer | None = None
    bad_answers: int = 0
    unsound: tuple[Unsound, ...] = ()
    unsound_plans: int = 0
    left_out: tuple[str, ...] = ()


def observe(episode: Episode) -> Observation:
    """Play all windows that the run has."""
    extent = FULL if episode.settings.full else QUICK
    player = Player(episode)
    windows = played(player, extent, episode.passed)
    return Observation(
        windows,
        extent.windows,
        player.bad,
        player.bad_answers,
        tuple(player.unsound),
        player.unsound_plans,
        tuple(player.left_out),
    )


def judge(o: Observation) -> Iterator[Finding]:
    """By the 95th percentile over incidents."""
    planned = sum(window.planned for window in o.windows)
    found = f"{planned} of {o.wanted} windows had them"
    if o.bad_answers:
        found += f"; {o.bad_answers} answers were no plan"
    for requirement in (SWITCH, INTERRUPTION):
        expected = "a backup plan, and a failover plan at least, for every window"
        yield holds(requirement, planned == o.wanted, expected, found, o.bad if planned < o.wanted else None)
        if incidents(o.windows, SERVICE):
            yield _figure(o, requirement)


def _figure(o: Observation, requirement: str) -> Figure:
    measure = _MEASURES[requirement]
    found = score(incidents(o.windows, SERVICE), measure)
    tables, plots = exhibits(o.windows, measure, requirement)
    return Figure(
        requirement,
        found.estimate,
        min(NEVER, found.bound),
        found.n,
        f"95th percentile of the {MEASURES[measure]} over incidents, one-sided 95 % upper bound by order statistics; "
        f"{found.never} of {found.n} were not over at the end of their window and count as {NEVER:.0f} s. Parts: by "
        "kind of fault",
        parts(o.windows, measure),
        list(_misses(o, requirement)),
        [*tables, predictions(o.windows)] if requirement == INTERRUPTION else tables,
        plots,
    )


def _misses(o: Observation, requirement: str) -> Iterator[Claim]:
    """What was not carried out."""
    for each in o.unsound:
        expected = f"recoveries that can be carried out, in every failover plan ({o.unsound_plans} had others)"
        yield holds(requirement, False, expected, "; ".join(each.faults), each.answer)
    if o.left_out:
        yield holds(requirement, False, "backup plans that can be held", _told(o.left_out))


def _told(left_out: Sequence[str]) -> str:
    return "not held: " + "; ".join(left_out)


CHECK = Check("res_failover", (SWITCH, INTERRUPTION), observe, judge, heavy=True)
