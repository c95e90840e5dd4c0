"""What is older than the retention lives on as steps: the same series before and after, whatever happens on the way."""

import contextlib
import os
import random
import signal
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from alembic import command
from alembic.config import Config
from commands import TESTS, prefork_server
from hypothesis import given, settings
from hypothesis import strategies as st
from service import databases, postgres_server
from service.conftest import OURS
from service.databases import DAY, Values, advance, direct, listed, maintain, opened, points, same
from sqlalchemy import func, inspect, select

from kuayu.service import instants, maintenance
from kuayu.service.settings import Settings
from kuayu.service.storage import rollup
from kuayu.service.storage.database import MIGRATIONS, Database, open_database
from kuayu.service.storage.queries import SeriesQuery
from kuayu.service.storage.rollup import BLOCK, FINEST, Steps, pack, unpack
from kuayu.service.storage.tables import rollup as rollup_table
from kuayu.service.storage.tables import sample as sample_table
from kuayu.service.storage.writer import Transaction
from kuayu_schemas.models import Durability

HOUR = 3_600_000
BEGIN = 20_000 * DAY
"""A day on which nothing else happens."""

MAINTAINING = ("kuayu.service.maintenance", "kuayu.service.storage.database")
"""What a process imports that maintains a database; that takes longer than what is seen of it."""

MAINTAIN = f"sys.path.append({str(TESTS)!r}); from service.databases import main; main(sys.argv[1:])"

READINGS = st.one_of(
    st.integers(0, 100).map(lambda n: n / 100),
    st.integers(0, 2_000_000).map(lambda n: n / 1000),
    st.integers(0, 80_000).map(lambda n: n * 2.0**20),
    st.floats(0, allow_infinity=False, allow_nan=False, allow_subnormal=True),
)
"""Shares in percent, power in milliwatts, memory in MiB, and any double that there is."""


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    if request.param == "sqlite":
        with opened(f"sqlite:///{tmp_path_factory.mktemp('rollup') / 'kuayu.db'}") as found:
            yield found
    else:
        with postgres_server.running() as server, opened(server.url) as found:
            yield found


def emptied(database: Database, held: Mapping[int, Values]) -> None:
    with database.write.begin() as connection:
        databases.clear(connection)
        databases.fill(connection, held)


