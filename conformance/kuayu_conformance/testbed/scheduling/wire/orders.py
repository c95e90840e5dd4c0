"""Orders from a report, and refusals for the next state."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, Refused, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.values import Placement, Share, Split
from kuayu_conformance.testbed.scheduling.wire.names import Names
from kuayu_schemas import schema

REASONS: Mapping[Refusal, str] = MappingProxyType(
    {
        Refusal.UNKNOWN_JOB: "unknown_job",
        Refusal.NOT_PENDING: "not_waiting",
        Refusal.NOT_RUNNING: "not_running",
        Refusal.UNKNOWN_POOL: "unknown_pool",
        Refusal.TWICE: "twice",
        Refusal.SIZE: "size",
        Refusal.MEMORY: "memory",
        Refusal.SPLIT: "split",
        Refusal.DATA: "data",
        Refusal.NO_WAY: "unreachable",
        Refusal.CUT_OFF: "unreachable",
        Refusal.NO_ROOM: "no_room",
    }
)
"""``RefusalReason`` of what the engine says."""


class BadAnswer(Exception):
    """What came back is no answer to what was asked; the message says why not."""


def orders_of(report: object, revision: Mapping[str, Any], names: Names) -> tuple[Order, ...]:
    """Orders in the order of a report's decisions; jobs that are to wait are left out.

    What the state does not hold becomes an order that the engine refuses. Nodes and ways of buying are not told in
    states, and not looked at.

    Args:
        report: What came back.
        revision: That of the state that was asked about.
        names: What everything is called.

    Raises:
        BadAnswer: It is no ``PlacementReport``, or one of another state, or a job is to run and nothing says where.
    """
    if not isinstance(report, dict) or not schema.is_valid("PlacementReport", report, reader=True):
        raise BadAnswer("not a placement report")
    if any(report["revision"][key] != revision[key] for key in ("epoch", "number")):
        raise BadAnswer("of another revision")
    orders = (_order(decision, names) for decision in report["decisions"])
    return tuple(order for order in orders if order is not None)


def refused_of(refused: Refused, names: Names) -> dict[str, str]:
    """A ``RefusedDecision``."""
    order = refused.order
    return {"job": names.again("job", order.job), "verb": _verb(order), "reason": REASONS[refused.why]}


def _verb(order: Order) -> str:
    if isinstance(order, Start):
        return "start"
    if isinstance(order, Stop):
        return "stop"
    return "migrate" if isinstance(order, Move) else "resize"


def _order(decision: Mapping[str, Any], names: Names) -> Order | None:
    job, verb = names.meant("job", decision["job"]), decision["verb"]
    if verb == "stop":
        return Stop(job)
    if verb not in {"start", "migrate", "resize"}:
        return None
    if "placement" not in decision:
        raise BadAnswer(f"a job is to {verb} without a place")
    placement = _placement(decision["placement"], names)
    if verb == "start":
        return Start(job, placement)
    if verb == "resize" and len(placement.shares) == 1:
        return Resize(job, placement.shares[0].devices)
    return Move(job, placement)


def _placement(said: Mapping[str, Any], names: Names) -> Placement:
    """A placement; one of a split that this version does not name is spread as nothing can be."""
    shares = tuple(
        Share(
            names.meant("domain", share["domain"]), names.meant("accelerator", share["accelerator"]), share["devices"]
        )
        for share in said["shares"]
    )
    known = {split.value: split for split in Split}
    split = known.get(said["split_mode"], Split.NONE)
    return Placement(shares, split, said.get("sync_period", 1) if split is Split.PERIODIC else 1)
