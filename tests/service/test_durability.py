"""What was acknowledged is still there, however the process ends."""

import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from service.conftest import Service, StartService, instant

ROUNDS = 4
PATIENCE_S = 60.0


class Ledger:
    """Writes samples until it is stopped or the service dies, and notes what was acknowledged."""

    def __init__(self, service: Service, device: str) -> None:
        self.service = service
        self.device = device
        self.acknowledged: dict[str, float] = {}
        self.begun = threading.Event()
        self.stopped = threading.Event()

    def write(self, first: int) -> None:
        """Write samples whose values begin at ``first``; ``begun`` is set with the first that is acknowledged."""
        with httpx.Client(base_url=self.service.url, timeout=10) as client:
            for number in range(first, first + 10_000):
                if self.stopped.is_set():
                    return
                if not self._send(client, number):
                    return

    def _send(self, client: httpx.Client, number: int) -> bool:
        moment = instant(-3600 + number / 100)
        sample = {"subject": "node", "subject_kind": "device", "device": self.device, "observed_at": moment}
        body = {"mode": "per_item", "samples": [sample | {"power": float(number)}]}
        try:
            answer = client.post("/v1/samples", json=body)
        except httpx.TransportError:
            return False
        if answer.json()["accepted"] == 1:
            self.acknowledged[moment] = float(number)
            self.begun.set()
        return True


@pytest.mark.slow
def test_kill_9_during_ingest_loses_no_acknowledged_sample(start_service: StartService) -> None:
    chance = random.Random(7)
    service = start_service()
    service.register(devices=4)
    ledgers = [Ledger(service, str(device)) for device in range(4)]
    for round_number in range(ROUNDS):
        with ThreadPoolExecutor(len(ledgers)) as writers:
            for ledger in ledgers:
                ledger.begun.clear()
            writing = [writers.submit(ledger.write, round_number * 10_000) for ledger in ledgers]
            for ledger in ledgers:
                ledger.begun.wait(PATIENCE_S)
            time.sleep(chance.uniform(0.0, 0.6))
            service.stop(signal.SIGKILL)
        for each in writing:
            each.result()  # whatever a writer failed at is told
        service.start()
        for ledger in ledgers:
            held = {
                found["observed_at"]: found["power"]
                for found in service.samples("node", "device", device=ledger.device)
            }
            assert ledger.acknowledged.items() <= held.items()
    assert all(ledger.acknowledged for ledger in ledgers)


def test_sigterm_answers_what_is_under_way_and_ends_in_order(start_service: StartService) -> None:
    service = start_service()
    service.register()
    ledger = Ledger(service, "0")
    with ThreadPoolExecutor(1) as writers:
        writing = writers.submit(ledger.write, 0)
        ledger.begun.wait(PATIENCE_S)
        assert service.stop() == 0
        ledger.stopped.set()
    writing.result()
    service.start()
    held = {found["observed_at"]: found["power"] for found in service.samples("node", "device", device="0")}
    assert ledger.acknowledged
    assert ledger.acknowledged.items() <= held.items()


def test_a_restart_keeps_resources_revisions_and_cursors(start_service: StartService) -> None:
    service = start_service()
    for name in ("a", "b", "c"):
        service.put(f"/v1/domains/{name}", {"id": name})
    before = service.client.get("/v1/conformance").json()["revision"]
    page = service.client.get("/v1/domains", params={"limit": 2}).json()
    service.stop(signal.SIGKILL)
    service.start()
    assert service.client.get("/v1/conformance").json()["revision"] == before
    rest = service.client.get("/v1/domains", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == ["a", "b", "c"]


def test_counters_go_on_after_a_restart(start_service: StartService) -> None:
    service = start_service()
    service.register()
    page = '# TYPE node_disk_read_bytes_total counter\nnode_disk_read_bytes_total{{device="a"}} {}\n'
    query = {"node": "node", "exporter": "node-exporter"}
    service.send_page(page.format(1_000), observed_at="2026-01-01T00:00:00Z", sent_at="2026-01-01T00:01:00Z", **query)
    service.stop(signal.SIGKILL)
    service.start()
    assert service.samples() == []
    answer = service.send_page(page.format(3_000), observed_at=instant(), **query).json()
    assert answer["accepted"] == 1
    assert service.samples()[0]["storage_read_flow"] > 0
