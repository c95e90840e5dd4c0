"""What domains are asked to do because of a fault, and when it is over."""

from collections.abc import Iterator

from kuayu.resilience.watching import Change
from kuayu.service.storage.resources import Revision
from kuayu.service.watching.storage import Json, Response
from kuayu_schemas.models import ActionKind, ActionPhase, FaultKind

FENCED = frozenset({FaultKind.node_dead.value, FaultKind.node_failing.value})
"""Kinds of faults whose node is fenced."""

STOPPED = frozenset({FaultKind.job_hung.value})
"""Kinds of faults whose job is stopped."""

MOST_WORDS = 2048
"""Characters of a text at most."""


def to_fault(name: str, change: Change, devices: int, at: Revision) -> Iterator[Response]:
    """What is asked because of a fault that has come.

    Args:
        name: The fault's identifier.
        change: What has come.
        devices: Devices of the node that it is about, if it is about one.
        at: Revision of the faults at which it came.
    """
    subject = change.subject
    if subject.kind in FENCED:
        assert subject.domain is not None
        action = _action(f"{name}.fence", ActionKind.fence, subject.domain, at)
        nodes = [{"node": subject.node, "devices": devices}]
        yield Response(name, action | {"nodes": nodes, "cause": _words(change)})
    elif subject.kind in STOPPED:
        for number, domain in enumerate(change.domains):
            action = _action(f"{name}.stop-{number}", ActionKind.stop, domain, at)
            yield Response(name, action | {"job": subject.job, "cause": _words(change)})


def to_end(fence: Response, change: Change, at: Revision) -> Response:
    """What is asked when a fault is over because of which a node was fenced."""
    held = fence.body
    action = _action(f"{fence.fault}.release", ActionKind.release, held["domain"], at)
    return Response(fence.fault, action | {"reservation": held["id"], "nodes": held["nodes"], "cause": _words(change)})


def _action(name: str, kind: ActionKind, domain: str, at: Revision) -> Json:
    return {
        "id": name,
        "kind": kind.value,
        "phase": ActionPhase.commit.value,
        "revision": at.to_wire(),
        "domain": domain,
    }


def _words(change: Change) -> str:
    over = "" if change.open else " is over"
    return f"{change.subject.kind}{over}: {change.because}"[:MOST_WORDS]
