"""The same service on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from service.conftest import StartService, instant
from sqlalchemy import create_engine, text

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        try:
            import pgserver

            server = pgserver.get_server(  # type: ignore[attr-defined]
                folder / "data", cleanup_mode="delete"
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps the server's own binaries from running
            pytest.skip(f"no PostgreSQL can be started here: {error}")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        server.cleanup()


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
