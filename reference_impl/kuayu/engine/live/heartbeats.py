"""Beats to the service that watches a run, as any node sends them."""

import threading
from collections.abc import Callable, Iterable

from kuayu.client import Client
from kuayu.engine.heartbeats import HeartbeatSender
from kuayu.live.launcher import JOB
from kuayu_schemas.models import RankStep

PERIOD_S = 0.5
"""Seconds from one beat to the next."""

ANSWER_S = 1.0
"""Seconds after which a beat that was not answered is lost."""

Now = Callable[[], tuple[int, int]]
"""Rank of a worker and the last step that it has done; step 0 before the first."""


def url(port: int) -> str:
    """Where the service is, or where a gateway leads to it."""
    return f"http://127.0.0.1:{port}"


def agent_of(domain: str) -> str:
    """Node of a domain's agent, which beats as long as the domain is there."""
    return f"{domain}-agent"


def beats(port: int, node: str, now: Now | None = None) -> None:
    """Beat for a node in a thread, until the process ends.

    Args:
        port: Where the service is, or where a gateway leads to it.
        node: Name of the node.
        now: How far its rank is; None where it has none.
    """
    threading.Thread(target=_beat, args=(port, node, now), name="beats", daemon=True).start()


def _beat(port: int, node: str, now: Now | None) -> None:
    with Client(url(port), timeout_s=ANSWER_S, attempts=1) as client:
        steps = {} if now is None else {node: _Steps(now)}
        HeartbeatSender(client, [node], steps=steps, notify=lambda *_: None).run(threading.Event(), PERIOD_S)


class _Steps:
    """How far a worker is, in place of the file that other jobs write."""

    def __init__(self, now: Now) -> None:
        self._now = now

    def steps(self) -> list[RankStep]:
        """What the next beat tells."""
        rank, step = self._now()
        return [RankStep(job=JOB, rank=rank, step=step)] if step else []

    def acknowledge(self, steps: Iterable[RankStep]) -> None:
        """A beat has arrived; the next one tells where the worker is then."""
