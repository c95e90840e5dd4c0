"""Probe plans (IDX-015)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import PROBED, UNMEASURED, corpus, question
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, Finding, holds
from kuayu_schemas import schema

PLANS = "/v1/probe-plans"


@dataclass(frozen=True)
class Plan:
    """A plan that was asked for: how many probes, and what came."""

    size: int
    candidates: tuple[tuple[str, str], ...]
    answer: Answer


def observe(episode: Episode) -> tuple[Plan, ...]:
    """Ask for plans of several lengths."""
    of = corpus(episode)
    known = {(row["device"], row["task"]) for row in of["measurements"]}
    pairs = [(device, task["id"]) for device in (PROBED, UNMEASURED) for task in of["tasks"]]
    candidates = tuple(pair for pair in pairs if pair not in known)
    cells = [{"device": device, "task": task} for device, task in candidates]
    request = {name: value for name, value in question(episode, of).items() if name != "reference"}
    request = {**request, "candidates": cells, "targets": cells}
    plans = []
    for probes in (1, 3, len(cells) + 5):
        answer = episode.set_up("POST", PLANS, {**request, "probes": probes})
        if not schema.is_valid("ProbePlan", answer.json, reader=True):
            raise SetUpFailure("the answer is not a valid probe plan", answer)
        plans.append(Plan(probes, candidates, answer))
    return tuple(plans)


def judge(observation: tuple[Plan, ...]) -> Iterable[Finding]:
    """Claims about plans."""
    for plan in observation:
        yield from _sound(plan)
    for shorter, longer in pairwise(observation):
        begins = _probes(longer)[: len(_probes(shorter))] == _probes(shorter)
        expected = f"the plan of {shorter.size} begins that of {longer.size}"
        yield holds("IDX-015", begins, expected, _probes(longer), longer.answer)


def _probes(plan: Plan) -> list[tuple[str, str]]:
    return [(probe["device"], probe["task"]) for probe in plan.answer.json["probes"]]


def _sound(plan: Plan) -> Iterator[Claim]:
    probes = _probes(plan)
    foreign = sorted(set(probes) - set(plan.candidates))
    yield holds("IDX-015", not foreign, "candidates only", foreign, plan.answer)
    yield holds("IDX-015", len(set(probes)) == len(probes), "no candidate twice", probes, plan.answer)
    few = len(probes) <= plan.size
    yield holds("IDX-015", few, f"at most {plan.size} probes", len(probes), plan.answer)
    widths = [plan.answer.json["without"], *(probe["half_width"] for probe in plan.answer.json["probes"])]
    shrinks = all(after <= before * (1 + 1e-9) for before, after in pairwise(widths))
    yield holds("IDX-015", shrinks, "widths that never grow", widths, plan.answer)


CHECK = Check("idx_plans", ("IDX-015",), observe, judge)
