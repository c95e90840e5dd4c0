"""Faults in the database: one row for each version, and one for each action that responds to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, insert, select, update

from kuayu.resilience.watching import Subject
from kuayu.service import streams
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import fault, response, tenant
from kuayu.service.storage.versions import Versions
from kuayu_schemas.models import ActionKind

Json = dict[str, Any]

FAULTS = Versions(fault, tenant.c.faults)
"""Versions of faults."""


@dataclass(frozen=True, slots=True)
class Record:
    """A fault as it stood after a change.

    Attributes:
        body: Class Fault but for its revision.
        revision: Of the faults, at which it came to be so.
    """

    body: Json
    revision: Revision

    @property
    def name(self) -> str:
        """Its identifier."""
        return str(self.body["id"])

    @property
    def number(self) -> int:
        """Number of its revision."""
        return self.revision.number

    def to_wire(self) -> Json:
        """The fault as class Fault has it."""
        return self.body | {"revision": self.revision.to_wire()}

    def event(self) -> bytes:
        """The fault as an event; the same bytes whenever it is told."""
        return streams.event("fault", self.revision.epoch, self.number, orjson.dumps(self.to_wire()))


@dataclass(frozen=True, slots=True)
class Response:
    """Something that a domain is asked to do because of a fault, or was.

    Attributes:
        fault: The fault's identifier.
        body: Class Action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered.
    """

    fault: str
    body: Json
    open: bool = True

    def is_a(self, kind: ActionKind) -> bool:
        """Whether it is an action of a kind."""
        return bool(self.body["kind"] == kind.value)


def find_open(connection: Connection, owner: str, epoch: str, subject: Subject) -> Record | None:
    """The fault that is open about something, or None."""
    query = select(fault.c.body, fault.c.valid_from).where(
        fault.c.tenant == owner, fault.c.subject == _key(subject), fault.c.cleared.is_(None), FAULTS.valid()
    )
    row = connection.execute(query).first()
    return None if row is None else record_of(epoch, row)


def find(connection: Connection, owner: str, epoch: str, name: str) -> Record:
    """A fault as it stands; it must be there."""
    query = select(fault.c.body, fault.c.valid_from).where(FAULTS.current(owner, name))
    return record_of(epoch, connection.execute(query).one())


def save(connection: Connection, owner: str, subject: Subject, record: Record, cleared: int | None) -> None:
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
            "action": each.body["id"],
            "fault": each.fault,
            "domain": each.body["domain"],
            "body": orjson.dumps(each.body).decode(),
            "open_since": sequence,
        }
        for each in responses
    ]
    if rows:
        connection.execute(insert(response), rows)


def find_response(connection: Connection, owner: str, action: str) -> Response | None:
    """What a domain was asked under a name, or None."""
    query = select(response.c.fault, response.c.body, response.c.open_since)
    row = connection.execute(query.where(response.c.tenant == owner, response.c.action == action)).first()
    return None if row is None else Response(row.fault, orjson.loads(row.body), row.open_since is not None)


def close(connection: Connection, owner: str, action: str, outcome: str) -> None:
    """Note how something ended that a domain was asked; it is not shown any more."""
    named = (response.c.tenant == owner) & (response.c.action == action)
    connection.execute(update(response).where(named).values(open_since=None, outcome=outcome))


def record_of(epoch: str, row: Any) -> Record:
    """The version of a fault in a row with ``body`` and ``valid_from``."""
    return Record(orjson.loads(row.body), Revision(epoch, row.valid_from))


def subject_of(body: Json) -> Subject:
    """What a fault, class Fault, is about."""
    return Subject(body["kind"], body.get("domain"), body.get("node"), body.get("job"), body.get("rank"))


def _key(subject: Subject) -> str:
    parts = (subject.kind, subject.domain, subject.node, subject.job, subject.rank)
    return orjson.dumps(parts).decode()
