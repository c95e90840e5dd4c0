"""Jobs over HTTP: as their owners, a scheduler and the domains meet them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from service.conftest import JsonObject, problem
from service.jobs.playing import (
    REVISION,
    Inside,
    actions,
    answer,
    follow,
    job,
    kinds,
    lines,
    placement,
    read_log,
    report,
    request,
    reserve,
    run,
    running,
    say,
    send,
    submit,
)

from kuayu.service.job_store import JOB_RETENTION
from kuayu.service.storage.resources import Quota
from kuayu_schemas import schema


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """One service for all tests of this module, which keep out of each other's way by names."""
    with running(tmp_path_factory.mktemp("jobs"), run_log=4_000) as found:
        yield found


def pointers(service: Inside, **members: Any) -> set[str]:
    """What is pointed to in a submission that is refused."""
    refused = service.client.put("/v1/jobs/wrong", json=request("wrong") | members)
    assert problem(refused) == "invalid-body"
    return {place["pointer"] for place in refused.json()["errors"]}


def test_a_job_goes_from_its_submission_through_reservation_and_run_to_its_end(service: Inside) -> None:
    first = submit(service, "story", checkpoint="file:///ckpt/story", grace=3)
    assert (first["state"], first["attempt"], first["device_hours"]) == ("queued", 0, 0)
    placed = service.place("story", "st-x", "st-y")
    assert (placed["state"], placed["attempt"]) == ("starting", 1)
    allocation = service.client.get(f"/v1/allocations/{placed['allocation']}").json()
    assert (allocation["job"], allocation["lease"], allocation["phase"]) == ("story", 30, "preparing")
    [prepare] = actions(service, "st-x")
    reserve(service, "st-x", "st-y")
    [start] = actions(service, "st-x")
    assert (start["kind"], start["phase"], start["reservation"]) == ("start", "commit", prepare["id"])
    assert start["nodes"] == [{"node": "st-x-0", "devices": 2}]
    order = start["run"]
    assert [share["domain"] for share in order["shares"]] == ["st-x", "st-y"]
    assert order["shares"][1]["nodes"] == [{"node": "st-y-0", "devices": 2}]
    assert (order["attempt"], order["step"], order["grace"]) == (1, 0, 3)
    assert (order["split_mode"], order["checkpoint"]) == ("synchronous", "file:///ckpt/story")
    assert order["workload"] == first["workload"]
    assert report(service, "story", 1, "st-y", "running")["state"] == "starting"  # before the start is answered
    assert say(service, start)["state"] == "starting"
    answer(service, "st-y", "start")
    record = report(service, "story", 1, "st-x", "running", step=10, checkpoint_step=5)
    assert (record["state"], record["step"], record["checkpoint_step"]) == ("running", 10, 5)
    assert record["placement"]["shares"] == order["shares"]
    report(service, "story", 1, "st-x", "succeeded", exit_code=0)
    record = report(service, "story", 1, "st-y", "succeeded", exit_code=0)
    assert record["state"] == "running"  # its devices are still held
    assert "are being given back" in record["reason"]
    answer(service, "st-x", "release")
    assert job(service, "story")["state"] == "running"
    answer(service, "st-y", "release")
    record = job(service, "story")
    assert record["state"] == "succeeded"
    assert record.keys().isdisjoint({"allocation", "placement", "cancelling"})
    assert record["device_hours"] > 0
    assert [change["state"] for change in record["transitions"]] == ["queued", "starting", "running", "succeeded"]
    assert all(change["reason"] for change in record["transitions"])
    seen = follow(service, "{epoch}:{number}".format(**first["revision"]), "story", "succeeded")
    assert next(each["state"] for each in seen if each["state"] != "starting") == "running"
    assert seen[-1] == record
    assert kinds(service, "st-x") == kinds(service, "st-y") == []


