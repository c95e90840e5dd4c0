"""Fronts that are wanted by a time limit, against the same front without one (SCH-040).

1. A state in which twelve jobs wait is asked about without a limit, and then with each of ``LIMITS_SECONDS``. No name
   tells which question is which, and each has a revision of its own, so that no answer can be one that was kept.
2. An answer comes no later than ``GRACE_SECONDS`` after its limit, from the first byte sent to the last one received,
   and holds a schedule at least.
3. Its schedules can be carried out and state the ends that they have, as for SCH-014.
4. Where they cover less than the front without a limit (by hypervolume, beyond ``NEAR``), they are marked as partial.
   A mark without need is not held against anybody: who was stopped cannot know what was still to be found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.checks.scheduling.pareto import MAX_SOLUTIONS, NEAR, SLOT, Ends, hypervolume, small, solutions
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, StateBuilder
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

JOBS = 12
"""Jobs that wait: so many that a search goes on for a while, and so few that all their schedules are soon computed."""
LIMITS_SECONDS = (0.25, 0.5)
GRACE_SECONDS = 1.0
"""Between the limit of a request and the end of its answer, by the standard."""


@dataclass(frozen=True)
class LimitedFront:
    """A front that was asked for.

    Attributes:
        limit: Seconds; None without a limit.
        ends: Ends of its schedules that can be carried out.
        faults: Why others cannot, and what they state wrongly.
        partial: Whether it is marked as partial.
        answer: The exchange.
    """

    limit: float | None
    ends: tuple[Ends, ...]
    faults: tuple[str, ...]
    partial: bool
    answer: Answer

    @property
    def what(self) -> str:
        """The question in words."""
        return "a front without a time limit" if self.limit is None else f"a front within {self.limit:g} s"


def observe(episode: Episode) -> tuple[LimitedFront, ...]:
    """Ask for one front without a limit, and for the same with limits."""
    state = small(StateBuilder.of(episode), JOBS)
    return tuple(_limited_front(episode, state, number, limit) for number, limit in enumerate((None, *LIMITS_SECONDS)))


def _limited_front(
    episode: Episode, state: "documents.SchedulingState", number: int, limit: float | None
) -> LimitedFront:
    revision = {**state["revision"], "number": state["revision"]["number"] + number}
    body = {"state": {**state, "revision": revision}, "slot": SLOT, "solutions": MAX_SOLUTIONS}
    if limit is None:
        answer = episode.ask_patiently("POST", FRONTS, body)
    else:
        answer = episode.ask("POST", FRONTS, {**body, "time_limit": limit})
    if not is_answer(FRONTS, answer):
        return LimitedFront(limit, (), (), False, answer)
    rows = tuple(solutions(state, answer.json["solutions"]))
    faults = [fault for solution in rows for fault in solution.faults]
    faults += [
        f"{solution.stated} stated, {solution.ends} found"
        for solution in rows
        if not solution.faults and _off(solution.stated, solution.ends)
    ]
    sound = tuple(solution.ends for solution in rows if not solution.faults)
    return LimitedFront(limit, sound, tuple(faults), answer.json.get("partial", False), answer)


def _off(stated: Ends, computed: Ends) -> bool:
    """Whether an end is more than a hundredth off; a whole unit of money is free."""
    (period, money), (own_period, own_money) = stated, computed
    return abs(period - own_period) > NEAR * own_period or abs(money - own_money) > NEAR * own_money + 1.0


def judge(observation: tuple[LimitedFront, ...]) -> Iterable[Finding]:
    """Claims about the time of answers, their schedules, and the mark of what is not all."""
    whole, *limited = observation
    yield holds("SCH-040", bool(whole.ends), whole.what, whole.answer.brief, whole.answer)
    for front in limited:
        yield from _within_limit(front, whole)


def _within_limit(front: LimitedFront, whole: LimitedFront) -> Iterator[Claim]:
    assert front.limit is not None
    answer, seconds = front.answer, front.answer.seconds
    in_time = seconds <= front.limit + GRACE_SECONDS
    yield holds("SCH-040", in_time, f"{front.what}, and one more at most", f"{seconds:.2f} s", answer)
    yield holds("SCH-040", bool(front.ends), f"{front.what}: one schedule at least", answer.brief, answer)
    yield holds("SCH-040", not front.faults, f"{front.what}: schedules as they are", list(front.faults[:3]), answer)
    if front.ends and whole.ends:
        share = hypervolume(whole.ends, front.ends)
        expected = f"{front.what}: marked as partial where it covers less than the front without a limit"
        yield holds("SCH-040", front.partial or share >= 1.0 - NEAR, expected, f"{share:.1%}, no mark", answer)


CHECK = Check("sch_front_limits", ("SCH-040",), observe, judge, recorded_times=True, heavy=True)
