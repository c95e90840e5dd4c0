"""Several tenants: none sees, names or disturbs what is another's."""

from pathlib import Path

import pytest
from service.conftest import Service, StartService, instant, problem


@pytest.fixture
def service(start_service: StartService, tmp_path: Path) -> Service:
    tokens = tmp_path / "tokens"
    tokens.write_text("red=secret-of-red\n", encoding="utf-8")
    return start_service("--token", "blue=secret-of-blue", "--token-file", str(tokens))


def test_without_a_token_there_is_nothing(service: Service) -> None:
    for headers in ({}, {"Authorization": "Bearer guess"}, {"Authorization": "Basic c2VjcmV0LW9mLWJsdWU="}):
        for method, path in (("GET", "/v1/domains"), ("PUT", "/v1/domains/a"), ("POST", "/v1/samples")):
            refused = service.client.request(method, path, headers=headers)
            assert problem(refused) == "unauthorised"
            assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert service.client.get("/v1/health").status_code == 200


def test_the_same_names_exist_twice_and_apart(service: Service) -> None:
    with service.as_tenant("secret-of-blue") as blue, service.as_tenant("secret-of-red") as red:
        assert "tenancy" in blue.get("/v1/conformance").json()["features"]
        assert blue.put("/v1/domains/d", json={"id": "d", "label": "blue"}).status_code == 201
        assert problem(red.get("/v1/domains/d")) == "not-found"
        assert problem(red.delete("/v1/domains/d")) == "not-found"
        assert problem(red.put("/v1/nodes/n", json={"id": "n", "domain": "d"})) == "unknown-reference"
        assert red.get("/v1/domains").json()["items"] == []
        assert red.get("/v1/conformance").json()["revision"]["number"] == 0

        assert red.put("/v1/domains/d", json={"id": "d", "label": "red"}).status_code == 201
        assert blue.get("/v1/domains/d").json()["label"] == "blue"

        sample = {"subject": "d", "subject_kind": "domain", "observed_at": instant(), "power": 1}
        batch = {"mode": "per_item", "samples": [sample]}
        key = {"Idempotency-Key": "the-same"}
        assert blue.post("/v1/samples", json=batch, headers=key).json()["accepted"] == 1
        other = red.post("/v1/samples", json=batch | {"mode": "atomic"}, headers=key)
        assert "Idempotency-Replayed" not in other.headers
        query = {"subject": "d", "subject_kind": "domain"}
        assert len(blue.get("/v1/samples", params=query).json()["items"]) == 1


def test_a_cursor_of_one_tenant_is_none_of_anothers(service: Service) -> None:
    with service.as_tenant("secret-of-blue") as blue, service.as_tenant("secret-of-red") as red:
        for client in (blue, red):
            for name in ("a", "b"):
                client.put(f"/v1/domains/{name}", json={"id": name}).raise_for_status()
        cursor = blue.get("/v1/domains", params={"limit": 1}).json()["next_cursor"]
        assert problem(red.get("/v1/domains", params={"cursor": cursor})) == "invalid-cursor"
