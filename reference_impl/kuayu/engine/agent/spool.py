"""What was acknowledged and not yet forwarded, in an SQLite file.

One thread writes (:mod:`~kuayu.engine.agent.intake`); the forwarder reads on a connection of its own. Samples are
kept as the bytes that will be sent, so that forwarding neither parses nor builds them. Their numbers follow the order
of arrival, and a batch is a run of them that travels under one idempotency key; its table is called ``parcel``, as
files that are there already have it.

Before it is opened, the file is told from other files, and it is kept from other processes while it is open.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from kuayu.engine.agent.settings import SpoolLimit
from kuayu.engine.locking import lock, lock_of
from kuayu_schemas.models import Durability

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sample (id INTEGER PRIMARY KEY AUTOINCREMENT, arrived INTEGER NOT NULL, waited REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS held (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, arrived INTEGER NOT NULL, waited REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS held_due ON held (due);
CREATE TABLE IF NOT EXISTS parcel (key TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, stamps TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, digest BLOB NOT NULL, body BLOB NOT NULL, created INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS answer_created ON answer (created);
"""  # noqa: E501 - a table a line

APPLICATION: Final = 0x6B757961
"""What a spool says in the header of the file (PRAGMA application_id)."""

_OLD: Final = {"fact", "sample", "held", "parcel", "answer"}
"""Tables of a spool that does not say it yet."""


class SpoolError(Exception):
    """The spool cannot be used; says why and what to do."""

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}. {hint}")
        self.cause = cause
        self.hint = hint


def _resolve(file: Path) -> Path:
    """Where a file really is, so that two names of it are one; nothing is written.

    Raises:
        SpoolError: There is something that is no spool and no empty file.
    """
    try:
        real = file.resolve()
        if real.exists() and not real.is_file():
            raise SpoolError(f"{file} is no file", "name a file for --spool; it is made where there is none")
        if not real.exists() or not real.stat().st_size:
            return real
        connection = sqlite3.connect(f"{real.as_uri()}?mode=ro", uri=True)
    except (OSError, RuntimeError, ValueError, sqlite3.Error) as error:
        raise SpoolError(f"{file} cannot be read: {error}", "name another file") from error
    try:
        named = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise SpoolError(f"{file} does not open as a spool: {error}", "name another file, or mend this one") from error
    finally:
        connection.close()
    if named == APPLICATION or (not named and (not tables or tables >= _OLD)):
        return real
    said = ", ".join(sorted(tables)[:5]) or "none"
    raise SpoolError(
        f"{file} is a database of something else (tables {said})", "name another file; this one is as it was"
    )


