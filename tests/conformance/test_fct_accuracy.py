"""Accuracy of forecasts from rows made by hand: a near miss, a control, and which domain counts."""

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
    RealRow,
    Row,
    judge,
)
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.verdicts import conclude
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
