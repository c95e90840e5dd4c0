"""The service that watches a run: the reference as anyone serves it, with what a run has to tell it."""

import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from kuayu.client import Client, ClientError
from kuayu.engine.live.heartbeats import agent_of, url
from kuayu.live.findings import ReportedFault, ReportedRun
from kuayu.live.launcher import Launcher
from kuayu.live.supervisor import ProcessLostError
from kuayu_schemas.models import Domain, Fault, Node

SERVICE = "service"
"""Name of its run."""

START_S = 60.0
"""Seconds in which the service has to be there."""

SERVE = "from kuayu.cli import main; main()"
"""The command ``kuayu``."""


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

    def begin(self, launcher: Launcher, folder: Path, domains: Mapping[str, int]) -> None:
        """Have the service started, and an agent for each domain; ``domains`` are the ports at their gateways.

        Raises:
            EngineError: It, or an agent, cannot be started.
            ProcessLostError: The service does not come.
        """
        database = f"sqlite:///{folder / 'service.sqlite'}"
        options = ["--port", str(self.port), "--database", database, "--log-level", "warning"]
        launcher.start(SERVICE, [sys.executable, "-c", SERVE, "serve", *options])
        self._wait(launcher)
        self._domains = list(domains)
        for domain, port in domains.items():
            self._client.put_domain(Domain(id=domain))
            self.joins(agent_of(domain), domain)
            agent = [sys.executable, "-m", "kuayu.engine.live.agent", domain, str(port), str(folder)]
            launcher.start(agent_of(domain), agent)

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

    def _wait(self, launcher: Launcher) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                self._client.conformance()
            except ClientError as error:
                if launcher.ended(SERVICE):
                    raise ProcessLostError(f"the service has ended: {launcher.last_words(SERVICE)}") from error
                if not error.transient or time.monotonic() > until:
                    raise ProcessLostError(f"the service does not answer: {error.cause}") from error
                time.sleep(0.1)
            else:
                return


def _reported(fault: Fault) -> ReportedFault:
    instant = fault.told_at.timestamp() - time.time() + time.monotonic()
    return ReportedFault(fault.kind.value, fault.node, fault.domain, instant, len(fault.actions))
