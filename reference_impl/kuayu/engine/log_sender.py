"""New lines of logs on their way to a service; while it is away they wait where they are written."""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from kuayu.client import Client, ClientError, UnauthorisedError
from kuayu.engine.heartbeats import Notify
from kuayu.engine.log_tail import Source
from kuayu_schemas.models import LogLine

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
        found = False
        for node, log in self._logs:
            now = datetime.now(UTC)
            lines = [LogLine(node=node, logged_at=now, text=_text(line)) for line in log.lines()]
            found = found or bool(lines)
            while lines and (most := self._limit(stopped)):
                self._send(node, lines[:most], stopped)
                lines = lines[most:]
        return found

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
