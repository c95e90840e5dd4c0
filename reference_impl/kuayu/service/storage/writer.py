"""The one writer: a thread that commits commands in groups, with answers under idempotency keys.

1. The one writer: a thread that commits in groups. Requests queue their commands. The thread takes all that wait,
   carries them out in one transaction, commits, and only then tells each request its result, so that what was
   acknowledged is as durable as a commit is. While one group is being committed the next one gathers; the busier the
   service, the larger the groups. A command that raises a problem must not have written anything before; the others
   of its group are unharmed. Should anything else fail in the midst of a group, the group is rolled back and its
   commands are carried out one by one. Where the database itself fails, all of the group are turned away. Whether its
   commit was carried out is not known when the connection is lost meanwhile; the number of the newest commit tells it
   as soon as there is another connection. The same number tells whether the database is still the one that was
   written to last.
2. Counters of tenants: how many changes each has made, and what counts against its quota. A group holds hundreds of
   versions of one tenant; where each updated the same row, it would look through all updates before it.
3. Answers under idempotency keys, kept in the same transaction as what they answer for.
"""

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from sqlalchemy import Connection, Engine, bindparam, insert, select, update
from sqlalchemy.exc import NoResultFound, SQLAlchemyError

from kuayu.service.problems import ProblemException
from kuayu.service.storage import blocks
from kuayu.service.storage.blocks import Arrival
from kuayu.service.storage.database import DoubtError, OpeningMark, Presence, is_absence, unavailable
from kuayu.service.storage.tables import answer, meta, tenant

logger = logging.getLogger(__name__)

R_co = TypeVar("R_co", covariant=True)

LINGER = 0.003
"""Seconds for which a group may gather once several commands have come at a time. Samples of the same subject are
neighbours in the table, so that a page that is written for two groups could have been written once for both."""

ENOUGH = 8192
"""Samples that need not gather any longer."""

LARGEST_GROUP = 4 * ENOUGH
"""Samples after which a group is full: what is urgent waits for the commit of one group at most."""


_COUNTERS = tuple(column.name for column in tenant.c if not column.primary_key)
_READ_COUNTERS = select(tenant).where(tenant.c.name == bindparam("owner"))
_WRITE_COUNTERS = update(tenant).where(tenant.c.name == bindparam("owner"))
_INSERT_COUNTERS = insert(tenant)


