"""The checks of forecasts with a forecaster that keeps to the text, and with ones that do not."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conformance.conforming_forecaster import episode

from kuayu_conformance.checks.forecast import accuracy, consistency
from kuayu_conformance.checks.forecast.accuracy import Size
from kuayu_conformance.checks.forecast.forecast_requests import (
    FORECASTS,
    PEAKS,
    RESERVATIONS,
    WAVEFORMS,
    ForecastRequestBuilder,
)
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.testbed.demand.baselines import FILES
from kuayu_schemas import schema

FEW = Size(worlds=1, days=1, origins=3)


def unmet(check: Any, change: Any = None) -> list[str]:
    """Claims of a check that are not met."""
    made = episode(check.__name__, change) if change else episode(check.__name__)
    found = check.judge(check.observe(made))
    return [f"{each.expected}: {each.found}" for each in found if isinstance(each, Claim) and not each.met]


def test_a_conforming_forecaster_keeps_together() -> None:
    assert unmet(consistency) == []


def _point(answer: Json, **members: Any) -> Json:
    for each in answer.get("forecasts", []):
        each["points"][0] |= members
    return answer


def crossing(_: str, __: Json, answer: Json) -> Json:
    """The lowest quantile is the highest."""
    for each in answer.get("forecasts", []):
        quantiles = each["points"][-1]["quantiles"]
        quantiles[0]["value"] = quantiles[-1]["value"] + 1.0
    return answer


class Counting:
    """Says something else each time."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _: str, __: Json, answer: Json) -> Json:
        """One device more each time."""
        self.count += 1
        for each in answer.get("reservations", []):
            each["devices"] += self.count
        return answer


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (crossing, "quantiles cross"),
        (lambda _, __, a: _point(a, expected=1e6), "more than the highest"),
        (lambda _, __, a: _point(a, horizon=1.0), "horizons are not"),
        (lambda p, _, a: a | ({"forecasts": a["forecasts"][::-1]} if p == FORECASTS else {}), "the series are not"),
        (lambda _, __, a: {**a, "revision": {"epoch": "other", "number": 0}}, "the request's revision"),
        (lambda p, _, a: a | ({"reservations": a["reservations"][1:]} if p == RESERVATIONS else {}), "a reservation"),
        (Counting(), "the same answer"),
    ],
)
def test_what_does_not_hang_together_is_found(change: Any, complaint: str) -> None:
    assert any(complaint in each for each in unmet(consistency, change))


def test_who_reserves_more_for_a_milder_promise_is_found() -> None:
    def change(_: str, body: Json, answer: Json) -> Json:
        for each in answer.get("reservations", []):
            each["devices"] = round(1_000 * body["qualities"][0]["violations"])
        return answer

    assert any("no more is reserved" in each for each in unmet(consistency, change))


def test_worlds_are_asked_in_the_order_of_time_and_rows_hold_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "QUICK", FEW)
    seen = accuracy.observe(episode("fct_accuracy"))
    rows = [row for row in seen.forecasts.rows if row.part == "domain"]
    assert len(rows) == 3 * 5 * 2
    assert [row.hour for row in rows] == sorted(row.hour for row in rows) or len({row.horizon for row in rows}) > 1
    assert seen.forecasts.requests == 3
    assert not seen.forecasts.refused
    assert all(row.truth >= 0.0 and len(row.quantiles) == 7 for row in rows)
    again = accuracy.observe(episode("fct_accuracy"))
    assert again == seen, "the nonce and the answers alone decide"


def test_a_target_that_answers_nothing_is_not_asked_on_and_on() -> None:
    made = episode("fct_accuracy", lambda *_: {"no": "forecast"}, decide=False)
    seen = accuracy.observe(made)
    assert len(made.exchanges) == 3
    assert [each.met for each in accuracy.judge(seen) if isinstance(each, Claim)] == [False, False]


def test_reservations_and_quantiles_of_a_conforming_forecaster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "QUANTILES_QUICK", FEW)
    monkeypatch.setattr(accuracy, "QUICK_RESERVED", FEW)
    found = list(accuracy.judge_quantiles(accuracy.observe_quantiles(episode("fct_quantiles"))))
    assert [each.met for each in found if isinstance(each, Claim)] == [True] * 6
    assert len([each for each in found if isinstance(each, Figure)]) == 1


def test_forecasts_that_lack_a_level_are_none() -> None:
    made = episode("said")
    request = next(body for _, body in consistency.questions(ForecastRequestBuilder(made.random)))
    answer = made.ask("POST", FORECASTS, request)
    assert accuracy.said(answer, request) is not None
    assert accuracy.said(answer, {**request, "levels": [0.1, 0.5]}) is None
    assert accuracy.said(answer, {**request, "horizons": [600.0]}) is None


def test_every_request_is_valid_by_the_schema_of_requests() -> None:
    draft = ForecastRequestBuilder(episode("valid").random)
    named = {
        FORECASTS: "ForecastRequest",
        RESERVATIONS: "ReservationRequest",
        WAVEFORMS: "WaveformRequest",
        PEAKS: "PeakRequest",
    }
    made = [(RESERVATIONS, consistency.reservations(draft))]
    made += [(FORECASTS, body) for _, body in consistency.questions(draft)]
    made += [(WAVEFORMS, consistency.wave_request(draft, number)[1]) for number in range(9)]
    made += [(PEAKS, consistency.peak_request(draft)[2]) for _ in range(9)]
    for path, body in made:
        assert not list(schema.errors(named[path], body)), path


def test_real_series_are_asked_for_where_they_are_at_hand(tmp_path: Path) -> None:
    """A cluster that holds 40 devices, and 41 in every second hour; the conforming forecaster errs by as much."""
    (tmp_path / "demand_series").mkdir()
    rows = ["time_s,one", *(f"{60 * minute},{40 + minute // 60 % 2}" for minute in range(7_400))]
    name = tmp_path / FILES["itp-demand"]
    name.write_bytes(gzip.compress("\n".join(rows).encode()))
    made = episode("fct_real")
    made.settings = replace(made.settings, traces={"itp-demand": tmp_path})
    seen = accuracy.observe_real(made)
    assert len(seen) == accuracy.ORIGINS * 2
    assert {row.truth for row in seen} == {40.0, 41.0}
    assert all(abs(row.expected - row.truth) <= 2.0 for row in seen)
