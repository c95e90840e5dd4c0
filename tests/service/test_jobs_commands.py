"""`kuayu submit`, `jobs`, `why`, `logs` and `cancel` against a service, and what they say when something is amiss."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import run
from service.conftest import Service, instant

from kuayu.cli.data_directory import DataDirectory, DomainEntry, service_of
from kuayu.engine.locking import lock

LEAST = "command: python train.py\ndevices: 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Service) -> Path:
    """A folder as `kuayu up` leaves it, for a service without tokens."""
    monkeypatch.chdir(tmp_path)
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    directory = DataDirectory(tmp_path / "kuayu-data")
    directory.make()
    directory.connect(shared.url, "none")
    return tmp_path


def kuayu(*arguments: str | Path, status: int = 0, text: str = "") -> str:
    """What a command prints, or complains of where it ends otherwise than with 0."""
    ended = run(*arguments, text=text, COLUMNS="160", no_proxy="127.0.0.1")
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout if status == 0 else ended.stderr


def job(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kuayu("jobs", name, "--json"))
    return found


def test_a_file_is_submitted_once_under_its_name_however_often(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: named\n" + LEAST, encoding="utf-8")
    for _ in range(2):
        record = json.loads(kuayu("submit", "a.yaml", "--json"))
        assert (record["id"], record["workload"]["command"]) == ("named", ["python", "train.py"])
    (folder / "a.yaml").write_text("name: named\n" + LEAST + "priority: 3\n", encoding="utf-8")
    refused = kuayu("submit", "a.yaml", status=1)
    assert "there is another job named" in refused
    assert "--set name=named-2" in refused
    assert json.loads(kuayu("submit", "a.yaml", "--json", "--set", "name=named-2"))["priority"] == 3


def test_all_that_asks_a_service_finds_that_of_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "digest" in json.loads(kuayu("graph", "--json"))
    assert isinstance(json.loads(kuayu("faults", "--json")), list)
    kuayu("collect", "--domain", "in-folder", "--node", "host", "--no-probe", "--duration", "0.1")
    assert [node["id"] for node in json.loads(kuayu("graph", "--json"))["nodes"] if node["domain"] == "in-folder"]
    monkeypatch.chdir(folder.parent)
    assert "digest" in json.loads(kuayu("graph", "--json", "--data", folder / "kuayu-data"))
    hint = "start one with kuayu up, in this folder; or name one with --url, or in KUAYU_URL"
    for command in (("graph",), ("faults",), ("jobs",)):
        assert hint in kuayu(*command, "--data", folder / "none", "--url", "http://127.0.0.1:1", status=1)


def test_a_file_without_a_name_is_another_job_each_time(folder: Path) -> None:
    (folder / "fine tune.yaml").write_text(LEAST, encoding="utf-8")
    assert [json.loads(kuayu("submit", "fine tune.yaml", "--json"))["id"] for _ in range(2)] == [
        "fine-tune-1",
        "fine-tune-2",
    ]
    assert json.loads(kuayu("submit", "-", "--json", text=LEAST))["id"] == "job-1"


def test_slips_are_told_before_anything_is_sent(folder: Path) -> None:
    (folder / "a.yaml").write_text(LEAST + "retrys: 3\npriority: high\n", encoding="utf-8")
    told = kuayu("submit", "a.yaml", "--url", "http://127.0.0.1:1", status=2)
    assert "a.yaml:3: retrys is no key; did you mean retries?" in told
    assert "a.yaml:4: priority: 'high' is no whole number" in told
    assert "cannot read gone.yaml" in kuayu("submit", "gone.yaml", status=2)


def test_jobs_are_listed_told_of_and_called_off(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: called-off\nlabel: for a while\n" + LEAST, encoding="utf-8")
    kuayu("submit", "a.yaml", "--json")
    assert "called-off" in kuayu("jobs")
    listed = json.loads(kuayu("jobs", "--json"))
    assert [each["label"] for each in listed if each["id"] == "called-off"] == ["for a while"]
    told = kuayu("why", "called-off")
    assert "called-off" in told
    assert "0 of 3 retries used" in told
    assert "queued" in told
    assert json.loads(kuayu("why", "called-off", "--json"))["job"]["id"] == "called-off"
    assert kuayu("cancel", "called-off", "--wait").startswith("called-off cancelled: ")
    assert job("called-off")["state"] == "cancelled"
    assert "cancelled" in kuayu("jobs", "called-off")


@pytest.mark.usefixtures("folder")
def test_accounts_are_told_as_a_table_or_as_json_and_by_themselves() -> None:
    assert json.loads(kuayu("jobs", "--accounts", "--json"))["half_life"] == 604_800.0
    assert "hours of reference devices, which count half after 7 d 0 h" in kuayu("jobs", "--accounts")
    assert "accounts are told by themselves" in kuayu("jobs", "named", "--accounts", status=2)


def test_several_jobs_are_called_off_whichever_is_not_there(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / "a.yaml").write_text(f"name: {name}\n" + LEAST, encoding="utf-8")
        kuayu("submit", "a.yaml", "--json")
    ended = run("cancel", "one", "nobody", "two", "one", "--wait", COLUMNS="160", no_proxy="127.0.0.1")
    assert ended.returncode == 1
    assert [line.split(": ")[0] for line in ended.stdout.splitlines()] == ["one cancelled", "two cancelled"]
    assert "there is no job nobody" in ended.stderr
    assert job("one")["state"] == job("two")["state"] == "cancelled"


def test_a_job_that_is_waited_for_decides_how_the_command_ends(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: over\n" + LEAST, encoding="utf-8")
    kuayu("submit", "a.yaml", "--json")
    kuayu("cancel", "over", "--wait")
    ended = run("submit", "a.yaml", "--wait", "--json", COLUMNS="160", no_proxy="127.0.0.1")
    assert ended.returncode == 3  # it was called off


def test_there_is_no_such_job(folder: Path) -> None:
    for command in ("jobs", "why", "cancel", "logs"):
        assert "kuayu jobs lists all" in kuayu(command, "nobody", status=1)
    (folder / "some.log").write_text("NVRM: Xid\n", encoding="utf-8")
    for name in ("some.log", "./some.log"):
        assert f"kuayu diagnose {name}" in kuayu("logs", name, status=2)


def test_lines_are_told_with_where_they_are_from_where_several_ranks_print(folder: Path, shared: Service) -> None:
    """As domains hand them over; no domain runs here, so that a run is made up in the service's own words."""
    (folder / "a.yaml").write_text("name: silent\n" + LEAST, encoding="utf-8")
    kuayu("submit", "a.yaml", "--json")
    assert kuayu("logs", "silent") == ""
    kuayu("cancel", "silent", "--wait")
    assert kuayu("logs", "-f", "silent") == ""
    line = {"number": 1, "rank": 0, "at": instant(), "text": "hello"}
    batch = {"job": "silent", "attempt": 1, "domain": "x", "lines": [line]}
    assert shared.client.post("/v1/run-logs", json=batch).status_code == 422  # nobody was asked to run it


