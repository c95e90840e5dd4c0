"""Every decision is explained; what explanations predict, and what weights do, is tried (SCH-009)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.sch_account import Account
from kuayu_conformance.checks.sch_fixtures import PLACEMENTS, Draft, Json, ask, decided
from kuayu_conformance.checks.sch_predictions import QUANTITIES, Prediction, explained, open_field, predictions
from kuayu_conformance.checks.sch_traps import TRAPS, crowd
from kuayu_conformance.checks.sch_weights import TURNED, WEIGHTS, Chosen, chosen, crossroads
from kuayu_conformance.episode import Episode, seconds_of
from kuayu_conformance.findings import Claim, Figure, Finding, holds
from kuayu_conformance.statistics import quantile
from kuayu_schemas.models import ReportTable, TableRow

FIELDS_QUICK, FIELDS_FULL = 4, 40
CROWDS_QUICK, CROWDS_FULL = 3, 30
ROADS_QUICK, ROADS_FULL = 2, 20
MOST = 3
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

    single: Mapping[str, Chosen]
    turned: tuple[Chosen, ...]
    answer: Answer


@dataclass(frozen=True)
class Observation:
    """States that were explained, and batches under several weights."""

    states: tuple[State, ...]
    roads: tuple[Road, ...]


def observe(episode: Episode) -> Observation:
    """Ask for explanations in all kinds of states, then for decisions under weights."""
    draft, full = Draft.of(episode), episode.settings.full
    fields = [open_field(draft) for _ in range(FIELDS_FULL if full else FIELDS_QUICK)]
    others = [crowd(draft, jobs=30) for _ in range(CROWDS_FULL if full else CROWDS_QUICK)]
    others += [trap(draft) for trap in TRAPS.values()]
    states = [
        _explained(episode, state, open_to_all=number < len(fields)) for number, state in enumerate([*fields, *others])
    ]
    roads = [_road(episode, crossroads(draft)) for _ in range(ROADS_FULL if full else ROADS_QUICK)]
    return Observation(tuple(states), tuple(roads))


def _explained(episode: Episode, state: Json, *, open_to_all: bool) -> State:
    """Explanations of a state; predictions are run where every job could start in several ways."""
    answer = episode.ask_patiently("POST", PLACEMENTS, {"state": state, "explain": True})
    waiting = [entry["spec"]["id"] for entry in state["waiting"]]
    if not decided(PLACEMENTS, answer):
        return State(len(waiting), (answer.brief,) * len(waiting), (), answer)
    decisions = answer.json["decisions"]
    account, now = Account(state), seconds_of(state["now"]) or 0.0
    unnamed = sorted(set(waiting) - {each["job"] for each in decisions})
    silent = [f"{name} waits and is not named" for name in unnamed]
    silent += [
        f"{each['verb']} of {each['job']}: {wrong}"
        for each in decisions
        if (wrong := explained(account, each, now, MOST, several=open_to_all))
    ]
    tried = tuple(predictions(state, decisions)) if open_to_all else ()
    return State(len(decisions) + len(unnamed), tuple(silent), tried, answer)


def _road(episode: Episode, state: Json) -> Road:
    single = {name: ask(episode, PLACEMENTS, {"state": state, "weights": dict(each)}) for name, each in WEIGHTS.items()}
    turned = [
        ask(episode, PLACEMENTS, {"state": state, "weights": {"period": 1.0, "communication": weight}})
        for weight in TURNED
    ]
    return Road(
        {name: chosen(asked) for name, asked in single.items()},
        tuple(chosen(asked) for asked in turned),
        single["period"].answer,
    )


def judge(observation: Observation) -> Iterable[Finding]:
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
            _errors([each for state in observation.states for each in state.predictions]),
            _road_table(observation),
        ],
    )


def _weighed(road: Road) -> Iterator[Claim]:
    for name, each in road.single.items():
        some = each.started >= SOME
        yield holds("SCH-009", some, f"jobs start where {name} alone counts", f"{each.started:.0%}", road.answer)
    for name, other in (("period", "communication"), ("communication", "period"), ("price", "period")):
        alone, beside = getattr(road.single[name], name), getattr(road.single[other], name)
        expected = f"where {name} alone counts, at most {LESS:.0%} of its {beside:.6g} where {other} alone does"
        yield holds("SCH-009", alone <= LESS * beside, expected, f"{alone:.6g}", road.answer)
    fit, unfit = road.single["utilisation"].utilisation, road.single["price"].utilisation
    expected = f"where utilisation alone counts, no less of it than the {unfit:.4g} where price alone does"
    yield holds("SCH-009", fit >= unfit * (1 - SLACK), expected, f"{fit:.4g}", road.answer)
    money = [each.communication for each in road.turned]
    falls = all(after <= before * (1 + SLACK) for before, after in pairwise(money))
    expected = "money for communication that never rises with its weight"
    yield holds("SCH-009", falls, expected, [f"{each:.6g}" for each in money], road.answer)
    periods = [each.period for each in road.turned]
    rises = all(after >= before * (1 - SLACK) for before, after in pairwise(periods))
    expected = "periods that never become shorter with the weight of communication"
    yield holds("SCH-009", rises, expected, [f"{each:.6g}" for each in periods], road.answer)


def _errors(found: Sequence[Prediction]) -> ReportTable:
    rows = []
    for label, choice in (("chosen", True), ("alternatives", False)):
        some = [each.errors for each in found if each.chosen is choice]
        for number, quantity in enumerate(QUANTITIES):
            errors = [each[number] for each in some]
            if errors:
                near = sum(error <= AIM for error in errors) / len(errors)
                middle, ninth = (f"{quantile(errors, q):.2%}" for q in (0.5, 0.9))
                rows.append(TableRow(cells=[label, quantity, str(len(errors)), middle, ninth, f"{near:.1%}"]))
    columns = ["way", "predicted", "run", "median error", "90th percentile", f"within {AIM:.0%}"]
    return ReportTable(title="Predictions against the judge's world (aim: within 10 %)", columns=columns, rows=rows)


def _road_table(observation: Observation) -> ReportTable:
    rows = []
    for number, road in enumerate(observation.roads[:3], 1):
        turned = {f"period, communication × {weight:g}": each for weight, each in zip(TURNED, road.turned, strict=True)}
        for name, each in {**road.single, **turned}.items():
            figures = [f"{each.period / 3600:.2f}", f"{each.communication:.1f}", f"{each.price:.0f}"]
            share = f"{each.utilisation:.3f}"
            rows.append(TableRow(cells=[str(number), name, f"{each.started:.0%}", *figures, share]))
    columns = ["batch", "what counts", "started", "mean period, h", "communication", "price", "index over best"]
    return ReportTable(title="What weights do, mean over jobs", columns=columns, rows=rows)


CHECK = Check("sch_explained", ("SCH-009",), observe, judge)
