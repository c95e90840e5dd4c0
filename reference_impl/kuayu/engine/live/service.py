"""The service that watches a run: the reference as anyone serves it, with what a run has to tell it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from kuayu.client import Client, ClientError
from kuayu.engine.live.heartbeats import agent_of, url
from kuayu.live.findings import ReportedFault, ReportedRun
from kuayu.live.supervisor import ProcessLostError, Start
from kuayu_schemas.models import Domain, Fault, Node

START_S = 60.0
"""Seconds in which the service has to be there."""

SERVE = """
import sys
from kuayu.live.transport import end_with_parent
end_with_parent(int(sys.argv.pop(1)))
from kuayu.cli import main
main()
"""
"""The command ``kuayu``, which ends with us."""

END_S = 20.0
"""Seconds that the service has to end by itself."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class WatchingService:
    """A run that a service watches.

    Attributes:
        port: Of the service.
        found: What it has told by the end of the run; None before.
    """

    control = "kuayu.engine.live.control"
    worker = "kuayu.engine.live.worker"

    def __init__(self) -> None:
        self.port = free_port()
        self.found: ReportedRun | None = None
        self._domains: list[str] = []
        self._client = Client(url(self.port))
        self._service: subprocess.Popen[bytes] | None = None

    def begin(self, start: Start, folder: Path, domains: Mapping[str, int]) -> None:
        """Have the service started, and an agent for each domain; ``domains`` are the ports at their gateways.

        Raises:
            Lost: The service does not come.
        """
        database = f"sqlite:///{folder / 'service.sqlite'}"
        parent = str(os.getpid())
        options = ["--port", str(self.port), "--database", database, "--log-level", "warning"]
        self._service = start("service", [sys.executable, "-c", SERVE, parent, "serve", *options])
        self._wait(folder / "service.errors")
        self._domains = list(domains)
        for domain, port in domains.items():
            self._client.put_domain(Domain(id=domain))
            self.joins(agent_of(domain), domain)
            where = [domain, str(port), parent, str(folder)]
            start(agent_of(domain), [sys.executable, "-m", "kuayu.engine.live.agent", *where])

    def joins(self, node: str, domain: str) -> None:
        """A worker, or an agent, is about to be started in a domain."""
        self._client.put_node(Node(id=node, domain=domain, devices=[]))

    def end(self) -> None:
        """The run is over; note what was told, as far as the service can still be asked."""
        with self._client:
            try:
                faults = sorted(map(_reported, self._client.faults()), key=lambda fault: fault.reported_at)
                unanswered = sum(len(self._client.open_actions(domain)) for domain in self._domains)
                self.found = ReportedRun(faults, unanswered)
            except ClientError as error:
                raise ProcessLostError(f"the service does not answer: {error.cause}") from error
            finally:
                if self._service is not None:  # it has processes of its own, which it ends
                    self._service.terminate()
                    self._service.wait(END_S)

    def _wait(self, errors: Path) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                self._client.conformance()
            except ClientError as error:
                if self._service is not None and self._service.poll() is not None:
                    words = errors.read_text("utf-8", "replace").strip().rpartition("\n")[2]
                    raise ProcessLostError(f"the service has ended: {words}") from error
                if not error.transient or time.monotonic() > until:
                    raise ProcessLostError(f"the service does not answer: {error.cause}") from error
                time.sleep(0.1)
            else:
                return


def _reported(fault: Fault) -> ReportedFault:
    instant = fault.told_at.timestamp() - time.time() + time.monotonic()
    return ReportedFault(fault.kind.value, fault.node, fault.domain, instant, len(fault.actions))
