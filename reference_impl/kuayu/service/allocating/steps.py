"""What domains are asked to do for an allocation, and what they hold together in the end."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase

Json = dict[str, Any]

DEFAULT_PATIENCE = 10.0
"""Seconds that a domain has to answer where an allocation does not say."""

SHOWN_OF_NAME = 64
"""Characters of an allocation's name that names of its actions begin with, for whoever reads logs."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a domain is asked to do, or was.

    Attributes:
        attempt: For which placement: 0 is the first choice, then the alternatives in turn.
        body: Class Action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered, or until it is overtaken by an abort.
        outcome: How it ended; None until the domain has answered. Also what was overtaken may be answered late.
        nodes: Nodes that the domain named, each of class NodeShare; None where it named none.
    """

    attempt: int
    body: Mapping[str, Any]
    open: bool = True
    outcome: ActionOutcome | None = None
    nodes: tuple[Json, ...] | None = None

    @property
    def action(self) -> str:
        """Name of the action that it is a step of."""
        return str(self.body["id"])

    @property
    def key(self) -> tuple[str, ActionPhase]:
        """What no other step of the allocation has."""
        return self.action, self.phase

    @property
    def kind(self) -> ActionKind:
        """What is to be done."""
        return ActionKind(self.body["kind"])

    @property
    def phase(self) -> ActionPhase:
        """Step of the contract."""
        return ActionPhase(self.body["phase"])

    @property
    def lets_go(self) -> bool:
        """Whether a domain lets go by it."""
        return self.phase is ActionPhase.abort or self.kind is ActionKind.release

    @property
    def about(self) -> str:
        """Action by which was reserved what it is about."""
        return str(self.body.get("reservation", self.action))

    @property
    def domain(self) -> str:
        """Who carries it out."""
        return str(self.body["domain"])

    def fits_on(self, nodes: tuple[Json, ...] | None) -> bool:
        """Whether nodes, class NodeShare, have as many devices as are to be held; they do where none are named."""
        wanted = self.kind is ActionKind.reserve and bool(nodes)
        return not wanted or sum(each["devices"] for each in nodes or ()) == self.body["devices"]


def placements(spec: Mapping[str, Any]) -> list[Json]:
    """Placements of an allocation (class Allocation) in the order in which they are tried."""
    return [spec["placement"], *spec.get("alternatives", ())]


def domains(spec: Mapping[str, Any]) -> frozenset[str]:
    """Domains of all placements of an allocation."""
    return frozenset(share["domain"] for placement in placements(spec) for share in placement["shares"])


def patience(spec: Mapping[str, Any]) -> float:
    """Seconds that a domain has to answer, and that its promise holds."""
    return float(spec.get("patience", DEFAULT_PATIENCE))


def reserve(spec: Mapping[str, Any], created: int, attempt: int) -> Iterator[Step]:
    """Ask every domain of a placement to promise its share.

    Args:
        spec: Class Allocation.
        created: When it was first written, in milliseconds. An allocation that has the name of one that was forgotten
            must not get answers that were given to the other.
        attempt: Which of its placements.
    """
    tried = placements(spec)
    for share in tried[attempt]["shares"]:
        cause = f"allocation {spec['id']}, placement {attempt + 1} of {len(tried)}: {_words(share)}"
        name = _name(spec, f"{created}.{attempt}", share["domain"])
        body = _action(spec, share, name, ActionKind.reserve, ActionPhase.prepare, cause)
        body["expires_after"] = patience(spec)
        if "lease" in spec:
            body["lease"] = spec["lease"]
        yield Step(attempt, body)


def following(step: Step, phase: ActionPhase) -> Step:
    """The next step of the same action."""
    body = {name: value for name, value in step.body.items() if name != "expires_after"}
    return Step(step.attempt, body | {"phase": phase.value})


def release(spec: Mapping[str, Any], created: int, attempt: int, held: Mapping[str, Any]) -> Iterator[Step]:
    """Ask every domain to give back what is held there.

    Args:
        spec: Class Allocation.
        created: As for :func:`reserve`.
        attempt: Which of its placements is held.
        held: Class JobPlacement.
    """
    for share in held["shares"]:
        cause = f"allocation {spec['id']} was withdrawn: {_words(share)}"
        name = _name(spec, f"{created}.release", share["domain"])
        body = _action(spec, share, name, ActionKind.release, ActionPhase.commit, cause)
        body["reservation"] = _name(spec, f"{created}.{attempt}", share["domain"])
        yield Step(attempt, body)


def held_in(placement: Mapping[str, Any], named: Mapping[str, tuple[Json, ...] | None]) -> Json:
    """What is held of a placement once it is committed, class JobPlacement.

    Args:
        placement: What was asked for, class JobPlacement.
        named: Nodes that each domain named, class NodeShare; None where it named none, and is where it was asked to be.
    """
    shares = [
        {**share, "nodes": list(nodes)} if (nodes := named.get(share["domain"])) else share
        for share in placement["shares"]
    ]
    return {**placement, "shares": shares}


def _name(spec: Mapping[str, Any], turn: str, domain: str) -> str:
    """Name of an action: the same for an allocation, what is tried of it, and a domain."""
    whole = f"{spec['id']}\0{turn}\0{domain}".encode()
    return f"{spec['id'][:SHOWN_OF_NAME]}.{hashlib.sha256(whole).hexdigest()[:24]}"


def _action(spec: Mapping[str, Any], share: Json, name: str, kind: ActionKind, phase: ActionPhase, cause: str) -> Json:
    action = {
        "id": name,
        "kind": kind.value,
        "phase": phase.value,
        "revision": spec["revision"],
        "job": spec["job"],
        "domain": share["domain"],
        "accelerator": share["accelerator"],
        "devices": share["devices"],
        "cause": cause,
    }
    return {**action, "nodes": share["nodes"]} if "nodes" in share else action


def _words(share: Json) -> str:
    return f"{share['devices']} of {share['accelerator']}"
