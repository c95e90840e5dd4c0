"""A run that a service watches: its faults and fences, beside what the run sees for itself."""

import sys
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from live.nodes import SETTINGS, Gateways
from live.processes import processes_of

from kuayu.engine.holdings import Fence
from kuayu.engine.live.agent import FencingHooks
from kuayu.engine.live.service import WatchingService
from kuayu.live.findings import Incident, ReportedFault, ReportedRun, domain_of
from kuayu.live.launcher import Launcher, engine_of
from kuayu.live.plan import Settings
from kuayu.live.run import SERVICE_DELAY_SECONDS, Run
from kuayu.live.supervisor import Kind

KINDS = (Kind.hang, Kind.cut, Kind.control, Kind.kill)


@pytest.mark.slow
@pytest.mark.alone
def test_a_service_tells_what_happens_and_has_it_fenced(tmp_path: Path) -> None:
    watcher = WatchingService()
    settings = Settings(seed=3, domains=3, parts=6, every=5, service=watcher.port)
    run = Run(settings, tmp_path, KINDS, lambda _: None, watcher=watcher)
    account = run.go()
    assert time.monotonic() >= max(each.injected_at for each in run.timeline.incidents) + SERVICE_DELAY_SECONDS
    assert account.clean
    assert not run.timeline.false_alarms
    assert all(each.progress is not None for each in run.timeline.incidents)
    service = watcher.found
    assert service is not None
    struck = {each.kind: service.of(each) for each in run.timeline.incidents if each.kind is not Kind.control}
    assert {kind: told and told.kind for kind, told in struck.items()} == {
        Kind.hang: "node_dead",
        Kind.cut: "domain_unreachable",
        Kind.kill: "node_dead",
    }
    assert service.strange(run.timeline.incidents) == []
    assert service.actions_requested >= 2
    assert service.unanswered == 0
    assert not processes_of(tmp_path)


def test_to_fence_a_node_is_to_kill_its_worker(tmp_path: Path) -> None:
    with Launcher(tmp_path) as launcher:
        for name in ("bay-1", "gansu-1"):
            launcher.start(name, [sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        FencingHooks(engine_of(tmp_path)).fence(Fence("a", {"bay-1": 1, "bay-2": 1}, None))
        assert launcher.ended("bay-1")
        assert not launcher.ended("gansu-1")


class Service200(BaseHTTPRequestHandler):
    """Answers."""

    def do_GET(self) -> None:
        """With what was asked for."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[int]:
    """Port of a service."""
    server = HTTPServer(("127.0.0.1", 0), Service200)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_way_to_the_service_is_cut_with_the_domain(service: int) -> None:
    gateways = Gateways(Settings(domains=3, spares=0, delay=0.0, service=service))
    domain = SETTINGS.names[0]
    url = f"http://127.0.0.1:{gateways.services[domain]}/told"

    def asked() -> bytes:
        with urllib.request.urlopen(url, timeout=0.5) as answer:
            read: bytes = answer.read()
            return read

    try:
        assert asked() == b"/told"
        gateways.order(cut=domain, peers_only=True)
        assert asked() == b"/told"
        gateways.order(cut=domain, peers_only=False)
        with pytest.raises(OSError, match="timed out"):
            asked()
        gateways.order(mend=domain)
        assert asked() == b"/told"
    finally:
        gateways.close()


def test_a_fault_belongs_to_the_incident_of_its_worker_or_of_its_workers_domain() -> None:
    assert domain_of("bay-12") == "bay"
    told = [
        ReportedFault("node_dead", "bay-1", "bay", 5.0, 1),
        ReportedFault("domain_unreachable", None, "bay", 3.0, 0),
        ReportedFault("node_dead", "gansu-1", "gansu", 4.0, 1),
        ReportedFault("job_hung", None, None, 4.0, 3),
    ]
    service = ReportedRun(told, unanswered=2)
    struck = Incident(Kind.cut, "bay-1", 4.0, 0)
    assert service.of(struck) == told[0]
    assert service.strange([struck]) == [told[2]]
    assert service.actions_requested == 5
