"""Series over HTTP: what was observed of a measure, step by step, before and after it is rolled up."""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from service import databases, postgres_server
from service.conftest import Service, StartService, instant, problem
from service.databases import DAY, Points, direct, maintain, opened, same

from kuayu.service import instants
from kuayu.service.settings import Settings

JsonObject = dict[str, Any]

HOUR = 3_600_000


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'kuayu.db'}"
    else:
        with postgres_server.running() as server:
            yield server.url


def series(service: Service, since: int, until: int, step: int, **query: str) -> JsonObject:
    about = {"subject": "node", "subject_kind": "node", "measure": "power"} | query
    span = {"from": instants.to_text(since), "to": instants.to_text(until), "step": str(step)}
    answer = service.client.get("/v1/series", params=about | span).raise_for_status().json()
    assert isinstance(answer, dict)
    return answer


def points(answer: JsonObject) -> Points:
    return [
        (instants.to_milliseconds(one["start"]), one["count"], one["mean"], one["minimum"], one["maximum"])
        for one in answer["points"]
    ]


def send(service: Service, values: dict[int, float], measure: str = "power", **about: str) -> None:
    subject = {"subject": "node", "subject_kind": "node"} | about
    samples = [subject | {"observed_at": instants.to_text(at), measure: value} for at, value in values.items()]
    for start in range(0, len(samples), 5000):
        part = samples[start : start + 5000]
        assert service.send(*part).json()["accepted"] == len(part)


def test_a_series_tells_the_same_before_and_after_it_is_rolled_up(start_service: StartService, url: str) -> None:
    chance = random.Random(3)
    begin = instants.now() // DAY * DAY - 5 * DAY
    moments = sorted(chance.sample(range(begin, begin + 5 * DAY), 4000))
    values = {moment: round(chance.gauss(400, 60), 3) for moment in moments}
    service = start_service("--retention", str(30 * 86_400), database=url)
    service.register()
    send(service, values)
    send(service, dict.fromkeys(moments[:9], 7.0), subject_kind="device", device="0")
    before = {step: series(service, begin, begin + 5 * DAY, step) for step in (300, 3600, 86_400)}
    for step, answer in before.items():
        assert same(points(answer), direct(values, step * 1000, begin, begin + 5 * DAY))
    service.stop()

    with opened(url) as database:
        maintain(database, Settings(retention=86_400.0))
        assert databases.rows(database) < 2000
    service.start()

    for step in (300, 3600, 86_400):
        answer = series(service, begin, begin + 5 * DAY, step)
        assert same(points(answer), direct(values, step * 1000, begin, begin + 5 * DAY))
    of_device = series(service, begin, begin + DAY, 86_400, subject_kind="device", device="0")
    assert sum(point["count"] for point in of_device["points"]) == 9
    held = service.samples()
    assert len(held) < 2000
    query = {"subject": "node", "subject_kind": "node", "measure": "power", "step": "60"}
    query |= {"from": instants.to_text(begin), "to": instants.to_text(begin + HOUR)}
    refused = service.client.get("/v1/series", params=query)
    assert refused.status_code == 410
    assert problem(refused) == "revision-expired"
    newest = begin + 5 * DAY - HOUR
    recent = points(series(service, newest, newest + HOUR, 60))
    assert same(recent, direct(values, 60_000, newest, newest + HOUR))


def test_a_service_that_rolls_nothing_up_forgets(start_service: StartService, url: str) -> None:
    begin = instants.now() // DAY * DAY - 5 * DAY
    values = {begin + HOUR * n: float(n) for n in range(5 * 24)}
    service = start_service("--retention", str(30 * 86_400), "--rollup-retention", "0", database=url)
    service.register()
    send(service, values)
    service.stop()
    with opened(url) as database:
        maintain(database, Settings(retention=2 * 86_400.0, rollup_retention=0.0))
    service.start()
    found = points(series(service, begin, begin + 5 * DAY, 86_400))
    assert 1 <= len(found) <= 2
    assert same(found, direct(values, DAY, found[0][0], begin + 5 * DAY))


def test_steps_begin_at_multiples_of_their_length_and_the_range_is_widened(shared: Service) -> None:
    shared.register(node="widened")
    begin = instants.now() // HOUR * HOUR - 3 * HOUR
    values = {begin - 1: 1.0, begin: 2.0, begin + HOUR - 1: 4.0, begin + HOUR: 8.0, begin + 2 * HOUR: 16.0}
    send(shared, values, subject="widened")
    answer = series(shared, begin + 17, begin + HOUR + 1, 3600, subject="widened")
    assert points(answer) == [(begin, 2, 3.0, 2.0, 4.0), (begin + HOUR, 1, 8.0, 8.0, 8.0)]
    assert points(series(shared, begin, begin + HOUR, 3600, subject="widened")) == [(begin, 2, 3.0, 2.0, 4.0)]
    assert series(shared, begin, begin, 3600, subject="widened")["points"] == []
    assert {name: answer[name] for name in answer if name not in {"points", "revision"}} == {
        "subject": "widened",
        "subject_kind": "node",
        "measure": "power",
        "unit": "W",
        "step": 3600,
    }


