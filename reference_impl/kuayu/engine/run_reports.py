"""What a domain tells a service of its runs: how they stand, how far they are, and what they print.

One thread asks the engine and sends. Nothing is kept of what waits to be sent: lines stay with the engine, and are
asked for after the last one that the service has; after a restart the service says which one that is. So a service
that is away costs no memory and loses nothing, for as long as the engine keeps its lines.

A run of which the service says for a while that it was never asked for is nobody's any more, as after the service was
restored from a backup: it is disowned. So that this is noticed of runs that have nothing to tell, the last report is
repeated now and then, which changes nothing where the service knows it.

The report of a run's end is sent when what it has printed by then was sent, or after ``DRAIN_S``; lines go on after it.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kuayu.client import Client, ClientError, RefusedError, UnauthorisedError
from kuayu.engine.log_tail import NodeProgress, RunProgress, Tail
from kuayu.engine.runner import Phase, Runner, RunRecord
from kuayu.engine.runs.protocol import ENDED, Engine, EngineError, LogLine, RunState, RunStatus
from kuayu_schemas import models
from kuayu_schemas.models import RunLogBatch, RunLogLine, RunReport

logger = logging.getLogger(__name__)

POLL_S = 0.25
"""Seconds between two looks at runs."""

STEPS_EVERY_S = 2.0
"""Seconds between reports that only tell of further steps; a checkpoint is told at once."""

UNKNOWN_S = 30.0
"""How long an engine may be unable to tell how a run stands before that is told."""

DRAIN_S = 10.0
"""How long the report of a run's end waits for lines before it."""

MAX_LINES = 1000
"""Lines that are sent at once."""

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 5.0

MAX_ENDING = 256
"""Runs that have ended of which heartbeats may still have to say so; where no node beats, nobody hears of it."""

REPEAT_S = 300.0
"""Seconds after which the last report of a run is sent again."""

UNKNOWN_RUN_S, UNKNOWN_RUN_EVERY_S = 30.0, 5.0
"""Seconds for which the service has to say that it does not know a run, and between two questions."""

TOO_LARGE, UNKNOWN = "payload-too-large", "unknown-reference"

MAX_EXIT_CODE = 255
MAX_CHARACTERS = 2048


@dataclass(slots=True)
class _View:
    """What the reporter knows of a run.

    Attributes:
        progress: How far it is.
        status: How it stands, by the engine.
        since: When that was seen first.
        unknown_since: Since when the engine cannot tell, by the steady clock; None where it can.
        last_stored: Number of the last line that the service has; None where the service has to say.
        drained: Whether the engine had no further line when it was asked last.
        log_refused: Whether the service takes no lines of it.
        unknown_run_since: Since when the service says that it does not know the run, by the steady clock; None where it
            does.
        sent: The last report that was taken.
        sent_at: When it was, by the steady clock.
        ended_at: When its end was seen, by the steady clock.
        final: Whether the report of its end was taken.
    """

    progress: RunProgress
    status: RunStatus
    since: datetime
    unknown_since: float | None = None
    last_stored: int | None = None
    drained: bool = False
    log_refused: bool = False
    unknown_run_since: float | None = None
    sent: RunReport | None = None
    sent_at: float = float("-inf")
    ended_at: float | None = None
    final: bool = False


