"""Exporters' pages: posted to the service and fetched by it."""

import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from service.conftest import Service, StartService, instant, problem

DCGM = """# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="a"} 50
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="b"} 75
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="a"} 300.5
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="b"} NaN
unheard_of_metric 5
"""
DISK = '# TYPE node_disk_read_bytes_total counter\nnode_disk_read_bytes_total{{device="a"}} {}\n'


def test_a_page_becomes_a_sample_for_each_device(shared: Service) -> None:
    shared.register(node="dcgm")
    moment = instant(-1)
    answer = shared.send_page(DCGM, node="dcgm", exporter="dcgm-exporter", observed_at=moment).json()
    assert (answer["accepted"], answer["rejected"]) == (2, [])
    first, second = shared.samples("dcgm", "device")
    assert (first["accelerator_utilisation"], first["power"]) == (0.5, 300.5)
    assert second["accelerator_utilisation"] == 0.75
    assert "power" not in second
    assert first["observed_at"] == moment


def test_rates_need_two_pages_and_survive_a_reset(shared: Service) -> None:
    shared.register(node="disk")
    query = {"node": "disk", "exporter": "node-exporter"}
    read = [(instant(seconds), value) for seconds, value in ((-40, 1000), (-30, 6000), (-20, 500), (-25, 9000))]
    accepted = [
        shared.send_page(DISK.format(value), observed_at=moment, **query).json()["accepted"] for moment, value in read
    ]
    assert accepted == [0, 1, 1, 0]
    flows = [sample["storage_read_flow"] for sample in shared.samples("disk")]
    assert flows == pytest.approx([500, 50], rel=0.01)


def test_lines_too_old_or_too_far_ahead_are_rejected_one_by_one(shared: Service) -> None:
    shared.register(node="ages", devices=4)
    now = round(time.time() * 1000)
    week = round(shared.client.get("/v1/conformance").json()["limits"]["retention"] * 1000)
    ages = {"0": 60_000 - week, "1": -60_000 - week, "2": 40_000, "3": 80_000}
    page = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}"}} 50 {now + age}\n' for gpu, age in ages.items())
    answer = shared.send_page(page, node="ages", exporter="dcgm-exporter").json()
    refused = sorted(item["problem"]["type"].rpartition(":")[2] for item in answer["rejected"])
    assert (answer["accepted"], refused) == (2, ["clock-skew", "too-old"])
    assert len({item["index"] for item in answer["rejected"]}) == 2
    assert [item["device"] for item in shared.samples("ages", "device")] == ["0", "2"]


def test_the_instants_of_a_page_are_corrected_by_the_clock_of_its_sender(shared: Service) -> None:
    shared.register(node="ahead", devices=1)
    line = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 50 {round(time.time() * 1000) + 3_590_000}\n'
    query = {"node": "ahead", "exporter": "dcgm-exporter"}
    uncorrected = shared.send_page(line, **query).json()
    assert [item["problem"]["type"].rpartition(":")[2] for item in uncorrected["rejected"]] == ["clock-skew"]
    corrected = shared.send_page(line, **query, sent_at=instant(3600)).json()
    assert (corrected["accepted"], corrected["clock_offset"]) == (1, pytest.approx(-3600, abs=5))
    held = shared.samples("ahead", "device")
    assert len(held) == 1
    assert instant(-20) < held[0]["observed_at"] < instant()


def test_a_line_too_far_ahead_is_nothing_that_later_pages_are_compared_with(shared: Service) -> None:
    shared.register(node="leaping")
    query = {"node": "leaping", "exporter": "node-exporter"}
    read = ((-40, 1000), (80, 9000), (-30, 6000))
    accepted = [
        shared.send_page(DISK.format(value), observed_at=instant(seconds), **query).json()["accepted"]
        for seconds, value in read
    ]
    assert accepted == [0, 0, 1]
    assert shared.samples("leaping")[0]["storage_read_flow"] == pytest.approx(500, rel=0.01)


