"""One tenant attacks, another must not notice: waits, detection and memory of the service under siege.

Each attack runs for some seconds, with two attackers, while the other tenant reads, beats, and loses a node.
``test_siege.py`` asks that nobody is stalled; how long anybody waits is a matter of the machine, and measured by
``python tests/benchmarks/siege.py``.
"""

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from service.conftest import Service, instant

from kuayu.service.auth import hash_of

ATTACKER, VICTIM = "token-of-the-attacker", "token-of-the-victim"
PERIOD = 0.2
"""Seconds between two beats of the victim's nodes."""

NODES = 24
"""Of the victim; each attack takes one."""

Attack = Callable[[Service, threading.Event], None]
SAMPLES, BEATS = "/v1/samples", "/v1/heartbeats"


def post(service: Service, path: str, body: bytes, kind: str = "application/json", **headers: str) -> httpx.Response:
    """A request of the attacker."""
    with service.as_tenant(ATTACKER) as client:
        stated = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post(path, content=body, headers=stated)


def again(path: str, body: bytes, kind: str = "application/json", **headers: str) -> Attack:
    """The same request over and over."""

    def attack(service: Service, over: threading.Event) -> None:
        while not over.is_set():
            assert post(service, path, body, kind, **headers).status_code != 500

    return attack


def raw(service: Service, *pieces: bytes) -> socket.socket:
    """A connection with the beginning of a request."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    try:
        for piece in pieces:
            connection.sendall(piece)
    except OSError:
        connection.close()
        raise
    return connection


def head(path: str, length: int, token: str = ATTACKER) -> bytes:
    """The head of a request with a body of JSON."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def hang_up(service: Service, over: threading.Event) -> None:
    """Decisions that take long, asked for by clients that do not wait for them."""
    while not over.is_set():
        raw(service, head("/v1/compute-indices", len(LONG_WORK)), LONG_WORK).close()
        over.wait(0.05)


def trickle(service: Service, over: threading.Event) -> None:
    """Bodies of which a byte comes now and then."""
    connections = [raw(service, head(SAMPLES, 1000), b"{") for _ in range(40)]
    over.wait()
    for connection in connections:
        connection.close()


def hold_on(service: Service, over: threading.Event) -> None:
    """Streams that are opened and held."""
    begin = f"GET /v1/faults/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ATTACKER}\r\n\r\n".encode()
    connections = [raw(service, begin) for _ in range(150)]
    over.wait()
    for connection in connections:
        connection.close()


def heads(fields: bytes) -> Attack:
    """Requests whose heads are larger than any that is taken, over and over."""

    def attack(service: Service, over: threading.Event) -> None:
        begin = f"GET /v1/domains/d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ATTACKER}\r\n".encode()
        while not over.is_set():
            status = b""
            with contextlib.suppress(OSError), raw(service, begin) as connection:  # it may hang up amid the head
                with contextlib.suppress(OSError):
                    connection.sendall(fields + b"\r\n")
                status = connection.recv(64)
            assert not status or status.startswith(b"HTTP/1.1 431 "), status

    return attack


EMPTY_ITEMS = b'{"mode":"per_item","samples":[' + b"{}," * 9_999 + b"{}]}"
MANY_ITEMS = b'{"mode":"per_item","samples":[' + b"{}," * 200_000 + b"{}]}"
MANY_BEATS = b'{"beats":[' + b"{}," * 200_000 + b"{}]}"
MANY_DEVICES = b'{"id":"n","domain":"d","devices":[' + b"{}," * 200_000 + b"{}]}"
FILL = b"[" + b"{}," * 5_000_000 + b"{}]"
LONG_WORK = b'{"devices":[' + b"{}," * 100_000 + b"{}]}"
LINES = json.dumps(
    {"lines": [{"node": "a", "logged_at": instant(), "text": "NVRM: Xid (PCI:0000:3b:00): 79, " * 20}] * 9_000}
).encode()
PACKED_TWICE = gzip.compress(gzip.compress(bytes(50_000_000)))
HUGE_HEADER = b"X-Padding: " + b"a" * 8_000_000 + b"\r\n"
MANY_HEADERS = b"".join(b"X-Padding-%d: a\r\n" % number for number in range(200_000))
PAGE = ("x{" + ",".join(f'l{number}="v"' for number in range(100_000)) + "} 1\n").encode()

