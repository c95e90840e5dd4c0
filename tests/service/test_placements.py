"""Placements, Pareto fronts, allocation plans and routes over HTTP: pure, and closed to wrong names."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

import httpx
import pytest
from service.conftest import JsonObject, Service, StartService, problem

from kuayu.client import Client, RefusedError
from kuayu.service import scheduling
from kuayu_conformance.checks.scheduling.placement_requests import Scale, StateBuilder, Stream
from kuayu_schemas import schema
from kuayu_schemas.models import (
    AllocationPlanRequest,
    ParetoRequest,
    PlacementRequest,
    PlacementVerb,
    RouteRequest,
)

REVISION = {"epoch": "state-of-yesterday", "number": 17}
NOW = "2026-01-05T00:00:00Z"
PLACEMENTS, FRONTS, PLANS, ROUTES = "/v1/placements", "/v1/pareto-fronts", "/v1/allocation-plans", "/v1/routes"
ANSWERS = {PLACEMENTS: "PlacementReport", FRONTS: "ParetoFront", PLANS: "AllocationPlan", ROUTES: "RoutePlan"}

Change = Callable[[JsonObject], object]


def job(name: str, home: str = "east") -> JsonObject:
    return {
        "id": name,
        "submitted_at": "2026-01-04T23:00:00Z",
        "home_domain": home,
        "devices": {"minimum": 8, "maximum": 8},
        "task_profile": "training",
        "duration": {"expected": 3600.0, "low": 1800.0, "high": 7200.0, "coverage": 0.8},
        "split_modes": ["none"],
        "data": [{"id": f"data-of-{name}", "size": 1e9, "domains": [home]}],
    }


def links() -> list[JsonObject]:
    figures = {"bandwidth": 1e10, "available": 1e10, "round_trip_time": 0.02, "tariff": 1e-12}
    return [{"source": one, "target": other, **figures} for one, other in (("east", "west"), ("west", "east"))]


def state() -> JsonObject:
    return {
        "revision": REVISION,
        "now": NOW,
        "accelerators": [{"id": "a800", "memory": 8e10, "indices": [{"profile": "training", "value": 1.0}]}],
        "domains": [
            {"id": name, "pools": [{"accelerator": "a800", "devices": 16, "free": free, "devices_per_node": 8}]}
            for name, free in (("east", 8), ("west", 16))
        ],
        "links": links(),
        "waiting": [{"spec": job("first")}, {"spec": job("second")}],
        "running": [
            {
                "spec": job("third"),
                "placement": {
                    "shares": [{"domain": "east", "accelerator": "a800", "devices": 8}],
                    "split_mode": "none",
                },
                "phase": "running",
                "done": 10.0,
                "rate": 8.0,
            }
        ],
    }


def demand(name: str) -> JsonObject:
    return {"id": name, "sources": ["east"], "targets": ["west"], "size": 1e9}


REQUESTS: dict[str, Callable[[], JsonObject]] = {
    PLACEMENTS: lambda: {"state": state(), "explain": True},
    FRONTS: lambda: {"state": {**state(), "running": []}, "slot": 600.0},
    PLANS: lambda: {"state": state(), "horizon": 86_400.0},
    ROUTES: lambda: {"revision": REVISION, "links": links(), "demands": [demand("d-1")]},
}


@pytest.mark.parametrize("path", REQUESTS)
def test_a_decision_keeps_to_the_schema_echoes_the_revision_and_is_given_again(shared: Service, path: str) -> None:
    first, again = (shared.client.post(path, json=REQUESTS[path]()).raise_for_status() for _ in range(2))
    assert schema.errors(ANSWERS[path], first.json()) == []
    assert first.json()["revision"] == REVISION
    assert first.content == again.content
    assert first.headers["content-type"] == "application/json"


def test_jobs_are_given_devices_and_told_why(shared: Service) -> None:
    report = shared.client.post(PLACEMENTS, json=REQUESTS[PLACEMENTS]()).json()
    decisions = {each["job"]: each for each in report["decisions"]}
    assert {name: decisions[name]["verb"] for name in ("first", "second")} == {"first": "start", "second": "start"}
    assert all(decisions[name]["explanation"]["reason"] for name in ("first", "second"))


def test_the_client_asks_for_all_four(shared: Service) -> None:
    with Client(shared.url) as client:
        placed = client.place(PlacementRequest.model_validate_json(_text(PLACEMENTS)))
        assert [each.verb for each in placed.decisions].count(PlacementVerb.start) == 2
        assert client.pareto_front(ParetoRequest.model_validate_json(_text(FRONTS))).solutions
        assert client.allocation_plan(AllocationPlanRequest.model_validate_json(_text(PLANS))).uses
        routed = client.routes(RouteRequest.model_validate_json(_text(ROUTES)))
        assert [each.path for each in routed.routes] == [["east", "west"]]
        unknown = RouteRequest.model_validate_json(
            _text(ROUTES, lambda asked: asked["demands"][0].update(targets=["x"]))
        )
        with pytest.raises(RefusedError) as refused:
            client.routes(unknown)
        assert refused.value.name == "unknown-reference"


def _text(path: str, change: Change = lambda _: None) -> bytes:
    asked = REQUESTS[path]()
    change(asked)
    return httpx.Request("POST", "http://localhost", json=asked).content


def pointers(refused: httpx.Response) -> set[str]:
    body = refused.json()
    assert schema.errors("Problem", body) == []
    assert all(place["detail"] for place in body["errors"])
    return {place["pointer"] for place in body["errors"]}


@pytest.mark.parametrize(
    ("path", "change", "place"),
    [
        (
            PLACEMENTS,
            lambda asked: asked["state"]["running"][0]["placement"]["shares"][0].update(domain="nowhere"),
            "/state/running/0/placement/shares/0/domain",
        ),
        (
            PLACEMENTS,
            lambda asked: asked["state"]["domains"][1]["pools"][0].update(accelerator="nothing"),
            "/state/domains/1/pools/0/accelerator",
        ),
        (PLACEMENTS, lambda asked: asked.update(shares=[{"domain": "nowhere", "share": 1}]), "/shares/0/domain"),
        (
            PLANS,
            lambda asked: asked.update(
                forecast=[
                    {
                        "domain": "nowhere",
                        "profile": "training",
                        "expected": 1,
                        "high": 2,
                        "movable": 0,
                        "interruptible": 0,
                    }
                ]
            ),
            "/forecast/0/domain",
        ),
        (ROUTES, lambda asked: asked["demands"][0].update(sources=["east", "nowhere"]), "/demands/0/sources/1"),
    ],
)
def test_every_name_that_the_request_does_not_hold_is_pointed_to(
    shared: Service, path: str, change: Change, place: str
) -> None:
    refused = shared.client.post(path, content=_text(path, change), headers={"Content-Type": "application/json"})
    assert problem(refused) == "unknown-reference"
    assert pointers(refused) == {place}


@pytest.mark.parametrize(
    ("path", "change", "place"),
    [
        (PLACEMENTS, lambda asked: asked["state"]["waiting"].append({"spec": job("first")}), "/state/waiting/2"),
        (FRONTS, lambda asked: asked["state"]["domains"].append(asked["state"]["domains"][0]), "/state/domains/2"),
        (PLANS, lambda asked: asked["state"]["accelerators"].append(asked["state"]["accelerators"][0]), "/state/acc"),
        (ROUTES, lambda asked: asked["demands"].append(demand("d-1")), "/demands/1"),
    ],
)
def test_a_name_that_stands_twice_is_pointed_to(shared: Service, path: str, change: Change, place: str) -> None:
    refused = shared.client.post(path, content=_text(path, change), headers={"Content-Type": "application/json"})
    assert problem(refused) == "invalid-body"
    assert all(pointer.startswith(place) for pointer in pointers(refused))


@pytest.mark.parametrize("path", REQUESTS)
def test_bodies_are_read_as_strictly_as_elsewhere(shared: Service, path: str) -> None:
    post = partial(shared.client.post, path)
    request = REQUESTS[path]()
    broken = post(json=request | {"since": 1})
    assert problem(broken) == "invalid-body"
    assert pointers(broken) == {"/since"}
    json_type = {"Content-Type": "application/json"}
    assert problem(post(content=b'{"state": 1, "state": 1}', headers=json_type)) == "malformed-json"
    assert problem(post(content=b"{}", headers={"Content-Type": "text/plain"})) == "unsupported-media-type"
    assert problem(post(content=b" " * (16 * 1024 * 1024 + 1), headers=json_type)) == "payload-too-large"
    assert problem(post(json=request, params={"fast": "1"})) == "invalid-parameter"
    assert shared.client.get(path).headers["Allow"] == "POST"


def test_an_instant_that_no_calendar_has_is_pointed_to(shared: Service) -> None:
    request = deepcopy(REQUESTS[PLACEMENTS]())
    request["state"]["waiting"][1]["spec"]["submitted_at"] = "2026-02-30T00:00:00Z"
    request["state"]["running"][0]["ready_at"] = "2026-11-31T00:00:00Z"
    refused = shared.client.post(PLACEMENTS, json=request)
    assert problem(refused) == "invalid-body"
    assert pointers(refused) == {"/state/waiting/1/spec/submitted_at", "/state/running/0/ready_at"}


def test_what_would_take_for_ever_is_not_begun(shared: Service) -> None:
    request = REQUESTS[FRONTS]()
    request["state"]["waiting"] = [{"spec": job(f"job-{number}")} for number in range(scheduling.MOST_SCHEDULED + 1)]
    refused = shared.client.post(FRONTS, json=request)
    assert problem(refused) == "invalid-body"
    assert "name fewer jobs" in refused.json()["detail"]


@pytest.mark.parametrize("path", [PLACEMENTS, FRONTS, PLANS])
def test_pools_and_jobs_of_more_devices_than_there_are_anywhere_are_refused(path: str, shared: Service) -> None:
    request = REQUESTS[path]()
    request["state"]["domains"][0]["pools"][0]["devices"] = 10**15
    refused = shared.client.post(path, json=request)
    assert problem(refused) == "invalid-body"
    assert "name fewer devices" in refused.json()["detail"]
    request = REQUESTS[PLACEMENTS]()
    request["state"]["running"][0]["placement"]["shares"][0]["devices"] = 10**15
    refused = shared.client.post(PLACEMENTS, json=request)
    assert "name fewer devices" in refused.json()["detail"]


def test_the_metrics_tell_of_decisions(shared: Service) -> None:
    shared.client.post(PLACEMENTS, json=REQUESTS[PLACEMENTS]()).raise_for_status()
    page = shared.client.get("/metrics").text
    assert 'kuayu_placements_total{verb="start"}' in page
    assert 'kuayu_decision_seconds_count{operation="placeJobs"}' in page
    assert "kuayu_placement_fallbacks_total 0.0" in page


def test_nobody_who_wants_a_placement_waits_for_fronts(start_service: StartService) -> None:
    """Six fronts of twenty jobs are looked for one after the other, each for half a second or more."""
    service = start_service()
    state = json.loads(
        next(iter(Stream(StateBuilder(Random(1)), Scale(domains=5, nodes=132, running=20, waiting=20))))
    )["state"]
    front = {"state": state, "slot": 600.0}
    with ThreadPoolExecutor(6) as pool:
        fronts = [pool.submit(service.client.post, FRONTS, json=front, timeout=120.0) for _ in range(6)]
        while "kuayu_decisions_waiting 0.0" in service.client.get("/metrics").text:
            assert not any(front.done() for front in fronts), "they were not waited for"
        assert service.client.post(PLACEMENTS, json={"state": state}).status_code == 200
        assert sum(front.done() for front in fronts) < 4, "who waits in turn is answered after the fifth"
        assert {front.result().status_code for front in fronts} == {200}


def test_tenants_show_their_tokens(start_service: StartService) -> None:
    service = start_service("--token", "blue=one")
    body: dict[str, Any] = REQUESTS[ROUTES]()
    assert problem(service.client.post(ROUTES, json=body)) == "unauthorised"
    with service.as_tenant("one") as blue:
        assert blue.post(ROUTES, json=body).status_code == 200


def test_an_operator_may_have_ppo_set_the_constants_of_the_rule(start_service: StartService) -> None:
    service = start_service("--scheduler", "ppo")
    told = service.client.post(PLACEMENTS, json={"state": state()}).json()
    assert told["method"]["name"].endswith("constants set by PPO")
    assert {each["job"] for each in told["decisions"]} == {each["spec"]["id"] for each in state()["waiting"]}
