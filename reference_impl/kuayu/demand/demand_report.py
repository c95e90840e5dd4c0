"""What trainings need: a request for demands in, a report out, both as plain dicts.

1. Trainings that differ only in numbers of model and layout go through the law together, as rows of a table.
2. Phases of a training differ in their batch and the length of their sequences.
3. What is measured in the request corrects what the law says (:mod:`kuayu.demand.experience`).
4. Figures beyond :data:`MAX_AMOUNT` are refused.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.experience import BY_LAW, Experience, learn
from kuayu.demand.hardware import Hardware
from kuayu.demand.memory import REASONS
from kuayu.demand.parse import Training, check, hardware_of, measured_of, strategy_of, structure_of, training_of
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import Demand, predict, profile
from kuayu.demand.step_time import PRIOR, Terms, concatenated, selected, terms, times
from kuayu.demand.strategy import Floats, Layouts, Strategy, Whole
from kuayu.demand.structure import ModelStructure
from kuayu.refusals import Complaint, Impossible, refuse

if TYPE_CHECKING:
    from kuayu.demand.parse import TrainingRequest
    from kuayu_schemas import documents

T = TypeVar("T")

METHOD_NAME = "Analytic law of a training step"
METHOD_VERSION = "2.0.0"

COVERAGE = 0.9
"""Share of cases that intervals hold where a request does not say."""

INCREDIBLE = 1e6
"""By so much no measured step differs from what the prior says; it is a mistake then, of the unit, say."""

MAX_AMOUNT = 1e30
"""Largest amount that a document holds."""

QUIETLY = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""Arithmetic without warnings: what is beyond doubles is beyond MAX_AMOUNT too, and refused."""

LINKS: "Mapping[str, documents.LinkClass]" = {"node": "node", "domain": "domain", "across": "federation"}
"""Classes of links as documents call them."""

MEMORY_PARTS: "tuple[documents.MemoryPart, ...]" = ("parameters", "gradients", "optimizer", "activations", "working")


@dataclass(frozen=True)
class Batch:
    """Demands of N trainings.

    Attributes:
        demands: Demand of each table of trainings.
        place: Table and row in it of each training, N.
        needed: Ideal times, in the order of the trainings.
    """

    demands: Sequence[Demand]
    place: Sequence[tuple[int, int]]
    needed: Terms


def predict_all(trainings: Sequence[Training], slower: Floats) -> Batch:
    """Demands of trainings, at least one, that take so many times as long as the law says, N."""
    tables = _tables(trainings)
    demands = [predict(*table.arguments).slower(slower[list(table.rows)]) for table in tables]
    place = [(0, 0)] * len(trainings)
    for number, table in enumerate(tables):
        for row, position in enumerate(table.rows):
            place[position] = (number, row)
    return Batch(demands, place, _in_order([demand.terms for demand in demands], tables))


def ideal_terms(trainings: Sequence[Training]) -> Terms:
    """Ideal times of trainings, in their order; at least one."""
    tables = _tables(trainings)
    return _in_order([terms(*table.arguments) for table in tables], tables)


@dataclass(frozen=True)
class _Table:
    """Trainings that go through the law together.

    Attributes:
        arguments: Their models as one whose sizes are columns, their layouts, and the hardware.
        rows: Which trainings they are.
    """

    arguments: tuple[ModelStructure, Layouts, Hardware]
    rows: list[int]


def _tables(trainings: Sequence[Training]) -> list[_Table]:
    positions: dict[Hashable, list[int]] = {}
    for position, training in enumerate(trainings):
        positions.setdefault(_table_key(training), []).append(position)
    tables = []
    for rows in positions.values():
        layouts = Layouts.of([trainings[row].strategy for row in rows])
        structure = _as_columns([trainings[row].structure for row in rows])
        tables.append(_Table((structure, layouts, trainings[rows[0]].hardware.of(layouts.devices)), rows))
    return tables


def _table_key(training: Training) -> Hashable:
    """What trainings of a table share; hardware is told by its name, which a request has once."""
    of, common = training.structure, replace(training.strategy, **Layouts.neutral())
    adapted = of.adapter and (of.adapter.attention, of.adapter.feed_forward)
    sort = of.gated, of.tied, of.dropout, of.window > 0, of.latent is None, adapted
    return sort, common, training.hardware.name


