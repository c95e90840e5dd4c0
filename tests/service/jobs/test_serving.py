"""Serving jobs over HTTP: replicas follow the load, training gives way to them, and all of them end with the job."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from service.conftest import JsonObject, Service, StartService
from service.jobs.played_domains import PlayedDomain, until
from service.jobs.playing import running
from service.jobs.test_loop import job, state

NEED = {"minimum": 1, "maximum": 3, "rate": 10.0, "startup": 1.0, "cool_down": 4.0}


TRAINING: JsonObject = {
    "devices": {"minimum": 1, "maximum": 4},
    "duration": {"expected": 360_000.0, "low": 300_000.0, "high": 400_000.0, "coverage": 0.8},
    "checkpoint": "file:///checkpoints/long",
}


def serving(service: Service, name: str = "chat", **members: Any) -> JsonObject:
    body = {
        "id": name,
        "kind": "serving",
        "workload": {"command": ["answer"]},
        "devices": {"minimum": 1, "maximum": 1},
        "serving": NEED,
        **members,
    }
    record: JsonObject = service.put(f"/v1/jobs/{name}", body).raise_for_status().json()
    return record


def tell(service: Service, rate: float, name: str = "chat", **members: Any) -> httpx.Response:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return service.client.post("/v1/job-loads", json={"job": name, "observed_at": now, "rate": rate, **members})


def replicas(service: Service, number: int) -> JsonObject:
    """The serving job, once so many of its replicas run and no others are there."""

    def there(record: JsonObject) -> bool:
        told = record.get("replicas", {})
        return (told.get("wanted"), told.get("running"), len(told.get("jobs", ()))) == (number, number, number)

    return until(lambda: job(service, "chat"), there)


def test_replicas_follow_the_load_and_training_gives_way_and_takes_back(start_service: StartService) -> None:
    service = start_service()
    service.register("n1", 4, "east")
    with PlayedDomain(service, "east") as east:
        service.put("/v1/jobs/long", {"id": "long", "workload": {"command": ["train"]}, **TRAINING}).raise_for_status()
        start = east.wait_for("start", "long")
        east.report(start, "running", step=12, checkpoint_step=10)
        serving(service, priority=10)
        tell(service, 5.0)
        again = east.wait_for("start", "long", 2)
        assert (again["devices"], again["run"]["step"]) == (3, 10)
        east.report(again, "running", step=22, checkpoint_step=20)
        east.report(east.wait_for("start", "chat.1"), "running")
        record = replicas(service, 1)
        assert (record["state"], record["attempt"]) == ("running", 0)
        assert job(service, "chat.1")["replica_of"] == "chat"

        tell(service, 25.0)
        third = east.wait_for("start", "long", 3)
        assert (third["devices"], third["run"]["step"]) == (1, 20)
        east.report(third, "running", step=32, checkpoint_step=30)
        for name in ("chat.2", "chat.3"):
            east.report(east.wait_for("start", name), "running")
        record = replicas(service, 3)
        assert (record["replicas"]["load"], record["replicas"]["jobs"]) == (25.0, ["chat.1", "chat.2", "chat.3"])
        shrunk = job(service, "long")
        assert "shrunk to 1 to make room for chat.2" in shrunk["transitions"][-4]["reason"]

        tell(service, 5.0)
        for name in ("chat.3", "chat.2"):
            east.wait_for("stop", name)
        grown = east.wait_for("start", "long", 4)
        assert (grown["devices"], grown["run"]["step"]) == (3, 30)
        east.report(grown, "running", step=42, checkpoint_step=40)
        replicas(service, 1)

        service.client.delete("/v1/jobs/chat").raise_for_status()
        record = state(service, "chat", "cancelled")
        assert record["reason"] == "it was called off, and none of its replicas is left"
        assert job(service, "chat.1")["state"] == "cancelled"
    assert job(service, "long")["failures"] == 0


def test_what_was_told_last_counts_though_more_was_told_of_the_same_second(start_service: StartService) -> None:
    service = start_service()
    serving(service)
    second = datetime.now(UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    for part, rate in (("100", 5.0), ("300", 25.0), ("900", 6.0), ("500", 12.0)):
        told = {"job": "chat", "observed_at": f"{second}.{part}Z", "rate": rate}
        service.client.post("/v1/job-loads", json=told).raise_for_status()
    until(lambda: job(service, "chat"), lambda found: found.get("replicas", {}).get("load") == 6.0)


def test_what_is_wrong_with_a_serving_job_or_its_load_is_refused(start_service: StartService) -> None:
    service = start_service()

    def pointers(answer: httpx.Response) -> list[str]:
        assert answer.status_code == 422, answer.text
        return [error["pointer"] for error in answer.json()["errors"]]

    def put(**members: Any) -> httpx.Response:
        body = {"id": "chat", "workload": {"command": ["answer"]}, "devices": {"minimum": 1, "maximum": 1}}
        return service.put("/v1/jobs/chat", {**body, "serving": NEED, **members})

    assert pointers(put(serving={**NEED, "minimum": 4})) == ["/serving/minimum"]
    assert pointers(put(serving={**NEED, "rate": 0.0})) == ["/serving/rate"]
    assert pointers(put(checkpoint="file:///somewhere", budget=3.0)) == ["/budget", "/checkpoint"]
    assert pointers(put(replica_of="other")) == ["/replica_of"]
    assert tell(service, 5.0).json()["type"].endswith("unknown-reference")
    service.put(
        "/v1/jobs/train", {"id": "train", "workload": {"command": ["t"]}, "devices": {"minimum": 1, "maximum": 1}}
    ).raise_for_status()
    assert pointers(tell(service, 5.0, "train")) == ["/job"]
    put().raise_for_status()
    told = {"begins_at": "2026-11-29T00:00:01Z", "ends_at": "2026-11-29T00:00:00Z", "rate": 3.0}
    assert pointers(tell(service, 5.0, announced=[told])) == ["/announced/0/ends_at"]
    assert pointers(tell(service, -1.0)) == ["/rate"]


def test_the_serial_keeps_replicas_from_being_added_twice(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        body = {"id": "chat", "workload": {"command": ["answer"]}, "devices": {"minimum": 1, "maximum": 1}}
        service.client.put("/v1/jobs/chat", json={**body, "serving": NEED}).raise_for_status()
        service.client.put("/v1/jobs/chat.2", json={**body, "id": "chat.2"}).raise_for_status()
        told: Any = {"decided_at": "2026-11-29T00:00:00Z", "wanted": 2, "running": 0, "jobs": []}
        for _ in range(2):
            service.call(service.jobs.serve("default", "chat", told, 2, 0, "two are wanted"))
        names = [entry["id"] for entry in service.client.get("/v1/jobs").json()["items"]]
        assert names == ["chat", "chat.1", "chat.2", "chat.3"]
        assert service.client.get("/v1/jobs/chat").json()["replicas"]["jobs"] == ["chat.1", "chat.3"]
        assert service.client.get("/v1/jobs/chat.2").json().get("replica_of") is None
