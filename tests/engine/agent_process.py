"""`kuayu agent` in a process of its own, on a free port, with its spool."""

import os
import signal
import time
from pathlib import Path

import httpx
from commands import TYPED, Started, prefork_server
from prometheus_client.parser import text_string_to_metric_families
from service.conftest import free_port

PATIENCE_S = 60.0


class AgentProcess:
    """An aggregator that can die and come back.

    Attributes:
        url: Where it answers, dead or alive.
        log: Where it writes what it says.
    """

    def __init__(self, service: str, spool: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S)
        self.log = spool.with_suffix(".log")
        self.process: Started | None = None
        self._arguments = ["--url", service, "--domain", "domain", "--spool", str(spool), "--port", str(self.port)]
        self._options = options

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self.log.open("ab") as log:
            arguments = ["agent", *self._arguments, *self._options]
            with Path(os.devnull).open("rb") as nothing:
                self.process = prefork_server(TYPED).start(arguments, [nothing, log, log])
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.client.get("/v1/health").raise_for_status()
            except httpx.TransportError:
                assert self.process.poll() is None, self.log.read_text("utf-8")
                assert time.monotonic() < deadline, "the agent does not answer"
                time.sleep(0.05)
            else:
                return

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def figures(self) -> dict[str, float]:
        """Its metrics by name; those with labels as ``name/label``, several with slashes between."""
        page = self.client.get("/metrics").raise_for_status().text
        return {
            "/".join([sample.name.removeprefix("kuayu_agent_"), *sample.labels.values()]): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }

    def until(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.figures().get(name)) != value:
            assert time.monotonic() < deadline, f"{name} is {found}\n{self.log.read_text('utf-8')}"
            time.sleep(0.05)

    def close(self) -> None:
        """End it, however it stands."""
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGKILL)
