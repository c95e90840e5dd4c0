"""Stories told to the minimal server over HTTP, as a process of its own, with nothing of ours in between."""

import inspect
import json
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, ago, register, start, stop
from minimal_server.service import MinimalServer
from minimal_server.validator import ASSERTIONS

PAGE = b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 37\nDCGM_FI_DEV_FB_USED{gpu="0"} 512\n'


@pytest.fixture
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


def test_a_node_sends_samples_and_its_domain_shows_them(client: Client) -> None:
    register(client)
    sample = {"subject": "rack-1", "subject_kind": "device", "device": "0", "observed_at": ago(1), "power": 420.0}
    stray = {**sample, "device": "9"}
    status, result, _ = client.ask("POST", "/v1/samples", {"mode": "per_item", "samples": [sample, stray]})
    assert (status, result["accepted"], result["rejected"][0]["index"]) == (200, 1, 1)
    assert result["rejected"][0]["problem"]["type"] == "urn:kuayu:problem:unknown-reference"
    assert client.value("/v1/domains/north/indicators", "power") == 420.0
    assert client.value("/v1/domains/north/indicators", "accelerator_memory_capacity") == 1.5e11


def test_an_exporters_page_is_converted_by_the_published_map(client: Client) -> None:
    register(client)
    status, result, _ = client.ask("POST", "/v1/expositions?node=rack-1&exporter=dcgm-exporter", PAGE)
    assert (status, result["accepted"]) == (200, 1)
    assert client.value("/v1/nodes/rack-1/indicators", "accelerator_utilisation", "0") == pytest.approx(0.37)
    assert client.value("/v1/nodes/rack-1/indicators", "accelerator_memory_used", "0") == 512 * 2**20


def test_a_counter_gives_a_rate_across_its_reset(client: Client) -> None:
    register(client)
    for seconds, total in ((30, 1_000_000), (20, 3_000_000), (10, 500_000)):
        page = f'node_disk_read_bytes_total{{device="sda"}} {total}\n'.encode()
        path = f"/v1/expositions?node=rack-1&exporter=node-exporter&observed_at={ago(seconds)}"
        assert client.ask("POST", path, page)[0] == 200
    _, page_of_samples, _ = client.ask("GET", "/v1/samples?subject=rack-1&subject_kind=node")
    rates = [item["storage_read_flow"] for item in page_of_samples["items"]]
    assert rates == [pytest.approx(200_000, rel=0.05), pytest.approx(50_000, rel=0.05)]


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    client = start("--journal", journal)
    register(client)
    sample = {"subject": "rack-1", "subject_kind": "node", "observed_at": ago(1), "power": 700.0}
    batch = {"mode": "atomic", "samples": [sample]}
    first = client.ask("POST", "/v1/samples", batch, Idempotency_Key="once")
    _, record, _ = client.ask("GET", "/v1/nodes/rack-1")
    stop(client, signal.SIGKILL)

    client = start("--journal", journal)
    assert client.ask("GET", "/v1/nodes/rack-1")[1] == record
    assert client.value("/v1/nodes/rack-1/indicators", "power") == 700.0
    again = client.ask("POST", "/v1/samples", batch, Idempotency_Key="once")
    assert again[1] == first[1]
    assert again[2]["Idempotency-Replayed"] == "true"
    stop(client)


