"""Faults in the database, what domains are asked to do because of them, and what requests read.

1. Faults in the database: one row for each version, and one for each action that responds to them.
2. What domains are asked to do because of a fault, and when it is over.
3. What requests read of faults, each time one state of the database.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import orjson
from sqlalchemy import Connection, bindparam, insert, select, true, update

from kuayu.resilience.faults import Change, Subject
from kuayu.service import streams
from kuayu.service.problems import ProblemException
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Listing, Retention, Revision, Versions
from kuayu.service.storage.tables import fault, response, tenant, watched
from kuayu.service.streams import StreamStart
from kuayu_schemas.models import ActionKind, FaultKind

if TYPE_CHECKING:
    from kuayu_schemas import documents

FAULTS = Versions(fault, tenant.c.faults)
"""Versions of faults."""

FAULT_RETENTION = Retention(
    FAULTS,
    fault.c.cleared,
    true(),
    response,
    response.c.fault,
    (response.c.fault,),
    per_transaction=500,
    counted=False,
)
"""Faults that are over; those with actions that were not answered stay."""


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault as it stood after a change.

    Attributes:
        body: Class Fault but for its revision.
        revision: Of the faults, at which it came to be so.
    """

    body: dict[str, Any]
    revision: Revision

    @property
    def name(self) -> str:
        """Its identifier."""
        return str(self.body["id"])

    @property
    def number(self) -> int:
        """Number of its revision."""
        return self.revision.number

    def to_wire(self) -> "documents.Fault":
        """The fault as class Fault has it."""
        return cast("documents.Fault", self.body | {"revision": self.revision.to_wire()})

    def event(self) -> bytes:
        """The fault as an event; the same bytes whenever it is told."""
        return streams.event("fault", self.revision.epoch, self.number, orjson.dumps(self.to_wire()))


@dataclass(frozen=True, slots=True)
class Response:
    """Something that a domain is asked to do because of a fault, or was.

    Attributes:
        fault: The fault's identifier.
        body: The action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered.
    """

    fault: str
    body: "documents.Action"
    open: bool = True

    def is_a(self, kind: ActionKind) -> bool:
        """Whether it is an action of a kind."""
        return self.body["kind"] == kind.value


def find_open(connection: Connection, owner: str, epoch: str, subject: Subject) -> FaultRecord | None:
    """The fault that is open about something, or None."""
    query = select(fault.c.body, fault.c.valid_from).where(
        fault.c.tenant == owner, fault.c.subject == _key(subject), fault.c.cleared.is_(None), FAULTS.valid()
    )
    row = connection.execute(query).first()
    return None if row is None else record_of(epoch, row)


def find(connection: Connection, owner: str, epoch: str, name: str) -> FaultRecord:
    """A fault as it stands; it must be there."""
    query = select(fault.c.body, fault.c.valid_from).where(FAULTS.current(owner, name))
    return record_of(epoch, connection.execute(query).one())


def save(connection: Connection, owner: str, subject: Subject, record: FaultRecord, cleared: int | None) -> None:
    """Keep a fault as it has come to be; ``cleared`` tells when it was over, in milliseconds."""
    body = record.body
    FAULTS.retire(connection, owner, record.name, record.number)
    connection.execute(
        insert(fault).values(
            tenant=owner,
            id=record.name,
            valid_from=record.number,
            subject=_key(subject),
            state=body["state"],
            domain=body.get("domain"),
            body=orjson.dumps(body).decode(),
            cleared=cleared,
        )
    )


def ask(connection: Connection, owner: str, responses: Sequence[Response], sequence: int) -> None:
    """Keep what domains are asked; ``sequence`` is that of the commit by which they are."""
    rows = [
        {
            "tenant": owner,
            "action": entry.body["id"],
            "fault": entry.fault,
            "domain": entry.body["domain"],
            "body": orjson.dumps(entry.body).decode(),
            "open_since": sequence,
        }
        for entry in responses
    ]
    if rows:
        connection.execute(insert(response), rows)


_RESPONSE = select(response.c.fault, response.c.body, response.c.open_since).where(
    response.c.tenant == bindparam("owner"), response.c.action == bindparam("action")
)


def find_response(connection: Connection, owner: str, action: str) -> Response | None:
    """What a domain was asked under a name, or None."""
    row = connection.execute(_RESPONSE, {"owner": owner, "action": action}).first()
    return None if row is None else Response(row.fault, orjson.loads(row.body), row.open_since is not None)


def close(connection: Connection, owner: str, action: str, outcome: str) -> None:
    """Note how something ended that a domain was asked; it is not shown any more."""
    named = (response.c.tenant == owner) & (response.c.action == action)
    connection.execute(update(response).where(named).values(open_since=None, outcome=outcome))


def record_of(epoch: str, row: Any) -> FaultRecord:
    """The version of a fault in a row with ``body`` and ``valid_from``."""
    return FaultRecord(orjson.loads(row.body), Revision(epoch, row.valid_from))