ATTACKS: dict[str, Attack] = {
    "bad items": again(SAMPLES, EMPTY_ITEMS),
    "too many items": again(SAMPLES, MANY_ITEMS),
    "too many beats": again(BEATS, MANY_BEATS),
    "fifteen megabytes of objects": again(SAMPLES, FILL),
    "fifteen megabytes of protobuf, packed": again(
        "/v1/metrics", gzip.compress(b"\x0a\x00" * 8_000_000), "application/x-protobuf", Content_Encoding="gzip"
    ),
    "packed twice": again(SAMPLES, PACKED_TWICE, Content_Encoding="gzip, gzip"),
    "log lines": again("/v1/log-lines", LINES),
    "labels": again("/v1/expositions?node=a&exporter=dcgm-exporter", PAGE, "text/plain"),
    "clients that hang up": hang_up,
    "bodies that trickle": trickle,
    "streams": hold_on,
    "huge headers": heads(HUGE_HEADER),
    "many headers": heads(MANY_HEADERS),
}


class Victim:
    """The other tenant: it reads and beats all the time, and knows how long each took.

    Attributes:
        waits: Seconds of each request.
    """

    def __init__(self, client: httpx.Client) -> None:
        self.waits: list[float] = []
        self.alive: set[str] = set()
        self._client = client
        self._number = 0

    def live(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Read and beat for so long, or until something holds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            self._number += 1
            beats = [{"node": node, "number": self._number, "sent_at": instant()} for node in sorted(self.alive)]
            began = time.monotonic()
            self._client.post(BEATS, json={"beats": beats}).raise_for_status()
            between = time.monotonic()
            self._client.get("/v1/domains/d").raise_for_status()
            self.waits += [between - began, time.monotonic() - between]
            time.sleep(max(0.0, began + PERIOD - time.monotonic()))

    def lose(self, node: str) -> float:
        """Have a node no longer beat; seconds until it is told to be dead."""
        self.alive.discard(node)
        began = time.monotonic()
        self.live(20.0, lambda: self.is_dead(node))
        assert self.is_dead(node), sorted(self.waits)[-5:]
        return time.monotonic() - began

    def is_dead(self, node: str) -> bool:
        """Whether it is told so."""
        found = self._client.get("/v1/faults", params={"state": "open"}).raise_for_status().json()["items"]
        return any(fault.get("node") == node for fault in found)


@contextlib.contextmanager
def besieged(folder: Path) -> Iterator[Service]:
    """A service with two tenants, whose data are in a folder."""
    tokens = folder / "tokens"
    tokens.write_text(f"attacker={hash_of(ATTACKER)}\nvictim={hash_of(VICTIM)}\n", encoding="utf-8")
    tokens.chmod(0o600)
    service = Service(
        f"sqlite:///{folder / 'kuayu.db'}", "--prepare", "--token-file", str(tokens), spawns=True
    )  # as it is run
    service.start()
    try:
        for token, nodes in ((ATTACKER, ["a"]), (VICTIM, [f"n{number}" for number in range(NODES)])):
            with service.as_tenant(token) as client:
                client.put("/v1/domains/d", json={"id": "d"}).raise_for_status()
                for node in nodes:
                    client.put(f"/v1/nodes/{node}", json={"id": node, "domain": "d"}).raise_for_status()
        yield service
    finally:
        service.client.close()
        service.stop()


def memory_of(service: Service) -> int:
    """Bytes of the service and its workers; what they share, as libraries, counts once (PSS, proc(5))."""
    assert service.process is not None
    process = psutil.Process(service.process.pid)
    found = 0
    for each in (process, *process.children(recursive=True)):
        found += each.memory_full_info().pss
    return found


@dataclass(frozen=True)
class Noticed:
    """What the other tenant notices of an attack.

    Attributes:
        attack: Its name; empty where there is none.
        wait: Seconds of the longest request.
        median: Seconds of the median one.
        detection: Seconds until the loss of a node is told.
        memory: MiB of the service and its workers.
    """

    attack: str
    wait: float
    median: float
    detection: float
    memory: int


def siege(service: Service) -> Iterator[Noticed]:
    """What is noticed without an attack, then of one attack after the other."""
    with service.as_tenant(VICTIM) as client:
        victim, nodes = Victim(client), [f"n{number}" for number in range(NODES)]
        victim.alive = set(nodes)
        victim.live(3.0)  # whatever is loaded when it is first asked for is loaded then
        for name, attack in {"": nothing, **ATTACKS}.items():
            victim.waits.clear()
            told = under(attack, service, victim, nodes.pop())
            waits = sorted(victim.waits)
            yield Noticed(name, waits[-1], waits[len(waits) // 2], told, memory_of(service) >> 20)


def under(attack: Attack, service: Service, victim: Victim, node: str) -> float:
    """The seconds in which the loss of a node is told while an attack goes on."""
    over = threading.Event()
    attackers = [threading.Thread(target=attack, args=(service, over)) for _ in range(2)]
    for attacker in attackers:
        attacker.start()
    try:
        victim.live(0.4)
        return victim.lose(node)
    finally:
        over.set()
        for attacker in attackers:
            attacker.join()


def nothing(service: Service, over: threading.Event) -> None:
    """No attack."""
    del service
    over.wait()
