"""Two sources under one identity are a fault of their own: stories of clones, and of what only looks like one.

Pages are stamped some seconds apart, as an exporter's own timestamps or the query's ``observed_at`` would have them, so
that no story has to wait for its minutes. Sources: coroot/coroot#145, netdata/netdata#21527 (cloned machines);
NVIDIA/dcgm-exporter README.md (labels of its pages); Prometheus, "Jobs and instances" (``instance``).
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from commands import run
from service.conftest import PATIENCE, JsonObject, Service, StartService, instant
from service.herd import BROKEN, FaultReader, faults, log
from service.test_otlp import answer, moment, of_node, points, total
from service.test_otlp import send as send_metrics

from kuayu_schemas import schema

DCGM, NODE, DCU, NPU = "dcgm-exporter", "node-exporter", "dcu-exporter", "npu-exporter"
PERIOD = 15.0
"""Seconds between two pages."""

LOOKS = 0.7
"""Seconds in which whatever a page tells has been told: several looks of the watcher."""

HOSTS = ((5.0e12, 1e6), (1.0e9, 1e8))
"""Two hosts: what a counter of each had come to, and what it gains in a period."""


def stamp(page: int, of: int, ago: float = 2.0) -> float:
    """Seconds from now of one of so many pages, the last of which is ``ago`` seconds old."""
    return (page - of + 1) * PERIOD - ago


def disk(host: int, page: int, of: int, ago: float = 2.0, labels: str = "") -> str:
    """A page of one host, stamped."""
    start, gain = HOSTS[host]
    at = round((time.time() + stamp(page, of, ago)) * 1000)
    return f'node_disk_read_bytes_total{{device="sda"{labels}}} {start + gain * page:.0f} {at}\n'


def send(service: Service, node: str, page: str, exporter: str = NODE, **query: str) -> list[str]:
    """Send a page; the kinds of the warnings that the answer has."""
    result = service.send_page(page, node=node, exporter=exporter, **query).raise_for_status().json()
    assert schema.errors("BatchResult", result, reader=True) == []
    return [warning["kind"] for warning in result.get("warnings", ())]


def card(uuid: str, page: int, of: int, **labels: str) -> tuple[str, str]:
    """A GPU's page, and when it was made."""
    named = "".join(f',{name}="{value}"' for name, value in labels.items())
    text = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{uuid}"{named}}} 40\n'
    return text, instant(stamp(page, of))


def send_cards(service: Service, node: str, uuids: str, **labels: str) -> list[str]:
    """GPU 0 of a node is a different piece from page to page; the warnings of the last."""
    found: list[str] = []
    for page, uuid in enumerate(uuids):
        text, at = card(f"GPU-{uuid}", page, len(uuids), **labels)
        found = send(service, node, text, DCGM, observed_at=at)
    return found


def of_node_named(service: Service, node: str) -> list[JsonObject]:
    return [fault for fault in faults(service.client) if fault.get("node") == node]


def told(service: Service, node: str, state: str = "open", patience: float = PATIENCE) -> JsonObject:
    """The fault of a node, once it is told and in a state."""
    deadline = time.monotonic() + patience
    while True:
        found = of_node_named(service, node)
        if [fault["state"] for fault in found] == [state]:
            return found[0]
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def clone(service: Service, node: str, pages: int = 4, ago: float = 2.0) -> None:
    """Two hosts report as a node, in turn."""
    for page in range(pages):
        send(service, node, disk(page % 2, page, pages, ago))