def test_a_submission_may_be_repeated_and_another_of_its_name_is_refused(service: Inside) -> None:
    submit(service, "same", priority=3)
    again = service.client.put("/v1/jobs/same", json=request("same", priority=3))
    assert (again.status_code, again.json()) == (200, job(service, "same"))
    other = service.client.put("/v1/jobs/same", json=request("same", priority=4, retries=1))
    assert problem(other) == "invalid-body"
    assert {place["pointer"] for place in other.json()["errors"]} == {"/priority", "/retries"}
    elsewhere = service.client.put("/v1/jobs/there", json=request("same"))
    assert elsewhere.json()["errors"][0]["pointer"] == "/id"
    listed = service.client.get("/v1/jobs", params={"limit": 1_000}).json()
    assert schema.errors("JobPage", listed) == []
    assert [each["id"] for each in listed["items"]].count("same") == 1


def test_what_contradicts_itself_is_pointed_to(service: Inside) -> None:
    devices = {"minimum": 4, "maximum": 2}
    assert pointers(service, devices=devices) == {"/devices/minimum"}
    assert pointers(service, devices={"minimum": 2, "maximum": 8, "requested": 9}) == {"/devices/requested"}
    assert pointers(service, devices={"minimum": 2, "maximum": 8, "requested": 5, "step": 2}) == {"/devices/requested"}
    assert pointers(service, devices={"minimum": 0, "maximum": 0}) == {"/devices/maximum"}
    assert pointers(service, devices={"minimum": 0, "maximum": 8, "requested": 0}) == {"/devices/requested"}
    duration = {"expected": 60.0, "low": 70.0, "high": 80.0, "coverage": 0.8}
    assert pointers(service, duration=duration) == {"/duration/expected"}
    assert pointers(service, devices={"minimum": 1, "maximum": 8, "step": 0}) == {"/devices/step"}
    assert pointers(service, nodes={"devices_per_node": 8}) == {"/nodes/devices_per_node"}
    twice = {"name": "A", "value": "1"}
    workload = {"command": ["true"], "environment": [twice, twice]}
    assert pointers(service, workload=workload) == {"/workload/environment/1/name"}
    assert pointers(service, domains=["x", "y", "x"], device_kinds=["gpu", "gpu"]) == {"/domains/2", "/device_kinds/1"}
    assert pointers(service, split_modes=["none", "synchronous"]) == {"/split_modes/1"}
    assert pointers(service, deadline="2026-02-30T00:00:00Z") == {"/deadline"}
    artefact = {"id": "corpus", "size": 1, "domains": ["x"], "pinned": True}
    assert pointers(service, data=[artefact, artefact], domains=["y"]) == {
        "/data/0/domains",
        "/data/1/id",
        "/data/1/domains",
    }
    named = service.client.put("/v1/jobs/events", json=request("events"))
    assert (problem(named), named.json()["errors"][0]["pointer"]) == ("invalid-body", "/id")
    assert problem(service.client.get("/v1/jobs/wrong")) == "not-found"
    for path in ("/v1/jobs/wrong/decision", "/v1/jobs/wrong/logs"):
        assert problem(service.client.get(path)) == "not-found"
    assert problem(service.client.delete("/v1/jobs/wrong")) == "not-found"


def test_a_failure_stops_the_others_and_the_job_goes_on_elsewhere_from_its_checkpoint(service: Inside) -> None:
    submit(service, "retry", retries=1)
    service.place("retry", "re-x", "re-y")
    run(service, "retry", 1, "re-x", "re-y")
    report(service, "retry", 1, "re-y", "running", step=70, checkpoint_step=60)
    record = report(service, "retry", 1, "re-x", "failed", exit_code=-9, reason="killed")
    assert (record["state"], record["reason"]) == ("restarting", "its run in re-x failed with exit code -9 (killed)")
    assert kinds(service, "re-x") == []  # it has said that nothing runs any more
    [stop] = actions(service, "re-y")
    assert (stop["kind"], stop["attempt"], stop["job"]) == ("stop", 1, "retry")
    assert say(service, stop, "failed")["state"] == "restarting"
    assert actions(service, "re-y") == [stop]  # what could not be stopped may be alive
    assert say(service, stop)["state"] == "restarting"
    answer(service, "re-x", "release")
    answer(service, "re-y", "release")
    record = job(service, "retry")
    assert (record["state"], record["failures"], record["checkpoint_step"]) == ("queued", 1, 60)
    assert report(service, "retry", 1, "re-y", "running", step=99) == record  # of an attempt that is over
    service.place("retry", "re-z")
    reserve(service, "re-z")
    [start] = actions(service, "re-z")
    assert (start["run"]["attempt"], start["run"]["step"]) == (2, 60)
    assert say(service, start, "failed")["state"] == "restarting"
    answer(service, "re-z", "release")
    record = job(service, "retry")
    assert (record["state"], record["failures"], record["attempt"]) == ("failed", 2, 2)
    assert record["ended_at"] == record["transitions"][-1]["at"]
    assert service.client.delete("/v1/jobs/retry").json() == record


