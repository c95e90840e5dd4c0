"""The same service on PostgreSQL."""

import time
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service.arrivals import INSTANTS, SUBJECTS, Commits, Held, commits, model, read
from service.arrivals import newest as newest_of
from service.conftest import StartService, instant
from service.postgres_server import running
from sqlalchemy import Engine, create_engine, delete, insert, select, text

from kuayu.service.job_store import JOBS
from kuayu.service.storage import blocks, postgresql, queries
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.tables import job as job_table
from kuayu.service.storage.tables import sample, subject
from kuayu_schemas.models import Durability

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running() as server:
        yield server.url


def test_the_story_of_a_node_on_postgresql(start_service: StartService, postgres: str) -> None:
    service = start_service(database=postgres)
    service.register(devices=2)
    now, earlier = instant(), instant(-30)
    sample = {"subject": "node", "subject_kind": "device", "device": "0", "observed_at": now}
    first = service.send(
        sample | {"power": 300}, sample | {"power": 400}, sample | {"sustained_matrix_throughput": {"bf16": 5e14}}
    )
    assert first.json()["accepted"] == 3
    late = service.send(sample | {"power": 500, "faults": 2**64 - 1}, sample | {"device": "1", "observed_at": earlier})
    assert late.json()["accepted"] == 2
    held = service.samples("node", "device")
    assert [found["device"] for found in held] == ["1", "0"]
    assert held[1]["power"] == 300
    assert held[1]["faults"] == 2.0**64
    assert held[1]["sustained_matrix_throughput"] == {"bf16": 5e14}
    report = service.client.get("/v1/domains/domain/indicators").json()
    assert {found["measure"]: found.get("number") for found in report["values"]}["power"] == 300

    again = service.client.post(
        "/v1/samples", json={"mode": "atomic", "samples": [sample]}, headers={"Idempotency-Key": "k"}
    )
    replay = service.client.post(
        "/v1/samples", json={"mode": "atomic", "samples": [sample]}, headers={"Idempotency-Key": "k"}
    )
    assert replay.content == again.content
    assert replay.headers["Idempotency-Replayed"] == "true"

    page = service.client.get("/v1/nodes", params={"domain": "domain", "limit": 1}).json()
    assert [item["id"] for item in page["items"]] == ["node"]
    assert service.client.delete("/v1/domains/domain").status_code == 409

    epoch = service.client.get("/v1/conformance").json()["revision"]
    assert service.stop() == 0
    service.start()
    assert service.client.get("/v1/conformance").json()["revision"] == epoch
    assert service.samples("node", "device") == held


@pytest.fixture(scope="module")
def databases(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Database]]:
    """A PostgreSQL and a SQLite."""
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE alike"))
    engine.dispose()
    urls = (postgres.replace("/postgres?", "/alike?"), f"sqlite:///{tmp_path_factory.mktemp('alike') / 'alike.db'}")
    opened = [open_database(url, Durability.process) for url in urls]
    for database in opened:
        with database.write.begin() as connection:
            for number in range(1, SUBJECTS + 1):
                connection.execute(insert(subject).values(no=number, tenant="", kind="node", id=str(number), device=""))
    yield opened
    for database in opened:
        database.close()


@settings(max_examples=100, deadline=None)
@given(written=commits(), at=st.integers(0, INSTANTS + 2), piece=st.sampled_from([1, 2, 5, blocks.COPY_ROWS]))
def test_both_databases_hold_the_same_as_if_row_after_row_had_been_written(
    databases: list[Database], written: Commits, at: int, piece: int
) -> None:
    expected = model(written)
    for database in databases:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "COPY_ROWS", piece)
            assert keep(database, written) == expected
        with database.read.begin() as connection, pytest.MonkeyPatch.context() as patch:
            patch.setattr(queries, "MAX_LIFE_MILLISECONDS", 1)
            assert queries.values(connection, range(1, SUBJECTS + 1), at) == newest_of(expected, at, 1)


def keep(database: Database, written: Commits) -> Held:
    """What an empty table holds once all is written."""
    with database.write.begin() as connection:
        connection.execute(delete(sample))
    for sequence, arrivals in enumerate(written, 1):
        with database.write.begin() as connection:
            blocks.write_all(connection, arrivals, sequence)
    with database.read.begin() as connection:
        return read(connection)


def test_a_transaction_that_is_rolled_back_leaves_the_way_for_the_next(databases: list[Database]) -> None:
    arrival = blocks.Arrival([blocks.Block.of_rows(("power",), [(1, 1, 5.0), (1, 1, 6.0)])], 1)
    for database in databases:
        with database.write.connect() as connection:
            connection.execute(delete(sample))
            blocks.write_all(connection, [arrival], 1)
            connection.rollback()
        assert keep(database, [[arrival, arrival]])[1, 1]["power"] == 5