class TenantCounters:
    """Counters of tenants in a transaction: each is read once, and written at the end.

    Args:
        connection: In the transaction. Nobody else writes the table of tenants.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._counts: dict[str, dict[str, int]] = {}
        self._stored: set[str] = set()
        self._changed: set[str] = set()

    def of(self, owner: str) -> Mapping[str, int]:
        """Counters of a tenant, by column, with all that was added in this transaction."""
        counts = self._counts.get(owner)
        if counts is None:
            row = self._connection.execute(_READ_COUNTERS, {"owner": owner}).mappings().first()
            if row is not None:
                self._stored.add(owner)
            counts = self._counts[owner] = {name: 0 if row is None else row[name] for name in _COUNTERS}
        return counts

    def add(self, owner: str, **more: int) -> Mapping[str, int]:
        """Add to counters of a tenant, by column; what they come to."""
        self.of(owner)
        counts = self._counts[owner]
        for name, amount in more.items():
            counts[name] += amount
        self._changed.add(owner)
        return counts

    def owners(self) -> list[str]:
        """All tenants that have any."""
        for row in self._connection.execute(select(tenant)).mappings():
            self._stored.add(row["name"])
            self._counts.setdefault(row["name"], {name: row[name] for name in _COUNTERS})
        return sorted(self._counts)

    def write(self) -> None:
        """Write those that have changed."""
        for owner in sorted(self._changed):
            if owner in self._stored:
                self._connection.execute(_WRITE_COUNTERS, {"owner": owner, **self._counts[owner]})
            else:
                self._connection.execute(_INSERT_COUNTERS, {"name": owner, **self._counts[owner]})
        self._stored |= self._changed
        self._changed.clear()


class Transaction:
    """What a command works with.

    Attributes:
        sequence: Number of the commit that this transaction will be.
        counters: Of tenants.
    """

    def __init__(self, connection: Connection, sequence: int) -> None:
        self.sequence = sequence
        self.counters = TenantCounters(connection)
        self._connection = connection
        self._arrivals: list[Arrival] = []

    @property
    def connection(self) -> Connection:
        """Inside the transaction; whoever asks for it sees all that was put before."""
        self._write_arrivals()
        return self._connection

    def put(self, arrival: Arrival) -> None:
        """Have samples written, at the latest at the end of the transaction: many together cost less than each."""
        self._arrivals.append(arrival)

    def finish(self) -> None:
        """Write what was put and what was counted; the last before the commit."""
        self._write_arrivals()
        self.counters.write()

    def _write_arrivals(self) -> None:
        arrivals, self._arrivals = self._arrivals, []
        if arrivals:
            blocks.write_all(self._connection, arrivals, self.sequence)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R_co]):
    """Result of a command, and what is to be done once it is durable and before anyone is told."""

    result: R_co
    committed: Callable[[], None] | None = None


class Command(Protocol[R_co]):
    """Something to be written."""

    @property
    def weight(self) -> int:
        """How much of the queue it takes, in samples."""

    def apply(self, transaction: Transaction) -> Outcome[R_co]:
        """Carry it out; raise a problem before writing anything if it cannot be done."""


class WriterGauges(Protocol):
    """Who wants to know how the writer is doing."""

    def committed(self, seconds: float, commands: int) -> None:
        """A group was committed."""

    def queued(self, weight: int) -> None:
        """So many samples wait."""


@dataclass(frozen=True, slots=True)
class _QueuedCommand:
    command: Command[Any]
    tenant: str = ""
    future: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Probe:
    """Nothing, to see whether it would be done."""

    weight: int = 0

    def apply(self, _: Transaction) -> Outcome[None]:
        return Outcome(None)


_PROBE = _Probe()


class Writer:
    """The thread and its queue.

    Args:
        engine: Where it writes.
        max_queue: Samples that may wait.
        gauges: Are told how it is doing.
        share: Samples of one tenant that may wait; as many as of all where absent.
        presence: Is told how the database does, and says when nothing may be written.
        mark: Is told of each commit, where there is one, before anybody else is.
    """

    def __init__(
        self,
        engine: Engine,
        max_queue: int,
        gauges: WriterGauges,
        share: int | None = None,
        presence: Presence | None = None,
        mark: OpeningMark | None = None,
    ) -> None:
        self._engine = engine
        self._mark = mark
        self._presence = presence or Presence()
        self._sequence: int | None = None
        self._in_doubt: tuple[int, Sequence[Outcome[Any] | Exception]] | None = None
        self._max_queue = max_queue
        self._share = max_queue if share is None else share
        self._gauges = gauges
        self._urgent: deque[_QueuedCommand] = deque()
        self._queue: deque[_QueuedCommand] = deque()
        self._weight = 0
        self._weights: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._thread = threading.Thread(target=self._run, name="kuayu-writer")

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what waits, then end; blocks until then."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    async def write(self, command: Command[R_co], tenant: str = "", *, urgent: bool = False) -> R_co:
        """Queue a command and wait until it is durable.

        Args:
            command: What is to be written.
            tenant: For whom; nobody where it is for the service itself.
            urgent: Whether it goes ahead of all that is not, and is never turned away.

        Raises:
            ProblemException: overloaded where too much waits already, or what the command itself raises.
        """
        # A client that goes away must not take its command with it: others may share its transaction.
        result: R_co = await asyncio.shield(asyncio.wrap_future(self.submit(command, tenant, urgent=urgent)))
        return result

    def submit(self, command: Command[R_co], tenant: str = "", *, urgent: bool = False) -> Future[R_co]:
        """Queue a command, with the arguments of :meth:`write`. Any thread may.

        Raises:
            ProblemException: overloaded where too much waits already, or the database cannot be used now.
        """
        self._presence.check()
        waiting = _QueuedCommand(command, tenant)
        with self._changed:
            if self._closing or not (urgent or self._has_room(command.weight, tenant)):
                raise ProblemException("overloaded", "more waits to be written than the service takes", retry_after=1)
            (self._urgent if urgent else self._queue).append(waiting)
            self._weight += command.weight
            self._weights[tenant] += command.weight
            self._gauges.queued(self._weight)
            self._changed.notify()
        return waiting.future

    def probe(self) -> Future[None]:
        """See whether something could be written, and whether the database is as it was left."""
        waiting = _QueuedCommand(_PROBE)
        with self._changed:
            if self._closing:
                waiting.future.set_result(None)
            else:
                self._urgent.append(waiting)
                self._changed.notify()
        return waiting.future

    def _has_room(self, weight: int, tenant: str) -> bool:
        """Whether a command may wait; one that is alone always may, whatever its weight."""
        own = self._weights[tenant] if tenant else 0
        return not (self._queue and (self._weight + weight > self._max_queue or (own and own + weight > self._share)))

    def _run(self) -> None:
        while group := self._next_group():
            for waiting, outcome in zip(group, self._outcomes(group), strict=True):
                _tell(waiting.future, outcome)

    def _outcomes(self, group: Sequence[_QueuedCommand]) -> Sequence[Outcome[Any] | Exception]:
        """Carry a group out; where the database fails, all of it is turned away."""
        absence = self._presence.absence
        if absence is not None and any(waiting.command is not _PROBE for waiting in group):
            # They began to wait before it was known; to try with each of them would keep all of them waiting.
            return [unavailable(absence)] * len(group)
        try:
            return self._commit(group)
        except Exception as error:
            if is_absence(error):
                return [self._presence.failed(error)] * len(group)
            logger.exception("a group of %d commands was rolled back; now one by one", len(group))
            return [self._commit_alone(waiting) for waiting in group]

    def _next_group(self) -> list[_QueuedCommand]:
        """Take what is urgent and what waits, a group full; nothing once the writer is closed and the queues empty."""
        if self._busy and self._weight < ENOUGH and not self._urgent:
            time.sleep(LINGER)
        with self._changed:
            while not self._queue and not self._urgent and not self._closing:
                self._changed.wait()
            group = list(self._urgent)
            self._urgent.clear()
            weight = sum(waiting.command.weight for waiting in group)
            while self._queue and weight < LARGEST_GROUP:
                waiting = self._queue.popleft()
                weight += waiting.command.weight
                group.append(waiting)
            for waiting in group:
                self._weights[waiting.tenant] -= waiting.command.weight
            self._weights = +self._weights
            self._weight -= weight
            self._busy = len(group) > 1
            self._gauges.queued(self._weight)
            return group

    def _commit(self, group: Sequence[_QueuedCommand]) -> list[Outcome[Any] | Exception]:
        if self._presence.doubt is not None:
            return [unavailable(self._presence.absence or "") for _ in group]
        began = time.perf_counter()
        outcomes: list[Outcome[Any] | Exception] = []
        with self._engine.connect() as connection:
            begun = connection.begin()
            sequence = self._newest(connection) + 1
            if self._presence.absence is None and all(waiting.command is _PROBE for waiting in group):
                return [Outcome(None) for _ in group]  # to read is proof enough where nothing is amiss
            connection.execute(update(meta).where(meta.c.name == "sequence").values(value=str(sequence)))
            transaction = Transaction(connection, sequence)
            for waiting in group:
                try:
                    outcomes.append(waiting.command.apply(transaction))
                except ProblemException as problem:
                    outcomes.append(_without_frames(problem))
            transaction.finish()
            self._in_doubt = (sequence, outcomes)
            begun.commit()
            self._in_doubt, self._sequence = None, sequence
        if self._mark is not None:
            self._mark.note(sequence)
        self._presence.present()
        self._gauges.committed(time.perf_counter() - began, len(group))
        return outcomes

    def _commit_alone(self, waiting: _QueuedCommand) -> Outcome[Any] | Exception:
        try:
            return self._commit([waiting])[0]
        except Exception as error:
            if is_absence(error):
                return self._presence.failed(error)
            logger.exception("a command could not be written")
            return error

    def _newest(self, connection: Connection) -> int:
        """Number of the newest commit, which has to be the last of this writer.

        Raises:
            DoubtError: It is another one.
        """
        try:
            existing = connection.execute(select(meta.c.value).where(meta.c.name == "sequence")).scalar_one()
        except (SQLAlchemyError, NoResultFound) as error:
            if is_absence(error):
                raise
            raise DoubtError("the database does not hold what it held", lost=True) from error
        newest, known = int(existing), self._sequence
        in_doubt, self._in_doubt = self._in_doubt, None
        if in_doubt is not None and newest == in_doubt[0]:
            # Those who asked for it were turned away; what is in memory has to follow all the same.
            for outcome in in_doubt[1]:
                if isinstance(outcome, Outcome) and outcome.committed is not None:
                    outcome.committed()
        elif known is not None and newest != known:
            cause = f"the database is at commit {newest}, but {known} was the last"
            raise DoubtError(cause, lost=newest < known)
        self._sequence = newest
        return newest


def _without_frames(problem: ProblemException) -> ProblemException:
    """A problem that is an answer: frames of its traceback, or of its cause's, would hold all of the group by it."""
    error: BaseException | None = problem
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
    return problem