def test_counters_of_two_hosts_are_a_fault_of_the_node_that_is_told_everywhere(shared: Service) -> None:
    shared.register("cloned", domain="clones")
    with FaultReader(shared.client) as reader:
        clone(shared, "cloned")
        fault = told(shared, "cloned")
        events = reader.wait_until(lambda found: any(each.get("node") == "cloned" for each in found))
    assert (fault["kind"], fault["node"], fault["domain"]) == ("identity_conflict", "cloned", "clones")
    assert "node_disk_read_bytes_total" in fault["because"]
    assert fault["actions"] == [], "the hosts are well: nothing is fenced"
    assert fault["since"] <= fault["told_at"]
    assert fault in events
    assert fault in faults(shared.client, domain="clones", state="open")
    printed = run("faults", "--url", shared.url, "--domain", "clones").stdout
    assert "identity_conflict" in printed
    assert "cloned in clones" in printed
    shown = json.loads(run("faults", "--url", shared.url, "--domain", "clones", "--json").stdout)
    assert [entry["id"] for entry in shown] == [fault["id"]]
    gauge = shared.client.get("/metrics").text
    assert 'kind="identity_conflict"' in gauge


def test_a_conflict_that_goes_on_stays_one_fault(shared: Service) -> None:
    shared.register("goes-on", domain="clones-on")
    clone(shared, "goes-on", pages=12)
    first = told(shared, "goes-on")
    for page in range(3):
        send(shared, "goes-on", disk(page % 2, 12 + page, 14, ago=1.0))
    time.sleep(LOOKS)
    assert told(shared, "goes-on") == first


def test_two_cards_that_stand_behind_one_device_in_turn_are_told_with_what_is_there_now(shared: Service) -> None:
    shared.register("two-cards", domain="cards")
    assert send_cards(shared, "two-cards", "abab") == ["identity_conflict"]
    fault = told(shared, "two-cards")
    assert fault["kind"] == "identity_conflict"
    assert "the hardware behind device 0 (now 'GPU-b')" in fault["because"]


def test_two_cards_behind_one_device_on_one_page_are_told_at_once(shared: Service) -> None:
    shared.register("both-cards", domain="cards-both")
    text = "".join(card(uuid, 0, 1)[0] for uuid in ("GPU-a", "GPU-b"))
    send(shared, "both-cards", text, DCGM)
    assert "(both 'GPU-a' and 'GPU-b')" in told(shared, "both-cards")["because"]


@pytest.mark.parametrize("label", ["node", "instance"])
def test_hosts_that_pages_without_serial_numbers_name_are_told(shared: Service, label: str) -> None:
    node = f"two-names-{label}"
    shared.register(node, domain=f"names-{label}")
    for page, host in enumerate(("gy-1", "gy-2", "gy-1", "gy-2")):
        text = f'dcu_utilizationrate{{minor_number="0",{label}="{host}"}} 40\n'
        send(shared, node, text, DCU, observed_at=instant(stamp(page, 4)))
    assert "the host behind device 0 (now 'gy-2')" in told(shared, node)["because"]


def test_hosts_whose_names_differ_are_told_by_their_counters(shared: Service) -> None:
    shared.register("federated", domain="federated")
    for page in range(4):
        labels = f',instance="10.0.0.{page % 2}:9100",job="node"'
        send(shared, "federated", disk(page % 2, page, 4, labels=labels))
    assert "node_disk_read_bytes_total" in told(shared, "federated")["because"]


def test_sources_whose_start_times_overlap_are_told_by_opentelemetry_too(shared: Service) -> None:
    shared.register("otlp-cloned", domain="otlp-clones")
    for page in range(4):
        (found,) = points([(moment(stamp(page, 4)), page)], error_type="uncorrected", hw_type="gpu", hw_id="0")
        found.start_time_unix_nano = moment(-3600 - 600 * (page % 2))
        answer(send_metrics(shared, of_node("otlp-cloned", total("hw.errors", "{error}", [found]))))
    assert told(shared, "otlp-cloned")["kind"] == "identity_conflict"


@pytest.mark.slow
def test_a_fault_is_over_when_ten_minutes_have_passed_without_a_sign(shared: Service) -> None:
    shared.register("renamed", domain="renamed")
    clone(shared, "renamed", ago=580.0)
    fault = told(shared, "renamed")
    send(shared, "renamed", disk(1, 40, 41))  # one of them goes on alone
    over = told(shared, "renamed", "cleared")
    assert over["id"] == fault["id"]
    assert "cleared_at" in over
    clone(shared, "renamed", ago=1300.0)
    time.sleep(LOOKS)
    assert told(shared, "renamed", "cleared") == over, "pages that come late tell what was, not what is"


