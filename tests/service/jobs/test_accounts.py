"""Accounts over HTTP: what they have used, who goes first by it, and whose jobs their quota holds."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from service.conftest import JsonObject, Service, StartService
from service.jobs.played_domains import PlayedDomain, until
from service.jobs.test_loop import decision, job, state, submit
from service.postgres_server import running as postgres_running

from kuayu.service.account_store import AccountFile, AccountRule
from kuayu.service.settings import OperatorFileError
from kuayu_schemas import schema

WEEK = 604_800.0


def told(service: Service, client: httpx.Client | None = None) -> dict[str, JsonObject]:
    """Accounts by name."""
    listed = (client or service.client).get("/v1/accounts").raise_for_status().json()
    assert schema.errors("AccountList", listed, reader=True) == []
    names = [account["id"] for account in listed["items"]]
    assert names == sorted(names)
    return {account["id"]: account for account in listed["items"]}


def runs(east: PlayedDomain, service: Service, name: str, seconds: float) -> JsonObject:
    """A job that is started, runs for so long and ends well; its record then."""
    start = east.wait_for("start", name)
    east.report(start, "running")
    time.sleep(seconds)
    east.report(start, "succeeded")
    return state(service, name, "succeeded")


def play(service: Service, *, start_again: bool) -> None:
    """Red runs alone first; then blue goes before what red has submitted earlier.

    Blue has a thousand times the weight, so that it has not used more for it however slow the machine is.
    """
    service.register("n1", 8, "east")
    east = PlayedDomain(service, "east")  # asked to start a job, it may be, before the service ends
    with east:
        submit(service, "first", account="red")
        start = east.wait_for("start", "first")
        east.report(start, "running")
        for name, account in (("red-1", "red"), ("red-2", "red"), ("blue-1", "blue"), ("blue-2", "blue")):
            submit(service, name, account=account)
        submit(service, "urgent", account="red", priority=5)
        time.sleep(0.5)
        assert told(service)["red"]["used"] > 8 * 0.5 / 3600
        east.report(start, "succeeded")
        runs(east, service, "urgent", 0.1)
        runs(east, service, "blue-1", 0.1)
    if start_again:
        service.stop()
        service.start()
    with east:
        runs(east, service, "blue-2", 0.1)
        runs(east, service, "red-1", 0.1)
        runs(east, service, "red-2", 0.1)
    hours: dict[str, float] = {}
    for record in service.client.get("/v1/jobs").json()["items"]:
        hours[record["account"]] = hours.get(record["account"], 0.0) + record["device_hours"]
    found = told(service)
    assert found.keys() == {"red", "blue"}
    for name, account in found.items():
        assert account["used"] == pytest.approx(hours[name], rel=1e-3)
        assert account["weight"] == {"red": 1.0, "blue": 1000.0}[name]
        assert "quota" not in account


def weights(folder: Path) -> tuple[str, str]:
    """Options of the service for the story."""
    file = folder / "accounts"
    file.write_text("blue weight=1000\n")
    return "--accounts", str(file)


def test_the_account_that_has_used_less_goes_first_also_after_a_restart(
    start_service: StartService, tmp_path: Path
) -> None:
    play(start_service(*weights(tmp_path)), start_again=True)


@pytest.fixture
def postgres() -> Iterator[str]:
    with postgres_running() as server:
        yield server.url


@pytest.mark.postgres
def test_the_same_on_postgresql(start_service: StartService, postgres: str, tmp_path: Path) -> None:
    play(start_service(*weights(tmp_path), database=postgres), start_again=True)


def test_a_quota_holds_jobs_until_it_is_raised_and_each_is_told_why(
    start_service: StartService, tmp_path: Path
) -> None:
    file = tmp_path / "accounts"
    file.write_text("# ours\nred quota=0 weight=3\nblue weight=2\n")
    service = start_service("--accounts", str(file))
    service.register("n1", 8, "east")
    assert told(service) == {
        "blue": {"id": "blue", "used": 0.0, "weight": 2.0},
        "red": {"id": "red", "used": 0.0, "weight": 3.0, "quota": 0.0},
    }
    with PlayedDomain(service, "east") as east:
        submit(service, "held", account="red")
        record = state(service, "held", "held")
        assert record["reason"].startswith("Its account red has used 0 h of reference devices, and its quota is 0 h.")
        why = until(lambda: decision(service, "held"), lambda found: found["decision"]["verb"] == "wait")
        assert why["decision"]["explanation"]["reason"] == record["reason"]
        submit(service, "free", account="blue")
        runs(east, service, "free", 0.1)
        assert job(service, "held")["state"] == "held"
        file.write_text("red quota=10 weight=3\n")
        runs(east, service, "held", 0.1)
    entered = [each["state"] for each in job(service, "held")["transitions"]]
    assert entered == ["queued", "held", "queued", "starting", "running", "succeeded"]


def test_a_job_that_makes_room_is_not_put_back_before_the_one_that_it_made_room_for(
    start_service: StartService, tmp_path: Path
) -> None:
    """The long job is of an account that has used less for its weight, so that it would go first where both wait."""
    file = tmp_path / "accounts"
    file.write_text("red weight=1e6\n")
    service = start_service("--accounts", str(file))
    for domain, speed in (("fast", 624e12), ("slow", 312e12)):
        service.register(f"{domain}-1", 8, domain)
        model = {"kind": "gpu", "vendor": "Example", "model": domain, "peak_matrix_throughput": {"bf16": speed}}
        node = {"id": f"{domain}-1", "domain": domain, "devices": [{"id": str(n), **model} for n in range(8)]}
        service.put(f"/v1/nodes/{domain}-1", node).raise_for_status()
    for source, destination in (("fast", "slow"), ("slow", "fast")):
        link = {"id": f"{source}-{destination}", "source": source, "destination": destination, "capacity": 1e10}
        service.put(f"/v1/links/{link['id']}", link).raise_for_status()
    days = {"expected": 3.6e6, "low": 3e6, "high": 4.2e6, "coverage": 0.8}
    with PlayedDomain(service, "fast") as fast, PlayedDomain(service, "slow") as slow:
        submit(service, "before", account="blue", domains=["fast"])
        runs(fast, service, "before", 0.3)
        submit(service, "long", account="red", duration=days, checkpoint="file:///checkpoints/long")
        fast.report(fast.wait_for("start", "long"), "running")
        submit(service, "short", account="blue", domains=["fast"])
        runs(fast, service, "short", 0.1)
        assert len(fast.of("stop", "long")) == 1
        started = [action["job"] for action in fast.done if action["kind"] == "start"]
        assert started[:3] == ["before", "long", "short"]
        until(lambda: job(service, "long"), lambda record: record["attempt"] == 2)
        assert len(fast.of("start", "long")) + len(slow.of("start", "long")) <= 2  # it may be under way
    reasons = [each["reason"] for each in job(service, "long")["transitions"] if each["state"] == "restarting"]
    assert [reason.startswith("Interrupted by a decision: It makes room") for reason in reasons] == [True]


def test_accounts_of_tenants_have_nothing_to_do_with_each_other(start_service: StartService, tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    file.write_text("one/red quota=5\n")
    service = start_service("--token", "one=a", "--token", "other=b", "--accounts", str(file))
    with service.as_tenant("a") as one, service.as_tenant("b") as other:
        assert told(service, one)["red"]["quota"] == 5.0
        assert told(service, other) == {}
        assert "accounts" in one.get("/v1/conformance").json()["features"]


def test_another_half_life_halves_what_was_used_from_then_on(start_service: StartService) -> None:
    service = start_service()
    service.register("n1", 8, "east")
    assert service.client.get("/v1/accounts").json()["half_life"] == WEEK
    with PlayedDomain(service, "east") as east:
        submit(service, "first")
        runs(east, service, "first", 0.5)
    before = told(service)["default"]["used"]
    assert before > 8 * 0.4 / 3600
    service.stop()
    service.options = ("--half-life", "1")
    service.start()
    listed = until(lambda: service.client.get("/v1/accounts").json(), lambda found: found["half_life"] == 1.0)
    assert listed["items"][0]["used"] < before
    time.sleep(2.0)
    later = told(service)
    assert "default" not in later or later["default"]["used"] < listed["items"][0]["used"] / 3


def test_a_file_of_accounts_says_where_it_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    file.write_text("red weight=2 quota=1e3\nteam/blue\n\n# green\n")
    accounts = AccountFile(file)
    assert accounts.of("default") == {"red": AccountRule(2.0, 1000.0)}
    assert accounts.of("team") == {"blue": AccountRule()}
    assert accounts.of("nobody") == {}
    wrong = {
        "red quota=many": "line 1: 'many' is no number from 0 to 1e+12",
        "red weight=0": "line 1: '0' is no number from 1e-06 to 1e+06",
        "red weight=nan": "'nan' is no number",
        "red\nred weight=2": "line 2: the account red stands in another line",
        "a/b/c": "an account is given as ACCOUNT or TENANT/ACCOUNT",
        "red burst=2": "line 1: burst=REQUESTS stands beside rate=REQUESTS",
        "red rate=0": "line 1: '0' is no number from 0.001 to 1e+06",
        "red colour=blue": "rate=REQUESTS or burst=REQUESTS, not 'colour=blue'",
    }
    for text, words in wrong.items():
        file.write_text(text)
        with pytest.raises(OperatorFileError, match=words.replace("+", "[+]")):
            AccountFile(file)
        assert accounts.of("default") == {"red": AccountRule(2.0, 1000.0)}