def test_a_refused_atomic_batch_is_refused_again_and_other_refusals_leave_their_key_unused(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    client = start("--journal", journal)
    sample = {"subject": "rack-1", "subject_kind": "node", "observed_at": ago(1), "power": 700.0}
    batch = {"mode": "atomic", "samples": [sample]}
    first = client.ask("POST", "/v1/samples", batch, Idempotency_Key="atomic")
    assert (first[0], first[1]["type"]) == (422, "urn:kuayu:problem:batch-refused")
    malformed = client.ask("POST", "/v1/samples", {"samples": []}, Idempotency_Key="malformed")
    assert (malformed[0], malformed[1]["type"]) == (422, "urn:kuayu:problem:invalid-body")
    register(client)
    stop(client, signal.SIGKILL)

    client = start("--journal", journal)
    again = client.ask("POST", "/v1/samples", batch, Idempotency_Key="atomic")
    assert (again[:2], again[2]["Idempotency-Replayed"]) == (first[:2], "true")
    assert again[2]["Content-Type"] == "application/problem+json"
    taken = client.ask("POST", "/v1/samples", batch, Idempotency_Key="malformed")
    assert (taken[1]["accepted"], taken[2].get("Idempotency-Replayed")) == (1, None)
    stop(client)


def test_a_sample_that_was_merged_keeps_when_it_was_first_received() -> None:
    client = start()
    register(client)
    sample = {"subject": "rack-1", "subject_kind": "node", "observed_at": ago(1), "power": 700.0}
    _, first, _ = client.ask("POST", "/v1/samples", {"mode": "per_item", "samples": [sample]})
    time.sleep(0.01)
    _, second, _ = client.ask("POST", "/v1/samples", {"mode": "per_item", "samples": [sample | {"jitter": 1.0}]})
    assert first["received_at"] < second["received_at"]
    _, held, _ = client.ask("GET", "/v1/samples?subject=rack-1&subject_kind=node")
    assert [(item["jitter"], item["received_at"]) for item in held["items"]] == [(1.0, first["received_at"])]
    stop(client)


def test_a_line_of_the_journal_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    client = start("--journal", str(journal))
    register(client)
    stop(client, signal.SIGKILL)
    journal.write_bytes(journal.read_bytes() + b'[1, "", "PUT", "/v1/dom')
    client = start("--journal", str(journal))
    assert client.ask("PUT", "/v1/domains/south", {"id": "south"})[0] == 201
    stop(client, signal.SIGKILL)
    client = start("--journal", str(journal))
    assert [item["id"] for item in client.ask("GET", "/v1/domains")[1]["items"]] == ["north", "south"]
    stop(client)


def test_tenants_do_not_see_each_other() -> None:
    client = start("--token", "one=1", "--token", "two=2")
    one, two = Client(client.process, client.url, "1"), Client(client.process, client.url, "2")
    register(one)
    assert two.ask("GET", "/v1/nodes/rack-1")[0] == 404
    register(two)
    status, problem, headers = client.ask("GET", "/v1/nodes/rack-1")
    assert (status, problem["type"], headers["WWW-Authenticate"]) == (401, "urn:kuayu:problem:unauthorised", "Bearer")
    stop(client)


def test_an_allowed_exporter_is_scraped_and_no_other() -> None:
    fetched = threading.Event()

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)
            fetched.set()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    exporter = HTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    client = start("--scrape-allow", "127.0.0.0/8")
    register(client)
    url = f"http://127.0.0.1:{exporter.server_address[1]}/metrics"
    target = {"id": "t", "node": "rack-1", "exporter": "dcgm-exporter", "url": url, "period": 0.1}
    assert client.ask("PUT", "/v1/scrape-targets/t", target)[0] == 201
    assert fetched.wait(10)
    while client.ask("GET", "/v1/scrape-targets/t")[1]["state"] == "pending":
        pass
    assert client.value("/v1/nodes/rack-1/indicators", "accelerator_utilisation") == pytest.approx(0.37)
    elsewhere = {**target, "url": "http://192.0.2.1/metrics"}
    status, problem, _ = client.ask("PUT", "/v1/scrape-targets/t", elsewhere)
    assert (status, problem["errors"][0]["pointer"]) == (422, "/url")
    stop(client)
    exporter.shutdown()
    exporter.server_close()


def corpus() -> dict[str, Any]:
    """Three devices, the last one not measured, and a task."""
    sheets = (("a", 1e14, 1e12), ("b", 2e14, 2e12), ("c", 4e14, 2e12))
    devices = [
        {
            "id": name,
            "stack": f"stack {name}",
            "peak_matrix_throughput": {"fp16": peak},
            "accelerator_memory_bandwidth": memory,
            "power": 300.0,
        }
        for name, peak, memory in sheets
    ]
    measurements = [{"device": name, "task": "t", "throughput": speed} for name, speed in (("a", 50.0), ("b", 80.0))]
    return {"devices": devices, "tasks": [{"id": "t", "precisions": ["fp16"]}], "measurements": measurements}