def test_a_job_that_is_called_off_is_stopped_everywhere_before_it_is_cancelled(service: Inside) -> None:
    submit(service, "off")
    service.place("off", "of-x", "of-y")
    reserve(service, "of-x", "of-y")
    answer(service, "of-x", "start")
    record = service.client.delete("/v1/jobs/off").json()
    assert (record["state"], record["cancelling"]) == ("starting", True)
    assert kinds(service, "of-x") == kinds(service, "of-y") == [("stop", "commit")]  # y's start is overtaken
    answer(service, "of-x", "stop")
    assert kinds(service, "of-x") == []
    answer(service, "of-y", "stop")
    assert kinds(service, "of-x") == [("release", "commit")]
    answer(service, "of-x", "release")
    assert job(service, "off")["state"] == "starting"
    answer(service, "of-y", "release")
    assert job(service, "off")["state"] == "cancelled"
    submit(service, "off-early")
    assert service.client.delete("/v1/jobs/off-early").json()["state"] == "cancelled"
    assert service.place("off-early", "of-x")["state"] == "cancelled"  # nobody starts it any more


def test_one_that_is_called_off_while_devices_are_reserved_starts_nowhere(service: Inside) -> None:
    submit(service, "mid")
    service.place("mid", "mi-x", "mi-y")
    answer(service, "mi-x", "reserve")
    assert service.client.delete("/v1/jobs/mid").json()["cancelling"] is True
    for domain in ("mi-x", "mi-y"):
        assert kinds(service, domain) == [("reserve", "abort")]
        answer(service, domain, "reserve")
    record = job(service, "mid")
    assert (record["state"], record["attempt"]) == ("cancelled", 0)


def test_domains_that_refuse_leave_the_job_waiting_and_an_alternative_is_taken_before(service: Inside) -> None:
    submit(service, "refused")
    service.place("refused", "rf-x", alternatives=[placement("rf-y")])
    answer(service, "rf-x", "reserve", "refused")
    answer(service, "rf-x", "reserve")
    assert job(service, "refused")["state"] == "starting"
    answer(service, "rf-y", "reserve", "refused")
    answer(service, "rf-y", "reserve")
    record = job(service, "refused")
    assert (record["state"], record["attempt"]) == ("queued", 0)
    assert "rf-y answered prepare with refused (no room)" in record["reason"]
    service.place("refused", "rf-x", alternatives=[placement("rf-y")])
    answer(service, "rf-x", "reserve", "refused")
    answer(service, "rf-x", "reserve")
    reserve(service, "rf-y")
    [start] = actions(service, "rf-y")
    assert [share["domain"] for share in start["run"]["shares"]] == ["rf-y"]


def test_a_loss_has_the_job_wait_again_and_counts_for_nothing(service: Inside) -> None:
    submit(service, "loss", retries=0)
    service.place("loss", "lo-x", "lo-y")
    run(service, "loss", 1, "lo-x", "lo-y")
    service.call(service.jobs.lose("default", "loss", 7, "another attempt's node is dead"))
    assert job(service, "loss")["state"] == "running"
    service.call(service.jobs.lose("default", "loss", 1, "node lo-x-0 is dead"))
    assert job(service, "loss")["state"] == "restarting"
    for domain in ("lo-x", "lo-y"):
        answer(service, domain, "stop")
    for domain in ("lo-x", "lo-y"):
        answer(service, domain, "release")
    record = job(service, "loss")
    assert (record["state"], record["failures"]) == ("queued", 0)
    assert record["reason"].startswith("node lo-x-0 is dead")