def test_without_a_service_it_says_how_there_comes_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("jobs", "--url", "http://127.0.0.1:1", COLUMNS="160")
    assert told.returncode == 1
    assert "start one with kuayu up" in told.stderr
    assert run("jobs", "--url", "127.0.0.1").returncode == 2


def test_a_token_goes_to_the_service_that_it_was_given_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    here, there = "http://127.0.0.1:9", "https://kuayu.example"
    assert service_of(None, None, tmp_path) == ("http://127.0.0.1:8080", None)
    directory = DataDirectory(tmp_path)
    directory.make()
    directory.connect(here, "own")
    assert service_of(None, None, tmp_path) == (here, "own")
    assert service_of(f"{here}/", None, tmp_path) == (f"{here}/", "own")
    assert service_of(there, None, tmp_path) == (there, None)
    monkeypatch.setenv("KUAYU_TOKEN", "theirs")
    assert service_of(None, None, tmp_path) == (here, "own")  # a file must not draw a token out of the environment
    assert service_of(there, None, tmp_path) == (there, "theirs")
    monkeypatch.setenv("KUAYU_URL", there)
    assert service_of(None, None, tmp_path) == (there, "theirs")
    assert service_of(None, "typed", tmp_path) == (there, "typed")


def test_a_connection_that_others_may_have_written_is_passed_over(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.make()
    directory.connect("http://127.0.0.1:9", "own")
    (tmp_path / "connection.json").chmod(0o666)
    assert directory.connection() is None


def test_domains_are_added_listed_and_removed(folder: Path) -> None:
    assert "no domain is added" in kuayu("domain", "list")
    assert "it runs from the next kuayu up on" in kuayu("domain", "add", "two", "--local", "--devices", "3")
    assert DataDirectory(folder / "kuayu-data").entries() == {"two": DomainEntry("local", devices=3)}
    assert "there is a domain two" in kuayu("domain", "add", "two", "--local", status=2)
    assert kuayu("domain", "list").split()[-6:] == ["nodes", "two", "local", "no", "this", "host"]
    assert "domain two is removed" in kuayu("domain", "remove", "two")
    assert "there is no domain two" in kuayu("domain", "remove", "two", status=2)


@pytest.mark.usefixtures("folder")
def test_links_between_domains_are_registered_and_keep_what_else_is_known_of_them(shared: Service) -> None:
    for domain in ("east", "west"):
        shared.client.put(f"/v1/domains/{domain}", json={"id": domain}).raise_for_status()
    assert kuayu("domain", "link", "east", "west") == (
        "link east-west from east to west, whose capacity nobody states\n"
    )
    told = {"id": "east-west", "source": "east", "destination": "west", "extensions": {"org.kuayu/tariff": 1e-9}}
    shared.client.put("/v1/links/east-west", json=told).raise_for_status()
    assert kuayu("domain", "link", "east", "west", "--capacity", "2.5 Gbit/s").endswith(", 2.5 Gbit/s\n")
    known = shared.client.get("/v1/links/east-west").json()
    assert (known["capacity"], known["extensions"]) == (2.5e9, told["extensions"])
    assert kuayu("domain", "link", "east", "west").endswith(", 2.5 Gbit/s\n")
    assert "such as 10Gbit/s" in kuayu("domain", "link", "east", "west", "--capacity", "10GB", status=2)
    assert "name two domains" in kuayu("domain", "link", "east", "east", status=2)
    assert "nowhere" in kuayu("domain", "link", "east", "nowhere", status=1)
    for domain in ("east-1", "north", "1-north"):
        shared.client.put(f"/v1/domains/{domain}", json={"id": domain}).raise_for_status()
    kuayu("domain", "link", "east-1", "north")
    assert "leads from east-1 to north" in kuayu("domain", "link", "east", "1-north", status=2)  # of the same name
    assert "are the most" in kuayu("domain", "link", "e" * 70, "w" * 70, status=2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "there are 0"),
        (["--local", "--slurm"], "there are 2"),
        (["--ssh", "gpu-1"], "ssh -t -R"),
        (["--local", "--option", "colour=red"], "the engine local has no option colour"),
        (["--slurm"], "--inventory FILE"),
    ],
)
def test_what_cannot_be_added_is_told_with_what_to_do(folder: Path, options: list[str], told: str) -> None:
    assert told in kuayu("domain", "add", "bad", *options, status=2).replace("\n", " ")
    assert DataDirectory(folder / "kuayu-data").entries() == {}


def test_a_data_directory_is_its_owners_alone(folder: Path) -> None:
    kuayu("domain", "add", "two", "--local")
    for path in [folder / "kuayu-data", *(folder / "kuayu-data").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
        assert path.stat().st_uid == os.getuid()


def test_everything_says_what_keeps_it_from_coming_up(folder: Path, shared: Service) -> None:
    taken = kuayu("up", "--port", str(shared.port), status=1)
    assert f"cannot listen on 127.0.0.1:{shared.port}" in taken
    with lock(DataDirectory(folder / "kuayu-data").lock):
        assert "another kuayu up uses" in kuayu("up", "--port", "0", status=1)
    assert "give both --tls-certificate and --tls-key" in kuayu("up", "--tls-key", "key.pem", status=2)
    assert "is not a valid name of a domain" in kuayu("up", "--domain", "my domain", status=2)
    (folder / "file").touch()
    assert "cannot make" in kuayu("up", "--port", "0", "--data", "file/within", status=1)