def subject_of(body: Mapping[str, Any]) -> Subject:
    """What a fault, class Fault with its revision or without, is about."""
    return Subject(body["kind"], body.get("domain"), body.get("node"), body.get("job"), body.get("rank"))


def _key(subject: Subject) -> str:
    parts = (subject.kind, subject.domain, subject.node, subject.job, subject.rank)
    return orjson.dumps(parts).decode()


FENCED = frozenset({FaultKind.node_dead.value, FaultKind.node_failing.value})
"""Kinds of faults whose node is fenced."""

STOPPED = frozenset({FaultKind.job_hung.value})
"""Kinds of faults whose job is stopped."""

MAX_TEXT_CHARACTERS = 2048
"""Characters of a text at most."""


def to_fault(name: str, change: Change, devices: int, revision: Revision) -> Iterator[Response]:
    """What is asked because of a fault that has come.

    Args:
        name: The fault's identifier.
        change: What has come.
        devices: Devices of the node that it is about, if it is about one.
        revision: Revision of the faults at which it came.
    """
    subject = change.subject
    if subject.kind in FENCED:
        assert subject.domain is not None
        assert subject.node is not None
        action = _action(f"{name}.fence", ActionKind.fence, subject.domain, revision)
        nodes: list[documents.NodeShare] = [{"node": subject.node, "devices": devices}]
        yield Response(name, action | {"nodes": nodes, "cause": _words(change)})
    elif subject.kind in STOPPED:
        assert subject.job is not None
        for number, domain in enumerate(change.domains):
            action = _action(f"{name}.stop-{number}", ActionKind.stop, domain, revision)
            yield Response(name, action | {"job": subject.job, "cause": _words(change)})


def to_end(fence: Response, change: Change, revision: Revision) -> Response:
    """What is asked when a fault is over because of which a node was fenced."""
    existing = fence.body
    action = _action(f"{fence.fault}.release", ActionKind.release, existing["domain"], revision)
    return Response(
        fence.fault, action | {"reservation": existing["id"], "nodes": existing["nodes"], "cause": _words(change)}
    )


def _action(name: str, kind: ActionKind, domain: str, revision: Revision) -> "documents.Action":
    return {
        "id": name,
        "kind": kind.value,
        "phase": "commit",
        "revision": revision.to_wire(),
        "domain": domain,
    }


def _words(change: Change) -> str:
    over = "" if change.open else " is over"
    return f"{change.subject.kind}{over}: {change.because}"[:MAX_TEXT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Past:
    """What a tenant's watch has to go on from.

    Attributes:
        nodes: Nodes that have sent a heartbeat.
        open: Faults that are open.
    """

    nodes: set[str]
    open: list[FaultRecord]


class FaultStore:
    """Reads of faults, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listing(
        self, owner: str, *, at: Revision | None, after: str, limit: int, domain: str | None, state: str | None
    ) -> Listing[FaultRecord] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            at = at or Revision(self._database.epoch, FAULTS.number(connection, owner))
            if at.epoch != self._database.epoch or not FAULTS.holds(connection, owner, at.number):
                return None
            query = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.id > after, FAULTS.valid_at(at.number))
                .order_by(fault.c.id)
                .limit(limit + 1)
            )
            if domain is not None:
                query = query.where(fault.c.domain == domain)
            if state is not None:
                query = query.where(fault.c.state == state)
            result = [record_of(self._database.epoch, row) for row in connection.execute(query)]
            return Listing(result[:limit], len(result) > limit, at)

    def join(self, owner: str, last: Revision | None) -> StreamStart[FaultRecord]:
        """Begin to follow faults: each version is a change, so a stream goes on across restarts of the service.

        Args:
            owner: The tenant.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: revision-expired.
        """
        with self._database.reading() as connection:
            number = FAULTS.number(connection, owner)
            if last is None:
                return StreamStart(number, [])
            if last.epoch != self._database.epoch or not FAULTS.holds(connection, owner, last.number):
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; list the faults"
                )
            missed = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.valid_from > last.number)
                .order_by(fault.c.valid_from)
            )
            return StreamStart(number, [record_of(self._database.epoch, row) for row in connection.execute(missed)])

    def past(self) -> dict[str, Past]:
        """What each tenant's watch has to go on from after a restart of the service."""
        result: dict[str, Past] = {}
        with self._database.reading() as connection:
            for row in connection.execute(select(watched)):
                result.setdefault(row.tenant, Past(set(), [])).nodes.add(row.node)
            opened = select(fault.c.tenant, fault.c.body, fault.c.valid_from)
            for row in connection.execute(opened.where(fault.c.cleared.is_(None), FAULTS.valid())):
                record = record_of(self._database.epoch, row)
                result.setdefault(row.tenant, Past(set(), [])).open.append(record)
        return result
