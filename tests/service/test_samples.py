"""Samples in bulk: what is taken, what is not, what is read back."""

import json
from typing import Any

import pytest
from service.conftest import Service, instant, problem

JSON = {"Content-Type": "application/json"}


def node_sample(node: str, seconds: float = 0.0, **measures: Any) -> dict[str, Any]:
    return {"subject": node, "subject_kind": "node", "observed_at": instant(seconds), **measures}


def types(answer: dict[str, Any]) -> dict[int, str]:
    return {item["index"]: item["problem"]["type"].rpartition(":")[2] for item in answer["rejected"]}


def test_good_items_are_taken_and_bad_ones_named(shared: Service) -> None:
    shared.register(node="mixed")
    answer = shared.send(
        node_sample("mixed", -1, power=1),
        node_sample("nowhere"),
        node_sample("mixed", -2, power=-1),
        node_sample("mixed", 3600),
        node_sample("mixed", -30 * 86_400),
        node_sample("mixed", device="0"),
        node_sample("mixed") | {"subject_kind": "device", "device": "9"},
        node_sample("mixed") | {"observed_at": "2026-02-30T00:00:00Z"},
        node_sample("mixed", -3, health_state="degraded", peak_matrix_throughput={"bf16": 1}),
    ).json()
    assert answer["accepted"] == 2
    assert types(answer) == {
        1: "unknown-reference",
        2: "invalid-body",
        3: "clock-skew",
        4: "too-old",
        5: "invalid-body",
        6: "unknown-reference",
        7: "invalid-body",
    }
    held = shared.samples("mixed")
    assert [sorted(item.keys() - {"subject", "subject_kind", "observed_at", "received_at"}) for item in held] == [
        ["health_state", "peak_matrix_throughput"],
        ["power"],
    ]


def test_an_atomic_batch_with_a_bad_item_leaves_nothing(shared: Service) -> None:
    shared.register(node="atomic")
    refused = shared.send(
        node_sample("atomic"), node_sample("nowhere"), node_sample("atomic", power="x"), mode="atomic"
    )
    assert problem(refused) == "batch-refused"
    assert [place["pointer"] for place in refused.json()["errors"]] == ["/samples/1/subject", "/samples/2/power"]
    assert shared.samples("atomic") == []
    assert shared.send(node_sample("atomic"), mode="atomic").json()["accepted"] == 1


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"", "malformed-json"),
        (b"{", "malformed-json"),
        (b'{"mode":"per_item","samples":[],"samples":[]}', "malformed-json"),
        (b'{"mode":"per_item","samples":[{"power":NaN}]}', "malformed-json"),
        (b'{"mode":"per_item","samples":' + b"[" * 64 + b"]" * 64 + b"}", "malformed-json"),
        (b'{"mode":"per_item","samples":["\xff"]}', "malformed-json"),
        (b"[]", "invalid-body"),
        (b'{"mode":"per_item"}', "invalid-body"),
        (b'{"mode":"per_item","samples":[]}', "invalid-body"),
        (b'{"mode":"all","samples":[{}]}', "invalid-body"),
        (b'{"mode":"per_item","samples":[{}],"extra":1}', "invalid-body"),
        (b'{"mode":"per_item","samples":[' + b"{}," * 10_000 + b"{}]}", "invalid-body"),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(shared: Service, body: bytes, name: str) -> None:
    assert problem(shared.client.post("/v1/samples", content=body, headers=JSON)) == name


@pytest.mark.parametrize("spelling", ['"power": 1, "power": 2', '"power":1,"pow\\u0065r":2', '"power":1 ,"power" :2'])
def test_a_member_that_stands_twice_in_a_sample_is_malformed_json(shared: Service, spelling: str) -> None:
    shared.register(node="twice")
    head = json.dumps(node_sample("twice"))[:-1]
    body = f'{{"mode":"per_item","samples":[{head}, {spelling}}}]}}'
    assert problem(shared.client.post("/v1/samples", content=body, headers=JSON)) == "malformed-json"


def test_escapes_and_white_space_are_json_too(shared: Service) -> None:
    shared.register(node="escaped")
    text = json.dumps({"mode": "per_item", "samples": [node_sample("escaped", power=1)]}, indent=3)
    for body in (text, text.replace("node", "n\\u006fde")):
        assert shared.client.post("/v1/samples", content=body, headers=JSON).json()["accepted"] == 1