def test_an_index_is_explained_and_a_node_sums_it_up(client: Client) -> None:
    revision = {"epoch": "of-the-caller", "number": 7}
    node = {"id": "node", "members": [{"device": "b", "count": 4}, {"device": "c", "count": 4}]}
    question = {"revision": revision, "corpus": corpus(), "reference": "a", "groups": [node], "explain": True}
    status, report, _ = client.ask("POST", "/v1/compute-indices", question)
    assert (status, report["revision"]) == (200, revision)
    reference, measured, inferred = report["indices"]
    assert (reference["value"], measured["value"], measured["basis"]) == (1.0, pytest.approx(1.6), "measured")
    assert (inferred["basis"], inferred["stack"]) == ("specified", "stack c")
    assert inferred["per_watt"] == pytest.approx(inferred["value"])
    explanation = inferred["explanation"]
    time = sum(term["weight"] / term["ratio"] for term in explanation["terms"])
    assert inferred["value"] == pytest.approx(explanation["residual"] / time)
    assert report["groups"][0]["independent"] == pytest.approx(4 * 1.6 + 4 * inferred["value"])


def test_a_name_that_the_corpus_does_not_hold_is_pointed_to(client: Client) -> None:
    cell = {"device": "c", "task": "t"}
    plan = {"revision": {"epoch": "e", "number": 0}, "corpus": corpus(), "candidates": [cell], "targets": [cell]}
    assert client.ask("POST", "/v1/probe-plans", {**plan, "probes": 3})[1]["probes"] == [{**cell, "half_width": 0.0}]
    stranger = {**plan, "targets": [cell, {**cell, "task": "u"}], "probes": 3}
    status, problem, _ = client.ask("POST", "/v1/probe-plans", stranger)
    assert (status, problem["type"]) == (422, "urn:kuayu:problem:unknown-reference")
    assert [error["pointer"] for error in problem["errors"]] == ["/targets/1/task"]


def test_decisions_leave_nothing_behind(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    client = start("--journal", str(journal))
    before = journal.read_bytes()
    question = {"revision": {"epoch": "e", "number": 0}, "corpus": corpus(), "reference": "a"}
    assert client.ask("POST", "/v1/compute-indices", question)[0] == 200
    assert journal.read_bytes() == before
    stop(client)


def test_the_validator_knows_every_keyword_of_the_published_schema() -> None:
    structure = {"$ref", "allOf", "if", "then", "anyOf", "not", "type", "properties", "required", "items"}
    structure |= {"additionalProperties", "propertyNames"}
    remarks = {"title", "description", "x-unit", "x-label-zh", "examples"}

    def keywords(schema: dict[str, Any]) -> Iterator[str]:
        for keyword, rule in schema.items():
            yield keyword
            below = rule if keyword in {"allOf", "anyOf"} else rule.values() if keyword == "properties" else [rule]
            yield from (word for part in below if isinstance(part, dict) for word in keywords(part))

    document = json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8"))
    used = {word for schema in document["$defs"].values() for word in keywords(schema)}
    assert used <= structure | remarks | set(ASSERTIONS)


HOOKS = {"shown", "changed"}
"""What resources have for others to put something in its place."""


def test_no_part_takes_the_name_of_anothers_method() -> None:
    """All parts are one object in the end: a name that stands twice calls what it refines, or fills in what is due."""
    parts = [kind for kind in MinimalServer.__mro__ if kind.__module__.startswith("minimal_server.")]
    for number, part in enumerate(parts):
        for name, made in vars(part).items():
            hidden = [vars(other)[name] for other in parts[number + 1 :] if name in vars(other)]
            if hidden and inspect.isfunction(made) and name not in HOOKS:
                due = all("NotImplementedError" in inspect.getsource(each) for each in hidden)
                taken = f"{part.__name__}.{name} hides {hidden[0].__qualname__}"
                assert due or "super()" in inspect.getsource(made), taken
