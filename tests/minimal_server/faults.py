"""Faults: told once each, responded to by actions, cleared, listed, and followed change by change."""

import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from minimal_server.allocating import Allocating
from minimal_server.core import IDENTIFIER, Answer, Json, Refusal, Request, Tenant, instant, wrong_body, wrong_parameter
from minimal_server.streams import EVENT, QUIET

STATES = ("open", "cleared")
FENCED = ("node_dead", "node_failing")
"""Kinds of faults that a fence responds to."""

ENDS = {"committed", "failed", "refused", "unknown"}
"""Outcomes of an action that is committed at once."""

KEPT = 2 * 3600 * 1000
"""Milliseconds for which cleared faults are kept."""

HELD_FAULT_CHANGES = 10_000
"""How many of the newest changes are kept for who resumes a stream."""

FaultKey = tuple[str, str, int]
"""Kind of a fault, the node, domain or job that it is about, and the rank; -1 where it is about none."""


@dataclass
class Docket:
    """Faults of a tenant.

    Attributes:
        number: Revision at which they stand.
        faults: As they have come to be, by identifier.
        open: Identifiers of those that last.
        changes: The newest changes: the fault as it came to be by each.
        fences: The fence that was asked for, by fault.
        owners: Actions that were asked for, with their fault and domain.
    """

    number: int = 0
    faults: dict[str, Json] = field(default_factory=dict)
    open: dict[FaultKey, str] = field(default_factory=dict)
    changes: deque[Json] = field(default_factory=lambda: deque(maxlen=HELD_FAULT_CHANGES))
    fences: dict[str, Json] = field(default_factory=dict)
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)