def test_a_page_gets_its_first_answer_again_though_its_node_is_gone(shared: Service) -> None:
    def send(key: str) -> httpx.Response:
        headers = {"Content-Type": "text/plain", "Idempotency-Key": key}
        query = {"node": "leaving", "exporter": "dcgm-exporter"}
        return shared.client.post("/v1/expositions", params=query, content=DCGM.encode(), headers=headers)

    assert problem(send("page")) == "unknown-reference"
    shared.register(node="leaving")
    first = send("page")
    assert (first.json()["accepted"], first.headers.get("Idempotency-Replayed")) == (2, None)
    shared.client.delete("/v1/nodes/leaving").raise_for_status()
    again = send("page")
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert problem(send("another")) == "unknown-reference"


@pytest.mark.parametrize("value", ["+Inf", "-Inf"])
def test_an_infinity_is_refused_by_itself(shared: Service, value: str) -> None:
    shared.register(node="infinite", devices=1)
    page = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {value}\nDCGM_FI_DEV_POWER_USAGE{{gpu="0"}} 300\n'
    answer = shared.send_page(page, node="infinite", exporter="dcgm-exporter").json()
    assert answer["accepted"] == 1
    assert [item["problem"]["type"].rpartition(":")[2] for item in answer["rejected"]] == ["out-of-range"]


def test_an_infinite_value_is_refused_and_blocks_nothing(shared: Service) -> None:
    shared.register(node="endless")
    query = {"node": "endless", "exporter": "node-exporter"}
    values = ((-40, 1000), (-30, "+Inf"), (-25, "-Inf"), (-20, 6000), (-10, 7000))
    for moment, value in [(instant(seconds), value) for seconds, value in values]:
        answer = shared.send_page(DISK.format(value), observed_at=moment, **query)
        assert answer.status_code == 200, answer.text
    flows = [sample["storage_read_flow"] for sample in shared.samples("endless")]
    assert flows == pytest.approx([250, 100], rel=0.01)


def test_what_a_page_cannot_give_is_named(shared: Service) -> None:
    shared.register(node="odd", devices=1)
    page = 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 101\nDCGM_FI_DEV_GPU_UTIL{gpu="7"} 1\n'
    answer = shared.send_page(page, node="odd", exporter="dcgm-exporter").json()
    assert answer["accepted"] == 0
    assert [item["problem"]["type"].rpartition(":")[2] for item in answer["rejected"]] == [
        "out-of-range",
        "unknown-reference",
    ]


@pytest.mark.parametrize("page", ["<html>", "a b c\n", "power{gpu=0} 1\n", "x 1 2 3\n", '{"a": 1}'])
def test_what_is_no_page_is_refused(shared: Service, page: str) -> None:
    shared.register(node="html")
    refused = shared.send_page(page, node="html", exporter="dcgm-exporter")
    assert problem(refused) == "malformed-exposition"


def test_unknown_exporters_and_nodes_are_refused(shared: Service) -> None:
    shared.register(node="known")
    assert problem(shared.send_page("", node="known", exporter="guesswork")) == "unknown-exporter"
    assert problem(shared.send_page("", node="unknown", exporter="dcgm-exporter")) == "unknown-reference"
    assert problem(shared.send_page("", node="known")) == "invalid-parameter"


class Exporter(ThreadingHTTPServer):
    """An exporter on a port of its own, whose page and status a test can change."""

    def __init__(self) -> None:
        self.page = DCGM
        self.status = 200
        self.location = ""
        self.encoding = ""
        self.packed = b""
        self.fetched = 0
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/metrics"


