"""Forecasts, phases, waveforms, peaks and reservations over HTTP: pure, and closed to what does not hold together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from service.conftest import JsonObject, Service, problem

from kuayu.client import Client, RefusedError
from kuayu.service import computations
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    ForecastRequest,
    PeakRequest,
    PhaseRequest,
    ReservationRequest,
    TrainingPhase,
    WaveformRequest,
)

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
FORECASTS, PHASES, WAVEFORMS = "/v1/forecasts", "/v1/training-phases", "/v1/waveforms"
PEAKS, RESERVATIONS = "/v1/peak-plans", "/v1/reservations"
ANSWERS = {
    FORECASTS: "ForecastReport",
    PHASES: "PhaseReport",
    WAVEFORMS: "Waveform",
    PEAKS: "PeakPlan",
    RESERVATIONS: "ReservationReport",
}
FILES = {
    FORECASTS: "ForecastRequest/valid/one-series-two-jobs-and-an-event.json",
    PHASES: "PhaseRequest/valid/six-points.json",
    WAVEFORMS: "WaveformRequest/valid/two-jobs-and-prices.json",
    PEAKS: "PeakRequest/valid/two-loads.json",
    RESERVATIONS: "ReservationRequest/valid/one-tenant.json",
}
WORKERS = {
    FORECASTS: computations.forecast,
    PHASES: computations.recognise_phases,
    WAVEFORMS: computations.make_waveform,
    PEAKS: computations.plan_peaks,
    RESERVATIONS: computations.reserve,
}

Change = Callable[[JsonObject], object]


def asked(path: str, change: Change = lambda _: None) -> JsonObject:
    """The example of an operation's request, changed."""
    request: JsonObject = json.loads((EXAMPLES / FILES[path]).read_text("utf-8"))
    change(request)
    return request


def read(model: type[KuayuModel], request: JsonObject) -> Any:
    return model.model_validate_json(json.dumps(request))


@pytest.mark.parametrize("path", ANSWERS)
def test_an_answer_keeps_to_the_schema_echoes_the_revision_and_is_given_again(shared: Service, path: str) -> None:
    first, again = (shared.client.post(path, json=asked(path)).raise_for_status() for _ in range(2))
    assert schema.errors(ANSWERS[path], first.json()) == []
    assert first.json()["revision"] == asked(path)["revision"]
    assert first.content == again.content
    assert first.headers["content-type"] == "application/json"


def test_the_client_asks_for_all_five(shared: Service) -> None:
    with Client(shared.url) as client:
        (told,) = client.forecasts(read(ForecastRequest, asked(FORECASTS))).forecasts
        assert [point.horizon for point in told.points] == [600, 3600]
        (phase,) = client.training_phases(read(PhaseRequest, asked(PHASES))).phases
        assert phase.phase is not TrainingPhase.unknown
        wave = client.waveform(read(WaveformRequest, asked(WAVEFORMS)))
        assert [point.at for point in wave.points] == [0, 1800, 3600, 5400, 7200]
        assert wave.budget is not None
        plan = client.peak_plan(read(PeakRequest, asked(PEAKS)))
        assert plan.peak_after <= plan.peak_before == 104
        (kept,) = client.reservations(read(ReservationRequest, asked(RESERVATIONS))).reservations
        assert kept.tenant == "t-1"
        twice = asked(PEAKS, lambda request: request["loads"].append(request["loads"][0]))
        with pytest.raises(RefusedError) as refused:
            client.peak_plan(read(PeakRequest, twice))
        assert refused.value.name == "invalid-body"


@pytest.mark.parametrize(
    ("path", "change", "pointer"),
    [
        (FORECASTS, lambda request: request["series"].append(request["series"][0]), "/series/1/id"),
        (FORECASTS, lambda request: request.update(levels=[0.9, 0.1]), "/levels/1"),
        (FORECASTS, lambda request: request.update(horizons=[600, 600]), "/horizons/1"),
        (FORECASTS, lambda request: request["series"][0].update(begin="2026-02-30T00:00:00.000Z"), "/series/0/begin"),
        (FORECASTS, lambda request: request["events"][0].update(ends_at="2026-02-30T00:00:00Z"), "/events/0/ends_at"),
        (PHASES, lambda request: request["curves"].append(request["curves"][0]), "/curves/1/id"),
        (PHASES, lambda request: request["curves"][0]["points"].reverse(), "/curves/0/points/1/step"),
        (WAVEFORMS, lambda request: request["jobs"].append(request["jobs"][0]), "/jobs/2/id"),
        (WAVEFORMS, lambda request: request.update(now="2026-02-30T00:00:00Z"), "/now"),
        (PEAKS, lambda request: request["loads"].append(request["loads"][0]), "/loads/2/id"),
        (RESERVATIONS, lambda request: request["qualities"].append(request["qualities"][0]), "/qualities/1/tenant"),
    ],
)
def test_what_does_not_hold_together_is_refused_at_its_place(
    shared: Service, path: str, change: Change, pointer: str
) -> None:
    refused = shared.client.post(path, json=asked(path, change))
    assert problem(refused) == "invalid-body"
    assert refused.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("path", [FORECASTS, WAVEFORMS, PEAKS, RESERVATIONS])
def test_more_than_the_service_takes_on_is_refused_with_what_to_name_fewer_of(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    decide, body = WORKERS[path], json.dumps(asked(path)).encode()
    assert decide(body).status == 200
    for limit in ("MAX_FORECAST_POINTS", "MAX_PERIODS", "MAX_WAVE_POINTS", "MAX_LOAD_STEPS"):
        monkeypatch.setattr(computations, limit, 1)
    refused = decide(body)
    assert refused.status == 422
    assert "name fewer" in json.loads(refused.body)["detail"]


def test_the_metrics_tell_of_forecasts(shared: Service) -> None:
    for path in ANSWERS:
        shared.client.post(path, json=asked(path)).raise_for_status()
    page = shared.client.get("/metrics").text
    assert 'kuayu_training_phases_total{phase="' in page
    for operation in ("forecastDemand", "recogniseTrainingPhases", "makeWaveform", "planPeaks", "reserveForTenants"):
        assert f'kuayu_decision_seconds_count{{operation="{operation}"}}' in page
