"""A client of the minimal server as a process of its own, with nothing of ours in between."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
SCHEMAS = TESTS.parent / "schemas" / "kuayu_schemas" / "published"


@dataclass
class Client:
    """Talks to one process of the minimal server."""

    process: subprocess.Popen[str]
    url: str
    token: str = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers of the answer; bytes are sent as text, all else as JSON."""
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "text/plain" if isinstance(body, bytes) else "application/json"}
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, content, {**kind, **token, **named}, method=method)  # noqa: S310 - its own URL
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own process
                return answer.status, json.loads(answer.read() or b"null"), dict(answer.headers)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read()), dict(refused.headers)

    def value(self, path: str, measure: str, device: str | None = None) -> Any:
        """Number that a report gives for a measure."""
        _, report, _ = self.ask("GET", path)
        return next(
            (v["number"] for v in report["values"] if (v["measure"], v.get("device")) == (measure, device)), None
        )


def start(*arguments: str) -> Client:
    command = [sys.executable, "-m", "minimal_server", "--port", "0", "--schemas", str(SCHEMAS), *arguments]
    process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return Client(process, process.stdout.readline().split()[-1])


def stop(client: Client, how: signal.Signals = signal.SIGTERM) -> None:
    client.process.send_signal(how)
    client.process.wait(timeout=10)
    assert client.process.stdout is not None
    client.process.stdout.close()


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def register(client: Client, domain: str = "north", node: str = "rack-1") -> None:
    device = {"id": "0", "kind": "gpu", "vendor": "NVIDIA", "model": "H200", "memory_capacity": 1.5e11}
    assert client.ask("PUT", f"/v1/domains/{domain}", {"id": domain})[0] == 201
    body = {"id": node, "domain": domain, "devices": [device]}
    assert client.ask("PUT", f"/v1/nodes/{node}", body)[0] == 201
