"""The guide to the graph: what it types shows the graph and goes on with its changes, with an aggregator before it."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import yaml
from docs.typed import WRITTEN_FOR, blocks
from docs.watched import Terminal
from service.conftest import PATIENCE, Service, free_port, instant
from service.graph_reader import snapshot

PAGE = "graph.md"
NODE, DOMAIN = "gy-001", "guiyang"
"""Node and domain that the guide names."""
AGENT, SPOOL = "8090", "/var/lib/kuayu/"
"""Where the guide's aggregator listens, and where it keeps what waits."""


def lines(command: str) -> list[str]:
    """Commands of the one block that holds a command; one over several lines is one."""
    (block,) = (text for _, text in blocks(PAGE) if command in text)
    return block.replace("\\\n", "").splitlines()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that knows one node of the domain of the guide, beside another domain."""
    with closing(Service(f"sqlite:///{tmp_path_factory.mktemp('graph') / 'kuayu.db'}")) as made:
        made.start()
        made.register(NODE, domain=DOMAIN)
        made.register("hf-001", domain="hefei")
        yield made


@pytest.fixture(scope="module")
def port() -> str:
    return str(free_port())


@pytest.fixture
def terminal(service: Service, port: str, tmp_path: Path) -> Terminal:
    (tmp_path / "spools").mkdir()
    replaced = {WRITTEN_FOR: service.url, AGENT: port, SPOOL: f"{tmp_path / 'spools'}/", "$U/": f"{service.url}/"}
    return Terminal(tmp_path, replaced)


def become(service: Service, state: str) -> None:
    """The node says of itself that it is in a state, until the graph says so too."""
    deadline = time.monotonic() + PATIENCE
    while [node["state"] for node in snapshot(service.client, domain=DOMAIN)["nodes"]] != [state]:
        assert time.monotonic() < deadline
        sample = {"subject": NODE, "subject_kind": "node", "observed_at": instant(), "health_state": state}
        assert service.send(sample).json()["rejected"] == []
        time.sleep(0.2)


def test_the_graph_is_shown_by_domain(terminal: Terminal) -> None:
    printed = terminal.type(lines("--follow")[0])
    assert DOMAIN in printed
    assert "hefei" in printed


def test_a_domain_is_followed(terminal: Terminal, service: Service) -> None:
    following = lines("--follow")[1]
    become(service, "degraded")
    with terminal.watch(following) as watched:
        watched.until(f"node {NODE}")
        assert "hf-001" not in watched.printed
        become(service, "faulty")
        watched.until("→ faulty")
        watched.interrupt()


def test_plain_http_gives_sums_a_domain_and_a_stream(terminal: Terminal, service: Service) -> None:
    _, _, sums, domain, stream = lines("curl -N")
    assert '"nodes":[]' in terminal.type(sums)
    shown = terminal.type(domain)
    assert NODE in shown
    assert "hf-001" not in shown
    become(service, "degraded")
    with terminal.watch(stream) as watched:
        watched.until(": hello")
        become(service, "faulty")
        watched.until('"state":"faulty"')
        assert "\nid: " in watched.printed


def test_the_program_prints_each_change(terminal: Terminal, service: Service) -> None:
    (program,) = (text for kind, text in blocks(PAGE) if kind == "python")
    become(service, "degraded")
    with terminal.watch(f"python <<'PROGRAM'\n{program}PROGRAM\n") as watched:
        watched.until(f"{NODE} ")
        become(service, "faulty")
        watched.until(f"{NODE} faulty")


def test_an_aggregator_hands_on_what_the_collector_sends(terminal: Terminal, service: Service, tmp_path: Path) -> None:
    agent, collect = lines("kuayu agent")
    with terminal.watch(agent) as running:
        running.until("the service answers")
        with terminal.watch(collect) as collecting:
            collecting.until("taken")
            collecting.interrupt()
        assert (tmp_path / "spools" / "guiyang.spool").exists()
    assert [sample for sample in service.samples(NODE) if "health_state" not in sample]


def test_an_otlp_exporter_finds_the_service_under_its_base_url(service: Service) -> None:
    """Exporters put /v1/metrics behind their endpoint (OTLP 1.x, OTLP/HTTP request)."""
    (text,) = (text for kind, text in blocks(PAGE) if kind == "yaml")
    endpoint = yaml.safe_load(text)["exporters"]["otlphttp"]["endpoint"].replace(WRITTEN_FOR, service.url)
    point = {"timeUnixNano": str(1), "asDouble": 0.5}
    metric = {"name": "hw.gpu.utilization", "unit": "1", "gauge": {"dataPoints": [point]}}
    named = {"attributes": [{"key": "host.name", "value": {"stringValue": NODE}}]}
    sent = {"resourceMetrics": [{"resource": named, "scopeMetrics": [{"metrics": [metric]}]}]}
    answer = httpx.post(f"{endpoint}/v1/metrics", json=sent, trust_env=False)
    assert answer.status_code == 200, answer.text


def test_a_month_is_asked_for_as_a_series(terminal: Terminal) -> None:
    (command,) = (text for kind, text in blocks(PAGE) if "/v1/series" in text)
    assert '"step":3600' in terminal.type(command)
