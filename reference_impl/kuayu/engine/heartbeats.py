"""What a host sends without being asked: signs of life of its nodes, and new lines of logs.

1. Nodes beat at a steady pace, each beat with how far the ranks are that run on the node.
2. Lines of logs are sent as they are added; while the service is away they wait where they are written.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from kuayu.client import Client, ClientError, UnauthorisedError
from kuayu.engine.log_tail import Source
from kuayu_schemas.models import Heartbeat, ItemRejection, LogLine, RankStep

UNKNOWN = "urn:kuayu:problem:unknown-reference"

Notify = Callable[[str, str], None]
"""Is told what has happened, and what can be done about it or nothing; once each time that it begins."""


class Progress(Protocol):
    """How far ranks of a node are."""

    def steps(self) -> list[RankStep]:
        """The last step of each."""

    def acknowledge(self, steps: Iterable[RankStep]) -> None:
        """These have arrived."""


class HeartbeatSender:
    """Sends beats of nodes.

    Args:
        client: Connection to the service, with a time limit of the order of a beat.
        nodes: The nodes.
        steps: How far the ranks are that run on some of them.
        notify: Is told of what is wrong, and when that is over.
        first: Number of the first beat; from one on where the nodes were started anew.

    Attributes:
        taken: Beats that the service has taken.
    """

    def __init__(
        self, client: Client, nodes: Sequence[str], *, steps: Mapping[str, Progress], notify: Notify, first: int = 1
    ) -> None:
        self.taken = 0
        self._client = client
        self._nodes = list(nodes)
        self._steps = steps
        self._notify = notify
        self._numbers = itertools.count(first)
        self._refused: dict[str, str] = {}
        self._away_since: float | None = None

    def run(self, stopped: threading.Event, every_s: float) -> None:
        """Beat until told to stop, also while the service is away, or does not know the token that it has known.

        Beats that would be late are left out.

        Raises:
            ClientError: The service will not talk to us, as where the token was never known.
        """
        due = time.monotonic()
        while not stopped.is_set():
            self.beat()
            due = max(due + every_s, time.monotonic())
            stopped.wait(due - time.monotonic())

    def beat(self) -> None:
        """Send one beat of each node; where the service is away they are lost.

        Raises:
            ClientError: The service refuses them all, and would again.
        """
        number, now = next(self._numbers), datetime.now(UTC)
        beats = [Heartbeat(node=node, number=number, sent_at=now, steps=self._steps_of(node)) for node in self._nodes]
        try:
            result = self._client.send_heartbeats(beats)
        except ClientError as error:
            if not (error.transient or (self.taken and isinstance(error, UnauthorisedError))):
                raise
            if self._away_since is None:
                self._away_since = time.monotonic()
                self._notify(error.cause, f"{error.hint}; beats go on, and those that are lost stay lost")
            return
        if self._away_since is not None:
            self._notify(f"the service answers again after {time.monotonic() - self._away_since:.1f} s", "")
            self._away_since = None
        refused = {self._nodes[item.index]: item for item in result.rejected if item.index < len(beats)}
        for beat in beats:
            self._judge(beat, refused.get(beat.node))

    def _steps_of(self, node: str) -> list[RankStep] | None:
        return (self._steps[node].steps() or None) if node in self._steps else None

    def _judge(self, beat: Heartbeat, rejection: ItemRejection | None) -> None:
        """Take note of what became of a beat, and say so where that has changed."""
        before = self._refused.pop(beat.node, None)
        if rejection is None:
            self.taken += 1
            if beat.steps and beat.node in self._steps:
                self._steps[beat.node].acknowledge(beat.steps)
            if before is not None:
                self._notify(f"beats of {beat.node} are taken now", "")
            return
        problem = rejection.problem
        self._refused[beat.node] = problem.type
        if before == problem.type:
            return
        if problem.type == UNKNOWN:
            hint = f"register it with PUT /v1/nodes/{beat.node}, or have kuayu collect do so; beats go on"
            self._notify(f"{beat.node} is not registered with the service, so that its beats count for nothing", hint)
        else:
            self._notify(f"a beat of {beat.node} was refused: {problem.detail or problem.title}", "beats go on")


LOOK_S = 0.2
"""Seconds between looks at logs."""

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 5.0

MAX_LINES = 1000
"""Lines that are sent at once, where the service does not take fewer."""

MAX_CHARACTERS = 2048
"""Characters of a line that are sent; the standard has no more."""

Answer = TypeVar("Answer")


class LogSender:
    """Sends new lines of logs, each once, and in the order of each log.

    Args:
        client: Connection to the service; not that of the beats, which are not to wait for it.
        logs: Logs, each with the node that it is of.
        notify: Is told of what is wrong.
    """

    def __init__(self, client: Client, logs: Sequence[tuple[str, Source]], *, notify: Notify) -> None:
        self._client = client
        self._logs = list(logs)
        self._notify = notify
        self._most: int | None = None
        self._refused: set[str] = set()
        self._was_known = False

    def run(self, stopped: threading.Event) -> None:
        """Send what is written until told to stop, or until the service refuses for good."""
        try:
            while not stopped.is_set():
                if not self.poll(stopped):
                    stopped.wait(LOOK_S)
        except ClientError as error:
            self._notify(f"no log lines are sent any more: {error.cause}", error.hint)

    def poll(self, stopped: threading.Event) -> bool:
        """Send what was written since the last call, a piece of each log; tells whether there was anything.

        Raises:
            ClientError: The service refuses, and would again.
        """
        has_lines = False
        for node, log in self._logs:
            now = datetime.now(UTC)
            lines = [LogLine(node=node, logged_at=now, text=_text(line)) for line in log.lines()]
            has_lines = has_lines or bool(lines)
            while lines and (most := self._limit(stopped)):
                self._send(node, lines[:most], stopped)
                lines = lines[most:]
        return has_lines

    def _limit(self, stopped: threading.Event) -> int:
        """Lines that may be sent at once; nought where we were told to stop before that was known."""
        if self._most is None and (declared := self._insist(self._client.conformance, stopped)) is not None:
            self._most = min(MAX_LINES, int(declared.limits.max_batch))
        return self._most or 0

    def _send(self, node: str, lines: Sequence[LogLine], stopped: threading.Event) -> None:
        result = self._insist(lambda: self._client.send_log_lines(lines), stopped)
        if result is None or not result.rejected:
            return
        problem = result.rejected[0].problem
        if problem.type not in self._refused:
            self._refused.add(problem.type)
            why = problem.detail or problem.title
            self._notify(f"{len(result.rejected)} log lines of {node} were refused: {why}", "others are sent on")

    def _insist(self, ask: Callable[[], Answer], stopped: threading.Event) -> Answer | None:
        """Ask until there is an answer; None where we were told to stop before."""
        pause = FIRST_PAUSE_S
        while not stopped.is_set():
            try:
                result = ask()
            except ClientError as error:
                if not (error.transient or (self._was_known and isinstance(error, UnauthorisedError))):
                    raise
            else:
                self._was_known = True
                return result
            stopped.wait(pause)
            pause = min(2 * pause, MAX_PAUSE_S)
        return None


def _text(line: str) -> str:
    """A line as it may be sent."""
    return line[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