class RunReporter:
    """Tells a service of the runs of a domain.

    Args:
        client: Connection to the service, which sends each request once.
        domain: The domain.
        engine: Runs them.
        runner: Knows them.
        poll_s: Seconds between two looks at runs.
        disown: Is told of runs that the service does not know.
    """

    def __init__(
        self,
        client: Client,
        domain: str,
        engine: Engine,
        runner: Runner,
        *,
        poll_s: float = POLL_S,
        disown: Callable[[RunRecord], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._domain = domain
        self._engine = engine
        self._runner = runner
        self._poll_s = poll_s
        self._disown = disown
        self._views: dict[str, _View] = {}
        self._ending: list[RunProgress] = []
        self._lock = threading.Lock()
        self._batch = MAX_LINES
        self._quiet_until = float("-inf")
        self._pause = FIRST_PAUSE_S

    def progress_on(self, node: str) -> NodeProgress:
        """How far the ranks on a node are, for its heartbeats."""
        return NodeProgress(node, self._all_progress)

    def run(self, stopped: threading.Event) -> None:
        """Tell until told to stop."""
        while not stopped.is_set():
            try:
                more = self.poll()
            except Exception:  # one run must not keep the service from hearing of others for ever
                logger.exception("runs are not told of")
                more = False
            if not more:
                stopped.wait(self._poll_s)

    def flush(self, patience_s: float) -> bool:
        """Tell what is left of runs that have ended; whether all of it was told in time."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            self.poll()
            if all(not record.over for record in self._runner.records if not record.reported):
                return True
            time.sleep(self._poll_s)
        return False

    def poll(self) -> bool:
        """Look at all runs once, and send what is new, a piece of each log; tells whether there is more at once."""
        records = [record for record in self._runner.records if record.phase in {Phase.STARTED, Phase.ENDED}]
        records = [record for record in records if not record.reported]
        self._keep_views(records)
        for record in records:
            self._update_status(record, self._views[record.action])
        self._runner.forget()
        if time.monotonic() < self._quiet_until:
            return False
        try:
            more = [self._send(record, self._views[record.action]) for record in records]
        except ClientError as error:
            logger.warning("runs are not told of: %s; again in %g s", error.cause, self._pause)
            self._quiet_until = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE_S)
            return False
        self._pause = FIRST_PAUSE_S
        return any(more)

    # How runs stand.

    def _keep_views(self, records: Sequence[RunRecord]) -> None:
        known = {record.action for record in records}
        with self._lock:
            for name in [name for name in self._views if name not in known]:
                self._ending.append(self._views.pop(name).progress)
            self._ending = [progress for progress in self._ending if not progress.is_heard][-MAX_ENDING:]
            for record in records:
                if record.action not in self._views:
                    self._views[record.action] = self._first_view(record)

    def _first_view(self, record: RunRecord) -> _View:
        path = self._runner.step_file(record)
        tail = None
        if path is not None:
            try:
                tail = Tail(path, whole=True)
            except OSError as error:
                logger.warning("steps of %s cannot be read: %s", record.name, error)
        status = RunStatus(RunState.STARTING)
        progress = RunProgress(record.job, record.ranks, tail)
        return _View(progress, status, datetime.now(UTC), last_stored=0 if record.fresh else None)

    def _update_status(self, record: RunRecord, view: _View) -> None:
        """Ask the engine how a run stands."""
        if view.ended_at is not None:
            return
        try:
            status = self._engine.status(record.name)
        except EngineError as error:
            status = RunStatus(RunState.UNKNOWN, error.cause)
        except Exception as error:  # other runs are to be told of
            logger.exception("the engine broke while it was asked about run %s", record.name)
            status = RunStatus(RunState.UNKNOWN, f"the engine broke: {error}")
        now = time.monotonic()
        if status.state is RunState.UNKNOWN:
            if record.phase is Phase.ENDED:  # it was ended before the engine had begun
                status = RunStatus(RunState.STOPPED, record.cause or status.reason)
            elif view.unknown_since is None:
                view.unknown_since = now
                return
            elif now - view.unknown_since < UNKNOWN_S:
                return
        else:
            view.unknown_since = None
        if status != view.status:
            view.status, view.since = status, datetime.now(UTC)
        if status.state in ENDED:
            view.ended_at = now
            view.progress.end()
            self._runner.has_ended(record)

    def _all_progress(self) -> list[RunProgress]:
        with self._lock:
            return [*(view.progress for view in self._views.values()), *self._ending]

    # What is sent.

    def _send(self, record: RunRecord, view: _View) -> bool:
        """Send what is new of a run; tells whether there is more at once.

        Raises:
            ClientError: The service is away, or cannot take it now.
        """
        if view.ended_at is None:
            self._report(record, view)
        more = self._send_lines(record, view)
        if view.ended_at is not None:
            late = time.monotonic() - view.ended_at > DRAIN_S
            if not view.final and (view.drained or view.log_refused or late):
                self._report(record, view)
            if view.final and (view.drained or view.log_refused):
                self._runner.is_reported(record)
                return False
        return more

    def _report(self, record: RunRecord, view: _View) -> None:
        """Tell how a run stands, where that is news."""
        state = _STATES.get(view.status.state)
        if state is None:
            return
        report = RunReport(
            job=record.job,
            attempt=record.attempt,
            domain=self._domain,
            state=state,
            at=view.since,
            exit_code=_exit_code(view.status),
            own_fault=_own_fault(record, view.status),
            step=view.progress.step,
            checkpoint_step=view.progress.checkpoint_step,
            reason=_reason(record, view.status),
        )
        if report == view.sent and not _is_to_be_repeated(view):
            return
        before = view.sent
        same = before is not None and before != report and report == before.model_copy(update={"step": report.step})
        if same and time.monotonic() - view.sent_at < STEPS_EVERY_S and view.ended_at is None:
            return
        try:
            self._client.post_run_report(report)
        except RefusedError as error:
            if error.transient or isinstance(error, UnauthorisedError):
                raise
            if view.unknown_run_since is None:
                logger.warning("what was told of run %s was refused: %s", record.name, error.cause)
            self._heed_refusal(record, view, error)
        else:
            view.unknown_run_since = None
        view.sent, view.sent_at = report, time.monotonic()
        view.final = view.ended_at is not None

    def _heed_refusal(self, record: RunRecord, view: _View, error: RefusedError) -> None:
        """A report was refused for good; where it goes on to be so as nobody knows the run, it is disowned."""
        now = time.monotonic()
        if error.name != UNKNOWN:
            view.unknown_run_since = None
        elif view.unknown_run_since is None:
            view.unknown_run_since = now
        elif now - view.unknown_run_since >= UNKNOWN_RUN_S and view.ended_at is None:
            self._disown(record)

    def _send_lines(self, record: RunRecord, view: _View) -> bool:
        """Send a piece of a run's log; tells whether there is more."""
        if view.log_refused:
            return False
        # The first line alone makes the service say up to which it has them all.
        after, most = (0, 1) if view.last_stored is None else (view.last_stored, self._batch)
        try:
            lines = self._engine.logs(record.name, after, most)
        except EngineError as error:
            logger.warning("what run %s prints cannot be read: %s", record.name, error.cause)
            view.drained = view.ended_at is not None and time.monotonic() - view.ended_at > DRAIN_S
            return False
        view.drained = not lines
        if not lines:
            return False
        batch = RunLogBatch(
            job=record.job,
            attempt=record.attempt,
            domain=self._domain,
            lines=[_line_of(line) for line in lines],
        )
        try:
            last = self._client.post_run_logs(batch).last
        except RefusedError as error:
            if error.transient or isinstance(error, UnauthorisedError):
                raise
            if error.name == TOO_LARGE and most > 1:
                self._batch = max(1, most // 2)
                return True
            logger.warning("what run %s prints was refused: %s", record.name, error.cause)
            view.log_refused = True
            return False
        for line in lines:
            if view.last_stored is not None and view.last_stored < line.number <= last:
                view.progress.read_line(line.rank, line.text)
        stuck = view.last_stored is not None and last == view.last_stored
        view.last_stored = last
        return not stuck


def _is_to_be_repeated(view: _View) -> bool:
    """Whether it is time for the last report of a run that has not ended."""
    every = REPEAT_S if view.unknown_run_since is None else UNKNOWN_RUN_EVERY_S
    return view.ended_at is None and time.monotonic() - view.sent_at >= every


_STATES = {
    RunState.RUNNING: models.RunState.running,
    RunState.SUCCEEDED: models.RunState.succeeded,
    RunState.FAILED: models.RunState.failed,
    RunState.STOPPED: models.RunState.stopped,
    RunState.UNKNOWN: models.RunState.unknown,
}
"""States of the engine's that are told, as the standard calls them."""


def _line_of(line: LogLine) -> RunLogLine:
    instant = datetime.fromtimestamp(round(line.read_at, 3), UTC)
    text = line.text[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return RunLogLine(number=line.number, rank=line.rank, at=instant, text=text)


def _exit_code(status: RunStatus) -> int | None:
    if status.exit_code is None:
        return None
    return max(-MAX_EXIT_CODE, min(MAX_EXIT_CODE, status.exit_code))


def _own_fault(record: RunRecord, status: RunStatus) -> bool | None:
    """False where a run has ended otherwise than it should and that is not its own fault.

    A run that failed without an exit code has failed with its node or its engine. One that was stopped was so for
    others' reasons, unless it was asked to stop for what it did.
    """
    match status.state:
        case RunState.FAILED:
            return False if status.exit_code is None else None
        case RunState.STOPPED:
            return None if record.own_fault else False
        case _:
            return None


def _reason(record: RunRecord, status: RunStatus) -> str | None:
    reason = status.reason
    if status.state is RunState.STOPPED and record.cause is not None:
        reason = record.cause
    return reason[:MAX_CHARACTERS].replace("\0", " ") or None