def test_devices_that_somebody_else_gives_back_take_the_attempt_with_them(service: Inside) -> None:
    submit(service, "taken")
    record = service.place("taken", "ta-x")
    run(service, "taken", 1, "ta-x")
    service.client.delete(f"/v1/allocations/{record['allocation']}").raise_for_status()
    record = job(service, "taken")
    assert (record["state"], record["reason"]) == ("restarting", "its devices were let go (it was withdrawn)")
    assert sorted(kinds(service, "ta-x")) == [("release", "commit"), ("stop", "commit")]
    answer(service, "ta-x", "release")  # it ends what runs on devices that it gives back
    assert job(service, "taken")["state"] == "queued"
    stop = actions(service, "ta-x")[0]
    assert say(service, stop)["state"] == "queued"
    assert kinds(service, "ta-x") == []


def test_the_log_of_a_job_holds_each_line_once_and_can_be_followed(service: Inside) -> None:
    submit(service, "log")
    empty = read_log(service, "log", wait=0.1)
    assert (empty["items"], empty["ended"]) == ([], False)
    service.place("log", "lg-x", "lg-y")
    run(service, "log", 1, "lg-x", "lg-y")
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(read_log, service, "log", after=empty["next_cursor"], wait=30)
        assert send(service, "log", "lg-x", 1, 3) == 3
        assert [line["number"] for line in waiting.result(timeout=30)["items"]] == [1, 2, 3]
    assert send(service, "log", "lg-y", 1, 1, text="other {}") == 1
    assert send(service, "log", "lg-x", 2, 4) == 4  # repeated in part
    assert send(service, "log", "lg-x", 6, 6) == 4  # a gap: nothing is kept
    assert send(service, "log", "lg-x", 5, 6) == 6
    found: list[tuple[str, int, str]] = []
    page = read_log(service, "log", limit=2)
    while page["items"]:
        found += [(line["domain"], line["number"], line["text"]) for line in page["items"]]
        page = read_log(service, "log", limit=2, after=page["next_cursor"])
    assert found == [
        *(("lg-x", n, f"step {n}") for n in (1, 2, 3)),
        ("lg-y", 1, "other 1"),
        *(("lg-x", n, f"step {n}") for n in (4, 5, 6)),
    ]
    for domain in ("lg-x", "lg-y"):
        report(service, "log", 1, domain, "succeeded")
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(read_log, service, "log", after=page["next_cursor"], wait=30)
        for domain in ("lg-x", "lg-y"):
            answer(service, domain, "release")
        assert waiting.result(timeout=30) == {**page, "ended": True}
    assert read_log(service, "log", limit=3)["ended"] is False  # there are more lines
    assert problem(service.client.get("/v1/jobs/log/logs", params={"after": "nonsense"})) == "invalid-cursor"
    assert problem(service.client.get("/v1/jobs/log/logs", params={"limit": 1_001})) == "invalid-parameter"
    assert problem(service.client.get("/v1/jobs/log/logs", params={"wait": 31})) == "invalid-parameter"


def test_a_run_that_prints_too_much_keeps_its_newest_lines_and_says_so(service: Inside) -> None:
    submit(service, "loud")
    service.place("loud", "lu-x")
    run(service, "loud", 1, "lu-x")
    for first in range(1, 101, 10):
        assert send(service, "loud", "lu-x", first, first + 9) == first + 9
    found = read_log(service, "loud")["items"]
    numbers = [line["number"] for line in found]
    assert numbers == list(range(numbers[0], 101))
    assert 10 < len(found) < 60
    assert found[0]["text"] == (
        f"[lines 1 to {numbers[0]} are not kept: of the log of a run at most 4000 characters are]"
    )
    assert [line["text"] for line in found[1:]] == [f"step {n}" for n in numbers[1:]]
    assert send(service, "loud", "lu-x", 1, 10) == 100  # what is not kept any more was acknowledged all the same


