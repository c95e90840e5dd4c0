"""Allocations and actions over HTTP: as domains and schedulers meet them, also when the service is killed between."""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import httpx
import pytest
from service import postgres_server
from service.conftest import JsonObject, Service, StartService, instant, problem
from sqlalchemy import func, select, update

from kuayu.client import Client, NotFoundError, RefusedError
from kuayu.engine.controller import DomainController
from kuayu.service.allocation_store import ALLOCATION_RETENTION
from kuayu.service.storage.database import open_database
from kuayu.service.storage.tables import allocation, step
from kuayu.service.storage.writer import Transaction
from kuayu_schemas import schema
from kuayu_schemas.models import Allocation, AllocationPhase, AllocationRecord, Durability

GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}


def placement(*domains: str, devices: int = 8) -> JsonObject:
    shares = [{"domain": domain, "accelerator": "a800", "devices": devices} for domain in domains]
    return {"shares": shares, "split_mode": "none" if len(domains) == 1 else "synchronous"}


def wanted(name: str, *domains: str, **members: Any) -> JsonObject:
    return {
        "id": name,
        "job": f"job-of-{name}",
        "revision": {"epoch": "yesterday", "number": 3},
        "placement": placement(*domains),
        **members,
    }


def put(service: Service, body: JsonObject) -> JsonObject:
    answer: JsonObject = service.put(f"/v1/allocations/{body['id']}", body).raise_for_status().json()
    assert schema.errors("AllocationRecord", answer) == []
    return answer


def standing(service: Service, name: str) -> JsonObject:
    answer: JsonObject = service.client.get(f"/v1/allocations/{name}").raise_for_status().json()
    assert schema.errors("AllocationRecord", answer) == []
    return answer


def actions(service: Service, domain: str, wait: float = 0.0) -> list[JsonObject]:
    answer = service.client.get("/v1/actions", params={"domain": domain, "wait": wait}).raise_for_status().json()
    assert schema.errors("OpenActions", answer) == []
    found: list[JsonObject] = answer["items"]
    return found


def result_of(action: JsonObject, outcome: str | None = None, **members: Any) -> JsonObject:
    """A result that grants what is asked, unless an outcome is named."""
    said = outcome or GRANTED[action["phase"]]
    result = {"action": action["id"], "phase": action["phase"], "outcome": said, "at": instant(), **members}
    if said == "prepared":
        result["expires_at"] = instant(10)
    if said == "refused":
        trouble = {"type": "urn:kuayu:problem:no-capacity", "title": "no room", "status": 409, "retryable": True}
        result["problem"] = trouble
    return result


def say(service: Service, result: JsonObject) -> JsonObject:
    answer: JsonObject = service.client.post("/v1/action-results", json=result).raise_for_status().json()
    assert schema.errors("AllocationRecord", answer) == []
    return answer


def answer(service: Service, domain: str, outcome: str | None = None, **members: Any) -> JsonObject:
    """A domain answers what it has been asked first; how the allocation stands then."""
    return say(service, result_of(actions(service, domain, wait=10)[0], outcome, **members))