class Faults(Allocating):
    """What is done about faults, whoever recognises them."""

    def __init__(self, *arguments: Any) -> None:
        """Faults begin anew with each process, and so does the epoch of their revisions."""
        super().__init__(*arguments)
        self.dockets: dict[str, Docket] = {}
        self.fault_epoch = secrets.token_hex(8)
        self.changed_faults = threading.Condition(self.lock)

    def docket(self, tenant: Tenant) -> Docket:
        """Faults of a tenant."""
        return self.dockets.setdefault(tenant.name, Docket())

    def fault_revision(self, number: int) -> Json:
        """Where faults stand; another count than that of registrations."""
        return {"epoch": self.fault_epoch, "number": number}

    def tell(self, tenant: Tenant, key: FaultKey, about: Json, since: int, because: str) -> None:
        """Tell a fault, unless it is told already, and ask for what it takes."""
        docket = self.docket(tenant)
        if key in docket.open:
            return
        name = f"f-{self.fault_epoch}-{docket.number + 1:09}"
        docket.open[key] = name
        fault = {
            "id": name,
            "kind": key[0],
            "state": "open",
            **{member: value for member, value in about.items() if member != "domains"},
            "since": instant(since),
            "told_at": instant(self.moment),
            "because": because,
            "actions": [],
        }
        self.change_fault(tenant, fault, self.responses(tenant, fault, about))

    def responses(self, tenant: Tenant, fault: Json, about: Json) -> list[Json]:
        """Actions that a fault is responded to by."""
        if fault["kind"] in FENCED:
            return [self.fence(tenant, fault)]
        if fault["kind"] == "job_hung":
            return [self.order(fault, "stop", domain, job=fault["job"]) for domain in about["domains"]]
        return []

    def fence(self, tenant: Tenant, fault: Json) -> Json:
        """The action that keeps work off a node."""
        devices = self.held(tenant, "nodes")[fault["node"]].get("devices", ())
        action = self.order(
            fault, "fence", fault["domain"], nodes=[{"node": fault["node"], "devices": max(1, len(devices))}]
        )
        self.docket(tenant).fences[fault["id"]] = action
        return action

    def order(self, fault: Json, kind: str, domain: str, **members: Any) -> Json:
        """An action because of a fault, which is committed at once."""
        name = "a-" + secrets.token_hex(12)
        return {"id": name, "kind": kind, "phase": "commit", "domain": domain, **members, "cause": fault["because"]}

    def clear(self, tenant: Tenant, key: FaultKey, over: int) -> None:
        """A fault is over, if it was told, and what was fenced for it is given back."""
        docket = self.docket(tenant)
        name = docket.open.pop(key, None)
        if name is None:
            return
        fault = {**docket.faults[name], "state": "cleared", "cleared_at": instant(over)}
        self.withdraw(tenant, fault)
        self.change_fault(tenant, fault, self.releases(tenant, fault))
        self.forget_faults(tenant)

    def withdraw(self, tenant: Tenant, fault: Json) -> None:
        """Ask no longer to stop a job that goes on; a fence is asked for until it is answered: it may be in force."""
        asked = self.book(tenant).open
        for name in fault["actions"]:
            _, domain = self.docket(tenant).owners[name]
            if asked[domain].get((name, "commit"), {}).get("kind") == "stop":
                self.close_action(tenant, domain, name)

    def releases(self, tenant: Tenant, fault: Json) -> list[Json]:
        """The action that undoes the fence of a fault, where there is one."""
        fence = self.docket(tenant).fences.get(fault["id"])
        if fence is None:
            return []
        return [self.order(fault, "release", fence["domain"], nodes=fence["nodes"], reservation=fence["id"])]

    def change_fault(self, tenant: Tenant, fault: Json, actions: list[Json]) -> None:
        """A fault has come to be so, and actions are asked for: one change, one revision."""
        docket = self.docket(tenant)
        docket.number += 1
        revision = self.fault_revision(docket.number)
        names = [*fault["actions"], *(action["id"] for action in actions)]
        fault = docket.faults[fault["id"]] = {**fault, "actions": names, "revision": revision}
        for action in actions:
            docket.owners[action["id"]] = fault["id"], action["domain"]
            asked = self.book(tenant).open.setdefault(action["domain"], {})
            asked[action["id"], "commit"] = {**action, "revision": revision}
            self.changed_actions.notify_all()
        self.note_change(docket, fault)
        self.changed_faults.notify_all()

    def note_change(self, docket: Docket, fault: Json) -> None:
        """Keep a change for who follows the faults."""
        docket.changes.append(fault)

    def post_any_result(self, request: Request) -> Answer:
        """Take what became of an action, whether it was asked for because of a fault or for an allocation."""
        docket = self.docket(request.tenant)
        result = self.body(request, "ActionResult")
        if result["action"] not in docket.owners:
            return self.post_result(request)
        if result["phase"] != "commit":
            raise wrong_body("invalid-body", "/phase", "this action is committed at once")
        if result["outcome"] not in ENDS:
            raise wrong_body("invalid-body", "/outcome", "this step cannot end like that")
        fault, domain = docket.owners[result["action"]]
        if result["outcome"] != "unknown":
            self.close_action(request.tenant, domain, result["action"])
        return Answer(200, self.answered_with(docket, fault), kept=False)

    def close_action(self, tenant: Tenant, domain: str, action: str) -> None:
        """A domain has answered; it is asked no more."""
        self.book(tenant).open[domain].pop((action, "commit"), None)

    def answered_with(self, docket: Docket, fault: str) -> Json:
        """What a result is answered with."""
        return docket.faults[fault]

    def get_faults(self, request: Request) -> Answer:
        """A page of faults in order of identifier, as they stood when its first page was made."""
        domain, state = request.query.get("domain"), request.query.get("state")
        if domain is not None and not IDENTIFIER.fullmatch(domain):
            raise wrong_parameter("domain", "domain must be an identifier")
        if state not in {None, *STATES}:
            raise wrong_parameter("state", f"state must be one of {', '.join(STATES)}")
        docket = self.docket(request.tenant)
        revision = self.fault_revision(docket.number)
        return self.page(request, lambda: self.listed_faults(docket, domain, state), revision)

    def listed_faults(self, docket: Docket, domain: str | None, state: str | None) -> Iterator[Json]:
        """Those that are asked for, in order of identifier."""
        for _, fault in sorted(docket.faults.items()):
            if domain in {None, fault.get("domain")} and state in {None, fault["state"]}:
                yield fault

    def forget_faults(self, tenant: Tenant) -> None:
        """Drop faults that were cleared long ago, unless something is still asked for because of them."""
        docket = self.docket(tenant)
        before = instant(self.moment - KEPT)
        asked = {action for actions in self.book(tenant).open.values() for action, _ in actions}
        for name, fault in list(docket.faults.items()):
            if fault["state"] == "cleared" and fault["cleared_at"] < before and asked.isdisjoint(fault["actions"]):
                del docket.faults[name]
                docket.fences.pop(name, None)
                for action in fault["actions"]:
                    del docket.owners[action]

    def get_fault_events(self, request: Request) -> Answer:
        """Changes as a stream, from the next one or from the one that was received last."""
        number = self.fault_behind(request)
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        return Answer(200, self.follow_faults(self.docket(request.tenant), number), headers)

    def fault_behind(self, request: Request) -> int:
        """Number of the revision behind which the stream begins."""
        docket = self.docket(request.tenant)
        last = request.headers.get("last-event-id")
        if last is None:
            return docket.number
        event = EVENT.fullmatch(last)
        if event is None:
            raise wrong_parameter("Last-Event-ID", "Last-Event-ID must be a revision EPOCH:NUMBER")
        if event[1] != self.fault_epoch or not self.holds_faults_from(docket, int(event[2])):
            raise Refusal("revision-expired", "this event is not held; list the faults and follow from their revision")
        return int(event[2])

    def holds_faults_from(self, docket: Docket, number: int) -> bool:
        """Whether all changes behind a revision are held."""
        return docket.number - len(docket.changes) <= number <= docket.number

    def follow_faults(self, docket: Docket, number: int) -> Iterator[bytes]:
        """Events without end, or until a reader is so slow that what comes next is no longer held."""
        yield b": faults follow\n\n"
        spoken = time.monotonic()
        while True:
            with self.changed_faults:
                self.changed_faults.wait_for(
                    lambda behind=number: docket.number > behind,  # type: ignore[misc]
                    QUIET - (time.monotonic() - spoken),
                )
                if not self.holds_faults_from(docket, number):
                    return
                changes = [fault for fault in docket.changes if fault["revision"]["number"] > number]
                number = docket.number
            if changes or time.monotonic() - spoken >= QUIET:
                yield b"".join(self.fault_event(fault) for fault in changes) or b": nothing new\n\n"
                spoken = time.monotonic()

    def fault_event(self, fault: Json) -> bytes:
        """A change as an event."""
        identifier = "{epoch}:{number}".format(**fault["revision"])
        data = json.dumps(fault, separators=(",", ":"))
        return f"id: {identifier}\nevent: fault\ndata: {data}\n\n".encode()
