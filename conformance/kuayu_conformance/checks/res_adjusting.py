"""Running jobs whose policy is adjusted: when, at what cost, and to what end: RES-007, RES-008 and RES-009.

The service is asked every four seconds in windows of about ten minutes (:mod:`kuayu_conformance.testbed.adjustment`);
what can be carried out of its answers is. Each answer is held against its own request, and what jobs make of each
window against what they would make by the policy before, and by the best.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_adjusting_report import exhibits, limit_of, parts, shown_as, triggers
from kuayu_conformance.checks.res_adjusting_scores import LOSS, MEASURES, RECOVERY, disturbances, percentile
from kuayu_conformance.checks.res_adjusting_windows import FULL, QUICK, SERVICE, Played, Player, played
from kuayu_conformance.checks.res_windows import SHOWN, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, holds

ADJUSTED, DIP, RECOVERED = "RES-007", "RES-008", "RES-009"
_MEASURES = {DIP: LOSS, RECOVERED: RECOVERY}


@dataclass(frozen=True)
class Observation:
    """What was played.

    Attributes:
        windows: In order; fewer than were wanted where the service was given up.
        wanted: How many were to be played.
        answers: How many of the answers were adjustments.
        bad: The first answer that was none.
        bad_answers: How many there were.
        untimely: Answers whose triggers, or whose having changes or not, deviate; the first of them.
        untimely_answers: How many there were.
        unsound: Answers with changes that were not carried out, the first of them.
        unsound_answers: How many there were.
    """

    windows: tuple[Played, ...]
    wanted: int
    answers: int
    bad: Answer | None = None
    bad_answers: int = 0
    untimely: tuple[Unsound, ...] = ()
    untimely_answers: int = 0
    unsound: tuple[Unsound, ...] = ()
    unsound_answers: int = 0


def observe(episode: Episode) -> Observation:
    """Play all windows that the run has."""
    wanted = FULL if episode.settings.full else QUICK
    player = Player(episode)
    windows = played(player, wanted, episode.passed)
    return Observation(
        windows,
        wanted,
        player.answers,
        player.bad,
        player.bad_answers,
        tuple(player.untimely),
        player.untimely_answers,
        tuple(player.unsound),
        player.unsound_answers,
    )


def judge(o: Observation) -> Iterator[Finding]:
    """Every answer by its own request; what is lost and how long it takes by the 95th percentile over disturbances."""
    found = f"{o.answers} answers were, {o.bad_answers} were not"
    yield holds(ADJUSTED, not o.bad_answers, "every question is answered by an adjustment", found, o.bad)
    answered = sum(window.answers > 0 for window in o.windows)
    for requirement in (DIP, RECOVERED):
        expected, shown = "adjustments in every window", f"{answered} of {o.wanted} windows had them"
        yield holds(requirement, answered == o.wanted, expected, shown, o.bad if answered < o.wanted else None)
    expected = "every answer names what has changed and nothing that is calm, and has changes where it has to"
    count = f"{o.untimely_answers} of {o.answers} do not"
    if not o.untimely_answers:
        yield holds(ADJUSTED, True, expected, count)
    for each in o.untimely:
        yield holds(ADJUSTED, False, expected, f"{count}: {'; '.join(each.faults)}", each.answer)
    if disturbances(o.windows, SERVICE):
        yield _figure(o, DIP)
        yield _figure(o, RECOVERED)


def _figure(o: Observation, requirement: str) -> Figure:
    measure = _MEASURES[requirement]
    told = percentile(disturbances(o.windows, SERVICE), measure)
    tables, plots = exhibits(o.windows, measure, requirement)
    words = f"95th percentile over disturbances of the {MEASURES[measure]}, that of the job for which it is greatest; "
    words += "one-sided 95 % upper bound by order statistics"
    if measure == RECOVERY:
        words += f"; after {told.never} of {told.n} some job never recovered"
    return Figure(
        requirement,
        told.estimate,
        told.bound,
        told.n,
        f"{words}. Parts: by kind of disturbance, then of others in the same windows",
        parts(o.windows, measure),
        [*_worst(o.windows, requirement), *_misses(o, requirement)],
        tables if measure == LOSS else [*tables, triggers(o.windows)],
        plots,
    )


def _worst(windows: Sequence[Played], requirement: str) -> Iterator[Claim]:
    """Disturbances that are worse than the percentile may be, the worst first."""
    measure, limit = _MEASURES[requirement], limit_of(requirement)
    rows = [
        (float(getattr(each, measure)), number, each.event)
        for number, window in enumerate(windows)
        for each in window.scores[SERVICE].disturbances
    ]
    for value, number, event in sorted(rows, key=lambda row: -row[0])[:SHOWN]:
        if value > limit:
            expected = f"{MEASURES[measure]}: {shown_as(limit, measure)} at most"
            what = f"{event.kind} to × {event.times:.2f}, at {event.at:.1f} s of window {number}"
            yield holds(requirement, False, expected, f"{shown_as(value, measure)}: {what}")


def _misses(o: Observation, requirement: str) -> Iterator[Claim]:
    """What was not carried out."""
    for each in o.unsound:
        expected = f"changes that can be carried out, in every answer ({o.unsound_answers} had others)"
        yield holds(requirement, False, expected, "; ".join(each.faults), each.answer)


CHECK = Check("res_adjusting", (ADJUSTED, DIP, RECOVERED), observe, judge, heavy=True)