HELD = st.dictionaries(
    st.integers(1, 20),
    st.dictionaries(st.integers(BEGIN - 2 * HOUR, BEGIN + 2 * DAY), READINGS, max_size=40)
    | st.dictionaries(st.integers(0, 60).map(lambda n: BEGIN + 30_000 * n), READINGS, max_size=40),
    min_size=1,
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(
    held=HELD,
    pieces=st.integers(0, 30),
    step=st.sampled_from([300, 3600, 86_400]),
    begin=st.integers(-3, 60),
    length=st.integers(0, 60),
    swept=st.booleans(),
)
def test_a_series_is_the_same_wherever_the_frontier_stands(
    database: Database, held: dict[int, Values], pieces: int, step: int, begin: int, length: int, swept: bool
) -> None:
    emptied(database, held)
    advance(database, BEGIN + 3 * DAY, 12 * HOUR, 400 * DAY, pieces)
    if swept:
        sweep(database)
    milliseconds = step * 1000
    since = BEGIN - BEGIN % milliseconds + begin * milliseconds
    until = since + length * milliseconds
    for number, values in held.items():
        found = points(database, SeriesQuery(number, "power", since, until, milliseconds))
        assert same(found, direct(values, milliseconds, since, until)), number


def sweep(database: Database) -> None:
    """Delete all samples that the frontier has left behind."""
    with database.read.connect() as connection:
        reached = rollup.frontier(connection)
    while reached is not None:
        with database.read.connect() as connection:
            numbers = list(connection.execute(maintenance.with_old_samples(reached.block, 0)).scalars())
        if not numbers:
            return
        with database.write.begin() as connection:
            maintenance.ForgetSamples(numbers, reached.block).apply(Transaction(connection, 0))


@given(st.data())
def test_what_is_packed_comes_out_as_it_went_in(data: st.DataObject) -> None:
    slots = data.draw(st.lists(st.integers(0, BLOCK // FINEST - 1), min_size=1, unique=True).map(sorted))
    values = [data.draw(st.lists(READINGS | READINGS.map(lambda v: -v), min_size=1, max_size=5)) for _ in slots]
    expected = [
        point
        for slot, some in zip(slots, values, strict=True)
        for point in direct(dict(enumerate(some, BEGIN + slot * FINEST)), FINEST, BEGIN, BEGIN + BLOCK)
    ]
    start, count, mean, least, most = (np.array(column) for column in zip(*expected, strict=True))
    steps = Steps(start, count, mean, least, most)
    assert same(listed(unpack(pack(steps, BEGIN), BEGIN)), expected)


def test_readings_take_less_room_than_doubles() -> None:
    chance = random.Random(1)
    readings = {BEGIN + 15_000 * n: round(chance.gauss(400, 60), 3) for n in range(720)}
    start, count, mean, least, most = (
        np.array(column) for column in zip(*direct(readings, FINEST, BEGIN, BEGIN + BLOCK), strict=True)
    )
    assert len(pack(Steps(start, count, mean, least, most), BEGIN)) < 36 * 24 / 2


def test_a_finer_step_than_is_kept_is_not_made_up(database: Database) -> None:
    values = {BEGIN + 60_000 * n: float(n) for n in range(2 * 1440)}
    emptied(database, {1: values, 2: {}})
    advance(database, BEGIN + 2 * DAY, DAY, 400 * DAY)
    old = SeriesQuery(1, "power", BEGIN + HOUR, BEGIN + 2 * HOUR, 60_000)
    assert points(database, old) is None
    within_a_step = SeriesQuery(1, "power", BEGIN + 180_000, BEGIN + 240_000, 60_000)
    assert points(database, within_a_step) is None
    assert points(database, SeriesQuery(2, "power", BEGIN + HOUR, BEGIN + 2 * HOUR, 60_000)) == []
    since, until = BEGIN + DAY + HOUR, BEGIN + DAY + 2 * HOUR
    recent = points(database, SeriesQuery(1, "power", since, until, 60_000))
    assert same(recent, direct(values, 60_000, since, until))


def test_nothing_is_closed_before_it_lies_behind_the_retention(database: Database) -> None:
    emptied(database, {1: {BEGIN: 1.0, BEGIN + BLOCK: 2.0}})
    advance(database, BEGIN + DAY + BLOCK + rollup.ROLLUP_MARGIN_MILLISECONDS - 1, DAY, 400 * DAY)
    assert blocks(database) == 0
    advance(database, BEGIN + DAY + BLOCK + rollup.ROLLUP_MARGIN_MILLISECONDS, DAY, 400 * DAY)
    assert blocks(database) == 1


def blocks(database: Database) -> int:
    with database.read.connect() as connection:
        return connection.execute(select(func.count()).select_from(rollup_table)).scalar_one()


def test_a_sample_of_a_closed_block_neither_counts_nor_harms(database: Database) -> None:
    """It can come where the retention is made longer, and may be a repetition of what is rolled up."""
    values = {BEGIN + 60_000 * n: float(n) for n in range(1440)}
    emptied(database, {1: values})
    advance(database, BEGIN + 3 * DAY, DAY, 400 * DAY)
    sweep(database)
    with database.write.begin() as connection:
        databases.add(connection, 1, {BEGIN: 0.0, BEGIN + 1: 5.0})
    found = points(database, SeriesQuery(1, "power", BEGIN, BEGIN + DAY, DAY))
    assert same(found, direct(values, DAY, BEGIN, BEGIN + DAY))


def test_steps_that_have_lost_a_part_are_not_shown_as_whole(database: Database) -> None:
    """Without roll-up the blocks behind the retention go, and what is left of their day is no day."""
    values = {BEGIN + 60_000 * n: float(n) for n in range(3 * 1440)}
    emptied(database, {1: values})
    advance(database, BEGIN + 2 * DAY + 7 * HOUR, DAY, 0)
    assert blocks(database) == 0
    sweep(database)
    since, until = BEGIN, BEGIN + 3 * DAY
    days = points(database, SeriesQuery(1, "power", since, until, DAY))
    assert same(days, direct(values, DAY, BEGIN + 2 * DAY, until))
    hours = points(database, SeriesQuery(1, "power", since, until, HOUR))
    assert same(hours, direct(values, HOUR, BEGIN + DAY + 6 * HOUR, until))


def test_what_is_rolled_up_goes_too_in_whole_days(database: Database) -> None:
    values = {BEGIN + 60_000 * n: float(n) for n in range(5 * 1440)}
    emptied(database, {1: values})
    for now in (BEGIN + 4 * DAY, BEGIN + 5 * DAY + 7 * HOUR):
        advance(database, now, DAY, 3 * DAY)
        found = points(database, SeriesQuery(1, "power", BEGIN, BEGIN + 9 * DAY, DAY))
        first = BEGIN + (now - 3 * DAY - BEGIN) // DAY * DAY
        assert same(found, direct(values, DAY, first, BEGIN + 9 * DAY))
    before = blocks(database)
    with database.write.begin() as connection:
        assert maintenance.ForgetRollups([1], BEGIN + 2 * DAY).apply(Transaction(connection, 0)).result == 1
    assert before - blocks(database) == 2 * DAY // BLOCK
    advance(database, BEGIN + 6 * DAY, DAY, 0)
    assert points(database, SeriesQuery(1, "power", BEGIN, BEGIN + 4 * DAY, DAY)) == []


def test_a_backlog_is_forgotten_in_pieces(database: Database) -> None:
    count = 2 * maintenance.PRUNED_ROWS_PER_TRANSACTION + 100
    emptied(database, {1: {BEGIN: 0.0}, 2: {BEGIN + n: 0.0 for n in range(count)}, 3: {BEGIN: 0.0}})
    left = [databases.rows(database)]
    after = 0
    while after < 3:
        with database.write.begin() as connection:
            done = maintenance.ForgetSamples([1, 2, 3], BEGIN + count - 1).apply(Transaction(connection, 0))
        after = done.result
        left.append(databases.rows(database))
    assert max(a - b for a, b in pairwise(left)) == maintenance.PRUNED_ROWS_PER_TRANSACTION
    assert [databases.rows(database, number) for number in (1, 2, 3)] == [0, 1, 0]


def test_a_round_of_maintenance_rolls_up_and_forgets(database: Database) -> None:
    now, every = instants.now(), 900_000
    begin = now - now % DAY - 4 * DAY
    held = {number: {begin + every * n: float(n % 7) for n in range(4 * DAY // every)} for number in range(1, 40)}
    emptied(database, held)
    maintain(database, Settings(retention=2 * 86_400.0))
    kept = databases.rows(database)
    promised = 39 * sum(instant >= now - 2 * DAY for instant in held[1])
    assert promised <= kept <= promised + 39 * (BLOCK + rollup.ROLLUP_MARGIN_MILLISECONDS) // every + 39
    for number in (1, 16, 17, 39):
        found = points(database, SeriesQuery(number, "power", begin, begin + 4 * DAY, HOUR))
        assert same(found, direct(held[number], HOUR, begin, begin + 4 * DAY))
    maintain(database, Settings(retention=2 * 86_400.0, rollup_retention=0.0))
    assert databases.rows(database) == kept


def test_samples_within_a_retention_that_was_made_longer_stay_and_count(database: Database) -> None:
    """The frontier is where a shorter one, or a clock that was ahead, has left it."""
    now = instants.now()
    begin = now - now % DAY - 4 * DAY
    values = {begin + 300_000 * n: float(n % 7) for n in range(4 * 288)}
    emptied(database, {1: values})
    advance(database, now, DAY // 2, 400 * DAY)
    promised = {at for at in values if at >= now - 3 * DAY}
    maintain(database, Settings(retention=3 * 86_400.0))
    with database.read.connect() as connection:
        kept = set(connection.execute(select(sample_table.c.observed)).scalars())
    assert promised <= kept < set(values)
    late = {begin + 2 * DAY + 1000 * n: 9.0 for n in range(1, 60)}
    with database.write.begin() as connection:
        databases.add(connection, 1, late)
    found = points(database, SeriesQuery(1, "power", begin, begin + 4 * DAY, HOUR))
    assert same(found, direct(values | late, HOUR, begin, begin + 4 * DAY))


def test_a_database_of_the_version_before_is_brought_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with opened(url) as database, database.write.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
        assert not inspect(connection).has_table("rollup")
    again = open_database(url, Durability.process)
    values = {BEGIN: 1.0}
    with again.write.begin() as connection:
        databases.fill(connection, {1: values})
    advance(again, BEGIN + 3 * DAY, DAY, 400 * DAY)
    assert blocks(again) == 1
    again.close()


@pytest.mark.slow
def test_kill_9_during_maintenance_changes_no_series(database: Database) -> None:
    chance = random.Random(5)
    now = instants.now()
    begin = now - now % DAY - 3 * DAY
    held = {number: {begin + 60_000 * n: round(chance.random(), 3) for n in range(3 * 1440)} for number in range(1, 13)}
    emptied(database, held)
    url = database.write.url.render_as_string(hide_password=False)
    database.close()  # the last test with it
    killed = [tried(url, chance.uniform(*within)) for within in ((0.0, 0.05), (0.05, 0.15), (0.15, 0.3))]
    assert -signal.SIGKILL in killed
    assert tried(url, 600) == 0
    with opened(url) as again:
        promised = len(held) * sum(instant >= now - DAY for instant in held[1])
        assert promised - len(held) <= databases.rows(again) < promised + len(held) * 2 * BLOCK // 60_000
        for number, values in held.items():
            step = chance.choice([FINEST, HOUR, DAY])
            found = points(again, SeriesQuery(number, "power", begin, begin + 3 * DAY, step))
            assert same(found, direct(values, step, begin, begin + 3 * DAY))


def tried(url: str, seconds: float) -> int:
    """Maintain a database in a process that is killed after so many seconds of it; its exit status."""
    told, said = os.pipe()
    with Path(os.devnull).open("rb") as nothing, os.fdopen(told) as begun:
        process = prefork_server(MAINTAINING, MAINTAIN).start([url, "86400"], [nothing, said, OURS])
        os.close(said)
        begun.readline()
        with contextlib.suppress(TimeoutError):
            process.wait(seconds)
        process.send_signal(signal.SIGKILL)
        return process.wait()
