"""The writer: groups, failures within groups, and what happens when too much waits."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import TableClause, column, event, insert, select, table
from sqlalchemy.exc import SQLAlchemyError

from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.tables import meta, sample, tenant
from kuayu.service.storage.writer import Command, Outcome, Transaction, Writer
from kuayu_schemas.models import Durability


@dataclass(frozen=True)
class Note:
    """Notes a name in a table, once it may."""

    name: str
    table: TableClause = meta
    weight: int = 1
    gate: threading.Event | None = None

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Wait for the gate, then note it."""
        if self.gate is not None:
            self.gate.wait()
        transaction.connection.execute(insert(self.table).values(name=self.name, value="x"))
        return Outcome(transaction.sequence)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path / 'writer.db'}", Durability.process)
    yield opened
    opened.close()


def names(database: Database) -> set[str]:
    with database.read.connect() as connection:
        return set(connection.execute(select(meta.c.name).where(meta.c.value == "x")).scalars())


async def wait_behind_a_closed_gate(writer: Writer, gate: threading.Event, *others: Command[int]) -> list[object]:
    first = asyncio.create_task(writer.write(Note("first", gate=gate)))
    await asyncio.sleep(0.1)
    tasks = [asyncio.create_task(writer.write(other)) for other in others]
    await asyncio.sleep(0.1)
    gate.set()
    return await asyncio.gather(first, *tasks, return_exceptions=True)


def test_what_waits_shares_a_commit_and_one_failure_harms_no_other(database: Database) -> None:
    writer = Writer(database.write, 100, Metrics())
    writer.start()
    commands = (Note("good"), Note("bad", table=table("nowhere", column("name"), column("value"))), Note("fine"))
    first, good, bad, fine = asyncio.run(wait_behind_a_closed_gate(writer, threading.Event(), *commands))
    writer.close()
    assert isinstance(bad, SQLAlchemyError)
    assert all(isinstance(result, int) for result in (first, good, fine))
    assert names(database) == {"first", "good", "fine"}


@dataclass(frozen=True)
class Put:
    """Puts one sample of a subject, perhaps with a measure that nobody knows, and has it written with others."""

    number: int
    measure: str = "power"
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Put it."""
        transaction.put(Arrival([Block.of_rows((self.measure,), [(self.number, 1, 5.0)])], 1))
        return Outcome(transaction.sequence)


def subjects(database: Database) -> set[int]:
    with database.read.connect() as connection:
        return set(connection.execute(select(sample.c.subject_no)).scalars())


def test_samples_are_written_together_and_what_cannot_be_harms_no_other(database: Database) -> None:
    writer = Writer(database.write, 100, Metrics())
    writer.start()
    commands = (Put(1), Put(2, measure="colour"), Put(3))
    first, one, two, three = asyncio.run(wait_behind_a_closed_gate(writer, threading.Event(), *commands))
    writer.close()
    assert isinstance(two, AssertionError)
    assert all(isinstance(result, int) for result in (first, one, three))
    assert subjects(database) == {1, 3}


def test_a_command_sees_the_samples_that_came_before_it(database: Database) -> None:
    with database.write.begin() as connection:
        transaction = Transaction(connection, 1)
        Put(1).apply(transaction)
        held = transaction.connection.execute(select(sample.c.subject_no)).scalars().all()
    assert held == [1]


def test_more_than_the_queue_holds_is_turned_away_for_a_while(database: Database) -> None:
    writer = Writer(database.write, 10, Metrics())
    writer.start()
    commands = (Note("fits", weight=10), Note("too much"))
    _, fits, refused = asyncio.run(wait_behind_a_closed_gate(writer, threading.Event(), *commands))
    writer.close()
    assert isinstance(fits, int)
    assert isinstance(refused, ProblemException)
    answer = refused.response()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert names(database) == {"first", "fits"}


def test_closing_writes_what_waits_and_takes_no_more(database: Database) -> None:
    async def story() -> None:
        writer = Writer(database.write, 10, Metrics())
        writer.start()
        gate = threading.Event()
        waiting = [asyncio.create_task(writer.write(Note(name, gate=gate))) for name in ("a", "b")]
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(asyncio.to_thread(writer.close))
        await asyncio.sleep(0.1)
        with pytest.raises(ProblemException):
            await writer.write(Note("late"))
        gate.set()
        await asyncio.gather(closing, *waiting)

    asyncio.run(story())
    assert names(database) == {"a", "b"}


@dataclass(frozen=True)
class Counted:
    """Counts a job of a tenant, and fails afterwards where it is to."""

    fails: bool = False
    gate: threading.Event | None = None
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Wait for the gate, then count it."""
        if self.gate is not None:
            self.gate.wait()
        number = transaction.counters.add("t", jobs=1, characters=10)["jobs"]
        if self.fails:
            transaction.connection.execute(insert(table("nowhere", column("name"))).values(name="x"))
        return Outcome(number)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_group_counts_is_written_once(database: Database, fails: bool) -> None:
    """Where a command fails, those beside it are carried out anew, and count once all the same."""
    written: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith(("UPDATE tenant", "INSERT INTO tenant")):
            written.append(statement.split(" ", 1)[0])

    async def ask(writer: Writer, gate: threading.Event) -> list[object]:
        first = asyncio.create_task(writer.write(Counted(gate=gate)))
        await asyncio.sleep(0.1)
        tasks = [asyncio.create_task(writer.write(Counted(fails and place == 1))) for place in range(3)]
        await asyncio.sleep(0.1)
        gate.set()
        return await asyncio.gather(first, *tasks, return_exceptions=True)

    event.listen(database.write, "before_cursor_execute", note)
    writer = Writer(database.write, 100, Metrics())
    writer.start()
    numbers = asyncio.run(ask(writer, threading.Event()))
    writer.close()
    if fails:
        assert isinstance(numbers.pop(2), SQLAlchemyError)
        assert (numbers, written) == ([1, 2, 3], ["INSERT", "UPDATE", "UPDATE"])
    else:
        assert (numbers, written) == ([1, 2, 3, 4], ["INSERT", "UPDATE"])
    with database.read.connect() as connection:
        row = connection.execute(select(tenant).where(tenant.c.name == "t")).one()
    assert (row.jobs, row.characters, row.number) == (len(numbers), 10 * len(numbers), 0)


@dataclass(frozen=True)
class Refused:
    """A command that is refused, perhaps because of something else."""

    caused: bool
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Refuse it."""
        del transaction
        try:
            {"known": 1}["key" if self.caused else "known"]
        except KeyError as error:
            raise ProblemException("idempotency-mismatch", "the key came with another body before") from error
        raise ProblemException("idempotency-mismatch", "the key came with another body before")


@pytest.mark.parametrize("caused", [False, True])
def test_a_command_that_is_refused_is_let_go(database: Database, caused: bool) -> None:
    """Not only when garbage is next collected, which is rare in a service that uses little."""

    async def ask(writer: Writer, command: Refused) -> None:
        with pytest.raises(ProblemException, match="idempotency-mismatch"):
            await writer.write(command)
        await writer.write(Note("next"))  # of the group before, the writer has let go

    writer, command = Writer(database.write, 100, Metrics()), Refused(caused)
    writer.start()
    gc.collect()
    gc.disable()
    try:
        asyncio.run(ask(writer, command))
        writer.close()
        refused = weakref.ref(command)
        del command
        assert refused() is None
    finally:
        gc.enable()
