"""The same graph on PostgreSQL."""

import signal

import pytest
from service.conftest import StartService, instant, problem
from service.graph_reader import Reader, applied, event_id, parts, snapshot, states, until
from service.test_graph import put_domains, put_node, report
from service.test_postgres import postgres  # noqa: F401 - a fixture

pytestmark = pytest.mark.postgres


def test_the_story_of_a_graph_on_postgresql(start_service: StartService, postgres: str) -> None:  # noqa: F811
    service = start_service(database=postgres)
    put_domains(service, "a", "b")
    first = snapshot(service.client)
    with Reader(service.client, event_id(first)) as reader:
        for name in ("n1", "n2"):
            put_node(service, name, "a", devices=2)
        service.put("/v1/links/l", {"id": "l", "source": "a", "destination": "b"}).raise_for_status()
        report(service, "n1", "faulty")
        measured = {"subject": "l", "subject_kind": "link", "observed_at": instant(), "packet_loss": 0.5}
        service.send(measured).raise_for_status()
        last = until(
            service.client, lambda found: states(found)["n1"] == "faulty" and found["links"][0]["state"] == "degraded"
        )
        graph = parts(first)
        for change in reader.wait_for(event_id(last)):
            graph = applied(graph, change)
        assert graph == parts(last)
    service.stop(signal.SIGKILL)
    service.start()
    report(service, "n2", "offline")
    after = until(
        service.client,
        lambda found: states(found) == {"n1": "faulty", "n2": "offline"} and found["links"][0]["state"] == "degraded",
    )
    assert [vertex["id"] for vertex in after["domains"]] == ["a", "b"]
    expired = service.client.get("/v1/graph/events", headers={"Last-Event-ID": event_id(last)})
    assert problem(expired) == "revision-expired"
