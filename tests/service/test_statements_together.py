"""Statements whose results nobody needs are carried out together, on PostgreSQL before the first has been answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from service import postgres_server
from service.postgres_server import PostgresServer
from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from kuayu.service.storage.database import Database, is_absence, open_database
from kuayu.service.storage.resources import Statement, execute_all, with_parts
from kuayu.service.storage.tables import meta
from kuayu_schemas.models import Durability

SET = update(meta).where(meta.c.name == bindparam("of")).values(value=bindparam("to"))


def note(name: str, value: str) -> Statement:
    return insert(meta), {"name": name, "value": value}


def value(connection: Connection, name: str) -> str | None:
    return connection.execute(select(meta.c.value).where(meta.c.name == name)).scalar()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server.running() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("server").url
    opened = open_database(url, Durability.process)
    with opened.write.begin() as connection:
        connection.execute(delete(meta).where(meta.c.name.in_(["a", "b"])))
    yield opened
    opened.close()


def test_each_sees_what_those_before_it_did(database: Database) -> None:
    with database.write.begin() as connection:
        execute_all(connection, [note("a", "1"), (SET, {"of": "a", "to": "2"}), note("b", "3")])
        assert value(connection, "a") == "2"
    with database.write.connect() as connection:
        assert value(connection, "b") == "3"


def test_a_thing_and_its_parts_are_read_by_one_statement(database: Database) -> None:
    """The thing comes once, however many parts it has, and each column as of the type that it has by itself."""
    with database.write.begin() as connection:
        execute_all(connection, [note("a", "1"), note("b", "2")])
        whole = select(meta.c.name, meta.c.value).where(meta.c.name == "a")
        others = select(meta.c.name.label("part"), (meta.c.name == "b").label("over")).where(
            meta.c.name.in_(["a", "b"])
        )
        rows = connection.execute(with_parts(whole, others)).all()
        assert sorted(map(tuple, rows), key=str) == [
            ("a", "1", None, None),
            (None, None, "a", False),
            (None, None, "b", True),
        ]
        assert [type(row.over) for row in rows if row.part is not None] == [bool, bool]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_fails_is_told_of_and_the_transaction_can_be_undone(database: Database, place: int) -> None:
    with database.write.begin() as connection:
        execute_all(connection, [note("a", "kept")])
    statements = [note("b", "1"), (SET, {"of": "b", "to": "2"})]
    statements.insert(place, note("a", "twice"))
    with database.write.connect() as connection:
        begun = connection.begin()
        with pytest.raises(IntegrityError) as caught:
            execute_all(connection, statements)
        begun.rollback()
        assert not is_absence(caught.value)
        assert (value(connection, "a"), value(connection, "b")) == ("kept", None)
    with database.write.begin() as connection:  # the same connection, from the pool
        execute_all(connection, [note("b", "4"), (SET, {"of": "a", "to": "5"})])
        assert (value(connection, "a"), value(connection, "b")) == ("5", "4")


@pytest.mark.postgres
def test_a_server_that_goes_meanwhile_is_told_from_a_wrong_statement() -> None:
    with postgres_server.running() as server:
        database = open_database(server.url, Durability.process)
        with database.write.connect() as connection:
            connection.begin()
            assert value(connection, "a") is None
            server.crash()
            with pytest.raises(DBAPIError) as caught:
                execute_all(connection, [note("a", "1"), note("b", "2")])
            assert is_absence(caught.value)
        server.start()
        with database.write.begin() as connection:
            assert value(connection, "a") is None
            execute_all(connection, [note("a", "1"), note("b", "2")])
        database.close()
