"""Batches of heartbeats and log lines: from the bytes of a request to what can be taken and what cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kuayu.service import batches, bodies, ingest, instants
from kuayu.service.batches import Form
from kuayu.service.problems import ProblemException, unknown_reference

Item = Mapping[str, Any]
"""Class Heartbeat or class LogLine."""

_INSTANT = "2000-01-01T00:00:00Z"

BEATS = Form("HeartbeatBatch", "beats", "Heartbeat", {"node": "a", "number": 0, "sent_at": _INSTANT})
LINES = Form("LogBatch", "lines", "LogLine", {"node": "a", "logged_at": _INSTANT, "text": ""})

STATED = {BEATS.item: "sent_at", LINES.item: "logged_at"}
"""Member of each kind of item that is an instant of the sender's clock."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A batch, sorted into what can be taken and what cannot.

    Attributes:
        received: When it was received, in milliseconds.
        good: Items of registered nodes.
        rejected: The others by their index, each with its problem.
    """

    received: int
    good: Sequence[Item]
    rejected: Sequence[tuple[int, ProblemException]]

    def result(self) -> bytes:
        """The answer, class IntakeResult."""
        return orjson.dumps(
            {
                "accepted": len(self.good),
                "rejected": batches.rejected(self.rejected),
                "received_at": instants.to_text(self.received),
            }
        )


def take(body: bytes, form: Form, max_batch: int, registered: Mapping[str, str], received: int) -> Intake:
    """Read the body of a batch, judge and sort its items.

    Args:
        body: A batch of the form, it is hoped.
        form: :data:`BEATS` or :data:`LINES`.
        max_batch: Most items.
        registered: Domain of each node.
        received: Milliseconds since 1970.

    Raises:
        ProblemException: malformed-json or invalid-body, for the request as a whole.
    """
    value = bodies.parse_json(body)
    broken = form.judge(value, max_batch)
    good: list[Item] = []
    rejected: list[tuple[int, ProblemException]] = []
    for index, item in enumerate(value[form.member]):
        problem = broken.get(index) or _problem(item, STATED[form.item], registered)
        if problem is None:
            good.append(item)
        else:
            rejected.append((index, problem))
    return Intake(received, good, rejected)


def _problem(item: Item, stated: str, registered: Mapping[str, str]) -> ProblemException | None:
    """Why an item that keeps to the schema cannot be taken, or None where it can."""
    if item["node"] not in registered:
        return unknown_reference("/node", f"no node {item['node']!r} is registered")
    try:
        ingest.read_instant(item[stated], f"/{stated}")
    except ProblemException as problem:
        return problem
    return None