def test_reports_and_lines_of_what_was_never_asked_for_are_refused(service: Inside) -> None:
    submit(service, "never")
    service.place("never", "ne-x")
    run(service, "never", 1, "ne-x")
    body = {"job": "never", "attempt": 1, "domain": "ne-x", "state": "running", "at": "2026-01-01T00:00:00Z"}
    batch = batch_of("never", "ne-x")
    for path, good in (("/v1/run-reports", body), ("/v1/run-logs", batch)):
        for member, value in (("job", "nobodys"), ("attempt", 2), ("domain", "ne-y")):
            refused = service.client.post(path, json=good | {member: value})
            assert problem(refused) == "unknown-reference"
            pointer = refused.json()["errors"][0]["pointer"]
            assert pointer == ("/job" if member == "job" else "/domain")
    torn = service.client.post("/v1/run-logs", json=batch | {"lines": [*lines(1, 1), *lines(3, 3)]})
    assert (problem(torn), torn.json()["errors"][0]["pointer"]) == ("invalid-body", "/lines/1/number")
    no_day = service.client.post("/v1/run-reports", json=body | {"at": "2026-02-30T00:00:00Z"})
    assert (problem(no_day), no_day.json()["errors"][0]["pointer"]) == ("invalid-body", "/at")


def test_answers_that_cannot_be_those_of_the_order_are_refused(service: Inside) -> None:
    submit(service, "misfit")
    service.place("misfit", "mf-x")
    reserve(service, "mf-x")
    [start] = actions(service, "mf-x")
    result = {"action": start["id"], "phase": "commit", "outcome": "aborted", "at": "2026-01-01T00:00:00Z"}
    refused = service.client.post("/v1/action-results", json=result)
    assert (problem(refused), refused.json()["errors"][0]["pointer"]) == ("invalid-body", "/outcome")
    refused = service.client.post("/v1/action-results", json=result | {"phase": "abort"})
    assert (problem(refused), refused.json()["errors"][0]["pointer"]) == ("invalid-body", "/phase")
    assert say(service, start, "unknown")["state"] == "starting"
    assert actions(service, "mf-x") == [start]  # whoever cannot tell is asked again
    first = say(service, start)
    assert say(service, start) == first
    assert say(service, start, "refused") == first  # the first answer counts


def test_the_decision_on_a_job_is_kept_until_the_next_one(service: Inside) -> None:
    submit(service, "why")
    assert problem(service.client.get("/v1/jobs/why/decision")) == "not-found"
    decision = {
        "job": "why",
        "at": "2026-01-01T00:00:00Z",
        "revision": REVISION,
        "digest": f"sha256:{0:064}",
        "method": {"name": "rule", "version": "1"},
        "decision": {"job": "why", "verb": "wait"},
    }
    assert schema.errors("JobDecision", decision) == []
    gone = decision | {"job": "nobodys"}
    service.call(service.jobs.decide("default", [decision, gone]))
    later = decision | {"at": "2026-01-01T00:00:01Z"}
    service.call(service.jobs.decide("default", [later]))
    assert service.client.get("/v1/jobs/why/decision").json() == later
    service.place("why", "wy-x", decision=decision)
    assert service.client.get("/v1/jobs/why/decision").json() == decision


def test_a_job_that_is_held_says_why_and_waits_in_the_order_of_submission(service: Inside) -> None:
    for name in ("hold-b", "hold-a"):
        submit(service, name)
    service.call(service.jobs.hold("default", "hold-b", "its budget is spent"))
    assert (job(service, "hold-b")["state"], job(service, "hold-b")["reason"]) == ("held", "its budget is spent")
    number, _ = service.jobs.store.since("default", 0)
    waiting = [each.name for each in service.jobs.store.waiting("default")]
    assert waiting.index("hold-b") < waiting.index("hold-a")
    service.call(service.jobs.unhold("default", "hold-b", "the month is over"))
    newest, changed = service.jobs.store.since("default", number)
    assert (newest, [each.name for each in changed]) == (number + 1, ["hold-b"])
    assert "default" in service.jobs.store.tenants()
    service.place("hold-b", "hb-x")
    assert "hold-b" in {each.name for each in service.jobs.store.running("default")}
    assert "hold-b" not in {each.name for each in service.jobs.store.waiting("default")}


def test_a_listing_is_pinned_while_jobs_go_on(service: Inside) -> None:
    names = [f"pin-{number}" for number in range(3)]
    for name in names:
        submit(service, name)
    found, query = [], {"limit": 1_000}
    page = service.client.get("/v1/jobs", params={"limit": 1}).json()
    for name in names:
        service.client.delete(f"/v1/jobs/{name}").raise_for_status()
    rest = service.client.get("/v1/jobs", params=query | {"cursor": page["next_cursor"]}).json()
    found = [each for each in page["items"] + rest["items"] if each["id"] in names]
    assert [(each["id"], each["state"]) for each in found] == [(name, "queued") for name in names]
    assert rest["revision"] == page["revision"]


