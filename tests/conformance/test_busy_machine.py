"""What keeps the suite's machine busy beside a run is not held against the target."""

import dataclasses
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast import accuracy as fct_accuracy
from kuayu_conformance.checks.interface import streams
from kuayu_conformance.checks.scheduling import latency as sch_latency
from kuayu_conformance.episode import Episode, FellBehind, Request, Settings
from kuayu_conformance.findings import holds
from kuayu_conformance.folder import verify, write
from kuayu_conformance.run.judgement import attributed, excused, machine_was_busy
from kuayu_conformance.run.live import round_trip_of
from kuayu_conformance.run.machine import (
    MAX_STANDSTILL,
    MachineLoad,
    MachineWatch,
    descendants,
    is_here,
    listeners,
    process_seconds,
)
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_schemas.models import RequirementResult, Verdict

BUSY = MachineLoad(seconds=60.0, disturbed=50.0, others=1.4, load=14.2, processors=2)
CALM = dataclasses.replace(BUSY, disturbed=2.0)
BY_THE_CLOCK, BY_ANSWERS = sch_latency.CHECK, fct_accuracy.QUANTILES_CHECK
LISTENS_AND_WORKS = """
import os, socket
listening = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    print(listening.getsockname()[1], flush=True)
while True:
    pass
"""


SLOW_TARGET = dataclasses.replace(CALM, idle=0.9, suite=0.2, round_trip=0.0004)
"""A machine with room, and a path that takes next to nothing of an answer's second."""


def found(verdict: Verdict, requirement: str, reason: str | None = None) -> dict[str, RequirementResult]:
    return {
        requirement: RequirementResult(
            requirement=requirement, verdict=verdict, required=True, reason=reason, parts=[], evidence=[]
        )
    }


def episode(*answers: Answer) -> Episode:
    made = Episode("any", Settings("nonce", "run", False, frozenset(), {}, False), ReplaySource("any", ()))
    made.exchanges += [(Request("POST", "/v1/forecasts", {}, b"", "own"), answer) for answer in answers]
    return made


def answer(status: int, failure: str = "") -> Answer:
    return Answer(0, "POST /v1/forecasts", status, {}, b"", failure, 0.0, 1.0)


