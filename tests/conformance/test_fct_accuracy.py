"""Accuracy, quantiles and reservations from rows made by hand: near misses, controls, and which domain counts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.forecast.accuracy import (
    CHECK,
    HORIZONS,
    LEVELS,
    AccuracyForecasts,
    OriginForecasts,
    QuantileForecasts,
    RealRow,
    ReservedRow,
    Row,
    deviation,
    judge,
    judge_quantiles,
    pinball,
)
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.demand.baselines import LAST, PLAN, SIMPLE
from kuayu_schemas import registers
from kuayu_schemas.models import Comparison, PlotKind, Replay, Requirement, Threshold

ASKED = {"FCT-001": 0.92, "FCT-002": 0.88}
DOMAINS = ("first", "second", "third", "fourth", "fifth")
OTHERS = dict.fromkeys((*SIMPLE, PLAN), 800.0)


def rows(missed: float, domain: str = "first", *, part: str = "domain", days: int = 15) -> list[Row]:
    """A thousand devices came at four instants of each day; so much more and so much less was expected by turns."""
    return [
        Row(
            world=day // 5,
            day=day % 5,
            hour=24.0 * day + 6.0 * place,
            domain=domain,
            part=part,
            tenant=-1,
            horizon=horizon,
            truth=1_000.0,
            expected=1_000.0 * (1 + missed * (1 if place % 2 else -1)),
            quantiles=tuple(1_000.0 * level for level in LEVELS),
            others=OTHERS,
            change=place == 0,
        )
        for horizon in HORIZONS
        for day in range(days)
        for place in range(4)
    ]


def everywhere(missed: float) -> list[Row]:
    """The same in all domains."""
    return [row for domain in DOMAINS for row in rows(missed, domain)]


def asked(requirement: str) -> Requirement:
    """The requirement with its threshold, as the brief sets it."""
    like = next(each for each in registers.requirements().requirements if each.id == "SCH-008")
    threshold = Threshold(comparison=Comparison.at_least, value=ASKED[requirement], unit="1")
    return like.model_copy(update={"id": requirement, "threshold": threshold, "aim": None})


def verdict(requirement: str, made: Sequence[Row], refused: Sequence[Answer] = ()) -> str:
    """Verdict on rows."""
    seen = AccuracyForecasts(OriginForecasts(tuple(made), tuple(refused), len(made) + len(refused)))
    found = [each for each in judge(seen) if each.requirement == requirement]
    return conclude(asked(requirement), found, CHECK.name, Replay.deterministic, None).verdict.value


def figure(requirement: str, made: Sequence[Row], real: Sequence[RealRow] = ()) -> Figure:
    """The figure of a requirement."""
    found = judge(AccuracyForecasts(OriginForecasts(tuple(made), (), len(made)), tuple(real)))
    return next(each for each in found if isinstance(each, Figure) and each.requirement == requirement)


def test_an_error_of_85_thousandths_in_ten_minutes_is_too_much_and_one_of_75_is_not() -> None:
    assert verdict("FCT-001", everywhere(0.075)) == "pass"
    assert verdict("FCT-001", everywhere(0.085)) == "fail"


def test_an_error_of_125_thousandths_in_an_hour_is_too_much_and_one_of_115_is_not() -> None:
    assert verdict("FCT-002", everywhere(0.115)) == "pass"
    assert verdict("FCT-002", everywhere(0.125)) == "fail"


def test_the_worst_domain_counts() -> None:
    made = [*everywhere(0.02), *rows(0.5, "sixth")]
    assert verdict("FCT-002", made) == "fail"
    assert figure("FCT-002", made).estimate == pytest.approx(0.5)


def test_an_error_of_much_counts_as_much_as_ten_of_a_tenth_of_it() -> None:
    """Sums are divided: ten devices missed of ten weigh no more than ten missed of a thousand."""
    small = [replace(row, truth=10.0, expected=20.0) for row in rows(0.0)]
    assert figure("FCT-001", [*rows(0.0), *small]).estimate == pytest.approx(1 - 10 / 1_010)


def test_days_that_do_not_agree_decide_nothing() -> None:
    """Twelve good days and three bad ones make 0.9 within the hour, but other fifteen might make less than 0.88."""
    made = [replace(row, expected=1_500.0) if row.day == 0 else row for row in everywhere(0.0)]
    assert figure("FCT-002", made).estimate == pytest.approx(0.9)
    assert verdict("FCT-002", made) == "inconclusive"
    assert verdict("FCT-001", made) == "inconclusive", "nobody fails by luck either"


def test_other_series_are_shown_and_not_judged() -> None:
    parts = ("tenant", "training", "held", "waiting", "submitted")
    made = [*everywhere(0.05), *(row for part in parts for row in rows(0.9, part=part))]
    its = figure("FCT-002", made)
    assert its.estimate == pytest.approx(0.95)
    assert [row.cells[2] for row in its.tables[2].rows] == ["10.0 %"] * len(parts)


def test_a_question_that_is_not_answered_fails() -> None:
    answer = Answer(3, "POST /v1/forecasts", 500, {}, b"", "", 0.0, 0.0)
    assert verdict("FCT-001", everywhere(0.0), [answer]) == "fail"
    found = list(judge(AccuracyForecasts(OriginForecasts((), (answer,) * 3, 3))))
    assert [each.met for each in found if isinstance(each, Claim)] == [False, False]
    assert not [each for each in found if isinstance(each, Figure)]


def test_yardsticks_and_pictures_stand_beside_the_figure() -> None:
    its = figure("FCT-001", everywhere(0.05))
    by_domain, by_change, _ = its.tables
    assert by_domain.rows[0].cells[:5] == ["first", "60", "95.0 %", "80.0 %", "80.0 %"]
    assert by_domain.rows[0].cells[-1] == "75.0 % (75.0 % to 75.0 %)"
    assert [row.cells[:2] for row in by_change.rows] == [["known", "25.0 %"], ["not known", "75.0 %"]]
    assert by_domain.columns[3] == LAST
    assert [plot.kind for plot in its.plots] == [PlotKind.lines, PlotKind.agreement]
    assert its.plots[0].series[0].label == "what came"


def test_real_series_are_shown_and_not_judged() -> None:
    others = dict.fromkeys(SIMPLE, 90.0)
    real = [
        RealRow("itp-demand", cluster, HORIZONS[0], 100.0, said, others) for cluster, said in (("a", 99), ("b", 50))
    ]
    its = figure("FCT-001", everywhere(0.05), real)
    assert [row.cells[3] for row in its.tables[-1].rows] == ["74.5 %", "50.0 %"]
    assert its.estimate == pytest.approx(0.95)


AIM = 0.02


def quantile_rows(
    truths: Sequence[float], quantiles: Sequence[float], domain: str = "first", part: str = "domain"
) -> list[Row]:
    """What came by turns on the days of three worlds, and the same quantiles each time."""
    return [
        Row(place % 3, place % 5, 0.0, domain, part, -1, 3600.0, truth, quantiles[3], tuple(quantiles), {}, (50.0,) * 7)
        for place, truth in enumerate(truths)
    ]


def spread(beside: float = 0.0) -> list[Row]:
    """Every number from 0 to 999 came once, and quantiles are so much above those that a share does not exceed."""
    return quantile_rows(
        [float(number) for number in range(1_000)], [1_000.0 * (level + beside) - 0.6 for level in LEVELS]
    )


def reserved(violations: int, *, devices: float = 90.0, promised: float = 0.1, days: int = 40) -> list[ReservedRow]:
    """Ten reservations a day, of which in so many more is needed; 200 were seen at most."""
    return [
        ReservedRow(day // 5, day % 5, promised, devices, devices + (1 if place < violations else -1), 200.0, 80.0)
        for day in range(days)
        for place in range(10)
    ]


def claims(of: Sequence[ReservedRow]) -> list[bool]:
    """Whether what was promised is kept, and less is reserved than was seen at most."""
    found = judge_quantiles(QuantileForecasts(OriginForecasts((), (), 0), tuple(of)))
    return [each.met for each in found if isinstance(each, Claim)][2:]


@pytest.mark.parametrize(("beside", "within"), [(0.0, True), (0.01, True), (0.03, False), (-0.03, False)])
def test_quantiles_that_lie_beside_are_measured(beside: float, within: bool) -> None:
    assert deviation(spread(beside)) == pytest.approx(abs(beside), abs=0.0011)
    assert (deviation(spread(beside)) <= AIM) is within


def test_a_number_on_which_all_lies_may_be_every_quantile() -> None:
    assert deviation(quantile_rows([64.0] * 20, [64.0] * 7)) == 0.0
    assert deviation(quantile_rows([64.0] * 20, [63.7] * 7)) == 0.0, "devices are whole"


def test_a_number_on_which_half_lies_may_not() -> None:
    """Half of the cases lie above all quantiles, so that shares are half of what they should be: half of 0.5."""
    half = quantile_rows([64.0, 72.0] * 20, [64.0] * 7)
    assert deviation(half) == pytest.approx(0.25, abs=0.02)
    assert deviation(quantile_rows([64.0, 72.0] * 20, [64.0] * 3 + [68.0] + [72.0] * 3)) == pytest.approx(0.0, abs=1e-9)


def test_what_came_may_be_unlike_what_is_said_only_as_far_as_levels_tell() -> None:
    """Three quarters lie on 64 and a quarter above: the level 0.75 is met from either side."""
    assert deviation(quantile_rows([64.0, 64.0, 64.0, 72.0] * 20, [64.0] * 5 + [72.0] * 2)) == pytest.approx(
        0.0, abs=1e-9
    )


def test_the_worst_of_domains_and_tenants_counts() -> None:
    worse = [replace(row, part="tenant", tenant=0) for row in spread(0.04)]
    found = list(judge_quantiles(QuantileForecasts(OriginForecasts((*spread(), *worse), (), 1), tuple(reserved(0)))))
    (figure,) = (each for each in found if isinstance(each, Figure))
    assert figure.estimate == pytest.approx(0.04, abs=0.0011)
    assert figure.bound >= figure.estimate
    assert [part.label for part in figure.parts] == ["first, domain", "first, tenant"]
    assert [table.title.split()[0] for table in figure.tables] == ["Share", "Pinball", "Reservations"]


def test_pinball_of_a_case() -> None:
    """100 came: a quantile of 90 at level 0.95 costs 9.5, one of 110 at 0.05 costs 9.5, those that hold nothing."""
    row = quantile_rows([100.0], [110.0, *[100.0] * 5, 90.0])
    assert pinball(row, [row[0].quantiles]) == pytest.approx(19.0)


def test_promises_are_kept_up_to_chance() -> None:
    assert claims(reserved(1)) == [True, True], "a tenth, as promised"
    assert claims(reserved(2)) == [False, True], "two in ten"
    unlucky = [*reserved(1, days=10), *reserved(2, days=1)]
    assert claims(unlucky) == [True, True], "one day of eleven is chance"


def test_what_one_tenant_gets_too_much_does_not_make_up_for_another() -> None:
    assert claims([*reserved(0, promised=0.2), *reserved(1, promised=0.05)]) == [False, True, True]


def test_whoever_reserves_the_most_that_was_seen_has_not_forecast() -> None:
    assert claims(reserved(0, devices=200.0)) == [True, False]
    assert claims(reserved(0, devices=199.0)) == [True, True]


def test_questions_without_an_answer_fail() -> None:
    found = judge_quantiles(QuantileForecasts(OriginForecasts((), (), 0), (), unanswered=2))
    assert [each.met for each in found if isinstance(each, Claim)] == [True, False]
