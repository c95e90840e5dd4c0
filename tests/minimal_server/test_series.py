"""Stories of series over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from minimal_server.client import Client, start, stop

HOUR = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = start()
    client.ask("PUT", "/v1/domains/d", {"id": "d"})
    devices = [{"id": name, "kind": "gpu", "vendor": "v", "model": "m"} for name in ("0", "1")]
    client.ask("PUT", "/v1/nodes/n", {"id": "n", "domain": "d", "devices": devices})
    values = {0: 2.0, 3599.999: 4.0, 3600: 8.0, -0.001: 1.0, 7200: 16.0}
    samples = [
        {"subject": "n", "subject_kind": "node", "observed_at": at(seconds), "power": value}
        for seconds, value in values.items()
    ]
    other = {"subject": "n", "subject_kind": "device", "device": "1", "observed_at": at(1), "power": 0.5}
    client.ask("POST", "/v1/samples", {"mode": "atomic", "samples": [*samples, other]})
    yield client
    stop(client)


def at(seconds: float) -> str:
    return (HOUR + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def series(client: Client, since: float, until: float, step: object, about: str = "subject_kind=node") -> Any:
    path = f"/v1/series?subject=n&{about}&measure=power&from={at(since)}&to={at(until)}&step={step}"
    return client.ask("GET", path)[1]


def test_a_value_belongs_to_the_step_that_begins_with_it(client: Client) -> None:
    answer = series(client, 17, 3600.001, 3600)
    assert answer["points"] == [
        {"start": at(0), "count": 2, "mean": 3.0, "minimum": 2.0, "maximum": 4.0},
        {"start": at(3600), "count": 1, "mean": 8.0, "minimum": 8.0, "maximum": 8.0},
    ]
    assert (answer["unit"], answer["step"], answer["subject"]) == ("W", 3600, "n")
    assert [point["mean"] for point in series(client, -60, 3600, 60)["points"]] == [1.0, 2.0, 4.0]


def test_each_device_has_series_of_its_own(client: Client) -> None:
    for device, means in (("0", []), ("1", [0.5])):
        answer = series(client, 0, 60, 60, f"subject_kind=device&device={device}")
        assert [point["mean"] for point in answer["points"]] == means


@pytest.mark.parametrize(
    ("since", "until", "step", "about", "status"),
    [
        (0, 60, 61, "subject_kind=node", 400),
        (0, 60, "x", "subject_kind=node", 400),
        (0, 600_001, 60, "subject_kind=node", 400),
        (0, 600_000, 60, "subject_kind=node", None),
        (0, 60, 60, "subject_kind=rack", 400),
        (0, 60, 60, "subject_kind=device", 400),
        (0, 60, 60, "subject_kind=node&device=0", 400),
        (0, 60, 60, "subject_kind=device&device=9", 404),
        (0, 60, 60, "subject_kind=link", 404),
    ],
)
def test_what_has_no_series_is_refused(
    client: Client, since: float, until: float, step: object, about: str, status: int | None
) -> None:
    assert series(client, since, until, step, about).get("status") == status


@pytest.mark.parametrize("measure", ["colour", "health_state", "peak_matrix_throughput"])
def test_only_single_numbers_have_series(client: Client, measure: str) -> None:
    path = f"/v1/series?subject=n&subject_kind=node&measure={measure}&from={at(0)}&to={at(60)}&step=60"
    status, refused, _ = client.ask("GET", path)
    assert (status, refused["errors"][0]["parameter"]) == (400, "measure")