@pytest.fixture
def worker() -> Iterator[tuple[int, int]]:
    """Two processes that work without a pause, of which one is the other's child: port of both, and the parent."""
    process = subprocess.Popen([sys.executable, "-c", LISTENS_AND_WORKS], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    port = int(process.stdout.readline())
    started = descendants({process.pid})
    yield port, process.pid
    for pid in started | descendants({process.pid}):
        os.kill(pid, 9)
    process.communicate()


def test_a_figure_that_rests_on_the_clock_says_nothing_where_the_machine_was_busy() -> None:
    results = found(Verdict.fail, "SCH-002", "the figure misses the threshold: 2 s against at_most 1")
    result = excused(results, BY_THE_CLOCK, episode(), BUSY, "http://target")["SCH-002"]
    assert result.verdict is Verdict.not_testable
    assert "this machine was busy" in (result.reason or "")
    assert "load 14" in (result.reason or "")
    assert "2 s against at_most 1" in (result.reason or ""), "what was found is told all the same"
    assert "--target http://target --requirement SCH-002" in (result.hint or "")


@pytest.mark.parametrize(
    ("verdict", "load"),
    [(Verdict.pass_, BUSY), (Verdict.harness_error, BUSY), (Verdict.fail, CALM), (Verdict.inconclusive, CALM)],
)
def test_nothing_is_excused_that_was_reached_all_the_same_nor_on_a_calm_machine(
    verdict: Verdict, load: MachineLoad
) -> None:
    results = found(verdict, "SCH-002")
    assert excused(results, BY_THE_CLOCK, episode(), load, "http://target") == results


def test_what_was_answered_wrongly_is_wrong_on_a_busy_machine_too() -> None:
    results = found(Verdict.fail, "FCT-004")
    assert excused(results, BY_ANSWERS, episode(answer(200), answer(500)), BUSY, "http://target") == results


def test_an_answer_that_did_not_come_in_time_is_the_machine_s() -> None:
    late = episode(answer(200), answer(0, "ReadTimeout: timed out"))
    result = excused(found(Verdict.fail, "FCT-004"), BY_ANSWERS, late, BUSY, "http://target")["FCT-004"]
    assert result.verdict is Verdict.not_testable
    refused = episode(answer(0, "ConnectError: refused"))
    assert excused(found(Verdict.fail, "FCT-004"), BY_ANSWERS, refused, BUSY, "")["FCT-004"].verdict is Verdict.fail


def test_what_the_suite_was_late_with_is_not_held_against_the_target() -> None:
    """A job that hangs is told too late where its nodes were not heard of while the suite stood still."""
    load = dataclasses.replace(CALM, standstill=1.1)
    result = excused(found(Verdict.fail, "SCH-002"), BY_THE_CLOCK, episode(), load, "http://target")["SCH-002"]
    assert machine_was_busy(result)
    assert "the suite itself stood still for 1.1 s" in (result.reason or "")
    short = dataclasses.replace(CALM, standstill=0.4)
    results = found(Verdict.fail, "SCH-002")
    assert excused(results, BY_THE_CLOCK, episode(), short, "http://target") == results


@pytest.mark.parametrize(("idle", "excuses"), [(0.67, True), (0.79, True), (0.81, False)])
def test_a_delay_on_a_machine_that_suite_and_target_fill_says_nothing_of_either(idle: float, excuses: bool) -> None:
    """On one that leaves two fifths idle it does."""
    load = dataclasses.replace(CALM, idle=idle)
    results = {
        name: result.model_copy(update={"estimate": 0.9, "bound": 1.1})
        for name, result in found(Verdict.inconclusive, "SCH-002", "its bound does not").items()
    }
    result = excused(results, BY_THE_CLOCK, episode(), load, "http://target")["SCH-002"]
    assert machine_was_busy(result) is excuses
    if excuses:
        assert f"no more than {idle:.1f} of 2 processors of this machine were idle" in (result.reason or "")
        assert "its bound does not" in (result.reason or ""), "what was found is told all the same"
        assert "more processors, run kuayu conformance run" in (result.hint or "")
    passed = found(Verdict.pass_, "SCH-002")
    assert excused(passed, BY_THE_CLOCK, episode(), load, "http://target") == passed


def test_what_was_expected_and_not_met_stays_so_on_a_machine_that_is_only_small() -> None:
    """Else nothing could fail where suite and target share two processors."""
    results, load = found(Verdict.fail, "SCH-002", "2 of 8 expectations"), dataclasses.replace(CALM, idle=0.3)
    assert excused(results, BY_THE_CLOCK, episode(), load, "http://target") == results


def test_it_is_seen_that_the_suite_stands_still() -> None:
    """A regular expression keeps the interpreter to itself until it has ended."""
    body = b" " * (1 << 20)
    with MachineWatch("http://192.0.2.1:80") as watch:
        begin = time.monotonic()
        while _without_a_pause(body) < 2 * MAX_STANDSTILL:
            body *= 2
        time.sleep(0.2)  # it is seen when the other thread is back
        load = watch.since(begin)
    if sys.platform == "linux":
        assert load
        assert load.stood_still
        assert MachineLoad.of(load.event()) == load


def _without_a_pause(body: bytes) -> float:
    """Seconds that it takes."""
    begin = time.perf_counter()
    assert re.match(rb"(.)\1*", body)
    return time.perf_counter() - begin


def test_work_of_others_is_seen(worker: tuple[int, int]) -> None:
    """The target is elsewhere, so that two processes without a pause are neither its nor the suite's."""
    assert worker
    with MachineWatch("http://192.0.2.1:80") as watch:
        watch.roots = {process for process in watch.roots if process != os.getpid()}  # they are this test's children
        begin = time.monotonic()
        time.sleep(3.5)
        load = watch.since(begin)
    assert load
    assert load.busy
    assert load.others > 0.3


def test_work_of_the_target_is_the_target_s_own(worker: tuple[int, int]) -> None:
    """A target is no less slow for being so by its own work, that of its children included."""
    port, parent = worker
    target = f"http://127.0.0.1:{port}"
    processes = listeners(target)
    assert processes == descendants({parent}), "both hold the socket"
    watch = MachineWatch(target)
    watch.roots = {*processes}
    before = watch.sample()
    time.sleep(1)
    after = watch.sample()
    tick = os.sysconf("SC_CLK_TCK")
    assert after.known - before.known > 0.1
    assert after.known == pytest.approx(sum(process_seconds(pid, tick)[1] for pid in processes), abs=0.5)


def test_where_the_target_s_processes_cannot_be_found_nothing_is_known_of_others() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        target = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert listeners(target) is None
    with MachineWatch(target) as watch:
        assert watch.since(time.monotonic()) is None


@pytest.mark.parametrize(("host", "here"), [("localhost", True), ("127.0.0.9", True), ("192.0.2.1", False)])
def test_it_is_known_which_machine_a_target_is_on(host: str, here: bool) -> None:
    assert is_here(host) is here


def test_a_verdict_is_judged_again_by_what_the_machine_did_then(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transcript holds it, so that whoever judges again comes to the same."""
    monkeypatch.setattr(MachineWatch, "since", lambda _watch, _begin: BUSY)
    seen: list[Verdict] = []

    class Noted(Progress):
        def finished(self, _: Check[object], results: dict[str, RequirementResult]) -> None:
            seen.extend(result.verdict for result in results.values())

    failing = dataclasses.replace(
        streams.PAGING_CHECK, judge=lambda _: [holds("COM-012", False, "to be quick", "slow")], recorded_times=True
    )
    monkeypatch.setattr(streams, "PAGING_CHECK", failing)
    report = Run(dataclasses.replace(options, selection=("COM-012",), watch=True), tmp_path, Noted()).execute()
    write(tmp_path, report)
    result = next(row for row in report.results if row.requirement == "COM-012")
    assert (seen, result.verdict) == ([Verdict.not_testable], Verdict.not_testable)
    assert "this machine was busy" in (result.reason or "")
    assert all(verdict.agrees for verdict in verify(tmp_path))


def behind(*answers: Answer) -> Episode:
    """An episode whose world had to wait for answers."""
    made = episode(*answers)
    made.behind = FellBehind("the world waited 30 of 122 s for requests to be answered", "10% of the time of a world")
    return made


def test_what_a_world_waits_for_a_slow_target_is_held_against_it() -> None:
    untested = found(Verdict.not_testable, "RES-001")
    (result,) = attributed(untested, behind(answer(200), answer(200)), SLOW_TARGET).values()
    assert result.verdict is Verdict.fail
    for words in ("waited 30 of 122 s", "at most 10%", "1000 ms on average", "the path 0.4 of them", "0.9 of 2"):
        assert words in (result.reason or ""), result.reason


@pytest.mark.parametrize(
    "load",
    [
        dataclasses.replace(SLOW_TARGET, round_trip=0.3),
        dataclasses.replace(SLOW_TARGET, round_trip=None),
        dataclasses.replace(SLOW_TARGET, suite=0.95),
        dataclasses.replace(SLOW_TARGET, disturbed=50.0),
        CALM,
    ],
    ids=["a long path", "a path that loses", "a busy suite", "others at work", "a transcript of before"],
)
def test_what_may_be_somebody_elses_is_not(load: MachineLoad) -> None:
    untested = found(Verdict.not_testable, "RES-001")
    assert attributed(untested, behind(answer(200)), load) == untested


@pytest.mark.parametrize("idle", [0.1, 0.79])
def test_a_machine_that_is_too_small_for_suite_and_target_says_so(idle: float) -> None:
    """Nobody else works on it, but suite and target may have been in each other's way."""
    untested, load = found(Verdict.not_testable, "RES-001"), dataclasses.replace(SLOW_TARGET, idle=idle)
    (result,) = attributed(untested, behind(answer(200)), load).values()
    assert machine_was_busy(result)
    assert f"no more than {idle:.1f} of 2 processors" in (result.reason or "").lower()
    assert "more processors" in (result.hint or "")


def test_what_cannot_be_tested_for_another_reason_stays_so() -> None:
    untested = found(Verdict.not_testable, "COM-019", "there are no credentials of a second tenant")
    assert attributed(untested, episode(answer(200)), SLOW_TARGET) == untested


def test_the_path_is_told_from_a_target_that_takes_its_time() -> None:
    """TCP's own measure does not contain what a target does before it answers."""

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(0.2)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target = f"http://127.0.0.1:{server.server_address[1]}"
        with httpx.Client(trust_env=False) as client, client.stream("GET", f"{target}/v1/health") as response:
            taken = round_trip_of(response)
            response.read()
        server.shutdown()
    assert response.elapsed.total_seconds() > 0.2
    if sys.platform == "linux":
        assert taken is not None
        assert taken < 0.05


def test_it_is_recorded_how_much_of_the_machine_was_idle_and_how_much_the_suite_had() -> None:
    with MachineWatch("http://127.0.0.1:9") as idle:
        assert idle.since(time.monotonic()) is None or sys.platform == "linux"
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, MachineWatch(f"http://127.0.0.1:{listening.getsockname()[1]}") as watch:
        begin, used = time.monotonic(), time.process_time()
        while time.monotonic() < begin + 2.5:
            pass
        used = (time.process_time() - used) / (time.monotonic() - begin)  # less than 1 where others want it as well
        load = watch.since(begin)
    assert load is not None
    assert load.suite is not None
    assert load.idle is not None
    assert load.suite > 0.5 * used, "this process did nothing but compute"
    assert load.idle <= load.processors - load.suite + 0.5
    assert MachineLoad.of({**load.event(), "kind": "machine"}) == load
    old = {
        name: value for name, value in load.event().items() if name not in {"idle", "suite", "round_trip", "standstill"}
    }
    assert MachineLoad.of(old).idle is None
