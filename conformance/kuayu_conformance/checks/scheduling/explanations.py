"""Every decision is explained; what explanations predict, and what weights do, is tried (SCH-009).

1. Choices that depend on what counts: a state in which each objective asks for another place, and what comes of it.
2. What explanations predict, against what happens in the judge's world.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask, is_answer
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState, Load, placement_of
from kuayu_conformance.checks.scheduling.placement_requests import (
    GIGABYTE,
    PLACEMENTS,
    TRAPS,
    StateBuilder,
    crowd,
    queued,
)
from kuayu_conformance.episode import Episode, seconds_of
from kuayu_conformance.findings import Claim, Figure, Finding, holds
from kuayu_conformance.statistics import quantile
from kuayu_conformance.testbed.scheduling.engine.orders import Start
from kuayu_conformance.testbed.scheduling.engine.world import World
from kuayu_schemas.models import ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
class WeightedMeans:
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


def crossroads(builder: StateBuilder, jobs: int = 16) -> "documents.SchedulingState":
    """All jobs are at home where devices are slow and cheap; elsewhere are fast and dear ones, and others' favourites.

    There is room for all of them everywhere.
    """
    chance = builder.chance
    local, remote = builder.names(2)
    kinds: list[documents.OfferedAccelerator] = [
        {
            **builder.accelerator([local, remote]),
            "indices": [{"profile": local, "value": one}, {"profile": remote, "value": two}],
        }
        for one, two in ((0.8, 0.9), (2.4, 1.1), (0.9, 2.2))
    ]
    slow, fast, other = kinds
    domains = []
    for kind, price in ((slow, 5.0), (fast, 30.0), (other, 18.0), (slow, 4.5), (fast, 32.0)):
        pool = builder.pool(kind, 2 * jobs)
        builder.offers(pool, price * chance.uniform(0.95, 1.05), {"on_demand": 1.0})
        domains.append(builder.domain(pool))
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        lasting = chance.uniform(8_000.0, 40_000.0)
        spec = builder.spec(
            (local, remote)[number % 2], names[0], (8, 8, 8),
            duration={"expected": lasting, "low": lasting / 2, "high": 2 * lasting, "coverage": 0.8},
        )  # fmt: skip
        spec["data"][0]["size"] = chance.uniform(50.0, 1500.0) * GIGABYTE
        specs.append(spec)
    state = queued(builder.state([slow, fast, other], domains, builder.mesh(names, (5.0, 20.0))), specs)
    order = chance.sample(range(5), 5)
    return {**state, "domains": [domains[number] for number in order]}


def chosen(exchange: DecisionExchange) -> WeightedMeans:
    """What comes of the decisions of an answer; infinite where none can be carried out."""
    state = exchange.body["state"]
    account, cluster = Account(state), ClusterState(state)
    decisions = exchange.decision["decisions"]
    started = [decision for decision in decisions if decision["verb"] == "start"]
    if account.faults(decisions) or not started:
        return WeightedMeans(0.0, inf, inf, inf, 0.0)
    entries = [(account.waiting[item["job"]], item["placement"]) for item in started]
    courses = [cluster.course(entry, placement) for entry, placement in entries]
    count = len(courses)
    return WeightedMeans(
        count / len(state["waiting"]),
        sum(course.seconds for course in courses) / count,
        sum(course.communication for course in courses) / count,
        sum(course.price for course in courses) / count,
        sum(_fitness(cluster, entry["spec"], placement) for entry, placement in entries) / count,
    )


def _fitness(cluster: ClusterState, spec: "documents.JobSpec", placement: "documents.JobPlacement") -> float:
    """Index of the devices for a job over the best that they have for any."""
    devices = sum(share["devices"] for share in placement["shares"])
    best = sum(share["devices"] * max(cluster.devices[share["accelerator"]].index.values())
               for share in placement["shares"])  # fmt: skip
    return sum(cluster.compute(spec, placement).values()) / best if devices else 0.0


QUANTITIES = ("first step", "end", "communication", "price", "efficiency")
_CRUMB, _INSTANT = 0.01, 2e-3


@dataclass(frozen=True)
class Prediction:
    """What was predicted of a way of starting a job, and how far that is from what happens.

    Attributes:
        chosen: Whether it is the way that was chosen, or an alternative.
        errors: Relative error by quantity; that of the first step is relative to the time until the end.
    """

    chosen: bool
    errors: tuple[float, ...]


def explained(
    account: Account, decision: "documents.PlacementDecision", now: float, most: int, *, several: bool
) -> str:
    """Why a decision is not explained, in words; nothing where it is.

    Args:
        account: Of the state.
        decision: What was decided, with its explanation.
        now: The present instant of the state.
        most: Alternatives that were asked for.
        several: Whether each job could start in several ways, so that there are alternatives.
    """
    return next(_lacking(account, decision, now, most, least=int(several and decision["verb"] == "start")), "")


def _lacking(
    account: Account, decision: "documents.PlacementDecision", now: float, most: int, *, least: int
) -> Iterator[str]:
    explanation = decision.get("explanation")
    if not explanation:
        yield "there is no explanation"
        return
    if not explanation["reason"].strip():
        yield "no reason is given"
    if "outcome" not in explanation and decision["verb"] != "wait":
        yield "no outcome is predicted"
    alternatives = explanation["alternatives"]
    if not least <= len(alternatives) <= most:
        yield f"{len(alternatives)} alternatives, where {least} to {most} are to be named"
    scores = [alternative["outcome"]["score"] for alternative in alternatives]
    if any(one > other for one, other in pairwise(scores)):
        yield f"the better alternatives do not come first: {scores}"
    own = [explanation["outcome"]] if "outcome" in explanation else []
    for outcome in (*own, *(alternative["outcome"] for alternative in alternatives)):
        yield from _turned(outcome, now)
    for entry in alternatives:
        yield from _no_alternative(account, decision, entry)


def _turned(outcome: "documents.PredictedOutcome", now: float) -> Iterator[str]:
    """What comes before what it should come after, up to the resolution of instants."""
    first, end = _seconds(outcome["run_at"]), _seconds(outcome["finish_at"])
    if first < now - _INSTANT or end < first - _INSTANT:
        yield f"a first step at {outcome['run_at']} and an end at {outcome['finish_at']}"


def _no_alternative(
    account: Account, decision: "documents.PlacementDecision", alternative: "documents.PlacementAlternative"
) -> Iterator[str]:
    if alternative["verb"] == decision["verb"] and alternative.get("placement") == decision.get("placement"):
        yield "an alternative is what was chosen"
    elif alternative["verb"] == "start":
        faults = account.alone([cast("documents.PlacementDecision", {"job": decision["job"], **alternative})])
        yield from (f"an alternative cannot be carried out: {fault}" for fault in faults)


def _seconds(instant: str) -> float:
    return seconds_of(instant) or 0.0


def predictions(
    state: "documents.SchedulingState", decisions: "Sequence[documents.PlacementDecision]"
) -> Iterator[Prediction]:
    """Every way of starting a job that explanations speak of, run alone from the state."""
    account, cluster, now = Account(state), ClusterState(state), seconds_of(state["now"]) or 0.0
    for decision in decisions:
        explanation: Mapping[str, Any] = decision.get("explanation") or {"alternatives": []}
        candidates: list[tuple[bool, Mapping[str, Any]]] = [(True, {**decision, **explanation})]
        candidates += [(False, alternative) for alternative in explanation["alternatives"]]
        for chosen, candidate in candidates:
            if candidate["verb"] == "start" and "outcome" in candidate:
                decided = {"job": decision["job"], "verb": "start", "placement": candidate.get("placement")}
                if not account.alone([cast("documents.PlacementDecision", decided)]):
                    entry = account.waiting[decision["job"]]
                    yield Prediction(
                        chosen, _prediction_errors(cluster, entry, candidate["placement"], candidate["outcome"], now)
                    )


def _prediction_errors(
    cluster: ClusterState,
    entry: "documents.WaitingJob",
    placement: "documents.JobPlacement",
    outcome: "documents.PredictedOutcome",
    now: float,
) -> tuple[float, ...]:
    """How far an outcome is from what happens."""
    step, end, money = run_alone(cluster, entry, placement)
    course = cluster.course(entry, placement)
    if end == inf:
        return (0.0 if _seconds(outcome["finish_at"]) == inf else inf,) * len(QUANTITIES)
    return (
        abs(_seconds(outcome["run_at"]) - now - step) / end,
        abs(_seconds(outcome["finish_at"]) - now - end) / end,
        _relative(outcome["communication_cost"], money, _CRUMB * course.price),
        _relative(outcome["price"], course.price),
        _relative(outcome["efficiency"], course.efficiency),
    )


def run_alone(
    cluster: ClusterState, entry: "documents.WaitingJob", placement: "documents.JobPlacement"
) -> tuple[float, float, float]:
    """Seconds until the first step and the end of a job that is started now, and its money for communication.

    The engine runs it, as it runs whole scenarios; nothing else happens.
    """
    spec = entry["spec"]
    name, data = cluster.data(spec)
    world = World(cluster.map, Load((cluster.job(spec),), {name: data}), cluster.law, "alone")
    if world.advance(inf) is None or world.obey([Start(spec["id"], placement_of(placement))]):
        return inf, inf, inf
    since = world.now
    world.advance(inf)
    (record,) = world.outcome().jobs
    return record.periods[0].running - since, record.finished - since, record.money


def _relative(stated: float, true: float, crumb: float = 0.0) -> float:
    """Error over the truth, or over a crumb of something larger where that is more."""
    scale = max(abs(true), crumb)
    return abs(stated - true) / scale if scale else float(stated != true)


def open_field(builder: StateBuilder, jobs: int = 10) -> "documents.SchedulingState":
    """A federation with room for all that wait, in several ways each; devices are bought on demand."""
    chance, profiles = builder.chance, builder.names(2)
    kinds = [builder.accelerator(profiles, speed=1.0), *(builder.accelerator(profiles) for _ in range(2))]
    domains = []
    for _ in range(5):
        pool = builder.pool(chance.choice(kinds), 12)
        builder.offers(pool, chance.uniform(5.0, 25.0), {"on_demand": 1.0})
        domains.append(builder.domain(pool))
    names = [domain["id"] for domain in domains]
    specs = []
    for number in range(jobs):
        # the small ones hold no more than 72 all together, which leaves 60 in two pools at least, wherever they go
        devices = chance.choice((2, 4, 8)) if number else 120
        modes = ["none", "periodic", "pipeline"] if number % 4 == 0 else ["none"]
        least = devices if number else 100
        specs.append(
            builder.spec(chance.choice(profiles), chance.choice(names), (least, devices, devices), split_modes=modes)
        )
    return queued(builder.state(kinds, domains, builder.mesh(names)), specs)


FIELDS_QUICK, FIELDS_FULL = 4, 40
CROWDS_QUICK, CROWDS_FULL = 3, 30
ROADS_QUICK, ROADS_FULL = 2, 20
MAX_ALTERNATIVES = 3
"""Alternatives that are told where the request says nothing."""
AIM = 0.1
LESS = 0.9
"""What an objective falls to at least where it alone counts, of what it is where another counts alone."""
SOME, SLACK = 0.5, 0.05
"""Part of a batch that has to start, and by how much an objective may turn back as its weight rises."""


@dataclass(frozen=True)
class State:
    """Decisions on a state: how many there should be, and what is wrong with those that are not explained."""

    decisions: int
    silent: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    answer: Answer


@dataclass(frozen=True)
class Road:
    """A batch under one objective at a time, and under more and more weight of communication beside the period."""

    single: Mapping[str, WeightedMeans]
    turned: tuple[WeightedMeans, ...]
    answer: Answer


@dataclass(frozen=True)
class ExplainedStates:
    """States that were explained, and batches under several weights."""

    states: tuple[State, ...]
    roads: tuple[Road, ...]


def observe(episode: Episode) -> ExplainedStates:
    """Ask for explanations in all kinds of states, then for decisions under weights."""
    builder, full = StateBuilder.of(episode), episode.settings.full
    fields = [open_field(builder) for _ in range(FIELDS_FULL if full else FIELDS_QUICK)]
    others = [crowd(builder, jobs=30) for _ in range(CROWDS_FULL if full else CROWDS_QUICK)]
    others += [trap(builder) for trap in TRAPS.values()]
    states = [
        _explained(episode, state, open_to_all=number < len(fields)) for number, state in enumerate([*fields, *others])
    ]
    roads = [_road(episode, crossroads(builder)) for _ in range(ROADS_FULL if full else ROADS_QUICK)]
    return ExplainedStates(tuple(states), tuple(roads))


def _explained(episode: Episode, state: "documents.SchedulingState", *, open_to_all: bool) -> State:
    """Explanations of a state; predictions are run where every job could start in several ways."""
    answer = episode.ask_patiently("POST", PLACEMENTS, {"state": state, "explain": True})
    waiting = [entry["spec"]["id"] for entry in state["waiting"]]
    if not is_answer(PLACEMENTS, answer):
        return State(len(waiting), (answer.brief,) * len(waiting), (), answer)
    decisions = answer.json["decisions"]
    account, now = Account(state), seconds_of(state["now"]) or 0.0
    unnamed = sorted(set(waiting) - {decision["job"] for decision in decisions})
    silent = [f"{name} waits and is not named" for name in unnamed]
    silent += [
        f"{item['verb']} of {item['job']}: {wrong}"
        for item in decisions
        if (wrong := explained(account, item, now, MAX_ALTERNATIVES, several=open_to_all))
    ]
    tried = tuple(predictions(state, decisions)) if open_to_all else ()
    return State(len(decisions) + len(unnamed), tuple(silent), tried, answer)


def _road(episode: Episode, state: "documents.SchedulingState") -> Road:
    single = {
        name: ask(episode, PLACEMENTS, {"state": state, "weights": dict(entry)}) for name, entry in WEIGHTS.items()
    }
    turned = [
        ask(episode, PLACEMENTS, {"state": state, "weights": {"period": 1.0, "communication": weight}})
        for weight in TURNED
    ]
    return Road(
        {name: chosen(exchange) for name, exchange in single.items()},
        tuple(chosen(exchange) for exchange in turned),
        single["period"].answer,
    )


def judge(observation: ExplainedStates) -> Iterable[Finding]:
    """The share of decisions that are explained; claims about what weights do."""
    for road in observation.roads:
        yield from _weighed(road)
    decisions = sum(state.decisions for state in observation.states)
    silent = [(fault, state.answer) for state in observation.states for fault in state.silent]
    share = 1.0 - len(silent) / decisions
    yield Figure(
        "SCH-009",
        share,
        share,
        decisions,
        "share of the decisions of the run that are explained, jobs that wait without being named included; all were "
        "counted, so the bound is the figure",
        misses=[holds("SCH-009", False, "an explanation", fault, answer) for fault, answer in silent],
        tables=[
            _errors([prediction for state in observation.states for prediction in state.predictions]),
            _road_table(observation),
        ],
    )


def _weighed(road: Road) -> Iterator[Claim]:
    for name, means in road.single.items():
        some = means.started >= SOME
        yield holds("SCH-009", some, f"jobs start where {name} alone counts", f"{means.started:.0%}", road.answer)
    for name, other in (("period", "communication"), ("communication", "period"), ("price", "period")):
        alone, beside = getattr(road.single[name], name), getattr(road.single[other], name)
        expected = f"where {name} alone counts, at most {LESS:.0%} of its {beside:.6g} where {other} alone does"
        yield holds("SCH-009", alone <= LESS * beside, expected, f"{alone:.6g}", road.answer)
    fit, unfit = road.single["utilisation"].utilisation, road.single["price"].utilisation
    expected = f"where utilisation alone counts, no less of it than the {unfit:.4g} where price alone does"
    yield holds("SCH-009", fit >= unfit * (1 - SLACK), expected, f"{fit:.4g}", road.answer)
    money = [item.communication for item in road.turned]
    falls = all(after <= before * (1 + SLACK) for before, after in pairwise(money))
    expected = "money for communication that never rises with its weight"
    yield holds("SCH-009", falls, expected, [f"{row:.6g}" for row in money], road.answer)
    periods = [entry.period for entry in road.turned]
    rises = all(after >= before * (1 - SLACK) for before, after in pairwise(periods))
    expected = "periods that never become shorter with the weight of communication"
    yield holds("SCH-009", rises, expected, [f"{means:.6g}" for means in periods], road.answer)


def _errors(predictions: Sequence[Prediction]) -> ReportTable:
    rows = []
    for label, choice in (("chosen", True), ("alternatives", False)):
        some = [item.errors for item in predictions if item.chosen is choice]
        for number, quantity in enumerate(QUANTITIES):
            errors = [entry[number] for entry in some]
            if errors:
                near = sum(error <= AIM for error in errors) / len(errors)
                middle, ninth = (f"{quantile(errors, q):.2%}" for q in (0.5, 0.9))
                rows.append(TableRow(cells=[label, quantity, str(len(errors)), middle, ninth, f"{near:.1%}"]))
    columns = ["way", "predicted", "run", "median error", "90th percentile", f"within {AIM:.0%}"]
    return ReportTable(title="Predictions against the judge's world (aim: within 10 %)", columns=columns, rows=rows)


def _road_table(observation: ExplainedStates) -> ReportTable:
    rows = []
    for number, road in enumerate(observation.roads[:3], 1):
        turned = {
            f"period, communication × {weight:g}": entry for weight, entry in zip(TURNED, road.turned, strict=True)
        }
        for name, item in {**road.single, **turned}.items():
            figures = [f"{item.period / 3600:.2f}", f"{item.communication:.1f}", f"{item.price:.0f}"]
            share = f"{item.utilisation:.3f}"
            rows.append(TableRow(cells=[str(number), name, f"{item.started:.0%}", *figures, share]))
    columns = ["batch", "what counts", "started", "mean period, h", "communication", "price", "index over best"]
    return ReportTable(title="What weights do, mean over jobs", columns=columns, rows=rows)


CHECK = Check("sch_explained", ("SCH-009",), observe, judge)
