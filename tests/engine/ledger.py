"""Senders that keep a ledger of every sample that was acknowledged to them, and the comparison with what is held."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import httpx

from kuayu.service import instants

PAUSE_S = 0.2
Entry = tuple[str, str]
"""Node and instant of a sample."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of the samples in a ledger.

    Attributes:
        acknowledged: How many there are.
        held: How many samples the service holds.
        lost: Acknowledged and not held.
        altered: Held with another value.
        doubled: Held more than once, or held without ever having been sent: a sample whose instant was moved.
    """

    acknowledged: int
    held: int
    lost: int
    altered: int
    doubled: int

    @property
    def exact(self) -> bool:
        """Whether each acknowledged sample is held exactly once and nothing else is."""
        return not (self.lost or self.altered or self.doubled) and self.acknowledged == self.held


@dataclass(slots=True)
class Sender:
    """A node that sends small batches, each until it is acknowledged.

    Attributes:
        url: Base URL of the aggregator.
        node: Its identifier.
        period: Seconds between samples.
        batch: Samples in a batch.
        acknowledged: The ledger: value of each acknowledged sample by its instant.
        failures: Attempts that were not acknowledged.
    """

    url: str
    node: str
    period: float
    batch: int
    acknowledged: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no new batch; wait until the last one is acknowledged."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        first, number = instants.now(), 0
        step = max(1, round(self.period * 1000))
        with httpx.Client(base_url=self.url, timeout=10.0) as client:
            while not self._stopping.is_set():
                samples = {
                    instants.to_text(first + (number + each) * step): float(number + each + 1)
                    for each in range(self.batch)
                }
                number += self.batch
                if self._stopping.wait((first + number * step - instants.now()) / 1000):
                    return
                self._hand_over(client, samples)

    def _hand_over(self, client: httpx.Client, samples: Mapping[str, float]) -> None:
        wire = [
            {"subject": self.node, "subject_kind": "node", "observed_at": moment, "power": value}
            for moment, value in samples.items()
        ]
        request = client.build_request(
            "POST",
            "/v1/samples",
            json={"mode": "per_item", "samples": wire},
            headers={"Idempotency-Key": uuid.uuid4().hex},
        )
        while True:
            try:
                answer = client.send(request)
            except httpx.TransportError as error:
                self.failures[type(error).__name__] += 1
            else:
                if answer.status_code == 200 and answer.json()["accepted"] == len(samples):
                    self.acknowledged.update(samples)
                    return
                self.failures[str(answer.status_code)] += 1
            time.sleep(PAUSE_S)


def compare(senders: Iterable[Sender], client: httpx.Client) -> Comparison:
    """Read every sample of the senders' nodes back from a service, and hold it against their ledgers."""
    acknowledged: dict[Entry, float] = {}
    held: list[tuple[Entry, float]] = []
    for sender in senders:
        acknowledged |= {(sender.node, moment): value for moment, value in sender.acknowledged.items()}
        held += [((sender.node, moment), value) for moment, value in read_back(client, sender.node)]
    values = dict(held)
    times = Counter(entry for entry, _ in held)
    return Comparison(
        acknowledged=len(acknowledged),
        held=len(held),
        lost=len(acknowledged.keys() - values.keys()),
        altered=sum(values[entry] != value for entry, value in acknowledged.items() if entry in values),
        doubled=sum(count if entry not in acknowledged else count - 1 for entry, count in times.items()),
    )


def read_back(client: httpx.Client, node: str) -> list[tuple[str, float]]:
    """Instant and value of every sample of a node, page after page."""
    query: dict[str, str] = {"subject": node, "subject_kind": "node", "limit": "1000"}
    found: list[tuple[str, float]] = []
    while True:
        page = client.get("/v1/samples", params=query).raise_for_status().json()
        found += [(item["observed_at"], item["power"]) for item in page["items"]]
        if "next_cursor" not in page:
            return found
        query["cursor"] = page["next_cursor"]