class Handler(BaseHTTPRequestHandler):
    """Answers with what the exporter is set to."""

    server: Exporter

    def do_GET(self) -> None:
        """Answer."""
        self.server.fetched += 1
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        self.wfile.write(self.server.packed or self.server.page.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    server = Exporter()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def wait_for_state(service: Service, name: str, state: str) -> dict:  # type: ignore[type-arg]
    for _ in range(200):
        record: dict = service.client.get(f"/v1/scrape-targets/{name}").json()  # type: ignore[type-arg]
        if record["state"] == state:
            return record
        time.sleep(0.05)
    raise AssertionError(record)


def test_a_target_is_scraped_at_once_and_then_every_period(shared: Service, exporter: Exporter) -> None:
    shared.register(node="scraped")
    body = {"id": "t", "node": "scraped", "exporter": "dcgm-exporter", "url": exporter.url, "period": 0.2}
    assert shared.put("/v1/scrape-targets/t", body).status_code == 201
    record = wait_for_state(shared, "t", "succeeded")
    assert record["last_scrape_at"]
    while exporter.fetched < 3:
        time.sleep(0.05)
    assert len(shared.samples("scraped", "device", device="0")) >= 2
    assert problem(shared.client.delete("/v1/nodes/scraped")) == "in-use"

    exporter.page = "<html>"
    record = wait_for_state(shared, "t", "failed")
    assert record["last_problem"]["type"] == "urn:kuayu:problem:malformed-exposition"
    exporter.page, exporter.status = DCGM, 500
    listed = shared.client.get("/v1/scrape-targets").json()["items"]
    assert [item["id"] for item in listed] == ["t"]
    assert shared.client.delete("/v1/scrape-targets/t").status_code == 204


def test_packed_pages_are_taken_once_packed_and_within_bounds(shared: Service, exporter: Exporter) -> None:
    shared.register(node="packed")
    exporter.encoding, exporter.packed = "gzip", gzip.compress(DCGM.encode())
    body = {"id": "p", "node": "packed", "exporter": "dcgm-exporter", "url": exporter.url, "period": 0.2}
    shared.put("/v1/scrape-targets/p", body).raise_for_status()
    wait_for_state(shared, "p", "succeeded")
    exporter.packed = gzip.compress(b"\0" * (64 << 20))
    assert "larger than" in wait_for_state(shared, "p", "failed")["last_problem"]["detail"]
    exporter.packed = gzip.compress(DCGM.encode())
    wait_for_state(shared, "p", "succeeded")
    exporter.packed = gzip.compress(gzip.compress(b"\0" * (64 << 20)))
    exporter.encoding = "gzip, gzip"
    assert "content encoding" in wait_for_state(shared, "p", "failed")["last_problem"]["detail"]
    shared.client.delete("/v1/scrape-targets/p").raise_for_status()


def test_redirects_are_not_followed(shared: Service, exporter: Exporter) -> None:
    shared.register(node="redirected")
    exporter.status, exporter.location = 302, "http://169.254.169.254/"
    body = {"id": "r", "node": "redirected", "exporter": "dcgm-exporter", "url": exporter.url}
    shared.put("/v1/scrape-targets/r", body).raise_for_status()
    assert "302" in wait_for_state(shared, "r", "failed")["last_problem"]["detail"]
    shared.client.delete("/v1/scrape-targets/r").raise_for_status()


def test_only_allowed_targets_are_taken(shared: Service) -> None:
    shared.register(node="guarded")
    body = {"id": "g", "node": "guarded", "exporter": "dcgm-exporter"}
    for url in (
        "http://10.1.2.3/metrics",
        "http://[::1]:9100/metrics",
        "ftp://127.0.0.1/metrics",
        "file:///etc/passwd",
        "http://user:secret@127.0.0.1/metrics",
        "http://127.0.0.1.example.invalid/metrics",
        "http://127.0.0.1:99999/metrics",
    ):
        assert problem(shared.put("/v1/scrape-targets/g", body | {"url": url})) == "target-not-allowed"
    unknown = shared.put("/v1/scrape-targets/g", body | {"url": "http://127.0.0.1/", "exporter": "guesswork"})
    assert problem(unknown) == "unknown-reference"
    assert unknown.json()["errors"][0]["pointer"] == "/exporter"


def test_scraping_goes_on_after_a_restart(start_service: StartService, exporter: Exporter) -> None:
    service = start_service("--scrape-allow", "127.0.0.0/8")
    service.register()
    body = {"id": "t", "node": "node", "exporter": "dcgm-exporter", "url": exporter.url, "period": 60}
    service.put("/v1/scrape-targets/t", body).raise_for_status()
    wait_for_state(service, "t", "succeeded")
    assert service.stop() == 0
    fetched = exporter.fetched
    service.start()
    wait_for_state(service, "t", "succeeded")
    assert exporter.fetched == fetched + 1
