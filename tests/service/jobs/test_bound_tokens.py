"""Tokens that are bound to accounts over HTTP: whose jobs they submit and call off, and what they see of others'."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from commands import run
from live.processes import eventually
from service.conftest import JsonObject, Service, StartService, problem
from service.jobs.played_domains import until

from kuayu.service.auth import hash_of

TOKENS = {
    "speech": "lab={} account=speech name=speech-team",
    "both": "lab={} account=speech account=vision",
    "mixed": "lab={} account=default account=vision",
    "all": "lab={} name=platform",
    "elsewhere": "other={} account=speech",
}
"""Lines of the file by the secret of the token, which stands there as its hash."""


def written(file: Path, lines: dict[str, str]) -> None:
    file.write_text("".join(f"{line}\n".format(hash_of(secret)) for secret, line in lines.items()), encoding="utf-8")
    file.chmod(0o600)


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """The file of tokens."""
    file = tmp_path / "tokens"
    written(file, TOKENS)
    return file


@pytest.fixture
def service(start_service: StartService, tokens: Path, tmp_path: Path) -> Service:
    return start_service("--token-file", str(tokens), "--audit-log", str(tmp_path / "audit.jsonl"))


@pytest.fixture
def clients(service: Service) -> Iterator[dict[str, httpx.Client]]:
    with ExitStack() as stack:
        yield {secret: stack.enter_context(service.as_tenant(secret)) for secret in TOKENS}


def submit(client: httpx.Client, name: str, account: str | None = None) -> httpx.Response:
    body = {"id": name, "workload": {"command": ["train"]}, "devices": {"minimum": 1, "maximum": 1}}
    return client.put(f"/v1/jobs/{name}", json=body if account is None else {**body, "account": account})


def refused(response: httpx.Response) -> JsonObject:
    """The problem of a request that is not for its token."""
    assert problem(response) == "forbidden"
    told: JsonObject = response.json()
    return told


def test_a_team_has_jobs_of_its_own_account_and_sees_those_of_others(clients: dict[str, httpx.Client]) -> None:
    speech, platform = clients["speech"], clients["all"]
    submit(platform, "of-vision", "vision").raise_for_status()
    submit(platform, "of-nobody").raise_for_status()

    mine = submit(speech, "mine")
    assert (mine.status_code, mine.json()["account"]) == (201, "speech")
    assert submit(speech, "mine").status_code == 200  # it is the same job, however it is said
    assert submit(speech, "mine", "speech").status_code == 200

    foreign = refused(submit(speech, "new", "vision"))
    words = "the job counts for the account 'vision', and the token is bound to 'speech'"
    assert foreign["detail"] == f"{words}; name one of these, or use a token for 'vision'"
    assert [place["pointer"] for place in foreign["errors"]] == ["/account"]
    assert speech.get("/v1/jobs/new").status_code == 404
    assert problem(submit(speech, "of-vision")) == "invalid-body"  # another job has the name, and stays as it is

    for name, account in (("of-vision", "vision"), ("of-nobody", "default")):
        told = refused(speech.delete(f"/v1/jobs/{name}"))["detail"]
        assert told.startswith(
            f"the job '{name}' counts for the account '{account}', and the token is bound to 'speech'"
        )
        assert platform.get(f"/v1/jobs/{name}").json()["state"] == "queued"
    assert problem(speech.delete("/v1/jobs/gone")) == "not-found"
    assert speech.delete("/v1/jobs/mine").json()["state"] == "cancelled"
    platform.delete("/v1/jobs/of-vision").raise_for_status()
    refused(speech.delete("/v1/jobs/of-vision"))  # also of what has ended

    assert [job["id"] for job in speech.get("/v1/jobs").json()["items"]] == ["mine", "of-nobody", "of-vision"]
    assert speech.get("/v1/jobs/of-vision").json() == platform.get("/v1/jobs/of-vision").json()
    assert speech.get("/v1/jobs/of-vision/logs").json()["items"] == []
    assert speech.get("/v1/accounts").status_code == 200
    assert clients["elsewhere"].get("/v1/jobs/mine").status_code == 404  # an account of that name in another tenant
    assert problem(clients["elsewhere"].delete("/v1/jobs/of-vision")) == "not-found"


def test_whoever_has_several_accounts_names_one(clients: dict[str, httpx.Client]) -> None:
    both, mixed = clients["both"], clients["mixed"]
    told = refused(submit(both, "job"))["detail"]
    assert told == "the job names no account, and the token is bound to several; name one of 'speech', 'vision'"
    assert submit(both, "job", "vision").json()["account"] == "vision"
    assert both.delete("/v1/jobs/job").json()["state"] == "cancelled"
    default = submit(mixed, "plain")
    assert default.status_code == 201
    assert "account" not in default.json()  # it counts for default, as everybody's does
    assert submit(mixed, "seen", "vision").status_code == 201
    refused(submit(mixed, "heard", "speech"))
    assert submit(clients["all"], "plain").status_code == 200


def test_what_all_accounts_share_is_changed_with_another_token(clients: dict[str, httpx.Client]) -> None:
    speech = clients["speech"]
    for refusal in (
        speech.put("/v1/domains/d", json={"id": "d"}),
        speech.delete("/v1/domains/d"),
        speech.put("/v1/allocations/a", json={}),
        speech.delete("/v1/allocations/a"),
        speech.post("/v1/run-reports", json={}),
    ):
        assert "a token that is bound to accounts submits and calls off jobs alone" in refused(refusal)["detail"]
        assert 'error="insufficient_scope"' in refusal.headers["WWW-Authenticate"]
    assert clients["all"].put("/v1/domains/d", json={"id": "d"}).status_code == 201
    assert speech.get("/v1/domains/d").status_code == 200


def test_a_token_is_bound_otherwise_without_a_restart_and_each_refusal_is_kept(
    clients: dict[str, httpx.Client], tokens: Path, tmp_path: Path
) -> None:
    speech = clients["speech"]
    submit(speech, "before").raise_for_status()
    written(tokens, TOKENS | {"speech": "lab={} account=vision name=speech-team"})
    until(lambda: {"status": submit(speech, "after", "vision").status_code}, lambda told: told["status"] == 201)
    refused(speech.delete("/v1/jobs/before"))
    tokens.write_text("lab=x account=\n", encoding="utf-8")  # what cannot be read takes nothing away, and gives nothing
    time.sleep(2.5)
    refused(speech.delete("/v1/jobs/before"))
    written(tokens, TOKENS | {"speech": "lab={} name=speech-team"})
    until(lambda: {"status": speech.delete("/v1/jobs/before").status_code}, lambda told: told["status"] == 200)

    def kept() -> list[JsonObject]:
        return [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]

    assert eventually(lambda: kept()[-1]["status"] == 200)  # a line is written when its answer has been sent
    lines = kept()
    assert {line["subject"] for line in lines} == {"speech-team"}
    assert lines[0] | {"time": "", "request": ""} == {
        "time": "",
        "tenant": "lab",
        "subject": "speech-team",
        "role": "tenant",
        "accounts": ["speech"],
        "operation": "putJob",
        "resource": "/v1/jobs/before",
        "status": 201,
        "request": "",
    }
    calls = [(line["accounts"], line["status"]) for line in lines if line["operation"] == "deleteJob"]
    assert calls[:2] == [(["vision"], 403)] * 2
    assert calls[-1] == (None, 200)


def test_the_commands_say_why_and_what_else_to_do(
    service: Service, clients: dict[str, httpx.Client], tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: told\ncommand: train\ndevices: 1\naccount: vision\n", encoding="utf-8")
    at = ("--url", service.url, "--token", "speech")
    ended = run("submit", str(file), *at, COLUMNS="300", no_proxy="127.0.0.1")
    assert ended.returncode == 1
    assert "the token is bound to 'speech'; name one of these, or use a token for 'vision'" in ended.stderr
    assert "hint" in ended.stderr
    submit(clients["all"], "theirs", "vision").raise_for_status()
    submit(clients["speech"], "ours").raise_for_status()
    ended = run("cancel", "theirs", "gone", "ours", *at, COLUMNS="300", no_proxy="127.0.0.1")
    assert ended.returncode == 1
    assert ended.stdout.startswith("ours cancelled: ")
    assert "the job 'theirs' counts for the account 'vision'" in ended.stderr
    assert "there is no job gone" in ended.stderr
