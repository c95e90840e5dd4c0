"""Stories of jobs: they get devices, run, fail, run again, and survive the server."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minimal_server.client import Client, ago, start, stop

LATE = "2099-01-01T00:00:00.000Z"
DONE = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}


@pytest.fixture
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def register(client: Client, *domains: str, devices: int = 2) -> None:
    """Domains with a node each, which have asked what to do."""
    for name in domains:
        rows = [{"id": str(place), "kind": "gpu", "vendor": "v", "model": "m"} for place in range(devices)]
        client.ask("PUT", f"/v1/domains/{name}", {"id": name})
        client.ask("PUT", f"/v1/nodes/{name}-1", {"id": f"{name}-1", "domain": name, "devices": rows})
        actions(client, name)


def submit(client: Client, name: str, devices: int = 2, **members: Any) -> Any:
    body = {"id": name, "workload": {"command": ["true"]}, "devices": {"minimum": devices, "maximum": devices}}
    status, record, _ = client.ask("PUT", f"/v1/jobs/{name}", body | members)
    assert status in {200, 201}, record
    return record


def actions(client: Client, domain: str) -> list[Any]:
    found: list[Any] = client.ask("GET", f"/v1/actions?domain={domain}")[1]["items"]
    return found


def obey(client: Client, *domains: str) -> list[str]:
    """Domains do what they are asked until nothing is open; what that was."""
    done = []
    for _ in range(20):
        asked = [(domain, action) for domain in domains for action in actions(client, domain)]
        for _, action in asked:
            done.append(action["kind"])
            more = {"expires_at": LATE} if action["phase"] == "prepare" else {}
            if action["kind"] == "reserve" and action["phase"] != "abort":
                more |= {"nodes": [{"node": f"{action['domain']}-1", "devices": action["devices"]}]}
            result = {"action": action["id"], "phase": action["phase"], "outcome": DONE[action["phase"]], "at": ago(0)}
            assert client.ask("POST", "/v1/action-results", result | more)[0] == 200
        if not asked:
            return done
    raise AssertionError("there is no end to it")


def report(client: Client, job: str, attempt: int, domain: str, state: str, **members: Any) -> Any:
    body = {"job": job, "attempt": attempt, "domain": domain, "state": state, "at": ago(0), **members}
    status, record, _ = client.ask("POST", "/v1/run-reports", body)
    assert status == 200, record
    return record


def job(client: Client, name: str) -> Any:
    return client.ask("GET", f"/v1/jobs/{name}")[1]


def states(client: Client, name: str) -> list[str]:
    return [change["state"] for change in job(client, name)["transitions"]]


def test_a_job_is_placed_started_and_ended(client: Client) -> None:
    register(client, "north")
    submit(client, "train")
    assert obey(client, "north") == ["reserve", "reserve", "start"]
    assert job(client, "train")["state"] == "starting"
    assert report(client, "train", 1, "north", "running")["state"] == "running"
    report(client, "train", 1, "north", "succeeded")
    assert job(client, "train")["state"] == "running", "its devices are not given back yet"
    assert obey(client, "north") == ["release"]
    assert states(client, "train") == ["queued", "starting", "running", "succeeded"]


def test_a_job_is_tried_again_from_its_checkpoint_as_often_as_it_may(client: Client) -> None:
    register(client, "north")
    submit(client, "train", retries=1)
    for attempt in (1, 2):
        obey(client, "north")
        report(client, "train", attempt, "north", "running", checkpoint_step=10 * attempt)
        report(client, "train", attempt, "north", "failed")
        assert actions(client, "north")[0]["kind"] == "release"
        obey(client, "north")
    record = job(client, "train")
    assert (record["state"], record["failures"], record["checkpoint_step"]) == ("failed", 2, 20)


def test_jobs_that_are_too_large_for_a_domain_are_spread_where_they_may_be(client: Client) -> None:
    register(client, "north", "south")
    for source, destination in (("north", "south"), ("south", "north")):
        link = {"id": f"from-{source}", "source": source, "destination": destination}
        client.ask("PUT", f"/v1/links/{link['id']}", link)
    sent = {"step_time": 1, "exchange": 1, "boundary": 1, "checkpoint_size": 1}
    submit(client, "alone", devices=4)
    submit(client, "wide", devices=4, split_modes=["periodic"], communication=sent)
    obey(client, "north", "south")
    assert [share["domain"] for share in job(client, "wide")["placement"]["shares"]] == ["north", "south"]
    assert job(client, "alone")["state"] == "queued"
    decision = client.ask("GET", "/v1/jobs/alone/decision")[1]
    assert decision["decision"]["verb"] == "wait"
    report(client, "wide", 1, "north", "running")
    report(client, "wide", 1, "south", "failed", own_fault=False)
    assert [action["kind"] for action in actions(client, "north")] == ["stop"]
    obey(client, "north", "south")
    assert job(client, "wide")["failures"] == 0


def test_the_account_that_has_used_less_goes_first_and_one_without_a_quota_left_is_held(client: Client) -> None:
    register(client, "north")
    submit(client, "first", account="red")
    obey(client, "north")
    report(client, "first", 1, "north", "running")
    for name, account in (("red", "red"), ("blue", "blue"), ("none", "spent")):
        submit(client, name, account=account)
    record = job(client, "none")
    assert (record["state"], record["reason"]) == ("held", "the account spent has used its quota")
    time.sleep(0.05)
    report(client, "first", 1, "north", "succeeded")
    obey(client, "north")
    assert [job(client, name)["state"] for name in ("red", "blue")] == ["queued", "starting"]
    rows = {row["id"]: row for row in client.ask("GET", "/v1/accounts")[1]["items"]}
    assert rows["red"]["used"] > rows.get("blue", {"used": 0.0})["used"]
    assert rows["spent"]["quota"] == 0.0


def test_jobs_survive_the_server(tmp_path: Path) -> None:
    journal = ("--journal", str(tmp_path / "journal"))
    client = start(*journal)
    register(client, "north")
    submit(client, "train")
    submit(client, "next", priority=7)
    obey(client, "north")
    report(client, "train", 1, "north", "running", step=5)
    lines = [{"number": 1, "rank": 0, "at": ago(0), "text": "step 5"}]
    of_run = {"job": "train", "attempt": 1, "domain": "north"}
    assert client.ask("POST", "/v1/run-logs", {**of_run, "lines": lines})[1] == {"last": 1}
    stop(client, signal.SIGKILL)
    client = start(*journal)
    try:
        assert (job(client, "train")["state"], job(client, "train")["step"]) == ("running", 5)
        assert client.ask("GET", "/v1/jobs/train/logs")[1]["items"][0]["text"] == "step 5"
        report(client, "train", 1, "north", "succeeded")
        obey(client, "north")
        assert job(client, "train")["state"] == "succeeded"
        assert job(client, "next")["state"] == "starting"
    finally:
        stop(client)


def test_a_job_whose_devices_were_let_go_runs_again_where_its_old_run_was_stopped(client: Client) -> None:
    register(client, "north")
    submit(client, "train")
    reserved = actions(client, "north")[0]["id"]
    obey(client, "north")
    report(client, "train", 1, "north", "running")
    gone = {"action": reserved, "phase": "commit", "outcome": "expired", "at": ago(0)}
    assert client.ask("POST", "/v1/action-results", gone)[0] == 200
    assert job(client, "train")["state"] == "queued"
    assert obey(client, "north") == ["stop", "reserve", "reserve", "start"]


def test_a_domain_that_is_silent_for_its_lease_loses_its_run(client: Client) -> None:
    register(client, "north", "south")
    submit(client, "train", retries=0)
    obey(client, "north")
    report(client, "train", 1, "north", "running")
    until = time.monotonic() + 20
    while time.monotonic() < until and job(client, "train")["attempt"] == 1:
        obey(client, "south")
        time.sleep(0.1)
    record = job(client, "train")
    assert (record["attempt"], record["failures"]) == (2, 0)
    assert [share["domain"] for share in record["placement"]["shares"]] == ["south"]
