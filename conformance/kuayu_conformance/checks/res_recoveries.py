"""Failover plans that can be carried out (RES-014).

The first window of RES-003 begins again, too: it follows from the nonce alone, and the same request has the same answer
(COM-029), so that these are plans on which that figure rests.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_fixtures import FAILOVERS, Json, is_answer
from kuayu_conformance.checks.res_plans import Told
from kuayu_conformance.checks.res_recovery_questions import questions
from kuayu_conformance.checks.res_recovery_soundness import deviations
from kuayu_conformance.checks.res_recovery_window import Looking
from kuayu_conformance.checks.res_standings import standings
from kuayu_conformance.checks.res_windows import SHOWN, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

REQUIREMENT = "RES-014"

TIMES_QUICK, TIMES_FULL = 1, 10
"""How often each hard question is drawn."""

HOURS_QUICK, HOURS_FULL = 2.0, 24.0
"""How much of the window is played, from when things may fail; all of it where it is shorter."""


@dataclass(frozen=True)
class Observation:
    """Plans that were looked at.

    Attributes:
        questions: Hard ones.
        able: Jobs in them of which enough replicas are whole to go on.
        waiting: How many of these were told to wait.
        plans: Failover plans in the window.
        unsound: Some of those that were not sound.
        unsound_plans: How many were not.
        bad_answers: Answers in the window that were no plans.
        bad: One of these.
    """

    questions: tuple[Told, ...]
    able: int
    waiting: int
    plans: int
    unsound: tuple[Unsound, ...]
    unsound_plans: int
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> Observation:
    """Ask hard questions, then play a window."""
    told, able, waiting = [], 0, 0
    for what, body in questions(episode.random, TIMES_FULL if episode.settings.full else TIMES_QUICK):
        answer = episode.ask("POST", FAILOVERS, body)
        if is_answer(FAILOVERS, answer):
            wrong = deviations(body, answer.json)
            jobs = able_to_go_on(body)
            able += len(jobs)
            waiting += sum(each["job"] in jobs and each["strategy"] == "wait" for each in answer.json["recoveries"])
        else:
            wrong = [f"no failover plan: {answer.brief}"]
        told.append(Told(what, tuple(islice(wrong, SHOWN)), answer))
    seen = Looking(episode, hours=HOURS_FULL if episode.settings.full else HOURS_QUICK)
    seen.window(0)
    unsound, count = tuple(seen.deviating), seen.deviating_plans
    return Observation(tuple(told), able, waiting, seen.plans, unsound, count, seen.bad_answers, seen.bad)


def able_to_go_on(body: Json) -> set[str]:
    """Jobs with a broken replica of which enough are whole."""
    stands = standings(body).values()
    return {each.job["id"] for each in stands if each.whole >= each.job["least_replicas"]}


def judge(o: Observation) -> Iterable[Finding]:
    """Claims about every hard question, about all of them together, and about the plans of the window."""
    for each in o.questions:
        expected = f"{each.what}: a sound failover plan"
        yield holds(REQUIREMENT, not each.faults, expected, "; ".join(each.faults) or "it is sound", each.answer)
    if o.able:
        # to wait is to stand still until there is another way, and there is one for each of these
        expected = "not every job of which enough replicas are whole is told to wait"
        yield holds(REQUIREMENT, o.waiting < o.able, expected, f"{o.waiting} of {o.able} are")
    expected, found = "in a window, every answer is a plan", f"{o.bad_answers} are none, {o.plans} are failover plans"
    yield holds(REQUIREMENT, not o.bad_answers, expected, found, o.bad)
    expected, count = "in a window, every failover plan is sound", f"{o.unsound_plans} of {o.plans} are not"
    if not o.unsound_plans:
        yield holds(REQUIREMENT, True, expected, count)
    for plan in o.unsound:
        yield holds(REQUIREMENT, False, expected, f"{count}: {'; '.join(plan.faults)}", plan.answer)


CHECK = Check("res_recoveries", (REQUIREMENT,), observe, judge)