def test_tenants_do_not_see_each_others_jobs(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tenants")
    with running(folder, tokens={"one": "blue", "two": "red"}) as service:
        blue, red = (
            httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
            for token in ("one", "two")
        )
        blue.put("/v1/jobs/own", json=request("own")).raise_for_status()
        service.place("own", "x", tenant="blue")
        for path in ("/v1/jobs/own", "/v1/jobs/own/logs", "/v1/jobs/own/decision"):
            assert problem(red.get(path)) == "not-found"
        assert problem(red.delete("/v1/jobs/own")) == "not-found"
        assert red.get("/v1/jobs").json()["items"] == []
        told = {"job": "own", "attempt": 1, "domain": "x", "state": "running", "at": "2026-01-01T00:00:00Z"}
        assert problem(red.post("/v1/run-reports", json=told)) == "unknown-reference"
        assert problem(red.post("/v1/run-logs", json=batch_of("own", "x"))) == "unknown-reference"
        assert red.put("/v1/jobs/own", json=request("own", priority=9)).status_code == 201
        assert blue.get("/v1/jobs/own").json()["state"] == "starting"
        assert problem(service.client.get("/v1/jobs/own")) == "unauthorised"
        blue.close()
        red.close()


def batch_of(name: str, domain: str) -> JsonObject:
    return {"job": name, "attempt": 1, "domain": domain, "lines": lines(1, 2)}


def test_a_tenant_has_so_many_jobs_and_no_larger_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    quota = Quota(resources=2, largest=2_000, together=100_000)
    with running(tmp_path_factory.mktemp("quota"), quota=quota) as service:
        submit(service, "a")
        submit(service, "b")
        third = service.client.put("/v1/jobs/c", json=request("c"))
        assert problem(third) == "quota-exceeded"
        assert "2 registered resources, allocations and jobs" in third.json()["detail"]
        large = {"command": ["x" * 1_900]}
        assert problem(service.client.put("/v1/jobs/d", json=request("d", workload=large))) == "quota-exceeded"
        service.client.delete("/v1/jobs/a").raise_for_status()
        service.call(service.jobs._writer.write(JOB_RETENTION.forget(1 << 60, 10_000)))  # noqa: SLF001 - as time does
        submit(service, "c")


def test_the_metrics_tell_of_jobs(service: Inside) -> None:
    submit(service, "measured")
    page = service.client.get("/metrics").text
    assert 'kuayu_jobs_total{state="queued"}' in page


def test_an_attempt_that_does_not_start_in_time_is_given_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("late"), starting_patience=3.0) as service:
        submit(service, "late")
        service.place("late", "x")
        reserve(service, "x")
        deadline = time.monotonic() + 60
        while job(service, "late")["state"] == "starting":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert job(service, "late")["reason"] == "its run did not run in time in x"
        answer(service, "x", "stop")
        answer(service, "x", "release")
        assert job(service, "late")["state"] == "queued"


def test_what_has_ended_is_forgotten_in_the_end_and_its_name_can_be_taken_anew(service: Inside) -> None:
    submit(service, "gone")
    service.place("gone", "go-x")
    run(service, "gone", 1, "go-x")
    send(service, "gone", "go-x", 1, 3)
    cursor = read_log(service, "gone")["next_cursor"]
    report(service, "gone", 1, "go-x", "succeeded")
    answer(service, "go-x", "release")
    old = job(service, "gone")
    while service.call(service.jobs._writer.write(JOB_RETENTION.forget(1 << 60, 10_000))):  # noqa: SLF001 - as time does
        pass
    assert problem(service.client.get("/v1/jobs/gone")) == "not-found"
    assert submit(service, "gone")["revision"]["number"] > old["revision"]["number"]
    assert read_log(service, "gone")["items"] == []
    assert problem(service.client.get("/v1/jobs/gone/logs", params={"after": cursor})) == "invalid-cursor"
    service.place("gone", "go-x")
    reserve(service, "go-x")
    [start] = actions(service, "go-x")
    assert start["run"]["attempt"] == 1
