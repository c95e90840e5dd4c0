"""Choices that depend on what counts: a state in which each objective asks for another place, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from kuayu_conformance.checks.sch_account import Account
from kuayu_conformance.checks.sch_fixtures import GIGABYTE, Asked, Draft, Json, queued
from kuayu_conformance.checks.sch_scene import Scene

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "period": {"period": 1.0},
    "communication": {"communication": 1.0},
    "price": {"price": 1.0},
    "utilisation": {"utilisation": 1.0},
}
"""One objective at a time."""
TURNED = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Weights of communication beside one of the period."""


@dataclass(frozen=True)
class Chosen:
    """What comes of a batch under some weights, as means over the jobs that start.

    Attributes:
        started: Part of the jobs.
        period: Seconds until the end.
        communication: Money for bandwidth.
        price: Money for devices.
        utilisation: Work a second of the devices over what they could do at best.
    """

    started: float
    period: float
    communication: float
    price: float
    utilisation: float


def crossroads(draft: Draft, jobs: int = 16) -> Json:
    """All jobs are at home where devices are slow and cheap; elsewhere are fast and dear ones, and others' favourites.

    There is room for all of them everywhere.
    """
    chance = draft.chance
    here, there = draft.names(2)
    slow, fast, other = (
        {**draft.accelerator([here, there]), "indices": [
            {"profile": here, "value": one}, {"profile": there, "value": two}]}
        for one, two in ((0.8, 0.9), (2.4, 1.1), (0.9, 2.2))
    )  # fmt: skip
    domains = []
    for kind, price in ((slow, 5.0), (fast, 30.0), (other, 18.0), (slow, 4.5), (fast, 32.0)):
        pool = draft.pool(kind, 2 * jobs)
        draft.offers(pool, price * chance.uniform(0.95, 1.05), {"on_demand": 1.0})
        domains.append(draft.domain(pool))
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        lasting = chance.uniform(8_000.0, 40_000.0)
        spec = draft.spec(
            (here, there)[number % 2], names[0], (8, 8, 8),
            duration={"expected": lasting, "low": lasting / 2, "high": 2 * lasting, "coverage": 0.8},
        )  # fmt: skip
        spec["data"][0]["size"] = chance.uniform(50.0, 1500.0) * GIGABYTE
        specs.append(spec)
    state = queued(draft.state([slow, fast, other], domains, draft.mesh(names, (5.0, 20.0))), specs)
    order = chance.sample(range(5), 5)
    return {**state, "domains": [domains[number] for number in order]}


def chosen(asked: Asked) -> Chosen:
    """What comes of the decisions of an answer; infinite where none can be carried out."""
    state = asked.body["state"]
    account, scene = Account(state), Scene(state)
    decisions = asked.told["decisions"]
    started = [each for each in decisions if each["verb"] == "start"]
    if account.faults(decisions) or not started:
        return Chosen(0.0, inf, inf, inf, 0.0)
    entries = [(account.waiting[each["job"]], each["placement"]) for each in started]
    courses = [scene.course(entry, placement) for entry, placement in entries]
    count = len(courses)
    return Chosen(
        count / len(state["waiting"]),
        sum(course.seconds for course in courses) / count,
        sum(course.communication for course in courses) / count,
        sum(course.price for course in courses) / count,
        sum(_fitness(scene, entry["spec"], placement) for entry, placement in entries) / count,
    )


def _fitness(scene: Scene, spec: Json, placement: Json) -> float:
    """Index of the devices for a job over the best that they have for any."""
    devices = sum(share["devices"] for share in placement["shares"])
    best = sum(share["devices"] * max(scene.devices[share["accelerator"]].index.values())
               for share in placement["shares"])  # fmt: skip
    return sum(scene.compute(spec, placement).values()) / best if devices else 0.0
