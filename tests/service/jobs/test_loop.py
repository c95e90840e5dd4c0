"""The control loop over HTTP: jobs are submitted, and domains that the test plays are asked to run them."""

import json
from pathlib import Path

import httpx
import pytest
from service.conftest import JsonObject, Service, StartService
from service.herd import Herd
from service.jobs.played_domains import PlayedDomain, until

from kuayu.jobs.decisions import JobVerb, replay
from kuayu_schemas import schema

KIND = "example"
"""What devices are called that :meth:`Service.register` registers."""


def submit(service: Service, name: str, devices: int = 8, **members: object) -> JsonObject:
    body = {
        "id": name,
        "workload": {"command": ["train"]},
        "devices": {"minimum": devices, "maximum": devices},
        "duration": {"expected": 600.0, "low": 300.0, "high": 1200.0, "coverage": 0.8},
        **members,
    }
    record: JsonObject = service.put(f"/v1/jobs/{name}", body).raise_for_status().json()
    return record


def job(service: Service, name: str) -> JsonObject:
    record: JsonObject = service.client.get(f"/v1/jobs/{name}").raise_for_status().json()
    assert schema.errors("JobRecord", record, reader=True) == []
    return record


def decision(service: Service, name: str) -> JsonObject | None:
    """What was decided last about a job; None where nothing was."""
    response = service.client.get(f"/v1/jobs/{name}/decision")
    if response.status_code == httpx.codes.NOT_FOUND:
        return None
    told: JsonObject = response.raise_for_status().json()
    assert schema.errors("JobDecision", told, reader=True) == []
    return told


def decided(service: Service, name: str, verb: str) -> JsonObject:
    """The decision on a job, once it is of this kind."""
    return until(lambda: decision(service, name), lambda told: told["decision"]["verb"] == verb)


def state(service: Service, name: str, wanted: str) -> JsonObject:
    """A job, once it is in this state."""
    return until(lambda: job(service, name), lambda record: record["state"] == wanted)


def test_of_two_jobs_the_one_of_higher_priority_goes_first_and_the_other_is_told_why_it_waits(
    start_service: StartService,
) -> None:
    """Both are submitted before there is a domain; there is room for one at a time."""
    service = start_service()
    submit(service, "low")
    submit(service, "high", priority=5)
    assert decided(service, "low", "wait")["decision"]["explanation"]["reason"].startswith("No domain")
    service.register("n1", 8, "east")
    with PlayedDomain(service, "east") as east:
        start = east.wait_for("start", "high")
        assert start["run"]["attempt"] == 1
        assert start["nodes"] == [{"node": "n1", "devices": 8}]
        assert start["accelerator"] == KIND
        assert east.of("start", "low") == []
        east.report(start, "running", step=1)
        assert state(service, "high", "running")["placement"]["shares"][0]["domain"] == "east"
        told = until(
            lambda: decision(service, "low"),
            lambda found: not found["decision"]["explanation"]["reason"].startswith("No domain"),
        )
        assert told["decision"]["verb"] == "wait"
        assert told["digest"].startswith("sha256:")
        assert f"8 {KIND} in east" in told["decision"]["explanation"]["reason"]
        assert decided(service, "high", "start")["decision"]["placement"]["shares"][0]["nodes"] == start["nodes"]
        east.report(start, "succeeded")
        second = east.wait_for("start", "low")
        assert job(service, "high")["state"] == "succeeded"
        kinds = [(action["kind"], action["phase"], action["job"]) for action in east.done]
        assert kinds.index(("release", "commit", "high")) < kinds.index(("start", "commit", "low"))
        east.report(second, "running")
        east.report(second, "succeeded")
        record = state(service, "low", "succeeded")
    assert [each["state"] for each in record["transitions"]] == ["queued", "starting", "running", "succeeded"]


@pytest.mark.slow
def test_a_job_on_a_node_that_dies_goes_on_elsewhere_from_its_last_checkpoint(start_service: StartService) -> None:
    service = start_service()
    for node in ("n1", "n2", "n3"):
        service.register(node, 8, "east")
    with Herd(service, "n1", "n2", "n3") as herd, PlayedDomain(service, "east") as east:
        submit(service, "job", checkpoint="file:///checkpoints/job")
        start = east.wait_for("start", "job")
        [share] = start["nodes"]
        east.report(start, "running", step=120, checkpoint_step=100)
        state(service, "job", "running")
        herd.wait(8)
        herd.silent.add(share["node"])
        stop = east.wait_for("stop", "job")
        assert stop["attempt"] == 1
        again = east.wait_for("start", "job", 2)
        assert again["run"]["attempt"] == 2
        assert again["run"]["step"] == 100
        assert again["nodes"][0]["node"] != share["node"]
        east.report(again, "running")
        record = state(service, "job", "running")
    assert record["failures"] == 0
    assert record["attempt"] == 2
    restarted = [each for each in record["transitions"] if each["state"] == "restarting"]
    assert [f"The node {share['node']} in east is dead" in each["reason"] for each in restarted] == [True]
    done = [(action["kind"], action.get("phase")) for action in east.done if action.get("job") == "job"]
    assert done.index(("release", "commit")) < len(done) - 1 - done[::-1].index(("start", "commit"))


