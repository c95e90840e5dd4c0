"""The database goes away, freezes, fills up, is emptied or replaced under a running service."""

import contextlib
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from commands import run, service_server
from engine.agent_process import AgentProcess
from engine.ledger import Sender, compare
from service import postgres_server
from service.conftest import QUIET, Service, StartService, instant, problem
from service.crashes import epoch_of
from service.databases import opened
from service.postgres_server import PostgresServer
from service.test_expositions import Exporter, exporter
from sqlalchemy import delete, insert, update

from kuayu.service.maintenance import PROBE_SECONDS
from kuayu.service.storage.database import KIND
from kuayu.service.storage.tables import meta

PATIENCE_S = 40.0

CLIENTS_GIVE_UP_S = 5.0
"""Seconds after which many clients give up, httpx among them; nobody is to be kept waiting for longer."""

__all__ = ["exporter"]  # a fixture


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server.running() as found:
        yield found


@pytest.fixture
def database(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    """URL of an empty database on the server."""
    name = f"d{abs(hash(request.node.name))}"
    server.sql(f"CREATE DATABASE {name};")
    return server.url.replace("/postgres?", f"/{name}?")


def wait_until(is_so: Callable[[], bool]) -> float:
    """Wait; how many seconds it took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + PATIENCE_S
        time.sleep(0.1)
    return time.monotonic() - began


def healthy(service: Service) -> bool:
    return service.client.get("/v1/health").status_code == httpx.codes.OK


def unhealthy(service: Service) -> bool:
    return not healthy(service)


def expect_turned_away(answer: httpx.Response) -> None:
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert problem(answer) == "overloaded"
    assert answer.json()["retryable"] is True
    assert int(answer.headers["Retry-After"]) >= 1


def reading(power: float = 1.0) -> dict[str, object]:
    return {"subject": "node", "subject_kind": "node", "observed_at": instant(), "power": power}


@pytest.mark.postgres
def test_a_service_outlives_its_postgresql_and_goes_on_by_itself(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    service = start_service(database=database)
    service.register()
    epoch = epoch_of(service)
    server.stop()
    try:
        wait_until(lambda: unhealthy(service))
        for answer in (
            service.client.get("/v1/health"),
            service.client.get("/v1/nodes"),
            service.client.get("/v1/conformance"),
            service.put("/v1/domains/late", {"id": "late"}),
            service.send(reading()),
        ):
            expect_turned_away(answer)
    finally:
        server.start()
    wait_until(lambda: healthy(service))
    assert epoch_of(service) == epoch
    assert service.put("/v1/domains/late", {"id": "late"}).status_code == 201
    assert service.send(reading()).json()["accepted"] == 1


@pytest.mark.postgres
@pytest.mark.slow
def test_nobody_waits_for_ever_for_a_postgresql_that_is_frozen(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    service = start_service(database=database)
    service.register()

    def waited(ask: Callable[[], httpx.Response]) -> float:
        began = time.monotonic()
        expect_turned_away(ask())
        return time.monotonic() - began

    asks: list[Callable[[], httpx.Response]] = [
        lambda: service.put("/v1/domains/first", {"id": "first"}),
        lambda: service.send(reading()),
        lambda: service.client.get("/v1/nodes"),
        lambda: service.client.get("/v1/domains/domain"),
    ]
    server.freeze()
    try:
        with ThreadPoolExecutor(len(asks)) as clients:  # at once: each of them is one of the first
            longest = max(clients.map(waited, asks))
        assert longest < CLIENTS_GIVE_UP_S
        began = time.monotonic()
        expect_turned_away(service.client.get("/v1/nodes"))
        expect_turned_away(service.client.get("/v1/health"))
        assert time.monotonic() - began < 2
    finally:
        server.thaw()
    wait_until(lambda: healthy(service))
    assert service.put("/v1/domains/first", {"id": "first"}).status_code in {200, 201}
    assert service.client.get("/v1/domains/first").status_code == 200
    assert service.send(reading()).json()["accepted"] == 1


@pytest.mark.postgres
def test_a_write_whose_answer_was_lost_is_known_to_the_service_afterwards(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    service = start_service(database=database)
    service.register()
    for number in range(5):
        name = f"node-{number}"
        server.crash()
        server.start()
        body = {"id": name, "domain": "domain", "devices": []}
        wait_until(lambda name=name, body=body: service.put(f"/v1/nodes/{name}", body).status_code in {200, 201})  # type: ignore[misc]
        sample = {"subject": name, "subject_kind": "node", "observed_at": instant(), "power": 1.0}
        assert service.send(sample).json()["accepted"] == 1


def second(database: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run(*QUIET, "--port", "0", "--database", database, *options, timeout=60, server=service_server())


@pytest.mark.postgres
def test_a_second_service_on_one_postgresql_is_told_who_has_it_and_the_next_begins_when_that_is_dead(
    start_service: StartService, database: str
) -> None:
    first = start_service(database=database)
    refused = second(database)
    assert refused.returncode == 1
    assert "another service has the database open: kuayu serve " in refused.stderr
    assert f":{first.process.pid}" in refused.stderr  # type: ignore[union-attr]
    assert "hint" in refused.stderr
    assert "Traceback" not in refused.stderr
    first.stop(signal.SIGKILL)
    assert healthy(start_service(database=database))


def test_a_second_service_on_one_file_is_told_who_has_it_whatever_the_file_is_called(
    start_service: StartService, tmp_path: Path
) -> None:
    first = start_service()
    (tmp_path / "other.db").symlink_to(tmp_path / "kuayu.db")
    for name in ("kuayu.db", "other.db"):
        refused = second(f"sqlite:///{tmp_path / name}")
        assert refused.returncode == 1
        assert f":{first.process.pid} since " in refused.stderr  # type: ignore[union-attr]
        assert "Traceback" not in refused.stderr


@pytest.mark.postgres
def test_a_service_whose_session_was_ended_gives_way_to_one_that_took_its_place(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    service = start_service(database=database)
    service.register()
    name = database.partition("?")[0].rpartition("/")[2]
    end = f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = {KIND}"  # noqa: S608 - a number
    with server.session(name) as rival:

        def takes() -> bool:
            rival.value(end)
            return rival.value(f"SELECT pg_try_advisory_lock({KIND}, hashtext('public'))") is True

        wait_until(takes)
        wait_until(lambda: "another service" in service.client.get("/v1/health").json().get("detail", ""))
        expect_turned_away(service.put("/v1/domains/d", {"id": "d"}))
    wait_until(lambda: healthy(service))
    assert service.put("/v1/domains/d", {"id": "d"}).status_code == 201


@pytest.mark.postgres
def test_an_older_copy_of_the_database_has_another_epoch(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    service = start_service(database=database)
    service.register()
    epoch = epoch_of(service)
    name = database.partition("?")[0].rpartition("/")[2]
    with server.session(name) as operator:
        operator.value(
            "WITH older AS (UPDATE meta SET value = '1' WHERE name = 'sequence'), named AS (DELETE FROM reference)"
            " DELETE FROM resource WHERE kind = 'node' RETURNING id"
        )
    wait_until(lambda: epoch_of(service) != epoch)
    assert service.client.get("/v1/nodes").json()["items"] == []
    assert service.send(reading()).json()["rejected"][0]["problem"]["type"].endswith("unknown-reference")
    service.register()
    assert service.send(reading()).json()["accepted"] == 1


@pytest.mark.postgres
def test_a_postgresql_that_does_not_flush_promises_less_and_doubts_its_restarts(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    server.sql("ALTER SYSTEM SET fsync = off;")
    server.sql("SELECT pg_reload_conf();")
    try:
        refused = second(database, "--durability", "host")
        assert refused.returncode == 1
        assert "fsync=off" in refused.stderr
        assert "hint" in refused.stderr
        service = start_service(database=database)
        service.register()
        epoch = epoch_of(service)
        service.stop(signal.SIGKILL)
        service.start()
        assert epoch_of(service) == epoch
        server.stop()
        server.start()
        wait_until(lambda: epoch_of(service) != epoch)
        assert [item["id"] for item in service.client.get("/v1/nodes").json()["items"]] == ["node"]
        assert service.send(reading()).json()["accepted"] == 1
    finally:
        server.sql("ALTER SYSTEM SET fsync = on;")
        server.sql("SELECT pg_reload_conf();")


@pytest.mark.postgres
def test_an_ordinary_role_is_enough_and_a_moved_database_has_another_epoch(
    start_service: StartService, server: PostgresServer, database: str
) -> None:
    name = database.partition("?")[0].rpartition("/")[2]
    server.sql("CREATE ROLE plain LOGIN;")
    server.sql(f"ALTER DATABASE {name} OWNER TO plain;")
    service = start_service(database=database.replace("postgres@", "plain@").replace("postgres:@", "plain:@"))
    service.register()
    epoch = epoch_of(service)
    assert "another service has the database open: kuayu serve " in second(service.database).stderr
    service.stop()
    service.start()
    assert epoch_of(service) == epoch
    service.stop()
    server.sql(f"CREATE DATABASE {name}copy TEMPLATE {name} OWNER plain;")
    moved = start_service(database=service.database.replace(f"/{name}?", f"/{name}copy?"))
    assert epoch_of(moved) != epoch
    assert moved.client.get("/v1/nodes/node").status_code == 200


def empty(file: Path) -> None:
    file.write_bytes(b"")


def shorten(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(8192)


def unlink(file: Path) -> None:
    for each in files_of(file):
        each.unlink(missing_ok=True)


def replace(file: Path) -> None:
    file.with_name("older.db").rename(file)
    for each in files_of(file)[1:]:
        each.unlink(missing_ok=True)


def files_of(file: Path) -> list[Path]:
    return [file, file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm")]


def copy(source: Path, target: Path) -> None:
    """A copy as any backup makes it."""
    with contextlib.closing(sqlite3.connect(source)) as held, contextlib.closing(sqlite3.connect(target)) as made:
        held.backup(made)


@pytest.mark.parametrize("harm", [unlink, replace, empty])
def test_other_files_under_a_running_service_are_another_epoch(
    start_service: StartService, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    service = start_service()
    service.put("/v1/domains/old", {"id": "old"})
    copy(tmp_path / "kuayu.db", tmp_path / "older.db")
    service.register()
    service.stop()
    service.start()  # what it holds is in the file itself, and not in the log beside it
    epoch = epoch_of(service)
    harm(tmp_path / "kuayu.db")
    wait_until(lambda: epoch_of(service) != epoch)
    assert healthy(service)
    assert service.client.get("/v1/nodes").json()["items"] == []
    service.register()
    assert service.send(reading()).json()["accepted"] == 1


def test_a_backup_of_a_file_that_is_served_takes_nothing_from_it(start_service: StartService, tmp_path: Path) -> None:
    service = start_service()
    service.register()
    epoch = epoch_of(service)
    for number in range(3):
        time.sleep(2 * PROBE_SECONDS)  # the files are looked at meanwhile
        copy(tmp_path / "kuayu.db", tmp_path / f"backup-{number}.db")
        assert service.send(reading(number)).json()["accepted"] == 1
    time.sleep(2 * PROBE_SECONDS)
    assert healthy(service)
    assert epoch_of(service) == epoch
    service.stop(signal.SIGKILL)
    service.start()
    assert epoch_of(service) == epoch
    assert {sample["power"] for sample in service.samples("node")} == {0, 1, 2}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_an_older_copy_that_is_put_back_while_the_service_is_stopped_is_another_epoch(
    start_service: StartService, tmp_path: Path, end: signal.Signals
) -> None:
    service = start_service()
    service.put("/v1/domains/old", {"id": "old"})
    epoch = epoch_of(service)
    copy(tmp_path / "kuayu.db", tmp_path / "older.db")
    service.register()  # acknowledged in the same life of the service, after the copy was made
    service.stop(end)
    replace(tmp_path / "kuayu.db")
    service.start()
    assert epoch_of(service) != epoch
    assert [item["id"] for item in service.client.get("/v1/domains").json()["items"]] == ["old"]
    assert service.client.get("/v1/nodes").json()["items"] == []


def test_a_copy_that_went_on_elsewhere_is_another_epoch_though_it_holds_more(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service()
    service.put("/v1/domains/both", {"id": "both"})
    epoch = epoch_of(service)
    copy(tmp_path / "kuayu.db", tmp_path / "older.db")
    service.put("/v1/domains/here", {"id": "here"})
    service.stop()
    with opened(f"sqlite:///{tmp_path / 'older.db'}") as elsewhere, elsewhere.write.begin() as connection:
        connection.execute(update(meta).where(meta.c.name == "epoch").values(value=epoch))
        connection.execute(update(meta).where(meta.c.name == "sequence").values(value="1000"))
    replace(tmp_path / "kuayu.db")
    service.start()
    assert epoch_of(service) != epoch


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_file_that_was_left_as_it_is_and_a_copy_that_lacks_nothing_keep_their_epoch(
    start_service: StartService, tmp_path: Path, end: signal.Signals
) -> None:
    service = start_service()
    service.register()
    epoch = epoch_of(service)
    for _ in range(2):
        service.stop(end)
        service.start()
        assert epoch_of(service) == epoch
        assert service.send(reading()).json()["accepted"] == 1
    copy(tmp_path / "kuayu.db", tmp_path / "older.db")
    service.stop(end)
    replace(tmp_path / "kuayu.db")
    service.start()
    assert epoch_of(service) == epoch


@pytest.mark.parametrize("spoil", [Path.unlink, empty, lambda mark: mark.write_text("0" * 38)])
def test_without_a_mark_nobody_can_tell_what_is_missing(
    start_service: StartService, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    service = start_service()
    service.register()
    epoch = epoch_of(service)
    service.stop()
    spoil(tmp_path / "kuayu.db.mark")
    service.start()
    assert epoch_of(service) != epoch
    assert [item["id"] for item in service.client.get("/v1/nodes").json()["items"]] == ["node"]


def test_a_file_that_was_cut_off_keeps_the_service_unhealthy_until_there_is_another(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service()
    service.register()
    service.stop()
    service.start()
    epoch = epoch_of(service)
    shorten(tmp_path / "kuayu.db")
    wait_until(lambda: unhealthy(service))
    expect_turned_away(service.put("/v1/domains/d", {"id": "d"}))
    expect_turned_away(service.client.get("/v1/nodes"))
    time.sleep(3)
    assert unhealthy(service)
    unlink(tmp_path / "kuayu.db")
    wait_until(lambda: healthy(service))
    assert epoch_of(service) != epoch


def test_a_full_disk_turns_writes_away_until_there_is_room(start_service: StartService) -> None:
    service = start_service()
    service.register()
    epoch = epoch_of(service)
    assert service.process is not None
    soft, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (4096, hard))
    expect_turned_away(service.put("/v1/domains/d", {"id": "d"}))
    expect_turned_away(service.client.get("/v1/health"))
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
    wait_until(lambda: healthy(service))
    assert service.put("/v1/domains/d", {"id": "d"}).status_code == 201
    assert epoch_of(service) == epoch


@pytest.mark.postgres
def test_what_was_scraped_while_the_database_was_away_is_written_afterwards(
    start_service: StartService, server: PostgresServer, database: str, exporter: Exporter
) -> None:
    service = start_service("--scrape-allow", "127.0.0.1", database=database)
    service.register()
    body = {"id": "t", "node": "node", "exporter": "dcgm-exporter", "url": exporter.url, "period": 0.5}
    service.put("/v1/scrape-targets/t", body).raise_for_status()
    wait_until(lambda: len(service.samples("node", "device", device="0")) >= 2)
    server.stop()
    away = instant()
    fetched = exporter.fetched
    wait_until(lambda: exporter.fetched >= fetched + 5)
    back = instant()
    server.start()
    wait_until(lambda: healthy(service))

    def written() -> int:
        held = service.samples("node", "device", device="0")
        return sum(away < sample["observed_at"] < back for sample in held)

    wait_until(lambda: written() >= 4)


@pytest.mark.postgres
def test_an_agent_keeps_what_it_has_taken_while_the_database_of_its_service_is_away(
    start_service: StartService, server: PostgresServer, database: str, tmp_path: Path
) -> None:
    service = start_service(database=database)
    service.register("rack-1")
    agent = AgentProcess(service.url, tmp_path / "spool.db")
    sender = Sender(agent.url, "rack-1", 0.05, 10)
    agent.start()
    try:
        sender.start()
        time.sleep(2)
        server.stop()
        before = len(sender.acknowledged)
        time.sleep(4)
        assert len(sender.acknowledged) > before
        server.start()
        wait_until(lambda: healthy(service))
        sender.stop()
        wait_until(lambda: compare([sender], service.client).exact)
    finally:
        agent.close()


def test_disk_space_of_what_was_deleted_is_given_back_at_the_next_start(tmp_path: Path) -> None:
    file, large = tmp_path / "kuayu.db", 90_000_000
    with opened(f"sqlite:///{file}") as held, held.write.begin() as connection:
        connection.execute(insert(meta), [{"name": f"x{n}", "value": "x" * 1_000_000} for n in range(90)])
    assert file.stat().st_size > large
    with opened(f"sqlite:///{file}") as held, held.write.begin() as connection:
        connection.execute(delete(meta).where(meta.c.name.like("x%")))
    assert file.stat().st_size > large
    with opened(f"sqlite:///{file}") as held:
        held.files.check()  # type: ignore[union-attr]
        assert file.stat().st_size < large / 50
