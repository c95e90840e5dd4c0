"""`kuayu place` as operators type it: on a file, with or without a service, and with mistakes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import run
from service.conftest import Service
from service.test_placements import PLACEMENTS, REQUESTS

from kuayu_schemas import schema

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUESTS[PLACEMENTS]() | {"explain": False}), encoding="utf-8")
    return file


def typed(*arguments: str | Path, stdin: str = "", columns: int = 160) -> subprocess.CompletedProcess[str]:
    return run("place", *arguments, text=stdin, COLUMNS=str(columns), no_proxy="127.0.0.1")


def test_decisions_make_a_table_with_a_line_for_each_job(request_file: Path) -> None:
    ended = typed(request_file)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split() for line in ended.stdout.splitlines()]
    assert rows[0] == ["job", "decision", "where"]
    assert {row[0]: row[1] for row in rows[1:3]} == {"first": "start", "second": "start"}
    assert all("a800 in" in " ".join(row) for row in rows[1:3])
    assert "2 start of 2 that wait and 1 that run" in ended.stdout


def test_explanations_tell_what_is_expected_and_why(request_file: Path) -> None:
    ended = typed(request_file, "--explain")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(typed(request_file, "--explain", "--json").stdout)
    assert schema.errors("PlacementReport", report) == []
    assert ended.stdout.split("\n")[0].split() == ["job", "decision", "where", "runs", "in", "ends", "in", "money"]
    words = " ".join(ended.stdout.split())
    for decision in report["decisions"]:
        assert decision["explanation"]["reason"] in words


def test_a_state_alone_will_do(request_file: Path) -> None:
    made = json.loads(request_file.read_text("utf-8"))
    alone = typed("-", "--json", stdin=json.dumps(made["state"]))
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout) == json.loads(typed(request_file, "--json").stdout)


def test_weights_and_alternatives_are_those_that_are_told(request_file: Path) -> None:
    told = typed(request_file, "--weights", "period=1, communication=2.5", "--explain", "--alternatives", "1", "--json")
    assert told.returncode == 0, told.stderr
    report = json.loads(told.stdout)
    weights = {"period": 1.0, "communication": 2.5, "utilisation": 0.0, "price": 0.0}
    assert report["method"]["weights"] == weights
    assert max(len(each["explanation"]["alternatives"]) for each in report["decisions"]) == 1


@pytest.mark.parametrize("told", ["period", "period=much", "speed=1", "period=-1", "period=nan"])
def test_weights_that_are_none_are_told(request_file: Path, told: str) -> None:
    assert_told(typed(request_file, "--weights", told), f"--weights: '{told}' are no weights", "period=1")


def test_a_service_gives_the_same_answer_as_this_host(request_file: Path, shared: Service) -> None:
    here, there = typed(request_file, "--json"), typed(request_file, "--json", "--url", shared.url)
    assert here.returncode == 0, here.stderr
    assert json.loads(here.stdout) == json.loads(there.stdout)


@pytest.mark.parametrize(
    ("change", "cause", "hint"),
    [
        (lambda made: made["state"].pop("now"), "/state: ", "the class PlacementRequest"),
        (lambda made: made["state"].update(now="2025-02-30T00:00:00Z"), "/state/now: ", "the class PlacementRequest"),
        (lambda made: made.update(shares=[{"domain": "x", "share": 1}]), "/shares/0/domain: ", "give each name once"),
        (
            lambda made: made["state"]["waiting"].append(made["state"]["waiting"][0]),
            "/state/waiting/2/spec/id: ",
            "give each name once",
        ),
    ],
)
def test_a_faulty_request_is_told_where(request_file: Path, change: Change, cause: str, hint: str) -> None:
    made = json.loads(request_file.read_text("utf-8"))
    change(made)
    assert_told(typed("-", stdin=json.dumps(made)), cause, hint)


@pytest.mark.parametrize(
    ("options", "cause", "hint"),
    [
        (("--url", "localhost:80"), "is not an http or https URL", "http://HOST:PORT"),
        (("--url", "http://127.0.0.1:9"), "no answer from", "check that the service runs"),
    ],
)
def test_a_mistake_is_told_with_cause_and_hint(
    request_file: Path, options: tuple[str, ...], cause: str, hint: str
) -> None:
    assert_told(typed(request_file, *options), cause, hint)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert_told(typed(tmp_path / "none.json"), "No such file", "- for the standard input")


def assert_told(ended: subprocess.CompletedProcess[str], cause: str, hint: str) -> None:
    assert ended.returncode in {1, 2}
    words = " ".join(ended.stderr.split())
    assert cause in words
    assert hint in words.partition("hint ")[2]
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
