"""Verdicts on scheduling from observations made by hand: near-misses fail, controls pass."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.scheduling import explanations as sch_explained
from kuayu_conformance.checks.scheduling import latency as sch_latency
from kuayu_conformance.checks.scheduling import pareto, shares
from kuayu_conformance.checks.scheduling import pareto as sch_pareto
from kuayu_conformance.checks.scheduling.explanations import TURNED, WEIGHTS, Prediction, Road, State, WeightedMeans
from kuayu_conformance.checks.scheduling.latency import JUDGED, LARGE, Decision, Series
from kuayu_conformance.checks.scheduling.pareto import Ends, Instance, LimitedFront, Solution
from kuayu_conformance.checks.scheduling.shares import OPERATOR, OWN, PlanOutcome, Window
from kuayu_conformance.run.judgement import conclude
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, Requirement, RequirementResult, Verdict

ANSWER = Answer(3, "POST /v1/placements", 200, {}, b"{}", "", 0.0, 0.0)


def row(identifier: str) -> Requirement:
    """A row of the register."""
    return next(each for each in registers.requirements().requirements if each.id == identifier)


def verdict(check: Check[Any], observation: object, identifier: str) -> RequirementResult:
    findings = [each for each in check.judge(observation) if each.requirement == identifier]
    return conclude(row(identifier), findings, check.name, Replay.deterministic, 1.0)


def decisions(slow: int, seconds: float = 1.01, count: int = 300) -> Series:
    quick = Decision(0.04, valid=True, started=20, faults=(), answer=ANSWER)
    made = [replace(quick, seconds=seconds) if n < slow else quick for n in range(count)]
    return Series(JUDGED, tuple(made), 2e6)


@pytest.mark.parametrize(
    ("slow", "expected"), [(0, Verdict.pass_), (1, Verdict.inconclusive), (3, Verdict.inconclusive), (4, Verdict.fail)]
)
def test_latency_is_judged_by_its_99th_percentile(slow: int, expected: Verdict) -> None:
    """Of 300 three may be too slow, but then nobody knows of another 300."""
    found = verdict(sch_latency.CHECK, sch_latency.LatencySeries(decisions(slow), None), "SCH-002")
    assert found.verdict is expected


def test_a_second_is_quick_enough() -> None:
    found = verdict(sch_latency.CHECK, sch_latency.LatencySeries(decisions(300, 1.0), None), "SCH-002")
    assert found.verdict is Verdict.pass_
    assert found.estimate == 1.0


@pytest.mark.parametrize(
    ("wrong", "count", "expected"),
    [
        ({"valid": False, "started": 0}, 1, Verdict.fail),
        ({"faults": ("no room",)}, 1, Verdict.fail),
        ({"started": 0}, 30, Verdict.pass_),
        ({"started": 0}, 31, Verdict.fail),
    ],
)
def test_what_decides_nothing_is_not_quick(wrong: dict[str, Any], count: int, expected: Verdict) -> None:
    series = decisions(0)
    made = [replace(each, **wrong) if n < count else each for n, each in enumerate(series.decisions)]
    changed = sch_latency.LatencySeries(replace(series, decisions=tuple(made)), None)
    assert verdict(sch_latency.CHECK, changed, "SCH-002").verdict is expected


def test_a_large_federation_is_printed_and_not_judged() -> None:
    large = Series(LARGE, decisions(100, 9.0, 100).decisions, 9e6)
    found = verdict(sch_latency.CHECK, sch_latency.LatencySeries(decisions(0), large), "SCH-002")
    assert found.verdict is Verdict.pass_
    assert [each.cells[0] for each in (found.tables or [])[0].rows] == [JUDGED.label, LARGE.label]
    assert (found.tables or [])[0].rows[1].cells[-1] == "9000 ms"


POINTS: tuple[Ends, ...] = tuple((1000.0 + 100.0 * n, 190.0 - 10.0 * n) for n in range(20))


def instance(found: Iterable[Ends], stated: Callable[[Ends], Ends] = lambda ends: ends) -> Instance:
    told = tuple(Solution(stated(ends), ends, ()) for ends in found)
    return Instance(4, POINTS, told, revision=True, answer=ANSWER)


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        ((18,) * 8, Verdict.pass_),
        ((17,) * 8, Verdict.pass_),
        ((16,) * 8, Verdict.fail),
        ((17, 17, 16, 18), Verdict.inconclusive),
    ],
)
def test_seventeen_of_twenty_points_have_to_be_reached(reached: Sequence[int], expected: Verdict) -> None:
    found = verdict(sch_pareto.CHECK, tuple(instance(POINTS[:count]) for count in reached), "SCH-001")
    assert found.verdict is expected
    assert found.estimate == pytest.approx(sum(reached) / len(reached) / 20)


@pytest.mark.parametrize(("factor", "expected"), [(1.009, Verdict.pass_), (1.011, Verdict.fail)])
def test_a_point_is_reached_within_a_hundredth(factor: float, expected: Verdict) -> None:
    near = instance([(period * factor, money) for period, money in POINTS])
    assert verdict(sch_pareto.CHECK, (near, near), "SCH-001").verdict is expected


@pytest.mark.parametrize(
    ("factors", "expected"),
    [((1.009, 0.991), Verdict.pass_), ((1.011, 1.0), Verdict.fail), ((1.0, 0.989), Verdict.fail)],
)
def test_ends_are_what_they_are_stated_to_be(factors: tuple[float, float], expected: Verdict) -> None:
    stated = instance(POINTS, lambda ends: (ends[0] * factors[0], ends[1] * factors[1]))
    assert verdict(sch_pareto.CHECK, (stated,), "SCH-014").verdict is expected


def test_schedules_that_cannot_be_carried_out_reach_nothing() -> None:
    broken = tuple(Solution(ends, (inf, inf), ("no room",)) for ends in POINTS)
    each = Instance(4, POINTS, broken, revision=True, answer=ANSWER)
    found = verdict(sch_pareto.CHECK, (each,), "SCH-001")
    assert (found.verdict, found.estimate) == (Verdict.fail, 0.0)
    assert verdict(sch_pareto.CHECK, (each,), "SCH-014").verdict is Verdict.fail


@pytest.mark.parametrize("told", [POINTS[::-1], (*POINTS, (3000.0, 500.0)), (POINTS[0], *POINTS)])
def test_a_front_is_in_order_and_nothing_in_it_is_beaten(told: Sequence[Ends]) -> None:
    assert verdict(sch_pareto.CHECK, (instance(told),), "SCH-014").verdict is Verdict.fail


def limited(limit: float | None, found: Sequence[Ends] = POINTS, seconds: float = 0.4, **members: Any) -> LimitedFront:
    front = LimitedFront(limit, tuple(found), (), False, replace(ANSWER, seconds=seconds))
    return replace(front, **members)


WHOLE = limited(None, seconds=9.0)


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        (limited(0.25), Verdict.pass_),
        (limited(0.25, seconds=1.24), Verdict.pass_),
        (limited(0.25, seconds=1.26), Verdict.fail),
        (limited(0.25, POINTS[:5], partial=True), Verdict.pass_),
        (limited(0.25, POINTS[:5]), Verdict.fail),
        (limited(0.25, [(period * 1.0001, money) for period, money in POINTS]), Verdict.pass_),
        (limited(0.25, (), partial=True), Verdict.fail),
        (limited(0.25, faults=("too small",), partial=True), Verdict.fail),
    ],
)
def test_a_front_within_a_limit_is_in_time_sound_and_marked_where_it_is_not_all(
    front: LimitedFront, expected: Verdict
) -> None:
    assert verdict(pareto.LIMITS_CHECK, (WHOLE, front), "SCH-040").verdict is expected


def test_an_instance_without_a_front_fails_both() -> None:
    silent = Instance(4, POINTS, None, revision=False, answer=replace(ANSWER, status=500))
    for identifier in sch_pareto.CHECK.requirements:
        assert verdict(sch_pareto.CHECK, (instance(POINTS), silent), identifier).verdict is Verdict.fail


def planned(error: float, whose: str = OPERATOR, **members: Any) -> PlanOutcome:
    """One of five domains is given too much, in part of its share; another as much too little."""
    plan = dict.fromkeys("abcde", 0.2)
    allocated = {**plan, "a": 0.2 * (1 + error), "b": 0.2 * (1 - error)}
    return PlanOutcome(whose, plan, allocated, 250, members.get("started", 250), members.get("faults", ()), ANSWER)


@pytest.mark.parametrize(("error", "expected"), [(0.049, Verdict.pass_), (0.051, Verdict.fail)])
def test_shares_may_be_off_by_a_twentieth(error: float, expected: Verdict) -> None:
    plans = tuple(planned(error, whose) for whose in (OPERATOR, OWN) for _ in range(4))
    found = verdict(shares.CHECK, plans, "SCH-007")
    assert found.verdict is expected
    assert found.estimate == pytest.approx(error)


def test_shares_that_are_off_now_and_then_leave_it_open() -> None:
    plans = tuple(planned(error, whose) for whose in (OPERATOR, OWN) for error in (0.0, 0.0, 0.0, 0.16))
    assert verdict(shares.CHECK, plans, "SCH-007").verdict is Verdict.inconclusive


def test_a_domain_that_was_to_be_given_nothing_is_given_nothing() -> None:
    plan = {"a": 0.5, "b": 0.5}
    assert PlanOutcome(OWN, plan, {"a": 0.5, "b": 0.49, "c": 0.01}, 9, 9, (), ANSWER).error == 1.0
    assert PlanOutcome(OWN, {**plan, "c": 0.0}, plan, 9, 9, (), ANSWER).error == 0.0
    assert PlanOutcome(OWN, plan, {}, 9, 0, (), ANSWER).error == 1.0


@pytest.mark.parametrize(("started", "expected"), [(125, Verdict.pass_), (124, Verdict.fail)])
def test_shares_of_hardly_any_jobs_are_none(started: int, expected: Verdict) -> None:
    plans = tuple(planned(0.0, whose, started=started) for whose in (OPERATOR, OWN))
    assert verdict(shares.CHECK, plans, "SCH-007").verdict is expected


def window(far: Sequence[float], sent: Sequence[float] = (1, 2, 3, 4, 5, 6, 7, 8)) -> Window:
    return Window(tuple(sent[: len(far)]), tuple(far), 8, (), ANSWER)


NEAR, FAR = window((2, 2, 2, 2, 1, 1, 1, 1)), window((1, 1, 1, 1, 2, 2, 2, 2))
NO_ORDER = window((1, 2, 1, 2, 2, 1, 2, 1))


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ((NEAR,) * 12, Verdict.pass_),
        ((FAR,) * 12, Verdict.fail),
        ((NO_ORDER,) * 12, Verdict.fail),
        ((NEAR,) * 7 + (FAR,) * 5, Verdict.inconclusive),
        ((window((1,) * 8),) * 12, Verdict.fail),
        ((window((2, 2, 2, 1, 1)),) * 12, Verdict.fail),
        ((replace(NEAR, faults=("no room",)), *(NEAR,) * 11), Verdict.fail),
    ],
)
def test_heavy_traffic_has_to_be_nearer(windows: tuple[Window, ...], expected: Verdict) -> None:
    assert verdict(shares.SIMILARITY_CHECK, windows, "SCH-010").verdict is expected


def road(**single: WeightedMeans) -> Road:
    """Each objective has its way; the weight of communication turns period into money step by step."""
    best = {
        "period": WeightedMeans(1.0, 100.0, 50.0, 30.0, 0.9),
        "communication": WeightedMeans(1.0, 200.0, 0.0, 15.0, 0.9),
        "price": WeightedMeans(1.0, 210.0, 20.0, 10.0, 0.9),
        "utilisation": WeightedMeans(1.0, 150.0, 30.0, 20.0, 1.0),
    }
    turned = tuple(WeightedMeans(1.0, 100.0 + 10 * n, 50.0 - 5 * n, 30.0, 0.9) for n in range(len(TURNED)))
    return Road({**best, **single}, turned, ANSWER)


def explained(silent: int, roads: Sequence[Road] = ()) -> sch_explained.ExplainedStates:
    faults = tuple(f"start of j{number}: there is no explanation" for number in range(silent))
    errors = (Prediction(True, (0.0, 0.02, 0.0, 0.3, 0.0)), Prediction(False, (0.0, 0.04, 0.0, 0.0, 0.0)))
    return sch_explained.ExplainedStates((State(1000, faults, errors, ANSWER),), tuple(roads or (road(),)))


@pytest.mark.parametrize(("silent", "expected"), [(0, Verdict.pass_), (1, Verdict.fail)])
def test_every_decision_is_explained(silent: int, expected: Verdict) -> None:
    found = verdict(sch_explained.CHECK, explained(silent), "SCH-009")
    assert found.verdict is expected
    assert found.estimate == pytest.approx(1.0 - silent / 1000)


def test_predictions_are_printed_and_not_judged() -> None:
    (errors, _) = verdict(sch_explained.CHECK, explained(0), "SCH-009").tables or []
    assert errors.rows[1].cells == ["chosen", "end", "1", "2.00%", "2.00%", "100.0%"]
    assert errors.rows[3].cells == ["chosen", "price", "1", "30.00%", "30.00%", "0.0%"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Verdict.pass_),
        ({"period": WeightedMeans(1.0, 179.0, 50.0, 30.0, 0.9)}, Verdict.pass_),
        ({"period": WeightedMeans(1.0, 181.0, 50.0, 30.0, 0.9)}, Verdict.fail),
        ({"communication": WeightedMeans(1.0, 200.0, 46.0, 15.0, 0.9)}, Verdict.fail),
        ({"price": WeightedMeans(1.0, 210.0, 20.0, 28.0, 0.9)}, Verdict.fail),
        ({"utilisation": WeightedMeans(1.0, 150.0, 30.0, 20.0, 0.8)}, Verdict.fail),
        ({"communication": WeightedMeans(0.4, 200.0, 0.0, 15.0, 0.9)}, Verdict.fail),
    ],
)
def test_what_counts_alone_has_to_gain(changed: dict[str, WeightedMeans], expected: Verdict) -> None:
    assert set(road().single) == set(WEIGHTS)
    assert verdict(sch_explained.CHECK, explained(0, [road(**changed)]), "SCH-009").verdict is expected


@pytest.mark.parametrize(("step", "money", "period"), [(3, 60.0, 130.0), (3, 35.0, 110.0)])
def test_objectives_do_not_turn_back(step: int, money: float, period: float) -> None:
    turned = list(road().turned)
    turned[step] = replace(turned[step], communication=money, period=period)
    changed = replace(road(), turned=tuple(turned))
    assert verdict(sch_explained.CHECK, explained(0, [changed]), "SCH-009").verdict is Verdict.fail
