"""Small cases of forecasts, phases, waveforms, peaks and reservations, worked by hand, told over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, start, stop
from minimal_server.validator import Validator

REVISION = {"epoch": "world", "number": 7}
NOW = "2026-03-01T01:00:00.000Z"
MIDNIGHT = "2026-03-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def asked(client: Client, path: str, report: str, body: Any) -> Any:
    """An answer, which the published schema takes for what it should be; the same when asked again."""
    body = {"revision": REVISION, **body}
    status, answer, _ = client.ask("POST", path, body)
    assert status == 200, answer
    validator = Validator(json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8")))
    assert validator.errors(report, answer) == []
    assert client.ask("POST", path, body)[1] == answer
    assert answer["revision"] == REVISION
    return answer


def series(values: list[float], **members: Any) -> dict[str, Any]:
    """Values of each minute since midnight."""
    return {"id": "s", "quantity": "demanded_devices", "begin": MIDNIGHT, "step": 60, "values": values} | members


def job(*periods: tuple[float, int], spread: float = 1.0, **members: Any) -> dict[str, Any]:
    told = [
        {
            "duration": {"expected": seconds, "low": seconds / spread, "high": seconds * spread, "coverage": 0.9},
            "devices": devices,
        }
        for seconds, devices in periods
    ]
    return {"id": "j", "submitted_at": MIDNIGHT, "periods": told} | members


def test_a_series_that_always_rises_alike_is_forecast_to_go_on(client: Client) -> None:
    body = {
        "now": NOW,
        "series": [series([2.0 * number for number in range(61)])],
        "horizons": [30, 600],
        "levels": [0.1, 0.9],
    }
    (told,) = asked(client, "/v1/forecasts", "ForecastReport", body)["forecasts"]
    assert [point["expected"] for point in told["points"]] == [120.0, 140.0]
    assert [row["value"] for row in told["points"][1]["quantiles"]] == [140.0, 140.0]
    assert told["points"][0]["structure_share"] == 0.0


def test_quantiles_are_those_of_the_errors_that_were_made(client: Client) -> None:
    values = [10.0 + number % 2 for number in range(61)]
    body = {"now": NOW, "series": [series(values)], "horizons": [60], "levels": [0.25, 0.5, 0.75]}
    point = asked(client, "/v1/forecasts", "ForecastReport", body)["forecasts"][0]["points"][0]
    assert [row["value"] for row in point["quantiles"]] == [9.0, 10.0, 11.0]
    assert point["expected"] == 10.0


def test_a_job_that_will_end_is_foreseen_to(client: Client) -> None:
    runs = job((4000, 8), started_at=MIDNIGHT, tenant="t")
    told = series([8.0] * 61, tenant="t")
    other = series([8.0] * 61, id="other", tenant="u")
    body = {"now": NOW, "series": [told, other], "jobs": [runs], "horizons": [300, 600], "levels": [0.5]}
    mine, others = asked(client, "/v1/forecasts", "ForecastReport", body)["forecasts"]
    assert [point["expected"] for point in mine["points"]] == [8.0, 0.0]
    assert [point["structure_share"] for point in mine["points"]] == [1.0, 1.0]
    assert [point["expected"] for point in others["points"]] == [8.0, 8.0]


def test_as_much_is_reserved_as_is_exceeded_in_a_share_of_cases(client: Client) -> None:
    values = [10.0 + 5.0 * (number % 10 == 9) for number in range(61)]
    body = {"now": NOW, "horizon": 300, "series": [series(values, tenant="t"), series(values, id="open")]}
    devices = []
    for violations in (0.05, 0.9):
        quality = [{"tenant": "t", "violations": violations}]
        report = asked(client, "/v1/reservations", "ReservationReport", {**body, "qualities": quality})
        (row,) = report["reservations"]
        assert (row["series"], row["tenant"]) == ("s", "t")
        devices.append(row["devices"])
    assert devices == [15, 10]


def points(*parts: tuple[float, float], count: int = 200) -> list[dict[str, float]]:
    """A warm-up of 20 steps, then a loss that falls by powers of the steps: pairs of the first step and the power."""
    found, loss = [], 10.0
    for step in range(1, count + 1):
        power = [power for begin, power in parts if step >= begin][-1]
        loss *= ((step - 1) / step) ** power if step > 1 else 1.0
        found.append({"step": step, "loss": loss, "learning_rate": min(step, 20) * 1e-5})
    return found


@pytest.mark.parametrize(
    ("told", "phase", "since"),
    [
        (points((1, 0.5), count=15), "warm_up", 1),
        (points((1, 0.5)), "fast_convergence", 20),
        (points((1, 0.01)), "stable_convergence", 20),
        (points((1, 0.5), (50, 0.01)), "stable_convergence", 50),
        (points((1, 0.5), (50, 0.01), (100, 0.5)), "stable_convergence", 50),
    ],
)
def test_phases_follow_from_the_past(client: Client, told: Any, phase: str, since: int) -> None:
    body = {"curves": [{"id": "c", "points": told}]}
    (row,) = asked(client, "/v1/training-phases", "PhaseReport", body)["phases"]
    assert (row["curve"], row["phase"]) == ("c", phase)
    assert since <= row["since"] <= since + 5  # the mean before a step remembers what fell fast


def test_a_waveform_lays_periods_one_after_the_other(client: Client) -> None:
    jobs = [
        job((5400, 4), (1800, 2), started_at=MIDNIGHT),
        job((1800, 1), id="waits"),
        job((600, 3), id="comes", submitted_at="2026-03-01T01:20:00.000Z"),
    ]
    prices = [{"begin": 0, "price": 1}, {"begin": 5400, "price": 3}]
    body = {"now": NOW, "period": 3600, "step": 600, "jobs": jobs, "prices": prices}
    told = asked(client, "/v1/waveforms", "Waveform", body)
    assert [point["expected"] for point in told["points"]] == [5, 5, 8, 2, 2, 2, 0]
    assert told["device_seconds"]["expected"] == 24 * 600
    assert told["budget"]["expected"] == pytest.approx((18 * 1 + 6 * 3) / 6)


def test_a_waveform_is_a_mean_over_cases_with_an_interval(client: Client) -> None:
    runs = job((1200, 10), spread=2.0, started_at=NOW, submitted_at=NOW)
    told = asked(client, "/v1/waveforms", "Waveform", {"now": NOW, "period": 1200, "step": 1200, "jobs": [runs]})
    begin, middle = told["points"]
    assert (begin["low"], begin["expected"], begin["high"]) == (10, 10, 10)
    assert middle["expected"] == pytest.approx(5, abs=0.5)
    assert (middle["low"], middle["high"]) == (0, 10)


def test_peaks_are_lowered_within_windows(client: Client) -> None:
    load = {"devices": 4, "slots": 2, "earliest": 0, "latest": 5, "planned": 2}
    loads = [{"id": "whole", **load}, {"id": "parts", **load, "interruptible": True}]
    body = {"step": 60, "base": [0, 4, 8, 8, 0, 4], "loads": loads}
    told = asked(client, "/v1/peak-plans", "PeakPlan", body)
    assert (told["peak_before"], told["peak_after"]) == (16, 8)
    whole, parts = told["loads"]
    assert whole == {"load": "whole", "slots": [0, 1]}
    assert parts == {"load": "parts", "slots": [4, 5]} or parts["slots"] == [0, 4]


@pytest.mark.parametrize(
    ("path", "changes", "pointer"),
    [
        ("forecasts", {"horizons": [600, 60]}, "/horizons/1"),
        ("forecasts", {"levels": [0.0]}, "/levels/0"),
        ("forecasts", {"levels": [0.5, 1.0]}, "/levels/1"),
        ("forecasts", {"series": [series([1.0] * 62)]}, "/series/0/values"),
        ("forecasts", {"series": [series([0.0, 1e308])]}, "/series/0/values"),
        ("waveforms", {"step": 1}, "/step"),
        ("waveforms", {"prices": [{"begin": 0, "price": 1e308}]}, "/prices/0/price"),
        ("forecasts", {"series": [series([1.0] * 9), series([1.0] * 9)]}, "/series/1/id"),
        ("forecasts", {"jobs": [job((60, 1)), job((60, 1))]}, "/jobs/1/id"),
        ("reservations", {"qualities": [{"tenant": "t", "violations": 0.1}] * 2}, "/qualities/1/tenant"),
        ("peak-plans", {"loads": [{"slots": 4}]}, "/loads/0/slots"),
        ("peak-plans", {"loads": [{"latest": 6}]}, "/loads/0/latest"),
        (
            "training-phases",
            {"curves": [{"id": "c", "points": points((1, 0.5), count=3)[::-1]}]},
            "/curves/0/points/1/step",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(client: Client, path: str, changes: Any, pointer: str) -> None:
    load = {"id": "l", "devices": 1, "slots": 1, "earliest": 0, "latest": 2, "planned": 1}
    known = {"now": NOW, "series": [series([1.0] * 9)]}
    bodies: dict[str, Any] = {
        "forecasts": {**known, "horizons": [60], "levels": [0.5]},
        "reservations": {**known, "horizon": 600, "qualities": []},
        "peak-plans": {"step": 60, "base": [1, 1, 1]},
        "waveforms": {"now": NOW, "period": 1e30, "step": 1e29, "jobs": []},
        "training-phases": {},
    }
    body = {"revision": REVISION, **bodies[path], **changes}
    if "loads" in changes:
        body["loads"] = [{**load, **row} for row in changes["loads"]]
    status, answer, _ = client.ask("POST", f"/v1/{path}", body)
    assert (status, answer["type"]) == (422, "urn:kuayu:problem:invalid-body")
    assert pointer in [error["pointer"] for error in answer["errors"]]


BEYOND = {"now": NOW, "series": [series([0.0, 1e15] * 30, tenant="t")]}
LASTING = [job((1e308, 2**53 - 1), (1e308, 1), spread=spread, id=f"{spread}") for spread in (1.0, 1.7)]
UNSTEADY = [
    {"step": step, "loss": 1e308 if step % 2 else 1e-308, "learning_rate": 1e307 * min(step, 5)}
    for step in range(1, 200)
]


@pytest.mark.parametrize(
    ("path", "report", "body"),
    [
        ("forecasts", "ForecastReport", {**BEYOND, "jobs": LASTING, "horizons": [60, 1e30, 1e308], "levels": [0.5]}),
        (
            "reservations",
            "ReservationReport",
            {**BEYOND, "jobs": LASTING, "horizon": 1e308, "qualities": [{"tenant": "t", "violations": 0.1}]},
        ),
        ("waveforms", "Waveform", {"now": NOW, "period": 1e30, "step": 1e29, "jobs": LASTING}),
        ("peak-plans", "PeakPlan", {"step": 1e308, "base": [1e308] * 3, "loads": []}),
        ("training-phases", "PhaseReport", {"curves": [{"id": "c", "points": UNSTEADY}]}),
    ],
)
def test_numbers_that_are_nobodys_are_answered_all_the_same(client: Client, path: str, report: str, body: Any) -> None:
    asked(client, f"/v1/{path}", report, body)