def test_links_domains_and_devices_have_series_of_their_own(shared: Service) -> None:
    shared.register(node="own", domain="own")
    shared.put("/v1/domains/peer", {"id": "peer"}).raise_for_status()
    shared.put("/v1/links/line", {"id": "line", "source": "own", "destination": "peer"}).raise_for_status()
    at = instants.now() - HOUR
    subjects = (
        ({"subject": "line", "subject_kind": "link"}, "round_trip_time"),
        ({"subject": "own", "subject_kind": "domain"}, "queue_pressure"),
        ({"subject": "own", "subject_kind": "device", "device": "0"}, "power"),
        ({"subject": "own", "subject_kind": "device", "device": "1"}, "power"),
    )
    for number, (about, measure) in enumerate(subjects):
        send(shared, {at: number / 8}, measure, **about)
    for number, (about, measure) in enumerate(subjects):
        answer = series(shared, at, at + 1, 60, measure=measure, **about)
        assert [point["mean"] for point in answer["points"]] == [number / 8]
        assert {name: answer[name] for name in about} == about


def test_values_at_the_ends_of_what_a_double_holds_have_a_mean(start_service: StartService, url: str) -> None:
    """Their sum lies outside of it, and the square of one."""
    service = start_service(database=url)
    service.register()
    largest, least = 1.7976931348623157e308, 5e-324
    at = instants.now() // HOUR * HOUR - HOUR
    send(service, {at: largest, at + 1: largest, at + 60_000: least, at + 120_000: largest, at + 120_001: 0.0})
    found = points(series(service, at, at + HOUR, 60))
    assert [point[2:] for point in found[:2]] == [(largest,) * 3, (least,) * 3]
    assert math.isclose(found[2][2], largest / 2, rel_tol=1e-12)


GOOD = {
    "subject": "asked",
    "subject_kind": "node",
    "measure": "power",
    "from": "2026-01-01T00:00:00Z",
    "to": "2026-01-02T00:00:00Z",
    "step": "3600",
}


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"measure": "colour"}, "measure"),
        ({"measure": "health_state"}, "measure"),
        ({"measure": "peak_matrix_throughput"}, "measure"),
        ({"step": "61"}, "step"),
        ({"step": "6_0"}, "step"),
        ({"step": "60.0"}, "step"),
        ({"to": "2025-12-31T23:59:59Z"}, "to"),
        ({"to": "2026-02-30T00:00:00Z"}, "to"),
        ({"from": "yesterday"}, "from"),
        ({"from": "1000-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z", "step": "86400"}, "step"),
        ({"device": "0"}, "device"),
        ({"subject_kind": "device"}, "device"),
        ({"subject_kind": "rack"}, "subject_kind"),
        ({"limit": "5"}, "limit"),
    ],
)
def test_what_has_no_series_is_refused_by_name(shared: Service, changed: dict[str, str], parameter: str) -> None:
    shared.register(node="asked")
    refused = shared.client.get("/v1/series", params=GOOD | changed)
    assert problem(refused) == "invalid-parameter"
    assert refused.json()["errors"][0]["parameter"] == parameter


@pytest.mark.parametrize("name", ["subject", "subject_kind", "measure", "from", "to", "step"])
def test_a_parameter_that_is_missing_is_named(shared: Service, name: str) -> None:
    refused = shared.client.get("/v1/series", params={key: value for key, value in GOOD.items() if key != name})
    assert problem(refused) == "invalid-parameter"
    assert refused.json()["errors"][0]["parameter"] == name


def test_ten_thousand_steps_are_given_and_one_more_is_not(shared: Service) -> None:
    shared.register(node="asked")
    begin = datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000
    until = instants.to_text(round(begin) + 10_000 * 60_000)
    assert shared.client.get("/v1/series", params=GOOD | {"step": "60", "to": until}).status_code == 200
    beyond = instants.to_text(round(begin) + 10_000 * 60_000 + 1)
    assert problem(shared.client.get("/v1/series", params=GOOD | {"step": "60", "to": beyond})) == "invalid-parameter"


def test_who_is_not_registered_has_no_series(shared: Service) -> None:
    shared.register(node="asked")
    for changed in ({"subject": "nobody"}, {"subject_kind": "device", "device": "9"}, {"subject_kind": "link"}):
        assert problem(shared.client.get("/v1/series", params=GOOD | changed)) == "not-found"


def test_a_late_sample_counts_and_a_repetition_does_not(shared: Service) -> None:
    shared.register(node="late")
    sample = {"subject": "late", "subject_kind": "node"}
    early, later = instant(-300), instant(-200)
    for at, value in ((later, 1.0), (early, 3.0), (later, 9.0)):
        shared.send(sample | {"observed_at": at, "power": value}).raise_for_status()
    now = instants.now()
    found = points(series(shared, now // DAY * DAY - DAY, now, 86_400, subject="late"))
    assert (sum(point[1] for point in found), max(point[4] for point in found)) == (2, 3.0)