def test_devices_are_promised_everywhere_then_taken_then_given_back(shared: Service) -> None:
    body = wanted("story", "story-x", "story-y", patience=60)
    assert put(shared, body)["phase"] == "preparing"
    [asked] = actions(shared, "story-x")
    assert (asked["kind"], asked["phase"], asked["job"], asked["devices"]) == ("reserve", "prepare", "job-of-story", 8)
    assert asked["expires_after"] == 60
    assert asked["revision"] == body["revision"]
    assert asked["accelerator"] == "a800"
    assert asked.keys().isdisjoint({"parameters", "nodes", "reservation"})
    nodes = [{"node": "m", "devices": 7}, {"node": "n", "devices": 1}]
    assert answer(shared, "story-x", nodes=nodes)["phase"] == "preparing"
    assert actions(shared, "story-x") == []
    assert answer(shared, "story-y")["phase"] == "committing"
    assert actions(shared, "story-x")[0]["id"] == asked["id"]
    answer(shared, "story-x")
    record = answer(shared, "story-y")
    assert record["phase"] == "committed"
    assert record["held"]["shares"][0]["nodes"] == nodes
    assert "nodes" not in record["held"]["shares"][1]
    assert shared.client.delete("/v1/allocations/story").json()["phase"] == "releasing"
    [back] = actions(shared, "story-x")
    assert (back["kind"], back["phase"], back["nodes"]) == ("release", "commit", nodes)
    assert (back["reservation"], back["accelerator"], back["devices"]) == (asked["id"], "a800", 8)
    answer(shared, "story-x")
    assert answer(shared, "story-y")["phase"] == "released"
    assert "held" not in standing(shared, "story")