def test_media_type_and_size_are_held_to(shared: Service) -> None:
    for media in ("text/plain", "application/json; charset=latin-1", ""):
        refused = shared.client.post("/v1/samples", content=b"{}", headers={"Content-Type": media})
        assert problem(refused) == "unsupported-media-type"
    limit = shared.client.get("/v1/conformance").json()["limits"]["max_body"]
    large = shared.client.post("/v1/samples", content=b" " * (limit + 1), headers=JSON)
    assert problem(large) == "payload-too-large"


def test_the_first_value_of_a_measure_stays(shared: Service) -> None:
    shared.register(node="merged")
    moment = instant(-5)
    for measures in ({"power": 1.0}, {"power": 2.0, "jitter": 3.0}, {"jitter": 4.0}, {}):
        sample = {"subject": "merged", "subject_kind": "node", "observed_at": moment, **measures}
        assert shared.send(sample).json()["accepted"] == 1
    (held,) = shared.samples("merged")
    assert (held["power"], held["jitter"]) == (1.0, 3.0)


def test_a_clock_that_is_off_is_corrected(shared: Service) -> None:
    shared.register(node="skewed")
    sample = node_sample("skewed", 3600)
    answer = shared.send(sample, sent_at=instant(3600)).json()
    assert answer["accepted"] == 1
    assert answer["clock_offset"] == pytest.approx(-3600, abs=5)
    assert shared.send(node_sample("skewed"), sent_at=instant(1)).json()["clock_offset"] == 0


def test_a_listing_of_samples_is_pinned_to_what_had_been_received(shared: Service) -> None:
    shared.register(node="pinned")
    for seconds in (-50, -40, -30):
        shared.send(node_sample("pinned", seconds, power=1)).raise_for_status()
    query = {"subject": "pinned", "subject_kind": "node", "limit": "2"}
    page = shared.client.get("/v1/samples", params=query).json()
    newest = shared.samples("pinned")[-1]["observed_at"]
    shared.send(node_sample("pinned", -10, power=2), node_sample("pinned") | {"observed_at": newest, "jitter": 5})
    rest = shared.client.get("/v1/samples", params=query | {"cursor": page["next_cursor"]}).json()
    assert len(page["items"]) == 2
    assert [item["observed_at"] for item in rest["items"]] == [newest]
    assert "jitter" not in rest["items"][0]
    assert shared.samples("pinned")[2]["jitter"] == 5
    assert len(shared.samples("pinned")) == 4


def test_devices_of_a_node_are_listed_by_time_then_device(shared: Service) -> None:
    shared.register(node="devices", devices=3)
    moments = [instant(-seconds) for seconds in (3, 2, 1)]
    samples = [
        {"subject": "devices", "subject_kind": "device", "device": str(device), "observed_at": moment}
        for device in (2, 0, 1)
        for moment in moments
    ]
    assert shared.send(*samples).json()["accepted"] == 9
    expected = [(moment, str(device)) for moment in moments for device in range(3)]
    listed = shared.samples("devices", "device", limit="2")
    assert [(item["observed_at"], item["device"]) for item in listed] == expected
    between = shared.samples("devices", "device", device="1", **{"from": moments[1], "to": moments[2]})
    assert [item["observed_at"] for item in between] == [moments[1]]


def test_the_same_key_and_body_get_the_first_answer_again(shared: Service) -> None:
    shared.register(node="keyed")
    body = json.dumps({"mode": "per_item", "samples": [node_sample("keyed"), node_sample("nowhere")]})
    headers = JSON | {"Idempotency-Key": "once-only"}
    first = shared.client.post("/v1/samples", content=body, headers=headers)
    again = shared.client.post("/v1/samples", content=body, headers=headers)
    assert "Idempotency-Replayed" not in first.headers
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    other = shared.client.post("/v1/samples", content=body + " ", headers=headers)
    assert problem(other) == "idempotency-mismatch"
    bad = shared.client.post("/v1/samples", content=body, headers=JSON | {"Idempotency-Key": "a b"})
    assert problem(bad) == "invalid-parameter"


@pytest.mark.parametrize(
    "query",
    [
        {"subject": "node"},
        {"subject": "a b", "subject_kind": "node"},
        {"subject": "node", "subject_kind": "rack"},
        {"subject": "node", "subject_kind": "node", "device": "0"},
        {"subject": "node", "subject_kind": "node", "from": "yesterday"},
        {"subject": "node", "subject_kind": "node", "to": "2026-02-30T00:00:00Z"},
        {"subject": "node", "subject_kind": "node", "order": "up"},
    ],
)
def test_a_bad_parameter_is_named(shared: Service, query: dict[str, str]) -> None:
    refused = shared.client.get("/v1/samples", params=query)
    assert problem(refused) == "invalid-parameter"
    assert refused.json()["errors"][0]["parameter"]
