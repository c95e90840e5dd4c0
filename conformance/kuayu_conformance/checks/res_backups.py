"""Backup plans that hold what they shall, and no more than there is room for (RES-015)."""

from collections.abc import Iterable
from itertools import islice

from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_backup_questions import questions
from kuayu_conformance.checks.res_backup_soundness import backup_deviations
from kuayu_conformance.checks.res_fixtures import BACKUPS, is_answer
from kuayu_conformance.checks.res_plans import Told
from kuayu_conformance.checks.res_windows import SHOWN
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, holds

REQUIREMENT = "RES-015"

TIMES_QUICK, TIMES_FULL = 1, 10
"""How often each hard question is drawn."""


def observe(episode: Episode) -> tuple[Told, ...]:
    """Ask hard questions."""
    told = []
    for what, body in questions(episode.random, TIMES_FULL if episode.settings.full else TIMES_QUICK):
        answer = episode.ask("POST", BACKUPS, body)
        valid = is_answer(BACKUPS, answer)
        wrong = backup_deviations(body, answer.json) if valid else [f"no backup plan: {answer.brief}"]
        told.append(Told(what, tuple(islice(wrong, SHOWN)), answer))
    return tuple(told)


def judge(observation: tuple[Told, ...]) -> Iterable[Finding]:
    """Claims about every hard question."""
    for each in observation:
        expected = f"{each.what}: a sound backup plan"
        yield holds(REQUIREMENT, not each.faults, expected, "; ".join(each.faults) or "it is sound", each.answer)


CHECK = Check("res_backups", (REQUIREMENT,), observe, judge)
