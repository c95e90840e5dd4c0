"""The service as a whole: its declaration, its failures, its limits, its own metrics."""

import sqlite3
import subprocess
from pathlib import Path

import httpx
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from commands import run, service_server
from service.conftest import QUIET, Service, StartService, problem
from sqlalchemy import select

from kuayu.service.allocation_store import ALLOCATIONS
from kuayu.service.fault_store import FAULTS
from kuayu.service.job_store import JOBS
from kuayu.service.storage.database import DatabaseError, open_database
from kuayu.service.storage.resources import Versions
from kuayu.service.storage.tables import MEASURES, metadata
from kuayu_schemas import schema
from kuayu_schemas.models import Durability


def test_the_declaration_is_one(shared: Service) -> None:
    declaration = shared.client.get("/v1/conformance").json()
    assert schema.errors("Declaration", declaration) == []
    assert declaration["profiles"] == ["COM", "MET", "IDX", "DEM", "FCT", "SCH", "RES", "JOB"]
    assert declaration["features"] == ["scrape", "otlp", "accounts", "elastic", "serving"]


@pytest.mark.parametrize(("path", "class_name"), [("problems", "ProblemRegister"), ("indicators", "IndicatorRegister")])
def test_the_registers_are_served(shared: Service, path: str, class_name: str) -> None:
    assert schema.errors(class_name, shared.client.get(f"/v1/{path}").json()) == []


@pytest.mark.parametrize("path", ["/", "/v2/domains", "/v1/domains/", "/v1/domains/a/b", "/v1/nodes/a%2Fb"])
def test_an_unknown_path_is_a_problem(shared: Service, path: str) -> None:
    assert problem(shared.client.get(path)) == "not-found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/domains/a", "DELETE, GET, PUT"),
        ("POST", "/v1/domains", "GET"),
        ("DELETE", "/v1/samples", "GET, POST"),
        ("GET", "/v1/expositions", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(shared: Service, method: str, path: str, allowed: str) -> None:
    refused = shared.client.request(method, path)
    assert problem(refused) == "method-not-allowed"
    assert refused.headers["Allow"] == allowed


def test_an_unknown_parameter_is_refused_everywhere(shared: Service) -> None:
    for path in ("/v1/health", "/v1/conformance", "/v1/domains", "/v1/domains/a", "/v1/nodes/a/indicators"):
        refused = shared.client.get(path, params={"verbose": "1"})
        assert problem(refused) == "invalid-parameter"
        assert refused.json()["errors"][0]["parameter"] == "verbose"


def test_every_problem_keeps_to_its_schema(shared: Service) -> None:
    answers: list[httpx.Response] = [
        shared.client.get("/nowhere"),
        shared.client.get("/v1/nodes", params={"limit": "x", "y": "z"}),
        shared.client.post("/v1/samples", content=b"[", headers={"Content-Type": "application/json"}),
        shared.put("/v1/domains/a", {"id": "a", "x\0": "\0" * 3000}),
    ]
    for answer in answers:
        assert answer.status_code >= 400
        assert schema.errors("Problem", answer.json()) == []


def test_the_metrics_tell_what_happened(shared: Service) -> None:
    shared.register()
    shared.send(
        {"subject": "node"}, {"subject": "domain", "subject_kind": "domain", "observed_at": "2026-01-01T00:00:00Z"}
    )
    page = shared.client.get("/metrics").text
    assert 'kuayu_samples_total{outcome="rejected",way="batch"} 2.0' in page
    assert 'kuayu_requests_total{method="PUT",route="/v1/domains/{id}",status="201"}' in page
    assert "kuayu_commit_seconds_count" in page


def test_the_tables_are_those_that_the_migrations_make(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'new.db'}", Durability.process)
    with database.write.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = [found for found in compare_metadata(context, metadata) if "comment" not in str(found[0])]
    database.close()
    assert differences == []


@pytest.mark.parametrize("versions", [JOBS, ALLOCATIONS, FAULTS], ids=lambda versions: versions.table.name)
def test_sqlite_finds_what_has_a_name_by_its_name_and_not_among_all_that_stand(
    versions: Versions, tmp_path: Path
) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'new.db'}", Durability.process)
    query = str(select(versions.table).where(versions.current("one", "job-7")).compile(database.read))
    with database.read.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("one", "job-7")).mappings().all()
    database.close()
    assert [step["detail"].split("(", 1)[1] for step in plan] == ["tenant=? AND id=?)"]


def test_every_measure_of_the_model_has_a_column() -> None:
    assert metadata.tables["sample"].columns.keys()[-len(MEASURES) :] == list(MEASURES)


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    return run(*QUIET, *options, timeout=60, server=service_server())


def test_a_busy_port_is_told_in_words(shared: Service, tmp_path: Path) -> None:
    ended = serve("--port", str(shared.port), "--database", f"sqlite:///{tmp_path / 'x.db'}")
    assert ended.returncode == 1
    assert "cannot listen" in ended.stderr
    assert "hint" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_has_one_service_at_a_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'one.db'}"
    database = open_database(url, Durability.process)
    with pytest.raises(DatabaseError, match="another service"):
        open_database(url, Durability.process)
    database.close()
    open_database(url, Durability.process).close()


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "mysql://host/name",
        "sqlite://",
        "sqlite:////no/such/folder/x.db",
        "postgresql+psycopg://h.invalid/x",
    ],
)
def test_a_database_that_cannot_be_used_is_told_in_words(url: str) -> None:
    with pytest.raises(DatabaseError) as failure:
        open_database(url, Durability.process)
    assert failure.value.cause
    assert failure.value.hint


def test_a_database_from_the_future_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'future.db'}"
    open_database(url, Durability.process).close()
    with sqlite3.connect(tmp_path / "future.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    ended = serve("--port", "0", "--database", url)
    assert ended.returncode == 1
    assert "newer version" in ended.stderr


def test_the_epoch_changes_when_commits_may_be_lost_and_not_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "epoch.db"
    url = f"sqlite:///{file}"

    def crash(boot: str) -> None:
        with sqlite3.connect(file) as connection:
            connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('open_since_boot', ?)", (boot,))
        connection.close()

    def epoch(durability: Durability) -> str:
        database = open_database(url, durability)
        database.close()
        return database.epoch

    first = epoch(Durability.process)
    assert epoch(Durability.process) == first
    crash("another boot of this host")
    assert epoch(Durability.host) == first
    crash("another boot of this host")
    assert epoch(Durability.process) != first


def test_durability_against_the_host_can_be_had(start_service: StartService) -> None:
    service = start_service("--durability", "host")
    assert service.client.get("/v1/conformance").json()["durability"] == "host"
    service.register()
    assert (
        service.send({"subject": "node", "subject_kind": "node", "observed_at": "2020-01-01T00:00:00Z"}).json()[
            "durability"
        ]
        == "host"
    )