def test_a_domain_that_has_no_room_after_all_is_passed_over_for_the_next_best(shared: Service) -> None:
    """The service knows of nothing that the domain holds, and is told only when it asks."""
    shared.register("full-1", 8, "full")
    shared.register("empty-1", 8, "empty")
    with PlayedDomain(shared, "full") as full, PlayedDomain(shared, "empty") as empty:
        full.full = True
        submit(shared, "refused", domains=["full", "empty"])
        start = empty.wait_for("start", "refused")
        assert start["nodes"] == [{"node": "empty-1", "devices": 8}]
        assert full.of("start", "refused") == []


def test_a_job_runs_only_in_the_domains_that_it_names_and_waits_until_one_of_them_is_there(shared: Service) -> None:
    shared.register("here-1", 8, "here")
    shared.register("there-1", 8, "there")
    with PlayedDomain(shared, "here") as here:
        submit(shared, "other", domains=["here", "there"])
        submit(shared, "bound", domains=["there"])
        here.wait_for("start", "other")
        told = decided(shared, "bound", "wait")
        assert told["decision"]["explanation"]["reason"].endswith("It may only run in there.")
        with PlayedDomain(shared, "there") as there:
            there.wait_for("start", "bound")
        assert here.of("reserve", "bound") == []


def test_a_restarted_service_goes_on_with_the_queue_and_starts_nothing_twice(start_service: StartService) -> None:
    service = start_service()
    service.register("n1", 8, "east")
    with PlayedDomain(service, "east") as east:
        submit(service, "first")
        start = east.wait_for("start", "first")
        east.report(start, "running")
        submit(service, "second")
        decided(service, "second", "wait")
    service.stop()
    service.start()
    with PlayedDomain(service, "east") as east:
        assert job(service, "first")["state"] == "running"
        east.report(start, "succeeded")
        second = east.wait_for("start", "second")
        assert second["run"]["attempt"] == 1
        assert east.of("start", "first") == []


def test_a_job_of_low_priority_makes_room_for_one_of_high_and_starts_again_afterwards(shared: Service) -> None:
    shared.register("small-1", 8, "small")
    long = {"expected": 360_000.0, "low": 1.0, "high": 1e6, "coverage": 0.8}
    with PlayedDomain(shared, "small") as small:
        submit(shared, "low", priority=-10, duration=long, checkpoint="file:///checkpoints/low", domains=["small"])
        start = small.wait_for("start", "low")
        small.report(start, "running")
        state(shared, "low", "running")
        submit(shared, "high", priority=10, domains=["small"])
        high = small.wait_for("start", "high")
        assert len(small.of("stop", "low")) == 1
        small.report(high, "running")
        small.report(high, "succeeded")
        again = small.wait_for("start", "low", 2)
        assert again["run"]["attempt"] == 2
        reasons = [each["reason"] for each in job(shared, "low")["transitions"] if each["state"] == "restarting"]
    assert [reason.startswith("Interrupted by a decision: ") for reason in reasons] == [True]


def test_a_pass_can_be_made_again_from_what_was_recorded_of_it(start_service: StartService, tmp_path: Path) -> None:
    service = start_service("--pass-records", str(tmp_path / "passes"))
    service.register("n1", 8, "east")
    with PlayedDomain(service, "east") as east:
        submit(service, "job")
        east.wait_for("start", "job")
        told = decided(service, "job", "start")
    recorded = [json.loads(file.read_bytes()) for file in sorted((tmp_path / "passes" / "default").glob("*.json"))]
    [inputs] = [each for each in recorded if each["digest"] == told["digest"]]
    again = replay(inputs["snapshot"])
    assert again.digest == told["digest"]
    [step] = [step for step in again.steps if step.job == "job"]
    assert step.verb is JobVerb.PLACE
    assert again.job_decision(step) == told


def test_the_loop_tells_how_long_its_passes_take_and_how_many_wait(shared: Service) -> None:
    submit(shared, "measured", domains=["nowhere"])
    decided(shared, "measured", "wait")
    page = shared.client.get("/metrics").raise_for_status().text
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert float(values["kuayu_jobs_waiting"]) >= 1
    assert float(values['kuayu_job_steps_total{verb="decide"}']) >= 1
    assert float(values['kuayu_job_passes_total{outcome="made"}']) >= 1
    for part in ("gather", "decide", "carry_out"):
        assert float(values[f'kuayu_job_pass_seconds_sum{{part="{part}"}}']) > 0
