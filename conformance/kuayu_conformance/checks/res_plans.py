"""Shard plans that can be carried out as they stand (RES-012).

The windows at ±30 % of RES-005 and RES-006 are played again: they follow from the nonce alone, and the same request has
the same answer (COM-029), so that these are the plans on which those figures rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_fixtures import SHARDS, is_answer
from kuayu_conformance.checks.res_questions import questions
from kuayu_conformance.checks.res_soundness import faults
from kuayu_conformance.checks.res_windows import FULL, QUICK, SHOWN, Player, Unsound
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds
from kuayu_conformance.testbed.transfers.shards_world import MILD

REQUIREMENT = "RES-012"

TIMES_QUICK, TIMES_FULL = 1, 10
"""How often each hard question is drawn."""


@dataclass(frozen=True)
class Told:
    """A hard question and what is wrong with its answer; nothing where it is sound."""

    what: str
    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class Observation:
    """Plans that were looked at.

    Attributes:
        questions: Hard ones.
        plans: Answers in windows that were shard plans.
        unsound: Some of those that were not sound.
        unsound_plans: How many were not.
        bad_answers: Answers in windows that were no shard plans.
        bad: One of these.
    """

    questions: tuple[Told, ...]
    plans: int
    unsound: tuple[Unsound, ...]
    unsound_plans: int
    bad_answers: int
    bad: Answer | None


def observe(episode: Episode) -> Observation:
    """Ask hard questions, then play windows."""
    full = episode.settings.full
    told = []
    for what, body in questions(episode.random, TIMES_FULL if full else TIMES_QUICK):
        answer = episode.ask("POST", SHARDS, body)
        wrong = faults(body, answer.json) if is_answer(SHARDS, answer) else [f"no shard plan: {answer.brief}"]
        told.append(Told(what, tuple(islice(wrong, SHOWN)), answer))
    extent = FULL if full else QUICK
    player = Player(episode, look=True)
    for number in range(extent.windows[MILD]):
        player.service_alone(MILD, number, extent)
        episode.passed(number + 1, extent.windows[MILD])
    plans = player.asked - player.bad_answers
    return Observation(tuple(told), plans, tuple(player.unsound), player.unsound_plans, player.bad_answers, player.bad)


def judge(o: Observation) -> Iterable[Finding]:
    """Claims about every hard question, and about all plans of the windows together."""
    for each in o.questions:
        expected = f"{each.what}: a sound shard plan"
        yield holds(REQUIREMENT, not each.faults, expected, "; ".join(each.faults) or "it is sound", each.answer)
    expected = "in windows at ±30 %, every answer is a shard plan"
    found = f"{o.bad_answers} of {o.plans + o.bad_answers} are none"
    yield holds(REQUIREMENT, not o.bad_answers, expected, found, o.bad)
    expected, count = "in windows at ±30 %, every shard plan is sound", f"{o.unsound_plans} of {o.plans} are not"
    if not o.unsound_plans:
        yield holds(REQUIREMENT, True, expected, count)
    for plan in o.unsound:
        yield holds(REQUIREMENT, False, expected, f"{count}: {'; '.join(plan.faults)}", plan.answer)


CHECK = Check("res_plans", (REQUIREMENT,), observe, judge, heavy=True)