def test_names_are_listed_in_the_same_order_as_on_sqlite(start_service: StartService, postgres: str) -> None:
    service = start_service(database=postgres)
    names = ["Z", "a", "a-b", "a.b", "aB", "b_", "b1"]
    for name in reversed(names):
        service.put(f"/v1/domains/{name}", {"id": name}).raise_for_status()
    listed = [item["id"] for item in service.client.get("/v1/domains").json()["items"]]
    assert [name for name in listed if name in names] == sorted(names)


def test_a_pinned_listing_of_samples_on_postgresql(start_service: StartService, postgres: str) -> None:
    service = start_service(database=postgres)
    service.register(node="pinned", devices=0)
    moments = [instant(-seconds) for seconds in (50, 40, 30)]
    for moment in moments:
        service.send({"subject": "pinned", "subject_kind": "node", "observed_at": moment, "power": 1})
    query = {"subject": "pinned", "subject_kind": "node", "limit": "1"}
    page = service.client.get("/v1/samples", params=query).json()
    service.send({"subject": "pinned", "subject_kind": "node", "observed_at": moments[1], "jitter": 2})
    rest = service.client.get("/v1/samples", params=query | {"limit": "9", "cursor": page["next_cursor"]}).json()
    assert [("jitter" in item, item["observed_at"]) for item in rest["items"]] == [(False, m) for m in moments[1:]]
    assert "jitter" in service.samples("pinned")[1]


def test_the_tables_are_there_once_and_bear_the_version(start_service: StartService, postgres: str) -> None:
    start_service(database=postgres)
    engine = create_engine(postgres)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    engine.dispose()


@pytest.fixture
def grown(postgres: str) -> Iterator[Engine]:
    """A database of its own."""
    name = f"grown_{uuid.uuid4().hex}"
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    engine = create_engine(postgres.replace("/postgres?", f"/{name}?"), isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def row() -> dict[str, str]:
    """A subject that was never seen."""
    return {"tenant": "", "kind": "node", "id": uuid.uuid4().hex, "device": ""}


def test_statistics_are_gathered_of_tables_of_which_half_is_new(grown: Engine) -> None:
    open_database(grown.url.render_as_string(hide_password=False), Durability.process).close()
    few = postgresql.FEW_ROWS
    with grown.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE subject SET (autovacuum_enabled = false)")

        def gathered_after(rows: int, *statements: str) -> list[str]:
            if rows:
                connection.execute(insert(subject), [row() for _ in range(rows)])
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            return postgresql.gather_statistics(grown)

        assert gathered_after(few) == []
        assert gathered_after(few) == ["subject"]
        assert gathered_after(few // 10) == []
        assert gathered_after(3 * few) == ["subject"]
        assert gathered_after(0, *["UPDATE meta SET value = value"] * 2 * few) == []  # it has hardly any rows
        # Somebody works on it: nobody waits for that.
        with grown.connect() as other, other.execution_options(isolation_level="READ COMMITTED").begin():
            other.exec_driver_sql("LOCK TABLE subject IN SHARE UPDATE EXCLUSIVE MODE")
            began = time.monotonic()
            assert gathered_after(8 * few) == ["subject"]
            assert time.monotonic() - began < 5.0
        assert gathered_after(0) == ["subject"]  # which was passed over
        guest = f"guest_{uuid.uuid4().hex}"
        connection.execute(insert(subject), [row() for _ in range(20 * few)])
        connection.exec_driver_sql(f"CREATE ROLE {guest}")
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    as_guest = create_engine(grown.url, connect_args={"options": f"-c role={guest}"})
    assert postgresql.gather_statistics(as_guest) == []  # whose tables they are not: PostgreSQL would refuse
    as_guest.dispose()
    assert postgresql.gather_statistics(grown) == ["subject"]


def test_a_job_is_found_by_its_name_soon_after_many_have_come(start_service: StartService, grown: Engine) -> None:
    """Without statistics PostgreSQL would seek it among all of the tenant's that stand, until autovacuum comes by."""
    service = start_service(database=grown.url.render_as_string(hide_password=False))
    with grown.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE job SET (autovacuum_enabled = false)")
    for number in range(4 * postgresql.FEW_ROWS):
        job = {"id": f"job-{number}", "workload": {"command": ["true"]}, "devices": {"minimum": 1, "maximum": 1}}
        service.client.put(f"/v1/jobs/{job['id']}", json=job).raise_for_status()
    gathered = text("SELECT last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'job'")
    found = select(job_table).where(JOBS.current("default", "job-7"))
    plan = "EXPLAIN " + str(found.compile(grown, compile_kwargs={"literal_binds": True})).replace("%", "%%")
    with grown.connect() as connection:
        deadline = time.monotonic() + 30.0
        while not connection.execute(gathered).scalar():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        steps = " ".join(connection.exec_driver_sql(plan).scalars())
        assert "Index Scan using job_pkey" in steps, steps
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    assert "job" not in postgresql.gather_statistics(grown)  # it has not grown since