def _as_columns(alike: Sequence[T]) -> T:
    """Dataclasses of one sort as one whose numbers are columns, N; flags and a window of zero stay what they are."""
    table = copy(alike[0])
    for name, first in vars(table).copy().items():
        values = [getattr(part, name) for part in alike]
        if is_dataclass(first):
            object.__setattr__(table, name, _as_columns(values))
        elif not (isinstance(first, bool | None) or (name == "window" and not first)):
            object.__setattr__(table, name, np.array(values, dtype=float))
    return table


def _in_order(parts: Sequence[Terms], tables: Sequence[_Table]) -> Terms:
    rows: Whole = np.argsort(np.concatenate([np.array(table.rows) for table in tables]), kind="stable")
    return selected(concatenated(parts), rows)


def phase_trainings(case: "documents.TrainingCase", training: Training, hardware: Hardware) -> Iterator[Training]:
    """The training of a case as it is in each phase, in their order."""
    structure, whole = training.structure, training.strategy
    for phase in case.get("phases", ()):
        sequence = int(phase.get("sequence", structure.sequence))
        shorter = structure if sequence == structure.sequence else structure_of(case["model"], sequence)
        yield training_of(shorter, of_batch(whole, int(phase.get("global_batch", whole.global_batch))), hardware)


def of_batch(strategy: Strategy, batch: int) -> Strategy:
    """The strategy with as many replicas as such a batch has micro-batches for."""
    replicas = max(1, min(strategy.data, batch // strategy.micro_batch))
    return replace(strategy, data=replicas, global_batch=batch)


def phase_demands(case: "documents.TrainingCase", rows: Sequence[tuple[Demand, int]]) -> "list[documents.PhaseDemand]":
    """Demand of each phase.

    Args:
        case: A ``TrainingCase``.
        rows: Demand of each phase, and its row there.
    """
    phases: list[documents.PhaseDemand] = []
    for phase, (demand, row) in zip(case["phases"], rows, strict=True):
        step, steps = float(demand.times.step[row]), phase["steps"]
        phases.append(
            {
                "phase": phase["phase"],
                "devices": int(demand.layouts.devices[row]),
                "step_time": step,
                "duration": steps * step,
                "work": steps * float(demand.model_flops[row]),
                "memory": float(demand.memory.total[row]),
                "traffic": float(demand.traffic[:, :, row].sum()),
            }
        )
    return phases


@QUIETLY
def demand(request: "documents.TrainingDemandRequest") -> "documents.TrainingDemandReport":
    """Answer a request for demands.

    Args:
        request: A valid ``TrainingDemandRequest``.

    Returns:
        A ``TrainingDemandReport``.

    Raises:
        RepeatedName: Hardware or cases share a name.
        UnknownName: A case or a run names hardware that the request does not hold.
        Impossible: A model, a strategy or hardware contradicts itself.
    """
    check(request)
    kinds = {device["id"]: hardware_of(device) for device in request["hardware"]}
    experience = experienced(request, kinds)
    cases = request["cases"]
    trainings = [
        training_of(structure_of(case["model"]), strategy_of(case["strategy"]), kinds[case["hardware"]])
        for case in cases
    ]
    phased = [
        training
        for number, case in enumerate(cases)
        for training in phase_trainings(case, trainings[number], kinds[case["hardware"]])
    ]
    batch = predict_all([*trainings, *phased], experience.slower([*trainings, *phased]))
    factors = experience.factor(batch.needed, [*trainings, *phased], coverage_of(request))
    demands = []
    for number, (case, training) in enumerate(zip(cases, trainings, strict=True)):
        of, row = batch.place[number], float(factors[number])
        answer = _case_demand(case["id"], training, batch, of, row, coverage_of(request))
        if request.get("profiles"):
            answer["segments"] = segments(batch.demands[of[0]], of[1])
        demands.append(answer)
    first = len(cases)
    for number, case in enumerate(cases):
        if case.get("phases"):
            last = first + len(case["phases"])
            rows = [(batch.demands[table], row) for table, row in batch.place[first:last]]
            demands[number]["phases"] = phase_demands(case, rows)
            first = last
    refuse(Impossible, _unrepresentable(demands))
    return {"revision": request["revision"], "method": method(experience), "demands": demands}


def experienced(request: "TrainingRequest", kinds: Mapping[str, Hardware]) -> Experience:
    """What the runs of a request teach."""
    runs = measured_of(request, kinds)
    if not runs:
        return BY_LAW
    needed, measured = ideal_terms([run.training for run in runs]), np.array([run.seconds for run in runs])
    ratio = times(needed, PRIOR).step / measured
    far = ~((ratio > 1 / INCREDIBLE) & (ratio < INCREDIBLE))
    detail = "no training of this kind takes so long or so short a time for a step"
    refuse(Impossible, [(f"/runs/{runs[row].position}/step_time", detail) for row in np.flatnonzero(far)])
    return learn([run.training for run in runs], needed, measured, [run.source for run in runs])


def coverage_of(request: "TrainingRequest") -> float:
    """Share of cases that intervals are to hold."""
    return float(request["coverage"]) if "coverage" in request else COVERAGE


def method(experience: Experience) -> "documents.DemandMethod":
    """How demands were computed."""
    return {"name": METHOD_NAME, "version": METHOD_VERSION, "runs": experience.runs}


def estimate(expected: float, factor: float, coverage: float) -> "documents.Estimate":
    """An expected value with its interval, by which factor it may be larger or smaller."""
    return {"expected": expected, "low": expected / factor, "high": expected * factor, "coverage": coverage}


def representable(value: object) -> bool:
    """Whether all numbers of an answer are such as documents hold."""
    match value:
        case dict():
            return all(representable(member) for member in value.values())
        case list():
            return all(representable(member) for member in value)
        case int() | float():
            return -MAX_AMOUNT <= value <= MAX_AMOUNT
    return True


def segments(demand: Demand, row: int) -> "list[documents.StepSegment]":
    """The inside of a step."""
    return [
        {
            "activity": cast("documents.StepActivity", segment.name),
            "begin": segment.begins,
            "duration": segment.lasts,
            "busy": segment.busy,
            "traffic": [{"link": LINKS[link], "flow": flow} for link, flow in segment.sends.items() if flow > 0],
        }
        for segment in profile(demand, row)
    ]


def _case_demand(
    case: str, training: Training, batch: Batch, of: tuple[int, int], factor: float, coverage: float
) -> "documents.TrainingDemand":
    demand, row = batch.demands[of[0]], of[1]
    obstacles = [*training.missing, *_obstacles(demand, row, training.hardware)]
    answer: documents.TrainingDemand = {
        "case": case,
        "parameters": float(training.structure.parameters),
        "active_parameters": float(training.structure.active_parameters),
        "devices": training.strategy.devices,
        "work": float(demand.model_flops[row]),
        "executed_work": float(demand.hardware_flops[row]),
        "step_time": estimate(float(demand.times.step[row]), factor, coverage),
        "utilisation": float(demand.utilization[row]),
        "memory": float(demand.memory.total[row]),
        "memory_parts": [{"part": part, "size": float(getattr(demand.memory, part)[row])} for part in MEMORY_PARTS],
        "fits": not obstacles,
        "obstacles": obstacles,
        "traffic": _traffic(demand, row),
    }
    if training.structure.adapter is not None:
        answer["trained_parameters"] = float(training.structure.adapter_parameters)
    return answer


def _unrepresentable(answers: "Sequence[documents.TrainingDemand]") -> list[Complaint]:
    """Cases some of whose figures are more than a document can hold."""
    detail = "its figures are beyond what can be told"
    return [(f"/cases/{number}", detail) for number, answer in enumerate(answers) if not representable(answer)]


def _traffic(demand: Demand, row: int) -> "list[documents.StepTraffic]":
    return [
        {"dimension": dimension, "link": LINKS[link], "size": float(demand.traffic[place, kind, row])}
        for place, dimension in enumerate(DIMENSIONS)
        for kind, link in enumerate(CLASSES)
        if demand.traffic[place, kind, row] > 0
    ]


def _obstacles(demand: Demand, row: int, hardware: Hardware) -> list[str]:
    """Why it cannot run; of memory with the figures."""
    obstacles = []
    for reason, hit in zip(REASONS, demand.broken[row], strict=True):
        if hit and reason.code == "memory":
            needed, capacity = float(demand.memory.total[row]) / 1e9, hardware.memory / 1e9
            obstacles.append(f"{reason.text}: {needed:.4g} of {capacity:.4g} GB")
        elif hit:
            obstacles.append(reason.text)
    return obstacles