def test_the_same_again_changes_nothing_and_something_else_is_refused(shared: Service) -> None:
    body = wanted("same", "same-x")
    first = shared.put("/v1/allocations/same", body)
    again = shared.put("/v1/allocations/same", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    other = shared.put("/v1/allocations/same", {**body, "job": "another", "patience": 3})
    assert problem(other) == "invalid-body"
    assert {place["pointer"] for place in other.json()["errors"]} == {"/job", "/patience"}
    assert "immutable" in other.json()["detail"]
    assert len(actions(shared, "same-x")) == 1


def test_names_that_stand_twice_and_paths_that_name_another_are_pointed_to(shared: Service) -> None:
    twice = wanted("twice", "x", "x", alternatives=[placement("y"), placement("y", "z", "y")])
    twice["placement"]["shares"][0]["nodes"] = [{"node": "m", "devices": 4}] * 2
    twice["alternatives"][0]["shares"][0]["nodes"] = [{"node": "m", "devices": 7}]
    refused = shared.put("/v1/allocations/once", twice)
    assert problem(refused) == "invalid-body"
    assert {place["pointer"] for place in refused.json()["errors"]} == {
        "/id",
        "/placement/shares/1/domain",
        "/placement/shares/0/nodes/1/node",
        "/alternatives/0/shares/0/nodes",
        "/alternatives/1/shares/2/domain",
    }
    assert problem(shared.client.get("/v1/allocations/once")) == "not-found"
    assert problem(shared.client.delete("/v1/allocations/once")) == "not-found"


def test_a_refusal_leads_to_the_alternative(shared: Service) -> None:
    put(shared, wanted("plan-b", "b-x", "b-y", alternatives=[placement("b-z")]))
    answer(shared, "b-x")
    assert answer(shared, "b-y", "refused")["phase"] == "aborting"
    assert [each["phase"] for each in actions(shared, "b-x")] == ["abort"]
    answer(shared, "b-x")
    assert answer(shared, "b-y")["phase"] == "preparing"
    answer(shared, "b-z")
    record = answer(shared, "b-z")
    assert record["held"] == placement("b-z")
    assert "b-y answered prepare with refused (no room)" in record["reason"]


def test_silence_is_a_refusal_and_a_late_promise_is_aborted_again(shared: Service) -> None:
    put(shared, wanted("silent", "s-x", "s-y", patience=0.3))
    [promise] = actions(shared, "s-y")
    answer(shared, "s-x")
    assert [each["phase"] for each in actions(shared, "s-x", wait=10)] == ["abort"]
    answer(shared, "s-x")
    deadline = time.monotonic() + 10
    while standing(shared, "silent")["phase"] != "refused":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert answer(shared, "s-y")["phase"] == "refused"  # it lets go when it is back
    assert actions(shared, "s-y") == []
    assert say(shared, result_of(promise))["phase"] == "refused"
    assert [each["phase"] for each in actions(shared, "s-y")] == ["abort"]
    answer(shared, "s-y")
    assert actions(shared, "s-y") == []
    assert "s-y did not answer prepare within 0.3 s" in standing(shared, "silent")["reason"]


def test_results_are_taken_once_and_only_for_what_was_asked(shared: Service) -> None:
    put(shared, wanted("results", "r-x", "r-y"))
    [asked] = actions(shared, "r-x")
    first = say(shared, result_of(asked))
    assert say(shared, result_of(asked)) == first
    post = shared.client.post
    unknown = post("/v1/action-results", json=result_of({"id": "nobodys", "phase": "prepare"}))
    assert problem(unknown) == "unknown-reference"
    assert unknown.json()["errors"][0]["pointer"] == "/action"
    early = post("/v1/action-results", json=result_of(asked | {"phase": "commit"}))
    assert (problem(early), early.json()["errors"][0]["pointer"]) == ("unknown-reference", "/phase")
    misfit = post("/v1/action-results", json=result_of(asked, "committed"))
    assert (problem(misfit), misfit.json()["errors"][0]["pointer"]) == ("invalid-body", "/outcome")
    never = post("/v1/action-results", json=result_of(asked, "failed") | {"at": "2026-02-30T00:00:00Z"})
    assert (problem(never), never.json()["errors"][0]["pointer"]) == ("invalid-body", "/at")
    few = post("/v1/action-results", json=result_of(asked, nodes=[{"node": "m", "devices": 3}]))
    assert (problem(few), few.json()["errors"][0]["pointer"]) == ("invalid-body", "/nodes")
    twice = post("/v1/action-results", json=result_of(asked, nodes=[{"node": "m", "devices": 4}] * 2))
    assert (problem(twice), twice.json()["errors"][0]["pointer"]) == ("invalid-body", "/nodes/1/node")


def test_who_waits_hears_at_once_and_who_waits_in_vain_gets_nothing(shared: Service) -> None:
    began = time.monotonic()
    assert actions(shared, "w-x", wait=0.3) == []
    assert time.monotonic() - began >= 0.3
    with ThreadPoolExecutor(1) as domain:
        waiting = domain.submit(actions, shared, "w-x", 30)
        time.sleep(0.3)
        put(shared, wanted("waited", "w-x"))
        assert [each["job"] for each in waiting.result(timeout=5)] == ["job-of-waited"]


@pytest.mark.parametrize(
    "query",
    [{}, {"domain": "x", "wait": "31"}, {"domain": "x", "wait": "nan"}, {"domain": "/"}, {"domain": "x", "a": 1}],
)
def test_queries_for_actions_are_closed(shared: Service, query: dict[str, Any]) -> None:
    assert problem(shared.client.get("/v1/actions", params=query)) == "invalid-parameter"


def test_who_waits_is_answered_when_the_service_is_told_to_stop(start_service: StartService) -> None:
    service = start_service()
    with ThreadPoolExecutor(1) as domain:
        waiting = domain.submit(actions, service, "x", 30)
        time.sleep(0.5)
        began = time.monotonic()
        assert service.stop() == 0
        assert waiting.result(timeout=5) == []
    assert time.monotonic() - began < 10


def test_a_listing_is_pinned_while_allocations_go_on(start_service: StartService) -> None:
    service = start_service()
    for name in ("c", "a", "b", "d"):
        put(service, wanted(name, name))
    page = service.client.get("/v1/allocations", params={"limit": 2}).json()
    answer(service, "c", "failed")
    put(service, wanted("bb", "x"))
    rest = service.client.get("/v1/allocations", params={"limit": 100, "cursor": page["next_cursor"]}).json()
    assert [each["id"] for each in page["items"] + rest["items"]] == ["a", "b", "c", "d"]
    assert rest["items"][0]["phase"] == "preparing"
    assert rest["revision"] == page["revision"]
    assert all(schema.errors("AllocationPage", each) == [] for each in (page, rest))
    now = service.client.get("/v1/allocations").json()
    assert [each["phase"] for each in now["items"]] == ["preparing"] * 3 + ["aborting", "preparing"]
    bad = service.client.get("/v1/allocations", params={"cursor": page["next_cursor"][:-2] + "AA"})
    assert problem(bad) == "invalid-cursor"


def test_tenants_do_not_see_each_others_allocations_and_actions(start_service: StartService) -> None:
    service = start_service("--token", "blue=one", "--token", "red=two")
    with service.as_tenant("one") as blue, service.as_tenant("two") as red:
        blue.put("/v1/allocations/a", json=wanted("a", "x")).raise_for_status()
        [asked] = blue.get("/v1/actions", params={"domain": "x"}).json()["items"]
        assert red.get("/v1/actions", params={"domain": "x"}).json()["items"] == []
        assert problem(red.get("/v1/allocations/a")) == "not-found"
        assert problem(red.delete("/v1/allocations/a")) == "not-found"
        assert problem(red.post("/v1/action-results", json=result_of(asked))) == "unknown-reference"
        assert red.get("/v1/allocations").json()["items"] == []
        assert red.put("/v1/allocations/a", json=wanted("a", "y")).status_code == 201
    assert problem(service.client.get("/v1/actions", params={"domain": "x"})) == "unauthorised"


def killed(service: Service) -> None:
    service.stop(signal.SIGKILL)
    service.start()


def through_kills(service: Service) -> None:
    """An allocation goes on where it was, whatever it was at when the service was killed."""
    put(service, wanted("kills", "k-x", "k-y", patience=30, alternatives=[placement("k-x")]))
    [asked] = actions(service, "k-x")
    killed(service)  # nobody has answered
    assert actions(service, "k-x") == [asked]
    answer(service, "k-x")
    killed(service)  # one has promised
    assert standing(service, "kills")["phase"] == "preparing"
    assert answer(service, "k-y")["phase"] == "committing"
    killed(service)  # between the phases
    assert [each["phase"] for each in actions(service, "k-x") + actions(service, "k-y")] == ["commit", "commit"]
    answer(service, "k-x")
    killed(service)  # one holds its share
    assert answer(service, "k-y", "expired")["phase"] == "aborting"
    answer(service, "k-x")
    killed(service)  # one has let go
    assert answer(service, "k-y")["phase"] == "preparing"
    killed(service)
    answer(service, "k-x")
    assert answer(service, "k-x")["phase"] == "committed"
    killed(service)
    assert standing(service, "kills")["held"] == placement("k-x")
    service.client.delete("/v1/allocations/kills").raise_for_status()
    killed(service)
    assert answer(service, "k-x")["phase"] == "released"
    assert service.client.get("/v1/allocations").json()["revision"]["number"] == 11


@pytest.mark.slow
def test_kill_9_between_the_phases_loses_nothing(start_service: StartService) -> None:
    through_kills(start_service())


@pytest.mark.slow
@pytest.mark.postgres
def test_kill_9_between_the_phases_loses_nothing_on_postgresql(start_service: StartService) -> None:
    with postgres_server.running() as server:
        service = start_service(database=server.url)
        through_kills(service)
        service.stop()


def test_time_goes_on_after_a_restart(start_service: StartService) -> None:
    service = start_service()
    put(service, wanted("timed", "t-x", patience=0.5))
    killed(service)
    assert actions(service, "t-x", wait=10)[0]["phase"] in {"prepare", "abort"}
    deadline = time.monotonic() + 10
    while standing(service, "timed")["phase"] != "refused":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_holds_nothing_is_forgotten_in_the_end(start_service: StartService) -> None:
    service = start_service()
    for name in ("over", "unanswered", "held"):
        put(service, wanted(name, name))
    answer(service, "over", "failed")
    answer(service, "over")
    answer(service, "held")
    answer(service, "held")
    service.stop()
    database = open_database(service.database, Durability.process)
    with database.write.begin() as connection:
        given_up = update(allocation).where(allocation.c.id == "unanswered", allocation.c.valid_to.is_(None))
        connection.execute(given_up.values(phase="refused", deadline=None))
        transaction = Transaction(connection, 0)
        assert not ALLOCATION_RETENTION.forget(1 << 60, 0).apply(transaction).result
        transaction.finish()
        assert set(connection.execute(select(allocation.c.id)).scalars()) == {"unanswered", "held"}
        assert connection.execute(select(func.count()).select_from(step)).scalar() == 3
    database.close()
    service.start()
    assert problem(service.client.get("/v1/allocations/over")) == "not-found"
    assert put(service, wanted("over", "over"))["phase"] == "preparing"


class Domains:
    """Controllers of domains, each in a thread of its own."""

    def __init__(self, url: str, devices: dict[str, int]) -> None:
        self.stopped = threading.Event()
        self.clients = [Client(url) for _ in devices]
        self.controllers = {
            domain: DomainController(
                client, domain, {"a800": {f"{domain}-{n}": 8 for n in range(count // 8)}}, wait_s=0.5
            )
            for client, (domain, count) in zip(self.clients, devices.items(), strict=True)
        }
        self.threads = [
            threading.Thread(target=controller.run, args=(self.stopped,)) for controller in self.controllers.values()
        ]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        for client in self.clients:
            client.close()


def settled(client: Client, name: str, *phases: AllocationPhase) -> AllocationRecord:
    deadline = time.monotonic() + 20
    while (record := client.allocation(name)).phase not in phases:
        assert time.monotonic() < deadline, record
        time.sleep(0.02)
    return record


@pytest.fixture
def domains(shared: Service) -> Iterator[Domains]:
    with Domains(shared.url, {"c-x": 32, "c-y": 16, "c-z": 16}) as running:
        yield running


def test_controllers_of_domains_hold_what_is_wanted_or_nothing(shared: Service, domains: Domains) -> None:
    over = (AllocationPhase.committed, AllocationPhase.refused)
    with Client(shared.url) as client:
        asked = [
            Allocation.model_validate(wanted(f"many-{number}", "c-x", "c-y", alternatives=[placement("c-x", "c-z")]))
            for number in range(6)
        ]
        with ThreadPoolExecutor(6) as schedulers:
            list(schedulers.map(client.put_allocation, asked))
        records = [settled(client, each.id, *over) for each in asked]
        held = [record for record in records if record.phase is AllocationPhase.committed]
        assert 2 <= len(held) <= 4  # room in the first domain is for four, and rivals may get in each other's way
        for record in held:
            assert record.held is not None
            for share in record.held.shares:
                assert sum(each.devices for each in share.nodes or ()) == share.devices
        for record in held:
            client.delete_allocation(record.id)
        for record in held:
            settled(client, record.id, AllocationPhase.released)
        assert {each.id for each in client.allocations(page_size=3)} >= {each.id for each in asked}
        with pytest.raises(NotFoundError):
            client.allocation("nobodys")
        with pytest.raises(RefusedError, match="immutable"):
            client.put_allocation(asked[0].model_copy(update={"job": "another"}))
    for controller in domains.controllers.values():
        deadline = time.monotonic() + 10
        while controller.holdings.current:
            assert time.monotonic() < deadline, controller.holdings.current
            time.sleep(0.02)


def test_the_metrics_tell_of_allocations(shared: Service) -> None:
    put(shared, wanted("measured", "me-x"))
    answer(shared, "me-x")
    answer(shared, "me-x")
    page = httpx.get(f"{shared.url}/metrics").text
    assert 'kuayu_allocations_total{phase="committed"}' in page
    assert 'kuayu_action_results_total{outcome="prepared",phase="prepare"}' in page
    assert "kuayu_allocation_seconds_count" in page
    assert "kuayu_action_readers 0.0" in page
