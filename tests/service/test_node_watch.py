"""What a domain says of nodes of its cluster that take no runs, and that a real service places nothing there."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from engine.runs.fake import FakeEngine
from service.conftest import Service, StartService

from kuayu.client import Client
from kuayu.engine.node_watch import REPEATED_POLLS, NodeWatch
from kuayu.engine.runs.protocol import EngineError
from kuayu_schemas.models import Domain, HealthState, Node, OperatingState, Sample, SubjectKind

PATIENCE_S = 30.0
NODES = [Node(id=name, domain="cluster") for name in ("n1", "n2")]


@pytest.fixture
def client(shared: Service) -> Iterator[Client]:
    """Of a service that knows both nodes."""
    with Client(shared.url, timeout_s=10.0, attempts=1) as client:
        client.put_domain(Domain(id="cluster"))
        for node in NODES:
            client.put_node(node)
        yield client


def shows(client: Client, *offline: str) -> None:
    """Wait until these nodes are shown as offline, and no others."""
    deadline = time.monotonic() + PATIENCE_S
    shown: set[str] | None = None
    while shown != set(offline):
        assert time.monotonic() < deadline, f"offline are {shown}, not {offline}"
        graph = client.graph(domain="cluster")
        shown = {node.id for node in graph.nodes if node.state is OperatingState.offline}


def test_a_node_that_takes_no_runs_is_offline_until_it_takes_them_again(client: Client) -> None:
    engine = FakeEngine()
    watch = NodeWatch(client, engine, "cluster", NODES)
    watch.poll()
    shows(client)
    engine.unavailable["n2"] = "drained"
    watch.poll()
    shows(client, "n2")
    engine.unavailable.clear()
    watch.poll()
    shows(client)


def test_what_was_said_before_a_restart_is_taken_back(client: Client) -> None:
    engine = FakeEngine()
    engine.unavailable["n1"] = "down"
    NodeWatch(client, engine, "cluster", NODES).poll()
    shows(client, "n1")
    engine.unavailable.clear()
    NodeWatch(client, engine, "cluster", NODES).poll()
    shows(client)


def test_it_is_said_again_now_and_then_for_whoever_has_forgotten_it(client: Client) -> None:
    engine = FakeEngine()
    engine.unavailable["n1"] = "down"
    watch = NodeWatch(client, engine, "cluster", NODES)
    watch.poll()
    other = Sample(
        subject="n1", subject_kind=SubjectKind.node, observed_at=datetime.now(UTC), health_state=HealthState.unknown
    )
    client.post_samples([other])
    watch.poll()
    shows(client)
    for _ in range(REPEATED_POLLS):
        watch.poll()
    shows(client, "n1")


def test_a_cluster_that_does_not_answer_says_nothing_about_its_nodes(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine()
    engine.unavailable["n2"] = "down"
    watch = NodeWatch(client, engine, "cluster", NODES)
    watch.poll()

    def fails(_nodes: object) -> dict[str, str]:
        raise EngineError("the controller does not answer", transient=True)

    engine.unavailable_nodes = fails  # type: ignore[method-assign, assignment]
    caplog.clear()
    for _ in range(3):
        watch.poll()
    shows(client, "n2")
    assert [record.message for record in caplog.records] == [
        "which nodes take runs cannot be told: the controller does not answer"
    ]


def test_what_a_service_that_is_away_was_not_told_it_is_told_when_it_is_back(start_service: StartService) -> None:
    service = start_service()
    engine = FakeEngine()
    with closing(Client(service.url, timeout_s=2.0, attempts=1)) as client:
        client.put_domain(Domain(id="cluster"))
        client.put_node(NODES[0])
        watch = NodeWatch(client, engine, "cluster", NODES[:1])
        watch.poll()
        service.stop()
        engine.unavailable["n1"] = "down"
        watch.poll()
        service.start()
        watch.poll()
        shows(client, "n1")