def test_a_node_that_is_deleted_or_moved_has_no_conflict(shared: Service) -> None:
    for node in ("deleted", "moved"):
        shared.register(node, domain="before")
        clone(shared, node)
        told(shared, node)
    shared.client.delete("/v1/nodes/deleted").raise_for_status()
    told(shared, "deleted", "cleared")
    shared.register("moved", domain="after")
    told(shared, "moved", "cleared")


def test_a_conflict_outlives_a_restart_of_the_service_and_stands_beside_other_faults(
    start_service: StartService,
) -> None:
    service = start_service()
    service.register("kept", domain="d")
    clone(service, "kept")
    fault = told(service, "kept")
    service.stop()
    service.start()
    assert told(service, "kept") == fault
    send(service, "kept", disk(0, 4, 4, ago=1.0))
    log(service.client, "kept", BROKEN)
    time.sleep(LOOKS)
    found = of_node_named(service, "kept")
    assert {each["kind"] for each in found} == {"identity_conflict", "node_failing"}
    assert fault in found


class Pages(ThreadingHTTPServer):
    """An exporter that shows a counter of one host; it may be started anew, whereupon its own counters begin anew."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.read = 7_000_000.0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/metrics"


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Pages)
        self.server.read += 1e5
        body = f'node_disk_read_bytes_total{{device="sda"}} {self.server.read:.0f}\n'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def exporter() -> Iterator[Pages]:
    with Pages() as pages:
        thread = Thread(target=pages.serve_forever)
        thread.start()
        try:
            yield pages
        finally:
            pages.shutdown()
            thread.join()


def scrape(service: Service, node: str, pages: Pages) -> None:
    body = {"id": node, "node": node, "exporter": NODE, "url": pages.url, "period": 0.6}
    service.put(f"/v1/scrape-targets/{node}", body).raise_for_status()


def wait_for_samples(service: Service, node: str, number: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(service.samples(node)) < number:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_scraper_that_is_restarted_is_no_second_source(shared: Service) -> None:
    shared.register("rescraped", domain="rescraped")
    with exporter() as pages:
        for again in range(3):
            scrape(shared, "rescraped", pages)
            wait_for_samples(shared, "rescraped", again + 1)
            shared.client.delete("/v1/scrape-targets/rescraped").raise_for_status()
    time.sleep(LOOKS)
    assert of_node_named(shared, "rescraped") == []


def test_pages_of_one_host_that_are_pushed_beside_being_scraped_are_of_one_source(shared: Service) -> None:
    shared.register("both-ways", domain="both-ways")
    with exporter() as pages:
        scrape(shared, "both-ways", pages)
        for _ in range(8):
            late = pages.read - 2e5  # what a gateway holds is a moment older than what is scraped meanwhile
            page = f'node_disk_read_bytes_total{{device="sda",instance="10.0.0.7:9100",job="push"}} {late:.0f}\n'
            send(shared, "both-ways", page)
            time.sleep(0.55)
        wait_for_samples(shared, "both-ways", 3)
        shared.client.delete("/v1/scrape-targets/both-ways").raise_for_status()
    time.sleep(LOOKS)
    assert of_node_named(shared, "both-ways") == []


def no_conflict(service: Service, node: str, found: list[str]) -> None:
    assert "identity_conflict" not in found
    time.sleep(LOOKS)
    assert of_node_named(service, node) == []


@pytest.mark.parametrize("uuids", ["aabb", "aaba", "abcd", "aaaa"])
def test_a_card_that_is_replaced_and_perhaps_put_back_is_no_second_source(shared: Service, uuids: str) -> None:
    node = f"replaced-{uuids}"
    shared.register(node, domain=node)
    no_conflict(shared, node, send_cards(shared, node, uuids))


def test_an_exporter_that_is_restarted_is_no_second_source(shared: Service) -> None:
    """Its process has another host name each time, as pods have, and counters that it keeps itself begin anew."""
    shared.register("restarted", domain="restarted")
    found: list[str] = []
    for page in range(6):
        count, pod = 500 + 10 * page if page < 3 else 5 * page, f"dcgm-exporter-{page // 3}"
        text, at = card("GPU-a", page, 6, Hostname=pod)
        text += f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{gpu="0",UUID="GPU-a",Hostname="{pod}"}} {count}\n'
        found += send(shared, "restarted", text, DCGM, observed_at=at)
    no_conflict(shared, "restarted", found)


def test_pages_of_two_virtual_gpus_of_one_card_are_of_one_source(shared: Service) -> None:
    shared.register("virtual", domain="virtual")
    found: list[str] = []
    for page in range(6):
        text, at = card("GPU-a", page, 6, vgpu=str(page % 2), pod=f"w-{page % 2}", namespace="d", container="main")
        found += send(shared, "virtual", text, DCGM, observed_at=at)
    no_conflict(shared, "virtual", found)


def test_parts_of_a_card_that_have_names_of_their_own_are_of_one_source(shared: Service) -> None:
    shared.register("parted", domain="parted")
    found: list[str] = []
    for page in range(4):
        text = "".join(
            f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="MIG-{part}",GPU_I_ID="{part}",GPU_I_PROFILE="3g.40gb"}} 100\n'
            for part in (1, 2)
        )
        found += send(shared, "parted", text, DCGM, observed_at=instant(stamp(page, 4)))
    no_conflict(shared, "parted", found)


@pytest.mark.parametrize("names", [("gy-1", "gy-1.pool.example"), ("10.0.0.7:9400", "10.0.0.7:9500")])
def test_a_host_with_a_short_and_a_long_name_or_two_ports_is_one_source(
    shared: Service, names: tuple[str, str]
) -> None:
    node = f"named-{names[0].partition(':')[0]}"
    shared.register(node, domain=node)
    found: list[str] = []
    for page in range(6):
        text = f'npu_chip_info_utilization{{id="0",vdie_id="",instance="{names[page % 2]}"}} 40\n'
        found += send(shared, node, text, NPU, observed_at=instant(stamp(page, 6)))
    no_conflict(shared, node, found)


def test_pages_of_a_host_that_name_it_now_and_then_are_of_one_source(shared: Service) -> None:
    shared.register("half-named", domain="half-named")
    found: list[str] = []
    for page in range(6):
        label = ',instance="gy-1:9400"' if page % 2 else ""
        text = f'npu_chip_info_utilization{{id="0",vdie_id=""{label}}} 40\n'
        found += send(shared, "half-named", text, NPU, observed_at=instant(stamp(page, 6)))
    no_conflict(shared, "half-named", found)


def test_two_names_of_one_host_whose_counters_go_on_are_of_one_source(shared: Service) -> None:
    shared.register("two-scrapers", domain="two-scrapers")
    found: list[str] = []
    for page in range(6):
        name = "gy-1:9100" if page % 2 else "10.0.0.7:9100"
        found += send(shared, "two-scrapers", disk(0, page, 6, labels=f',instance="{name}"'))
    no_conflict(shared, "two-scrapers", found)


@pytest.mark.parametrize("wrong", [-3000.0, 240.0])
def test_a_host_whose_clock_is_wrong_is_one_source(shared: Service, wrong: float) -> None:
    """Its pages say when they were sent, so that its clock is corrected; it is set meanwhile, and jitters."""
    node = f"skewed-{wrong:.0f}"
    shared.register(node, domain=node)
    found: list[str] = []
    for page in range(8):
        error = wrong if page < 4 else 0.0
        jitter = (0.0, 0.4, -0.3)[page % 3]
        text = f'node_disk_read_bytes_total{{device="sda"}} {7e9 + 1e6 * page:.0f}\n'
        times = {"observed_at": instant(stamp(page, 8) + error + jitter), "sent_at": instant(error)}
        found += send(shared, node, text, NODE, **times)
    no_conflict(shared, node, found)
