"""Signs of life: beats of nodes at a steady pace, each with how far the ranks are that run on the node."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from kuayu.client import Client, ClientError, UnauthorisedError
from kuayu_schemas.models import Heartbeat, ItemRejection, RankStep

UNKNOWN = "urn:kuayu:problem:unknown-reference"

Notify = Callable[[str, str], None]
"""Is told what has happened, and what can be done about it or nothing; once each time that it begins."""


class Progress(Protocol):
    """How far ranks of a node are."""

    def steps(self) -> list[RankStep]:
        """The last step of each."""

    def heard(self, steps: Iterable[RankStep]) -> None:
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
                self._steps[beat.node].heard(beat.steps)
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
