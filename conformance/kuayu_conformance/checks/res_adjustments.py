"""Adjustments that state what is and can be carried out (RES-016).

The first window of RES-007 is played again, too: it follows from the nonce alone, and the same request has the same
answer (COM-029), so that these are adjustments on which the figures of RES-008 and RES-009 rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_adjustment_questions import questions
from kuayu_conformance.checks.res_adjustment_soundness import deviations
from kuayu_conformance.checks.res_adjustment_triggers import untimely
from kuayu_conformance.checks.res_adjustment_window import Looking
from kuayu_conformance.checks.res_fixtures import ADJUSTMENTS, is_answer
from kuayu_conformance.checks.res_plans import Told
from kuayu_conformance.checks.res_windows import SHOWN, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

REQUIREMENT = "RES-016"

TIMES_QUICK, TIMES_FULL = 1, 10
"""How often each hard question is drawn."""


@dataclass(frozen=True)
class Observation:
    """Adjustments that were looked at.

    Attributes:
        questions: Hard ones.
        adjustments: In the window.
        unsound: Some of those that were not sound.
        unsound_adjustments: How many were not.
        bad_answers: Answers in the window that were no adjustments.
        bad: One of these.
    """

    questions: tuple[Told, ...]
    adjustments: int
    unsound: tuple[Unsound, ...]
    unsound_adjustments: int
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> Observation:
    """Ask hard questions, then play a window."""
    told = []
    for what, body in questions(episode.random, TIMES_FULL if episode.settings.full else TIMES_QUICK):
        answer = episode.ask("POST", ADJUSTMENTS, body)
        wrong = [f"no adjustment: {answer.brief}"]
        if is_answer(ADJUSTMENTS, answer):
            wrong = [*deviations(body, answer.json), *untimely(body, answer.json)]
        told.append(Told(what, tuple(islice(wrong, SHOWN)), answer))
    seen = Looking(episode)
    seen.alone(0)
    unsound, count = tuple(seen.deviating), seen.deviating_answers
    return Observation(tuple(told), seen.answers, unsound, count, seen.bad_answers, seen.bad)


def judge(o: Observation) -> Iterable[Finding]:
    """Claims about every hard question, and about the adjustments of the window."""
    for each in o.questions:
        expected = f"{each.what}: a sound adjustment"
        yield holds(REQUIREMENT, not each.faults, expected, "; ".join(each.faults) or "it is sound", each.answer)
    expected = "in a window, every answer is an adjustment"
    found = f"{o.bad_answers} are none, {o.adjustments} are adjustments"
    yield holds(REQUIREMENT, not o.bad_answers, expected, found, o.bad)
    expected, count = "in a window, every adjustment is sound", f"{o.unsound_adjustments} of {o.adjustments} are not"
    if not o.unsound_adjustments:
        yield holds(REQUIREMENT, True, expected, count)
    for one in o.unsound:
        yield holds(REQUIREMENT, False, expected, f"{count}: {'; '.join(one.faults)}", one.answer)


CHECK = Check("res_adjustments", (REQUIREMENT,), observe, judge)
