"""Routes: paths that exist, capacity that is given once, and ends that are chosen with their paths (SCH-016)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.placement_requests import (
    BITS,
    HAIR,
    ROUTES,
    Roads,
    StateBuilder,
    congested,
    grid,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

BATCHES_QUICK, BATCHES_FULL = 3, 30
ALONE_QUICK, ALONE_FULL = 12, 150
PART = 0.01
"""Share by which stated figures may be off; round trips, which a duration may count, are less than that of it."""
CRUMB = 0.05
"""Share of the room on the widest path that is no room worth speaking of."""
WEIGHTS = ({"period": 1.0}, {"communication": 1.0}, None)
"""What counts when a demand is alone: time, money, whatever the service thinks."""


@dataclass(frozen=True)
class SingleDemand:
    """What a demand that has all links to itself was given, and what the nearest end by the shortest path would be.

    Attributes:
        weights: Which end counts: ``period`` or ``communication``, or an empty string where nothing was said.
        seconds: How long moving takes; None where the demand was not served.
        money: What it costs.
        near_seconds: The same to the nearest end.
        near_money: The same.
        answer: The exchange.
    """

    weights: str
    seconds: float | None
    money: float
    near_seconds: float
    near_money: float
    answer: Answer


@dataclass(frozen=True)
class Batch:
    """What is wrong with the routes of many demands."""

    demands: int
    served: int
    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class RouteAnswers:
    """Batches of demands, and demands alone."""

    batches: tuple[Batch, ...]
    alone: tuple[SingleDemand, ...]


def observe(episode: Episode) -> RouteAnswers:
    """Ask for routes of many demands at once, then of one at a time under several weights."""
    builder, full = StateBuilder.of(episode), episode.settings.full
    batches = []
    for number in range(BATCHES_FULL if full else BATCHES_QUICK):
        exchange = ask(episode, ROUTES, grid(builder, demands=40 if number else 8))
        batches.append(
            Batch(
                len(exchange.body["demands"]),
                len(exchange.decision["routes"]),
                tuple(faults(exchange)),
                exchange.answer,
            )
        )
    alone = []
    for _ in range(ALONE_FULL if full else ALONE_QUICK):
        body = grid(builder, demands=1, limits=False)
        for weights in WEIGHTS:
            exchange = ask(episode, ROUTES, body if weights is None else {**body, "weights": weights})
            batches.append(Batch(1, len(exchange.decision["routes"]), tuple(faults(exchange)), exchange.answer))
            alone.append(_alone(exchange))
    return RouteAnswers(tuple(batches), tuple(alone))


def faults(exchange: DecisionExchange) -> Iterator[str]:
    """What is wrong with routes."""
    demands = {demand["id"]: demand for demand in exchange.body["demands"]}
    routes, unserved = exchange.decision["routes"], exchange.decision["unserved"]
    if exchange.decision["revision"] != exchange.body["revision"]:
        yield f"revision {exchange.decision['revision']}"
    named = Counter([*(route["demand"] for route in routes), *unserved])
    yield from (f"{name} is named {named[name]} times" for name in demands if named[name] != 1)
    if foreign := set(named) - set(demands):
        yield f"{min(foreign)} was not asked for"
        return
    order = list(demands)
    if (said := [order.index(route["demand"]) for route in routes]) != sorted(said):
        yield "routes are not in the order of their demands"
    roads = Roads(exchange.body["links"])
    wrong = [fault for route in routes for fault in _faults_of(route, demands[route["demand"]], roads)]
    yield from wrong
    yield from congested(exchange.body["links"], routes)
    if not wrong:
        yield from _neglected([demands[name] for name in unserved], roads, Roads(exchange.body["links"], routes))


def _faults_of(route: "documents.Route", demand: "documents.RouteDemand", roads: Roads) -> Iterator[str]:
    path, bandwidth, name = route["path"], route["bandwidth"], route["demand"]
    if path[0] not in demand["sources"] or path[-1] not in demand["targets"]:
        yield f"{name} goes from {path[0]} to {path[-1]}"
    if len(set(path)) < len(path):
        yield f"{name} comes to a place twice: {path}"
    if not roads.joined(path):
        yield f"{name} goes where there is no link: {path}"
        return
    if len(path) == 1:
        if route["duration"] or route["communication_cost"]:
            yield f"{name} goes nowhere in {route['duration']} s for {route['communication_cost']}"
        return
    if bandwidth <= 0.0 or bandwidth > float(demand.get("bandwidth") or bandwidth) * (1 + HAIR):
        yield f"{name} is given {bandwidth:.6g} bit/s"
        return
    longest = demand.get("round_trip_time")
    if longest is not None and roads.seconds(path) > longest * (1 + HAIR):
        yield f"{name} is routed over {roads.seconds(path):.4g} s, where {longest:.4g} s are the most"
    seconds, money = demand["size"] * BITS / bandwidth, demand["size"] * BITS * roads.tariff(path)
    if not -HAIR * seconds <= route["duration"] - seconds <= PART * seconds + roads.seconds(path):
        yield f"{name} takes {seconds:.6g} s, not {route['duration']:.6g} s"
    if abs(route["communication_cost"] - money) > PART * money:
        yield f"{name} costs {money:.6g}, not {route['communication_cost']:.6g}"


def _neglected(unserved: "Iterable[documents.RouteDemand]", whole: Roads, left: Roads) -> Iterator[str]:
    """Demands that were not served although a path has room; those that bound the round trip are passed over."""
    for demand in unserved:
        path = left.widest(demand)
        if not path or "round_trip_time" in demand:
            continue
        if len(path) == 1 or left.bandwidth_left(path) > CRUMB * whole.bandwidth_left(whole.widest(demand)):
            yield f"{demand['id']} is not served, although {path} has {left.bandwidth_left(path):.6g} bit/s"


def _alone(exchange: DecisionExchange) -> SingleDemand:
    (demand,) = exchange.body["demands"]
    roads = Roads(exchange.body["links"])
    near, size = roads.nearest(demand), demand["size"] * BITS
    routes = [route for route in exchange.decision["routes"] if route["demand"] == demand["id"]]
    route: Mapping[str, Any] = routes[0] if routes else {"path": [], "bandwidth": 0.0}
    usable = roads.joined(route["path"]) and route["bandwidth"] > 0.0
    return SingleDemand(
        next(iter(exchange.body.get("weights", {})), ""),
        size / route["bandwidth"] if usable else None,
        size * roads.tariff(route["path"]) if usable else 0.0,
        size / roads.bandwidth_left(near),
        size * roads.tariff(near),
        exchange.answer,
    )


def judge(observation: RouteAnswers) -> Iterable[Finding]:
    """Claims about each batch, and about each demand alone."""
    for batch in observation.batches:
        expected = f"{batch.demands} demands: paths that exist, capacity given once, duration and cost that follow"
        yield holds("SCH-016", not batch.faults, expected, list(batch.faults[:3]), batch.answer)
    served = all(batch.served for batch in observation.batches)
    yield holds("SCH-016", served, "routes for some demands of every request", served)
    for alone in observation.alone:
        yield _together(alone)


def _together(alone: SingleDemand) -> Claim:
    """Path and end chosen together are no worse than the nearest end by the shortest path."""
    if alone.seconds is None:
        return holds("SCH-016", False, "a demand that is alone is served", "it is not", alone.answer)
    slower = alone.seconds > alone.near_seconds * (1 + PART)
    dearer = alone.money > alone.near_money * (1 + PART)
    worse = {"period": slower, "communication": dearer, "": slower and dearer}[alone.weights]
    counts = {"period": "time counts", "communication": "money counts", "": "nothing is said to count"}[alone.weights]
    near = f"{alone.near_seconds:.6g} s and {alone.near_money:.6g} to the nearest end by the shortest path"
    observed = f"{alone.seconds:.6g} s and {alone.money:.6g}"
    return holds("SCH-016", not worse, f"where {counts}, no worse than {near}", observed, alone.answer)


CHECK = Check("sch_routes", ("SCH-016",), observe, judge)
