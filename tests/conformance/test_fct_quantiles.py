"""Quantiles and reservations from rows made by hand: near misses, controls, and numbers on which much lies."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kuayu_conformance.checks.forecast.accuracy import (
    LEVELS,
    OriginForecasts,
    QuantileForecasts,
    ReservedRow,
    Row,
    deviation,
    judge_quantiles,
    pinball,
)
from kuayu_conformance.findings import Claim, Figure

AIM = 0.02


def rows(truths: Sequence[float], quantiles: Sequence[float], domain: str = "first", part: str = "domain") -> list[Row]:
    """What came by turns on the days of three worlds, and the same quantiles each time."""
    return [
        Row(place % 3, place % 5, 0.0, domain, part, -1, 3600.0, truth, quantiles[3], tuple(quantiles), {}, (50.0,) * 7)
        for place, truth in enumerate(truths)
    ]


def spread(beside: float = 0.0) -> list[Row]:
    """Every number from 0 to 999 came once, and quantiles are so much above those that a share does not exceed."""
    return rows([float(number) for number in range(1_000)], [1_000.0 * (level + beside) - 0.6 for level in LEVELS])


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
    assert deviation(rows([64.0] * 20, [64.0] * 7)) == 0.0
    assert deviation(rows([64.0] * 20, [63.7] * 7)) == 0.0, "devices are whole"


def test_a_number_on_which_half_lies_may_not() -> None:
    """Half of the cases lie above all quantiles, so that shares are half of what they should be: half of 0.5."""
    half = rows([64.0, 72.0] * 20, [64.0] * 7)
    assert deviation(half) == pytest.approx(0.25, abs=0.02)
    assert deviation(rows([64.0, 72.0] * 20, [64.0] * 3 + [68.0] + [72.0] * 3)) == pytest.approx(0.0, abs=1e-9)


def test_what_came_may_be_unlike_what_is_said_only_as_far_as_levels_tell() -> None:
    """Three quarters lie on 64 and a quarter above: the level 0.75 is met from either side."""
    assert deviation(rows([64.0, 64.0, 64.0, 72.0] * 20, [64.0] * 5 + [72.0] * 2)) == pytest.approx(0.0, abs=1e-9)


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
    row = rows([100.0], [110.0, *[100.0] * 5, 90.0])
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
