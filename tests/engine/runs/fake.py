"""An engine that runs nothing, and does what a test tells it; otherwise it keeps to the protocol."""

import threading
from collections import Counter
from collections.abc import Sequence

from kuayu.engine.runs.protocol import ENDED, EngineError, Finding, LogLine, Run, RunState, RunStatus


class FakeEngine:
    """Runs that only stand in a table.

    Attributes:
        name: Of the engine.
        given: Runs that it was asked to prepare, by name, as they were at first.
        begun: How often each run was really begun; never more than once, if whoever calls keeps to names.
        asked: Calls of start and stop, in order.
        let_start: Set as long as starts may go through.
        let_end: Set as long as stops may go through.
        troubles: What calls of start raise, one after the other.
        graces: Seconds that each call of stop gave.
        unavailable: Nodes that can be given nothing, each with why.
    """

    def __init__(self) -> None:
        self.name = "fake"
        self.given: dict[str, Run] = {}
        self.begun: Counter[str] = Counter()
        self.asked: list[tuple[str, str]] = []
        self.let_start, self.let_end = threading.Event(), threading.Event()
        self.let_start.set()
        self.let_end.set()
        self.troubles: list[EngineError] = []
        self.graces: list[float | None] = []
        self.unavailable: dict[str, str] = {}
        self._states: dict[str, RunStatus] = {}
        self._lines: dict[str, list[LogLine]] = {}

    def check(self) -> list[Finding]:
        """Nothing is needed."""
        return []

    def unavailable_nodes(self, nodes: Sequence[str], /) -> dict[str, str]:
        """Nodes that a test has taken away."""
        return {node: reason for node, reason in self.unavailable.items() if node in nodes}

    def prepare(self, run: Run) -> None:
        """Take note of a run."""
        if self.given.setdefault(run.name, run) != run:
            raise EngineError(f"{run.name} is the name of another run")
        self._states.setdefault(run.name, RunStatus(RunState.PREPARED))

    def start(self, run: Run) -> None:
        """Have it run, once."""
        self.asked.append(("start", run.name))
        if self.troubles:
            raise self.troubles.pop(0)
        if not self.let_start.wait(60.0):
            raise EngineError("nobody lets it start")
        if self._states[run.name].state is RunState.PREPARED:
            self.begun[run.name] += 1
            self._states[run.name] = RunStatus(RunState.RUNNING)

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """Have it stopped, once that may be."""
        self.asked.append(("stop", name))
        self.graces.append(grace_seconds)
        if not self.let_end.wait(60.0):
            raise EngineError("nobody lets it end", transient=True)
        if name in self._states and self._states[name].state not in ENDED:
            self._states[name] = RunStatus(RunState.STOPPED, "it was asked to end")

    def status(self, name: str) -> RunStatus:
        """How it stands."""
        return self._states.get(name, RunStatus(RunState.UNKNOWN, f"there is no run {name}"))

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Its lines."""
        return self._lines.get(name, [])[after : after + limit]

    def runs(self) -> list[str]:
        """All that were prepared."""
        return list(self._states)

    def forget(self, name: str) -> None:
        """Remove one."""
        if self.status(name).state not in ENDED | {RunState.UNKNOWN}:
            raise EngineError(f"{name} has not ended")
        self._states.pop(name, None)
        self._lines.pop(name, None)

    # What a test does.

    def alive(self) -> list[str]:
        """Runs that run."""
        return [name for name, status in self._states.items() if status.state is RunState.RUNNING]

    def say(self, name: str, *texts: str, rank: int = 0) -> None:
        """Have a rank print lines."""
        lines = self._lines.setdefault(name, [])
        lines += [LogLine(len(lines) + number, rank, text, 1.0) for number, text in enumerate(texts, 1)]

    def end(self, name: str, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        """Have a run end by itself."""
        self._states[name] = RunStatus(state, reason, exit_code)
