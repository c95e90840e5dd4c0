"""Crashes while clients write, and a ledger of what was acknowledged that no crash reaches.

The clients keep the ledger. After each crash everything is read back: a write that was acknowledged is there, or it is
lost. A loss under another epoch was at least said; one under the same epoch is silent, and clause Writes has none.
"""

import itertools
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
from service.conftest import PATIENCE, Service, instant
from service.postgres_server import PostgresServer

WRITERS = 4
ENOUGH = 40
"""Writes of a round that have to be acknowledged before the crash, however slow the machine is."""

SAMPLES_PER_DOMAIN = 5
"""Samples that a client sends before it registers another domain."""


@dataclass(slots=True)
class Ledger:
    """What was acknowledged.

    Attributes:
        samples: Value of each sample, by device and instant.
        domains: Names of domains.
    """

    samples: dict[tuple[str, str], float] = field(default_factory=dict)
    domains: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.samples) + len(self.domains)

    def missing(self, held: "Ledger") -> "Ledger":
        """What of it is not held."""
        samples = {key: value for key, value in self.samples.items() if held.samples.get(key) != value}
        return Ledger(samples, self.domains - held.domains)

    def remove(self, other: "Ledger") -> None:
        """Strike out what was found to be lost, so that it counts once."""
        for key in other.samples:
            del self.samples[key]
        self.domains -= other.domains


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a crash.

    Attributes:
        acknowledged: Writes of this round that were acknowledged.
        lost: Acknowledged writes, of whichever round, that were not there any more.
        renewed: Whether the epoch is another one afterwards.
    """

    acknowledged: int
    lost: int
    renewed: bool

    @property
    def silent(self) -> bool:
        """Whether something was lost and nobody was told."""
        return bool(self.lost) and not self.renewed


def kill_service(service: Service) -> None:
    """The service's process dies, and is started again."""
    service.stop(signal.SIGKILL)
    service.start()


def crash_postgres(server: PostgresServer) -> Callable[[Service], None]:
    """The database's processes die, and are started again; the service stays."""

    def crash(_: Service) -> None:
        server.crash()
        server.start()

    return crash


def rounds(service: Service, crash: Callable[[Service], None], number: int, seed: int = 7) -> Iterator[Round]:
    """Crash a running service or its database so many times at random instants while clients write."""
    chance, ledger, counter = random.Random(seed), Ledger(), itertools.count()
    service.register(devices=WRITERS)
    for _ in range(number):
        epoch, before = epoch_of(service), len(ledger)
        over = threading.Event()
        with ThreadPoolExecutor(WRITERS) as writers:
            for device in range(WRITERS):
                writers.submit(_write, service.url, str(device), counter, ledger, over)
            try:
                time.sleep(chance.uniform(0.4, 1.2))
                busy = time.monotonic() + PATIENCE
                while len(ledger) - before < ENOUGH and time.monotonic() < busy:
                    time.sleep(chance.uniform(0.01, 0.1))
                crash(service)
            finally:  # else writers would go on for ever where what was crashed does not come back
                over.set()
        acknowledged = len(ledger) - before
        after = epoch_of(service)
        lost = ledger.missing(read(service))
        ledger.remove(lost)
        yield Round(acknowledged, len(lost), after != epoch)


def _write(url: str, device: str, counter: "itertools.count[int]", ledger: Ledger, over: threading.Event) -> None:
    """Write one after the other, and go on after what fails, as a client does."""
    with httpx.Client(base_url=url, timeout=10) as client:
        while not over.is_set():
            number = next(counter)
            try:
                if number % (SAMPLES_PER_DOMAIN + 1):
                    _send(client, device, number, ledger)
                else:
                    name = f"domain-{number}"
                    if client.put(f"/v1/domains/{name}", json={"id": name}).raise_for_status():
                        ledger.domains.add(name)
            except httpx.HTTPError:
                over.wait(0.05)


def _send(client: httpx.Client, device: str, number: int, ledger: Ledger) -> None:
    moment = instant(-3600 + number / 100)
    sample = {"subject": "node", "subject_kind": "device", "device": device, "observed_at": moment}
    body = {"mode": "per_item", "samples": [sample | {"power": float(number)}]}
    answer = client.post("/v1/samples", json=body).raise_for_status()
    if answer.json()["accepted"] == 1:
        ledger.samples[device, moment] = float(number)


def epoch_of(service: Service) -> str:
    """Epoch of the service, as soon as it answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answer = service.client.get("/v1/conformance")
            if answer.status_code == httpx.codes.OK:
                return str(answer.json()["revision"]["epoch"])
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "the service does not come back"
        time.sleep(0.05)


def read(service: Service) -> Ledger:
    """All that the service holds."""
    held = Ledger()
    for device in range(WRITERS):
        for found in service.samples("node", "device", device=str(device)):
            held.samples[str(device), found["observed_at"]] = found["power"]
    query = {"limit": "1000"}
    while True:
        page = service.client.get("/v1/domains", params=query).raise_for_status().json()
        held.domains.update(item["id"] for item in page["items"])
        if "next_cursor" not in page:
            return held
        query["cursor"] = page["next_cursor"]
