"""Live runs: what is made is removed, what goes wrong in the suite is not blamed on the target."""

import dataclasses
import http.client
import io
import json
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from rich.console import Console

from kuayu_conformance.check import Check
from kuayu_conformance.checks.interface import streams
from kuayu_conformance.claims import LEFT_TO_LONGER_RUNS
from kuayu_conformance.episode import Episode
from kuayu_conformance.folder import verify, write
from kuayu_conformance.rendering import summary
from kuayu_conformance.run import plan as planning
from kuayu_conformance.run.judgement import Results
from kuayu_conformance.run.resumption import ResumedRun
from kuayu_conformance.run.runner import Options, Progress, Run, TargetUnreachable
from kuayu_schemas.models import Level, Profile, RunLevel, Verdict


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

    run = Run(options, tmp_path, Impatient())
    assert run.so_far() is None, "nothing has been made yet"
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    assert listed(options.target, "nodes") == []


@pytest.mark.parametrize("behind", [True, False])
def test_what_a_check_made_is_gone_when_the_next_begins(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, behind: bool
) -> None:
    """A target goes on looking at what is registered, which slows what comes next; a job that waits delays others."""
    seen: dict[str, list[str]] = {}

    def played(episode: Episode) -> None:
        name = episode.name_of("domain")
        episode.ask("PUT", f"/v1/domains/{name}", {"id": name})
        seen["while it is played"] = listed(options.target, "domains")

    def observed(_: Episode) -> None:
        seen["when others are made"] = listed(options.target, "domains")

    world = Check("world", (), played, lambda _: (), background=behind)
    others = Check("others", (), observed, lambda _: (), recorded_times=True, heavy=behind)
    monkeypatch.setattr(Run, "_left_of", lambda *_: [world, others])
    Run(dataclasses.replace(options, selection=("COM-012",)), tmp_path, Progress()).execute()
    assert len(seen["while it is played"]) == 1
    assert seen["when others are made"] == []


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


def test_a_run_called_off_is_reported_by_what_had_ended(options: Options, tmp_path: Path) -> None:
    class Impatient(Progress):
        def finished(self, check: Check[Any], _: Results) -> None:
            if check.name == "com_paging":
                raise KeyboardInterrupt

    chosen = dataclasses.replace(options, selection=("COM-003", "COM-004", "COM-012", "MET-009"))
    run = Run(chosen, tmp_path, Impatient())
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    report = run.so_far()
    assert report
    write(tmp_path, report)
    verdicts = {result.requirement: result.verdict for result in report.results if result.required}
    ended, left = Verdict.pass_, Verdict.not_testable
    assert verdicts == {"COM-003": left, "COM-004": ended, "COM-012": ended, "MET-009": left}
    assert (report.called_off, report.exit_code) == ("it was called off", 2)
    assert "ended before all checks had" in (tmp_path / "report.html").read_text("utf-8")
    assert all(verdict.agrees for verdict in verify(tmp_path)), "it is judged again like any other"

    whole = ResumedRun(dataclasses.replace(chosen, nonce="", level="", selection=()), tmp_path, Progress()).execute()
    assert {result.verdict for result in whole.results if result.required} == {Verdict.pass_}
    assert whole.called_off is None


def test_a_smoke_run_leaves_out_what_takes_long_unless_it_is_asked_for() -> None:
    declared = {"COM", "MET", "IDX", "DEM", "FCT", "SCH", "RES", "JOB"}
    everything = planning.Plan((), (), RunLevel.smoke, "nonce", "run", other_tenant=True, declaration=None)
    made = {check.name for check in everything.checks()}
    assert "sch_gains" not in made
    assert {requirement.profile for requirement in planning.testable() if planning.check_of(requirement) in made} == {
        Profile(name) for name in declared
    }
    gains = next(row for row in planning.testable() if row.id == "SCH-003")
    verdict, reason = everything.applies(gains) or (None, "")
    assert (verdict, reason) == (Verdict.not_applicable, LEFT_TO_LONGER_RUNS)
    assert dataclasses.replace(everything, level=RunLevel.quick).applies(gains) is None
    assert dataclasses.replace(everything, selection=("SCH-003",)).applies(gains) is None
    interface = {row.id for row in planning.testable() if row.level is Level.interface}
    assert interface <= {row.id for row in planning.testable() if everything.applies(row) is None}
    left = {row.id for row in planning.testable() if everything.applies(row) is not None}
    assert left == {"DEM-003", "FCT-004", "MET-024", "SCH-003", "SCH-004", "SCH-005", "SCH-008", "SCH-011"}
    assert "dem_sizing" in made, "sizes are asked for in a smoke run, though it has no time for what is gained by them"


def test_a_report_of_a_smoke_run_says_what_decides_the_rest(options: Options, tmp_path: Path) -> None:
    chosen = dataclasses.replace(options, selection=(), profiles=("DEM",), level="smoke")
    report = Run(chosen, tmp_path, Progress()).execute()
    (left,) = [result for result in report.results if result.requirement == "DEM-003"]
    assert (left.verdict, left.reason) == (Verdict.not_applicable, LEFT_TO_LONGER_RUNS)
    assert left.hint == (
        f"run kuayu conformance run --target {options.target} --level quick --requirement DEM-003 -o DIR"
    )
    out = io.StringIO()
    Console(file=out, width=200).print(summary(report))
    assert "Left to longer runs: --level quick --requirement DEM-003" in out.getvalue()


def test_what_keeps_a_target_busy_comes_when_the_worlds_that_time_it_are_through() -> None:
    """Else their delays would be measured with it, and pages of live nodes that come late be taken for dead ones."""
    everything = planning.Plan((), (), RunLevel.quick, "nonce", "run", other_tenant=True, declaration=None)
    made = everything.checks()
    heavy = [check.heavy for check in made]
    assert heavy == sorted(heavy)
    assert any(heavy)
    assert {"met_sparse", "met_accuracy", "sch_latency"} <= {check.name for check in made if check.heavy}
    assert not any(check.heavy and check.background for check in made)


def test_heavy_checks_go_side_by_side_but_for_those_that_look_at_the_clock(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that only compute meet; what looks at the clock has ended by then, all of it."""
    meeting, under_way = threading.Barrier(2, timeout=30), set[str]()
    beside: dict[str, set[str]] = {}

    def computed(episode: Episode) -> None:
        assert beside.keys() == {"first clock", "second clock"}
        under_way.add(episode.name)
        meeting.wait()
        under_way.discard(episode.name)

    def timed(episode: Episode) -> None:
        beside[episode.name] = set(under_way)
        under_way.add(episode.name)
        episode.ask("GET", "/v1/health")
        under_way.discard(episode.name)

    checks = [
        Check("first clock", (), timed, lambda _: (), heavy=True, recorded_times=True),
        *(Check(name, (), computed, lambda _: (), heavy=True) for name in ("one", "other")),
        Check("second clock", (), timed, lambda _: (), heavy=True, recorded_times=True),
    ]
    monkeypatch.setattr(Run, "_left_of", lambda *_: checks)
    Run(dataclasses.replace(options, selection=("COM-012",)), tmp_path, Progress()).execute()
    assert beside == {"first clock": set(), "second clock": set()}
    assert not meeting.broken, "the two never met"


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
    def broken(episode: Episode) -> streams.ListingPages:
        raise ZeroDivisionError(episode.name)

    faulty = dataclasses.replace(streams.PAGING_CHECK, observe=broken)
    monkeypatch.setattr(streams, "PAGING_CHECK", faulty)
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