def _create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables that are not there, in the transaction that is open."""
    for statement in _TABLES.strip().splitlines():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION}")


def _lock_spool(file: Path) -> IO[str]:
    """Keep other aggregators off a file for as long as the answer is open.

    Raises:
        SpoolError: Another one has it, or its folder cannot be written.
    """
    try:
        return lock(file)
    except BlockingIOError as error:
        raise SpoolError(f"another agent has the spool {file}", "stop it, or give each a spool of its own") from error
    except OSError as error:
        hint = "name a folder that may be written"
        raise SpoolError(f"cannot write {lock_of(file)}: {error.strerror}", hint) from error


def _connect(file: Path, durability: Durability) -> sqlite3.Connection:
    """A connection to write with, which takes transactions as they are begun.

    Raises:
        sqlite3.Error: It is no database, or cannot be written.
    """
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=64)
    try:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={'FULL' if durability is Durability.host else 'NORMAL'}")
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA wal_autocheckpoint=4000")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


VERSION: Final = "1"
OVERHEAD: Final = 40
"""Bytes that the file needs for a sample beside its text, rounded up: number, instant, header, share of the page."""
ANSWER_OVERHEAD: Final = 150
"""Bytes that it needs for an answer beside its text, about: key, digest, instant, two indices."""
MAX_ANSWER_BYTES: Final = 1 << 30
"""Bytes of answers that are kept at most, also where the spool has no limit in bytes."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples on their way to the service.

    Attributes:
        key: Idempotency key.
        first: Number of the first sample.
        last: Number of the last one.
        stamps: The ``sent_at`` of each attempt that gave one, oldest first.
    """

    key: str
    first: int
    last: int
    stamps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeferredSample:
    """A sample whose subject the service did not know.

    Attributes:
        number: Its number in the batch's run.
        due: When to send it again, in milliseconds.
        waited: Seconds that it will have waited for its subject by then.
    """

    number: int
    due: int
    waited: float


@dataclass(frozen=True, slots=True)
class Level:
    """How much the spool holds.

    Attributes:
        samples: Samples in all.
        deferred: Those of them that are held back.
        octets: Bytes of samples.
        answers: Bytes of the answers that are kept under idempotency keys.
    """

    samples: int
    deferred: int
    octets: int
    answers: int = 0


class Spool:
    """The open file. All methods but :meth:`close` and the property :attr:`level` are the writing thread's.

    Args:
        file: Where it is; made where there is none.
        domain: Domain that it belongs to.
        limit: How much it may hold.
        durability: Which crash a commit survives.

    Raises:
        SpoolError: Another aggregator has it, it is of another domain, it is no spool, or it cannot be written.
    """

    def __init__(self, file: Path, domain: str, limit: SpoolLimit, durability: Durability) -> None:
        self.file, self._limit = _resolve(file), limit
        self._lock = _lock_spool(self.file)
        self._db: sqlite3.Connection | None = None
        try:
            self._db = _connect(self.file, durability)
            self._db.execute("BEGIN IMMEDIATE")
            _create_tables(self._db)
            self._identify(domain)
            self._db.execute("COMMIT")
            self.level = self._counted()
        except (sqlite3.Error, SpoolError) as error:
            self.close()
            if isinstance(error, SpoolError):
                raise
            raise SpoolError(
                f"{file} does not open as a spool: {error}", "name another file, or mend this one"
            ) from error
        self._before = self.level

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
        self._lock.close()

    def reader(self) -> sqlite3.Connection:
        """A connection for another thread to read with."""
        connection = sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.execute("PRAGMA busy_timeout=30000")
        return connection

    def begin(self) -> None:
        """Begin a transaction."""
        self._before = self.level
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make it durable."""
        self.db.execute("COMMIT")

    def rollback(self) -> None:
        """Undo it."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        self.level = self._before

    @property
    def db(self) -> sqlite3.Connection:
        """The writing connection."""
        assert self._db is not None
        return self._db

    def has_room(self, bodies: Sequence[bytes], answer: bytes = b"") -> bool:
        """Whether these samples fit, and their answer where it is to be kept.

        A spool without samples takes any batch, for it would never fit otherwise; the same holds for answers.
        """
        level = self.level
        answer_bytes = level.answers + (len(answer) + ANSWER_OVERHEAD if answer else 0)
        if level.answers and answer and answer_bytes > min(MAX_ANSWER_BYTES, self._limit.octets):
            return False
        if not level.samples:
            return True
        samples = level.samples + len(bodies)
        return samples <= self._limit.samples and level.octets + _size(bodies) + answer_bytes <= self._limit.octets

    def put(self, bodies: Sequence[bytes], arrived: int) -> None:
        """Append samples that arrived at an instant, in milliseconds."""
        rows = ((arrived, body) for body in bodies)
        self.db.executemany("INSERT INTO sample (arrived, waited, body) VALUES (?, 0, ?)", rows)
        self._add(len(bodies), _size(bodies))

    def stored_answer(self, key: str) -> tuple[bytes, bytes] | None:
        """Digest of the request that had a key, and its answer; None where the key is new."""
        row = self.db.execute("SELECT digest, body FROM answer WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], row[1])

    def store_answer(self, key: str, digest: bytes, body: bytes, created: int) -> None:
        """Keep the answer that a key was given."""
        self.db.execute("INSERT INTO answer VALUES (?, ?, ?, ?)", (key, digest, body, created))
        self._add(0, 0, answers=len(body) + ANSWER_OVERHEAD)

    def under_way(self) -> Batch | None:
        """The batch whose fate is not known, if there is one."""
        row = self.db.execute("SELECT key, first, last, stamps FROM parcel").fetchone()
        return None if row is None else Batch(row[0], row[1], row[2], tuple(json.loads(row[3])))

    def bring_back(self, now: int) -> None:
        """Put held samples that are due at the end of the queue, as if they had arrived again."""
        due = self.db.execute("SELECT count(*) FROM held WHERE due <= ?", (now,)).fetchone()[0]
        if due:
            columns = "arrived, waited, body"
            moved = f"INSERT INTO sample ({columns}) SELECT {columns} FROM held"  # noqa: S608 - names of our own
            self.db.execute(f"{moved} WHERE due <= ? ORDER BY id", (now,))
            self.db.execute("DELETE FROM held WHERE due <= ?", (now,))
            self._add(0, 0, deferred=-due)

    def pack(self, most: int, octets: int) -> Batch | None:
        """Make a batch of the oldest samples.

        Args:
            most: Samples at most.
            octets: Bytes at most, unless a single sample is larger.

        Returns:
            The batch, None where nothing waits.
        """
        first = last = None
        left = octets
        for number, length in self.db.execute("SELECT id, length(body) FROM sample ORDER BY id LIMIT ?", (most,)):
            left -= length + 1
            if first is not None and left < 0:
                break
            first, last = first or number, number
        if first is None or last is None:
            return None
        batch = Batch(uuid.uuid4().hex, first, last)
        self.db.execute("INSERT INTO parcel VALUES (?, ?, ?, '[]')", (batch.key, first, last))
        return batch

    def stamp(self, batch: Batch, sent_at: str) -> Batch:
        """Note the clock that an attempt is about to show."""
        stamps = (*batch.stamps, sent_at)
        self.db.execute("UPDATE parcel SET stamps = ? WHERE key = ?", (json.dumps(stamps), batch.key))
        return Batch(batch.key, batch.first, batch.last, stamps)

    def unpack(self, batch: Batch) -> None:
        """Nothing of a batch was taken: its samples travel anew, under another key."""
        self.db.execute("DELETE FROM parcel WHERE key = ?", (batch.key,))

    def settle(self, batch: Batch, deferred: Iterable[DeferredSample] = ()) -> None:
        """A batch has met its fate; all of it goes but what is held back."""
        rows = [(sample.due, sample.waited, sample.number) for sample in deferred]
        self.db.executemany(
            "INSERT INTO held (due, arrived, waited, body) SELECT ?, arrived, ?, body FROM sample WHERE id = ?", rows
        )
        run = batch.first, batch.last
        measured = "SELECT count(*), total(length(body)) FROM sample WHERE id BETWEEN ? AND ?"
        gone, octets = self.db.execute(measured, run).fetchone()
        stay = sum(self.db.execute(measured, (number, number)).fetchone()[1] for _, _, number in rows)
        self.db.execute("DELETE FROM sample WHERE id BETWEEN ? AND ?", run)
        self.unpack(batch)
        less = gone - len(rows)
        self._add(-less, int(stay - octets) - less * OVERHEAD, deferred=len(rows))

    def prune(self, answers_before: int) -> None:
        """Forget old answers, and give pages that are free back to the disk."""
        old = (answers_before,)
        count, size = self.db.execute(
            "SELECT count(*), total(length(body)) FROM answer WHERE created < ?", old
        ).fetchone()
        self.db.execute("DELETE FROM answer WHERE created < ?", old)
        self._add(0, 0, answers=-int(size) - count * ANSWER_OVERHEAD)
        self.db.execute("PRAGMA incremental_vacuum(4096)").fetchall()

    def oldest(self) -> int | None:
        """When the oldest sample arrived, in milliseconds; None where there is none. Held ones count too."""
        row = self.db.execute(
            "SELECT min(arrived) FROM (SELECT arrived FROM (SELECT arrived FROM sample ORDER BY id LIMIT 1)"
            " UNION ALL SELECT min(arrived) FROM held)"
        ).fetchone()
        return None if row is None else row[0]

    def _identify(self, domain: str) -> None:
        facts = dict(self.db.execute("SELECT name, value FROM fact").fetchall())
        if not facts:
            rows = [("version", VERSION), ("domain", domain)]
            self.db.executemany("INSERT INTO fact VALUES (?, ?)", rows)
        elif facts.get("version") != VERSION:
            raise SpoolError(
                f"{self.file} is a spool of version {facts.get('version')}, this is {VERSION}",
                "empty it with the version that made it",
            )
        elif facts.get("domain") != domain:
            raise SpoolError(
                f"{self.file} holds samples of the domain {facts.get('domain')}", "give each domain a spool of its own"
            )

    def _counted(self) -> Level:
        counts = [
            self.db.execute(f"SELECT count(*), total(length(body)) FROM {table}").fetchone()  # noqa: S608 - the names below
            for table in ("sample", "held", "answer")
        ]
        answers, size = counts.pop()
        samples = sum(count for count, _ in counts)
        octets = int(sum(size for _, size in counts)) + samples * OVERHEAD
        return Level(samples, counts[1][0], octets, int(size) + answers * ANSWER_OVERHEAD)

    def _add(self, samples: int, octets: int, *, deferred: int = 0, answers: int = 0) -> None:
        now = self.level
        self.level = Level(now.samples + samples, now.deferred + deferred, now.octets + octets, now.answers + answers)


def _size(bodies: Sequence[bytes]) -> int:
    return sum(map(len, bodies)) + OVERHEAD * len(bodies)
