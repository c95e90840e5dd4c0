"""Probe plans, and requests that name what their corpus does not hold (IDX-015, IDX-016)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import PROBED, REFERENCE, UNMEASURED, corpus, question
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, Finding, answered, holds
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

NOWHERE = "nowhere"
INDICES, PLANS = "/v1/compute-indices", "/v1/probe-plans"


@dataclass(frozen=True)
class Plan:
    """A plan that was asked for: how many probes, and what came."""

    asked: int
    candidates: tuple[tuple[str, str], ...]
    answer: Answer


@dataclass(frozen=True)
class BadRequest:
    """A request with something wrong in it: what, the problem that it calls for, and where."""

    what: str
    problem: str
    pointer: str
    answer: Answer


@dataclass(frozen=True)
class ProbePlans:
    """Plans, and answers to what was wrong."""

    plans: tuple[Plan, ...]
    wrong: tuple[BadRequest, ...]


def observe(episode: Episode) -> ProbePlans:
    """Ask for plans of several lengths, then for what cannot be answered."""
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
    wrong = []
    for what, problem, pointer, path, body in _wrong(question(episode, of), {**request, "probes": 1}):
        wrong.append(BadRequest(what, problem, pointer, episode.ask("POST", path, body)))
    return ProbePlans(tuple(plans), tuple(wrong))


def _wrong(
    indices: "documents.IndexRequest", plan: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
    unknown, repeated = "unknown-reference", "invalid-body"
    of = indices["corpus"]
    measured, device, task = of["measurements"], of["devices"], of["tasks"]

    def indices_of(**members: object) -> Mapping[str, Any]:
        return {**indices, "corpus": {**of, **members}}

    def cell(name: str, **members: str) -> Mapping[str, Any]:
        return {**plan, name: [*plan[name][:2], {**plan[name][2], **members}]}

    first, others = measured[0], measured[1:]
    yield (
        "device of a measurement",
        unknown,
        "/corpus/measurements/0/device",
        INDICES,
        indices_of(measurements=[{**first, "device": NOWHERE}, *others]),
    )
    yield (
        "task of a measurement",
        unknown,
        "/corpus/measurements/0/task",
        INDICES,
        indices_of(measurements=[{**first, "task": NOWHERE}, *others]),
    )
    yield "reference", unknown, "/reference", INDICES, {**indices, "reference": NOWHERE}
    yield "device asked for", unknown, "/devices/1", INDICES, {**indices, "devices": [REFERENCE, NOWHERE]}
    yield "task asked for", unknown, "/tasks/0", INDICES, {**indices, "tasks": [NOWHERE]}
    yield (
        "device of a group",
        unknown,
        "/groups/0/members/0/device",
        INDICES,
        {
            **indices,
            "groups": [{"id": "group", "members": [{"device": NOWHERE, "count": 1}]}],
        },
    )
    yield (
        "group that stands later",
        unknown,
        "/groups/0/members/0/group",
        INDICES,
        {
            **indices,
            "groups": [
                {"id": "first", "members": [{"group": "second", "count": 1}]},
                {"id": "second", "members": [{"device": REFERENCE, "count": 1}]},
            ],
        },
    )
    member = {"device": REFERENCE, "count": 1}
    twice = [{"id": "group", "members": [member]}, {"id": "group", "members": [member]}]
    yield "group that stands twice", repeated, "/groups/1/id", INDICES, {**indices, "groups": twice}
    yield "device of a candidate", unknown, "/candidates/2/device", PLANS, cell("candidates", device=NOWHERE)
    yield "task of a candidate", unknown, "/candidates/2/task", PLANS, cell("candidates", task=NOWHERE)
    yield "device of a target", unknown, "/targets/2/device", PLANS, cell("targets", device=NOWHERE)
    yield "task of a target", unknown, "/targets/2/task", PLANS, cell("targets", task=NOWHERE)
    yield (
        "device that stands twice",
        repeated,
        "/corpus/devices/7/id",
        INDICES,
        indices_of(devices=[*device, device[0]]),
    )
    yield "task that stands twice", repeated, "/corpus/tasks/5/id", INDICES, indices_of(tasks=[*task, task[0]])


def judge(observation: ProbePlans) -> Iterable[Finding]:
    """Claims about plans and about refusals."""
    for plan in observation.plans:
        yield from _sound(plan)
    for shorter, longer in pairwise(observation.plans):
        begins = _probes(longer)[: len(_probes(shorter))] == _probes(shorter)
        expected = f"the plan of {shorter.asked} begins that of {longer.asked}"
        yield holds("IDX-015", begins, expected, _probes(longer), longer.answer)
    for wrong in observation.wrong:
        yield answered("IDX-016", wrong.answer, 422, wrong.what, problem=wrong.problem)
        pointers = [error.get("pointer") for error in wrong.answer.items("errors") if isinstance(error, dict)]
        named = wrong.pointer in pointers
        yield holds("IDX-016", named, f"{wrong.what}: the place {wrong.pointer}", pointers, wrong.answer)


def _probes(plan: Plan) -> list[tuple[str, str]]:
    return [(probe["device"], probe["task"]) for probe in plan.answer.json["probes"]]


def _sound(plan: Plan) -> Iterator[Claim]:
    probes = _probes(plan)
    foreign = sorted(set(probes) - set(plan.candidates))
    yield holds("IDX-015", not foreign, "candidates only", foreign, plan.answer)
    yield holds("IDX-015", len(set(probes)) == len(probes), "no candidate twice", probes, plan.answer)
    few = len(probes) <= plan.asked
    yield holds("IDX-015", few, f"at most {plan.asked} probes", len(probes), plan.answer)
    widths = [plan.answer.json["without"], *(probe["half_width"] for probe in plan.answer.json["probes"])]
    shrinks = all(after <= before * (1 + 1e-9) for before, after in pairwise(widths))
    yield holds("IDX-015", shrinks, "widths that never grow", widths, plan.answer)


CHECK = Check("idx_plans", ("IDX-015", "IDX-016"), observe, judge)
