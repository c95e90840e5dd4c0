"""What a service hears of runs: how they stand, how far they are, and every line that they print, once."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.test_runner import COMMIT, Domain, release, reserve, start, stop

from kuayu.client import Client, RefusedError, UnauthorisedError, UnreachableError
from kuayu.engine import run_reports
from kuayu.engine.run_reports import RunReporter
from kuayu.engine.runs.local import LocalEngine
from kuayu.engine.runs.protocol import EngineError, RunState, RunStatus
from kuayu_schemas import models, registers, schema
from kuayu_schemas.models import Problem, RankStep, RunLogBatch, RunLogLine, RunLogResult, RunReport

PATIENCE_S = 60.0


def refusal(name: str) -> RefusedError:
    kind = next(each for each in registers.problems().problems if each.name == name)
    return RefusedError(Problem(type=kind.type, title=kind.title_en, status=kind.status, retryable=kind.retryable))


class Listener(Client):
    """A service that keeps what it is told, as the standard says: each line once, and none after a gap."""

    def __init__(self) -> None:
        super().__init__("http://localhost")
        self.reports: list[RunReport] = []
        self.lines: list[RunLogLine] = []
        self.batches: list[int] = []
        self.away = self.strange = self.unauthorised = False
        self.most = 10_000
        self.order: list[str] = []

    def post_run_report(self, report: RunReport) -> Any:
        """Take a report."""
        self._check()
        assert schema.errors("RunReport", report.to_wire()) == []
        self.reports.append(report)
        self.order.append(report.state.value)

    def post_run_logs(self, batch: RunLogBatch) -> RunLogResult:
        """Take lines."""
        self._check()
        assert schema.errors("RunLogBatch", batch.to_wire()) == []
        if len(batch.lines) > self.most:
            raise refusal("payload-too-large")
        self.batches.append(len(batch.lines))
        if batch.lines[0].number <= len(self.lines) + 1:
            self.lines += [line for line in batch.lines if line.number > len(self.lines)]
            self.order.append("lines")
        return RunLogResult(last=len(self.lines))

    @property
    def texts(self) -> list[str]:
        """What was printed."""
        return [line.text for line in self.lines]

    @property
    def states(self) -> list[str]:
        """States that were told."""
        return [report.state.value for report in self.reports]

    def _check(self) -> None:
        if self.away:
            raise UnreachableError("no answer", "wait", transient=True)
        if self.strange:
            raise refusal("unknown-reference")
        if self.unauthorised:
            raise UnauthorisedError(refusal("unauthorised").problem)


class Told:
    """A domain that runs something, and who tells a service of it."""

    def __init__(self, domain: Domain, **run: Any) -> None:
        self.domain, self.engine, self.service = domain, domain.engine, Listener()
        self.name = domain.running(**run)
        self.reporter = self.anew()

    def anew(self) -> RunReporter:
        """Who tells, newly begun."""
        self.reporter = RunReporter(self.service, "x", self.engine, self.domain.runner, poll_s=0.001)
        return self.reporter

    def until(self, reached: Callable[[], bool]) -> None:
        """Tell until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, (self.service.reports, self.service.lines)
            self.reporter.poll()
            time.sleep(0.005)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(run_reports, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(run_reports, "MAX_PAUSE_S", 0.02)
    (tmp_path / "steps").mkdir()
    return Told(Domain(tmp_path, steps=tmp_path / "steps"))


def test_a_run_is_told_when_it_runs_what_it_prints_and_how_it_ends(told: Told) -> None:
    told.engine.say(told.name, "hello")
    told.reporter.poll()
    told.engine.say(told.name, "loss 1.5", "loss 1.2", rank=3)
    told.reporter.poll()
    told.engine.say(told.name, "done")
    told.engine.end(told.name, RunState.SUCCEEDED, exit_code=0)
    told.until(lambda: "succeeded" in told.service.states)
    assert told.service.texts == ["hello", "loss 1.5", "loss 1.2", "done"]
    assert [line.rank for line in told.service.lines] == [0, 3, 3, 0]
    assert told.service.states == ["running", "succeeded"]
    assert told.service.order[-1] == "succeeded"  # the end comes after what was printed before it
    last = told.service.reports[-1]
    assert (last.job, last.attempt, last.domain, last.exit_code, last.own_fault) == ("job-1", 1, "x", 0, None)
    told.reporter.poll()
    assert len(told.service.reports) == 2  # once


def test_what_is_told_is_not_kept_once_the_devices_are_back(told: Told) -> None:
    told.engine.end(told.name, RunState.SUCCEEDED, exit_code=0)
    told.until(lambda: told.domain.runner.records[0].reported)
    told.domain.ask(release("r"))
    assert told.domain.runner.records == []
    assert ("stop", told.name) not in told.engine.asked  # it had ended


@pytest.mark.parametrize(
    ("status", "own_fault"),
    [
        (RunStatus(RunState.FAILED, "rank 2 ended with exit code 1", 1), None),
        (RunStatus(RunState.FAILED, "rank 2 was ended by SIGKILL", -9), None),
        (RunStatus(RunState.FAILED, "the host was restarted"), False),
        (RunStatus(RunState.STOPPED, "somebody cancelled it"), False),
    ],
)
def test_whose_fault_an_end_was_follows_from_whether_a_process_decided_it(
    told: Told, status: RunStatus, own_fault: bool | None
) -> None:
    told.engine.end(told.name, status.state, status.reason, status.exit_code)
    told.until(lambda: len(told.service.reports) == 1)
    [report] = told.service.reports
    assert (report.own_fault, report.exit_code, report.reason) == (own_fault, status.exit_code, status.reason)


def test_a_run_that_was_asked_to_stop_is_told_as_stopped_with_why(told: Told) -> None:
    told.domain.ask(stop(attempt=None, cause="fault job_hung"))
    told.until(lambda: bool(told.service.reports))
    [report] = told.service.reports
    assert (report.state, report.reason, report.own_fault) == (models.RunState.stopped, "fault job_hung", None)


def test_one_that_was_to_end_before_its_engine_began_is_told_as_stopped(tmp_path: Path) -> None:
    domain = Domain(tmp_path)
    domain.engine.let_start.clear()
    domain.service.asked += [reserve("r"), reserve("r", COMMIT), start()]
    domain.until(lambda: bool(domain.engine.asked))
    domain.begin()  # the one that had begun was killed, and so was what it did
    domain.engine._states.clear()  # noqa: SLF001
    domain.service.asked = [release("r")]
    domain.until(lambda: domain.service.outcome("r.release") is not None)
    service = Listener()
    RunReporter(service, "x", domain.engine, domain.runner).poll()
    assert [report.state for report in service.reports] == [models.RunState.stopped]


def test_a_run_that_the_service_goes_on_not_to_know_is_disowned(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("REPEAT_S", 0.05), ("UNKNOWN_RUN_EVERY_S", 0.01), ("UNKNOWN_RUN_S", 0.5)):
        monkeypatch.setattr(run_reports, name, seconds)
    disowned: list[str] = []
    told.reporter = RunReporter(
        *(told.service, "x", told.engine, told.domain.runner),
        poll_s=0.001,
        disown=lambda record: disowned.append(record.reservation),
    )
    told.until(lambda: len(told.service.reports) == 3)  # repeated, as there is no news
    assert told.service.reports[0] == told.service.reports[2]
    told.service.strange = True
    told.reporter.poll()
    told.service.strange = False
    time.sleep(0.6)
    told.reporter.poll()
    assert disowned == []  # it was known again meanwhile
    told.service.strange = True
    began = time.monotonic()
    told.until(lambda: bool(disowned))
    assert time.monotonic() - began >= 0.5
    assert disowned[0] == "r"


@pytest.mark.parametrize("why", ["away", "unauthorised"])
def test_while_the_service_takes_nothing_nothing_is_lost_and_nothing_piles_up(told: Told, why: str) -> None:
    told.reporter.poll()
    setattr(told.service, why, True)
    told.engine.say(told.name, *(f"line {number}" for number in range(5000)))
    for _ in range(20):
        told.reporter.poll()
    told.engine.end(told.name, RunState.FAILED, exit_code=1)
    told.reporter.poll()
    setattr(told.service, why, False)
    told.until(lambda: "failed" in told.service.states and len(told.service.lines) == 5000)
    assert told.service.texts == [f"line {number}" for number in range(5000)]
    assert max(told.service.batches) == run_reports.MAX_LINES


def test_whoever_begins_anew_asks_the_service_where_to_go_on(told: Told) -> None:
    told.engine.say(told.name, *(f"line {number}" for number in range(3)))
    told.until(lambda: len(told.service.lines) == 3)
    told.service.batches.clear()
    told.domain.begin()
    told.anew()
    told.engine.say(told.name, "line 3")
    told.until(lambda: len(told.service.lines) == 4)
    assert told.service.batches == [1, 1]  # one to learn what is there, and what was missing


def test_a_service_that_has_lost_lines_gets_them_again(told: Told) -> None:
    told.engine.say(told.name, "a", "b", "c")
    told.until(lambda: len(told.service.lines) == 3)
    del told.service.lines[1:]
    told.engine.say(told.name, "d")
    told.until(lambda: told.service.texts == ["a", "b", "c", "d"])


def test_batches_get_smaller_where_they_are_too_large(told: Told) -> None:
    told.service.most = 3
    told.engine.say(told.name, *"abcdefghij")
    told.until(lambda: told.service.texts == list("abcdefghij"))


def test_a_service_that_knows_nothing_of_a_run_is_not_told_on_and_on(told: Told) -> None:
    told.service.strange = True
    told.engine.say(told.name, "a")
    told.engine.end(told.name, RunState.FAILED, exit_code=1)
    told.until(lambda: told.domain.runner.records[0].reported)
    assert told.service.reports == []


def test_steps_and_checkpoints_are_told_from_the_file_that_a_run_is_given(told: Told) -> None:
    path = Path(told.engine.given[told.name].environment["KUAYU_STEP_FILE"])
    told.reporter.poll()
    path.write_text("job-1 0 10\njob-1 1 9\njob-1 0 8 checkpoint\n", encoding="utf-8")
    told.until(lambda: told.service.reports[-1].checkpoint_step == 8)
    assert told.service.reports[-1].step == 9  # what all ranks have done
    beats = told.reporter.progress_on("m")
    assert beats.steps() == [RankStep(job="job-1", rank=0, step=10), RankStep(job="job-1", rank=1, step=9)]
    assert told.reporter.progress_on("n").steps() == []


def test_or_from_lines_that_it_prints(told: Told) -> None:
    told.engine.say(told.name, "kuayu step 10", "kuayu checkpoint 8", "say kuayu step 99", "kuayu step ten")
    told.until(lambda: bool(told.service.reports) and told.service.reports[-1].checkpoint_step == 8)
    assert told.service.reports[-1].step == 10
    assert told.reporter.progress_on("m").steps() == [RankStep(job="job-1", rank=0, step=10)]


def test_what_a_run_has_written_before_a_restart_counts_after_it(told: Told) -> None:
    path = Path(told.engine.given[told.name].environment["KUAYU_STEP_FILE"])
    path.write_text("job-1 0 70\njob-1 0 60 checkpoint\n", encoding="utf-8")
    told.engine.end(told.name, RunState.FAILED, exit_code=1)
    told.domain.begin()
    told.anew()
    told.until(lambda: bool(told.service.reports))
    assert (told.service.reports[-1].step, told.service.reports[-1].checkpoint_step) == (70, 60)


def test_beats_say_that_ranks_have_ended_until_that_was_heard(told: Told) -> None:
    told.engine.say(told.name, "kuayu step 4")
    told.until(lambda: bool(told.service.lines))
    told.engine.end(told.name, RunState.FAILED, exit_code=1)
    told.until(lambda: told.domain.runner.records[0].reported)
    told.domain.ask(release("r"))
    told.reporter.poll()
    beats = told.reporter.progress_on("m")
    last = [RankStep(job="job-1", rank=0, step=4, ended=True)]
    assert beats.steps() == last
    beats.acknowledge(last)
    assert beats.steps() == []


def test_an_engine_that_cannot_tell_for_long_is_told_of(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    told.reporter.poll()

    def away(_: str) -> RunStatus:
        raise EngineError("the scheduler is away", transient=True)

    monkeypatch.setattr(told.engine, "status", away)
    told.reporter.poll()
    assert told.service.states == ["running"]
    monkeypatch.setattr(run_reports, "UNKNOWN_S", 0.0)
    told.until(lambda: told.service.states == ["running", "unknown"])
    assert told.service.reports[-1].reason == "the scheduler is away"
    monkeypatch.undo()
    told.until(lambda: told.service.states == ["running", "unknown", "running"])


def test_one_run_that_breaks_its_engine_keeps_nobody_from_hearing_of_others(tmp_path: Path) -> None:
    domain = Domain(tmp_path)
    first = domain.running()
    domain.ask(reserve("s"), reserve("s", COMMIT), start("s", attempt=2, shares=[("x", {"n": 8})], name="start-2"))
    honest = domain.engine.status

    def status(name: str) -> RunStatus:
        return 1 / 0 if name == first else honest(name)  # type: ignore[return-value]

    domain.engine.status = status  # type: ignore[method-assign]
    service = Listener()
    RunReporter(service, "x", domain.engine, domain.runner).poll()
    assert [report.attempt for report in service.reports] == [2]


TRAINING = """
import os, time
with open(os.environ["KUAYU_STEP_FILE"], "a", buffering=1) as steps:
    print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}", flush=True)
    for step in range(1, 4):
        print(f"{os.environ['KUAYU_JOB']} {os.environ['RANK']} {step}", file=steps)
while not os.path.exists("go"):
    time.sleep(0.05)
raise SystemExit(int(os.environ["RANK"]) * 3)
"""


def test_real_processes_are_started_told_of_and_gone(tmp_path: Path) -> None:
    """The same with an engine that runs processes of this host."""
    (tmp_path / "steps").mkdir()
    domain = Domain(tmp_path, steps=tmp_path / "steps")
    engine = LocalEngine(tmp_path / "engine", nodes={"m": 8, "n": 8})
    domain.runner._engine = engine  # noqa: SLF001 - the domain is the same, and what it runs on is real
    service = Listener()
    reporter = RunReporter(service, "x", engine, domain.runner)
    work = {"command": [sys.executable, "-c", TRAINING], "working_directory": str(tmp_path)}
    wanted = {"devices": 2}
    domain.ask(reserve("r", **wanted), reserve("r", COMMIT, **wanted), start(shares=[("x", {"m": 2})], workload=work))
    deadline = time.monotonic() + PATIENCE_S

    def until(reached: Callable[[], bool]) -> None:
        while not reached():
            assert time.monotonic() < deadline, (service.reports, service.texts)
            reporter.poll()
            time.sleep(0.05)

    until(lambda: len(service.lines) == 2 and service.reports[-1].step == 3)
    assert sorted(service.texts) == ["rank 0 of 2", "rank 1 of 2"]
    (tmp_path / "go").touch()
    until(lambda: service.states[-1] == "failed")
    assert service.reports[-1].exit_code == 3
    assert service.reports[-1].own_fault is None
    domain.ask(release("r"))
    until(lambda: domain.runner.records == [])
    assert list((tmp_path / "engine" / "held").glob("*.json")) == []  # nothing of the host is taken any more


def test_whoever_tells_of_checkpoints_alone_is_as_far_as_the_last(told: Told) -> None:
    told.engine.say(told.name, "kuayu checkpoint 30")
    told.until(lambda: bool(told.service.reports) and told.service.reports[-1].checkpoint_step == 30)
    assert told.service.reports[-1].step == 30
