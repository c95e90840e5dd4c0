"""What trainings need: a request for demands in, a report out, both as plain dicts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from kuayu.demand.batch import Batch, ideal, predicted
from kuayu.demand.demand_phases import phase_trainings, told_phases
from kuayu.demand.efficiency import PRIOR
from kuayu.demand.exchanges import DIMENSIONS
from kuayu.demand.experience import BY_LAW, Experience, learn
from kuayu.demand.feasibility import REASONS
from kuayu.demand.hardware import Hardware
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import Demand
from kuayu.demand.profile import profile
from kuayu.demand.reading import (
    Training,
    check,
    hardware_of,
    measured_of,
    strategy_of,
    structure_of,
    training_of,
)
from kuayu.demand.step_time import times
from kuayu.refusals import Complaint, Impossible, refuse

if TYPE_CHECKING:
    from kuayu.demand.reading import TrainingRequest
    from kuayu_schemas import documents

METHOD_NAME = "Analytic law of a training step"
METHOD_VERSION = "2.0.0"

COVERAGE = 0.9
"""Share of cases that intervals hold where a request does not say."""

INCREDIBLE = 1e6
"""By so much no measured step differs from what the prior says; it is a mistake then, of the unit, say."""

MAX_AMOUNT = 1e30
"""Largest amount of the wire."""

QUIETLY = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""Arithmetic without warnings: what is beyond doubles is beyond MAX_AMOUNT too, and refused."""

LINKS: "Mapping[str, documents.LinkClass]" = {"node": "node", "domain": "domain", "across": "federation"}
"""Classes of links as the wire calls them."""

MEMORY_PARTS: "tuple[documents.MemoryPart, ...]" = ("parameters", "gradients", "optimizer", "activations", "working")


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
    batch = predicted([*trainings, *phased], experience.slower([*trainings, *phased]))
    factors = experience.factor(batch.needed, [*trainings, *phased], coverage_of(request))
    demands = []
    for number, (case, training) in enumerate(zip(cases, trainings, strict=True)):
        of, row = batch.place[number], float(factors[number])
        answer = _told(case["id"], training, batch, of, row, coverage_of(request))
        if request.get("profiles"):
            answer["segments"] = segments(batch.demands[of[0]], of[1])
        demands.append(answer)
    first = len(cases)
    for number, case in enumerate(cases):
        if case.get("phases"):
            last = first + len(case["phases"])
            rows = [(batch.demands[group], row) for group, row in batch.place[first:last]]
            demands[number]["phases"] = told_phases(case, rows)
            first = last
    refuse(Impossible, _beyond(demands))
    return {"revision": request["revision"], "method": method(experience), "demands": demands}


def experienced(request: "TrainingRequest", kinds: Mapping[str, Hardware]) -> Experience:
    """What the runs of a request teach."""
    runs = measured_of(request, kinds)
    if not runs:
        return BY_LAW
    needed, measured = ideal([run.training for run in runs]), np.array([run.seconds for run in runs])
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


def tellable(value: object) -> bool:
    """Whether all numbers of an answer are such as the wire has."""
    match value:
        case dict():
            return all(tellable(member) for member in value.values())
        case list():
            return all(tellable(member) for member in value)
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


def _told(
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


def _beyond(answers: "Sequence[documents.TrainingDemand]") -> list[Complaint]:
    """Cases some of whose figures are more than the wire can tell."""
    detail = "its figures are beyond what can be told"
    return [(f"/cases/{number}", detail) for number, answer in enumerate(answers) if not tellable(answer)]


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
