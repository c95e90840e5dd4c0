"""Live runs: what is made is removed, what goes wrong in the suite is not blamed on the target."""

import dataclasses
import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kuayu_conformance.check import Check
from kuayu_conformance.checks import com_paging
from kuayu_conformance.episode import Episode
from kuayu_conformance.run import plan as planning
from kuayu_conformance.run.judging import Results
from kuayu_conformance.run.runner import Options, Progress, Run, TargetUnreachable
from kuayu_schemas.models import Verdict


def listed(target: str, kind: str) -> list[str]:
    host = urlsplit(target)
    connection = http.client.HTTPConnection(host.hostname or "", host.port)
    connection.request("GET", f"/v1/{kind}?limit=100", headers={"authorization": "Bearer own"})
    body: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return [item["id"] for item in body["items"]]


def test_a_run_leaves_nothing_behind(options: Options, report_folder: Path) -> None:
    assert report_folder
    assert {kind: listed(options.target, kind) for kind in ("domains", "nodes", "links")} == {
        "domains": [],
        "nodes": [],
        "links": [],
    }


def test_a_run_called_off_leaves_nothing_behind(options: Options, tmp_path: Path) -> None:
    class Impatient(Progress):
        def finished(self, *_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(options, tmp_path, Impatient()).execute()
    assert listed(options.target, "nodes") == []


def test_what_was_waiting_when_a_run_was_called_off_is_not_judged(options: Options, tmp_path: Path) -> None:
    verdicts: list[Verdict] = []

    class Impatient(Progress):
        def finished(self, _: Check[Any], results: Results) -> None:
            verdicts.extend(result.verdict for result in results.values())
            raise KeyboardInterrupt

    waiting = dataclasses.replace(options, selection=("MET-002", "COM-012"))
    with pytest.raises(KeyboardInterrupt):
        Run(waiting, tmp_path, Impatient()).execute()
    assert verdicts == [Verdict.pass_]


def test_the_same_nonce_asks_the_same_and_never_meets_itself(options: Options, tmp_path: Path) -> None:
    again = dataclasses.replace(options, selection=("COM-009",))
    for run in ("first", "second"):
        report = Run(again, tmp_path / run, Progress()).execute()
        assert {r.verdict for r in report.results if r.requirement == "COM-009"} == {Verdict.pass_}


def test_nothing_at_the_target_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(TargetUnreachable, match="does not answer"):
        Run(Options(target=f"http://127.0.0.1:{port}", nonce="x"), tmp_path, Progress()).execute()


def test_a_fault_of_the_suite_is_a_harness_error(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(episode: Episode) -> com_paging.Observed:
        raise ZeroDivisionError(episode.name)

    faulty = dataclasses.replace(com_paging.CHECK, observe=broken)
    monkeypatch.setattr(planning, "CHECKS", (faulty,))
    report = Run(dataclasses.replace(options, selection=("COM-012",)), tmp_path, Progress()).execute()
    result = next(r for r in report.results if r.requirement == "COM-012")
    assert (result.verdict, report.exit_code) == (Verdict.harness_error, 3)
    assert "ZeroDivisionError" in (result.reason or "")


def test_what_cannot_be_tested_says_what_is_missing(options: Options, tmp_path: Path) -> None:
    alone = dataclasses.replace(options, other_headers={}, selection=("COM-019",))
    report = Run(alone, tmp_path, Progress()).execute()
    result = next(r for r in report.results if r.requirement == "COM-019")
    assert result.verdict is Verdict.not_testable
    assert "--other-tenant-header" in (result.hint or "")
    assert report.exit_code == 2