def _tell(future: Future[Any], outcome: Outcome[Any] | Exception) -> None:
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
        return
    if outcome.committed is not None:
        outcome.committed()
    future.set_result(outcome.result)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was or will be given."""

    status: int
    body: bytes
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key.

    Attributes:
        tenant: Whose it is.
        operation: What it was sent with: method, path and query.
        key: The key itself.
        digest: SHA-256 of the body, hexadecimal.
        received: When the request was received, in milliseconds.
    """

    tenant: str
    operation: str
    key: str
    digest: str
    received: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """A command that cannot be carried out as things stand now; under its key there may be an answer from before."""

    problem: ProblemException

    @property
    def weight(self) -> int:
        """It holds no samples."""
        return 0

    def apply(self, _: Transaction) -> NoReturn:
        """Raise why it cannot."""
        raise self.problem


@dataclass(frozen=True, slots=True)
class Once:
    """A command that is carried out only once for each key.

    Raises when applied: idempotency-mismatch, or what the command itself raises.
    """

    key: Key
    command: Command[Answer]

    @property
    def weight(self) -> int:
        """That of the command."""
        return self.command.weight

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Give the kept answer, or carry the command out and keep its answer."""
        name = {"tenant": self.key.tenant, "operation": self.key.operation, "key": self.key.key}
        conditions = [answer.c[column] == value for column, value in name.items()]
        stored = transaction.connection.execute(
            select(answer.c.digest, answer.c.status, answer.c.body).where(*conditions)
        ).first()
        if stored is None:
            outcome = self.command.apply(transaction)
            given = outcome.result
            transaction.connection.execute(
                insert(answer).values(
                    **name,
                    digest=self.key.digest,
                    status=given.status,
                    body=given.body,
                    created=self.key.received,
                )
            )
            return outcome
        if stored.digest != self.key.digest:
            raise ProblemException("idempotency-mismatch", "the key came with another body before")
        return Outcome(Answer(stored.status, bytes(stored.body), replayed=True))
