"""The service as its users meet it: `kuayu serve` in a process of its own, on a free port, with its own database."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import Started, service_server

QUIET = ("serve", "--log-level", "warning", "--no-prepare")
PATIENCE = 60.0
OURS = 2
"""Where we complain, and services as well."""

JsonObject = dict[str, Any]


class Service:
    """A running service.

    Args:
        database: Its database.
        options: Further ones of its command.
        port: Where it listens; a free one where it is 0.
        spawns: Whether its workers are its children, each of which imports all that it needs, as they are elsewhere.

    Attributes:
        url: Where it answers.
        client: A client without credentials.
    """

    def __init__(self, database: str, *options: str, port: int = 0, spawns: bool = False) -> None:
        self._spawns = spawns
        self.database = database
        self.options = options
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)
        self.process: Started | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        arguments = [*QUIET, "--port", str(self.port), "--database", self.database, *self.options]
        with Path(os.devnull).open("r+b") as nothing:
            self.process = service_server(spawns=self._spawns).start(arguments, [nothing, nothing, OURS])
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.get("/v1/health").raise_for_status()
            except httpx.TransportError:
                assert self.process.poll() is None, "the service ended"
                assert time.monotonic() < deadline, "the service does not answer"
                time.sleep(0.05)
            else:
                return

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Let its client go, and end it where it runs."""
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.stop()

    def as_tenant(self, token: str) -> httpx.Client:
        """A client with a bearer token."""
        return httpx.Client(base_url=self.url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"})

    def put(self, path: str, body: JsonObject, **headers: str) -> httpx.Response:
        """Put a resource."""
        return self.client.put(path, json=body, headers=headers)

    def register(self, node: str = "node", devices: int = 2, domain: str = "domain") -> None:
        """Register a domain with one node."""
        self.put(f"/v1/domains/{domain}", {"id": domain}).raise_for_status()
        listed = [{"id": str(n), "kind": "gpu", "vendor": "Example", "model": "Example"} for n in range(devices)]
        self.put(f"/v1/nodes/{node}", {"id": node, "domain": domain, "devices": listed}).raise_for_status()

    def send(self, *samples: JsonObject, mode: str = "per_item", **members: Any) -> httpx.Response:
        """Send samples in bulk."""
        return self.client.post("/v1/samples", json={"mode": mode, "samples": list(samples), **members})

    def send_page(self, page: str, **query: str) -> httpx.Response:
        """Send an exporter's page."""
        headers = {"Content-Type": "text/plain; version=0.0.4"}
        return self.client.post("/v1/expositions", params=query, content=page.encode(), headers=headers)

    def samples(self, subject: str = "node", subject_kind: str = "node", **query: str) -> list[JsonObject]:
        """All samples of a subject, page after page."""
        params: dict[str, str] = {"subject": subject, "subject_kind": subject_kind, "limit": "1000", **query}
        found: list[JsonObject] = []
        while True:
            page = self.client.get("/v1/samples", params=params).raise_for_status().json()
            found += page["items"]
            if "next_cursor" not in page:
                return found
            params["cursor"] = page["next_cursor"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def instant(seconds: float = 0.0) -> str:
    """An instant so many seconds from now."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def problem(response: httpx.Response) -> str:
    """Name of the problem that a response is."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert body["status"] == response.status_code
    return str(body["type"]).removeprefix("urn:kuayu:problem:")


StartService = Callable[..., Service]


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """Starts services that end with the test."""
    with contextlib.ExitStack() as services:

        def start(*options: str, database: str | None = None, port: int = 0, spawns: bool = False) -> Service:
            service = Service(database or f"sqlite:///{tmp_path / 'kuayu.db'}", *options, port=port, spawns=spawns)
            services.callback(service.close)
            service.start()
            return service

        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests of a module, which keep out of each other's way by names."""
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'kuayu.db'}"
    with contextlib.closing(Service(database, "--scrape-allow", "127.0.0.1")) as service:
        service.start()
        yield service
