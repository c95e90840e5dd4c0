"""Samples in bulk: what is taken, what is not, what is read back."""

import json
import time
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from service.arrivals import INSTANTS, SUBJECTS, Commits, commits, model, read
from service.arrivals import newest as newest_of
from service.conftest import Service, instant, problem
from sqlalchemy import delete, insert

from kuayu.service import ingest, instants
from kuayu.service.ingest import Reception
from kuayu.service.problems import ProblemException
from kuayu.service.storage import blocks, queries
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.tables import sample, subject
from kuayu_schemas.models import Durability

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


NOW = instants.to_milliseconds("2026-01-01T00:00:00Z")
NUMBERS = {("node", "n", None): 1, ("node", "m", None): 2, ("device", "n", "0"): 3}

GOOD: dict[str, st.SearchStrategy[Any]] = {
    "subject": st.sampled_from(["n", "m"]),
    "subject_kind": st.just("node"),
    "observed_at": st.sampled_from(["2026-01-01T00:00:00Z", "2025-12-31T23:59:59.5Z"]),
    "power": st.integers(0, 2**70) | st.floats(0, 1e300),
    "packet_loss": st.floats(0, 1) | st.integers(0, 1),
    "health_state": st.sampled_from(["healthy", "unknown"]),
    "peak_matrix_throughput": st.just({"bf16": 1e15, "fp8": 2}),
}
ODD: dict[str, st.SearchStrategy[Any]] = {
    "subject": st.sampled_from(["nowhere", "", "a b", None, 1, ["n"], {"n": 1}, 'n"},{"']),
    "subject_kind": st.sampled_from(["device", "rack", None, ["node"], True]),
    "device": st.sampled_from(["0", "9", None, "", ["0"], "},{"]),
    "observed_at": st.sampled_from(
        [
            "2026-02-30T00:00:00Z",
            "2027-01-01T00:00:00Z",
            "2020-01-01T00:00:00Z",
            "today",
            5,
            {},
            "2026-01-01T00:00:00Z\n",
        ]
    ),
    "power": st.sampled_from([-1, True, None, "1", [1], {}]),
    "packet_loss": st.sampled_from([1.01, -0.01, False, None, "0"]),
    "health_state": st.sampled_from(["well", None, 1, [], {"a": "b"}]),
    "peak_matrix_throughput": st.sampled_from([{}, {"bf16": -1}, {"int3": 1}, [], 1, {"bf16": {"a": {}}}]),
    "colour": st.just("red"),
}


@st.composite
def samples(draw: st.DrawFn) -> Any:
    """A good sample, or one with something odd about it."""
    chosen = {"subject", "subject_kind", "observed_at"} | draw(st.sets(st.sampled_from(sorted(GOOD))))
    made = {name: draw(GOOD[name]) for name in draw(st.permutations(sorted(chosen)))}
    if draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(sorted(ODD)))
        made[name] = draw(ODD[name])
    if draw(st.integers(0, 29)) == 0:
        made.pop(draw(st.sampled_from(sorted(made))))
    if draw(st.integers(0, 9)) == 0:
        made |= {"subject": "n", "subject_kind": "device", "device": "0"}
    return made if draw(st.integers(0, 49)) else draw(st.sampled_from([5, None, "text", [], {}, ["subject"]]))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A batch, mostly valid, now and then with something odd in its bytes."""
    value = {"mode": draw(st.sampled_from(["per_item", "atomic"])), "samples": draw(st.lists(samples(), max_size=12))}
    if draw(st.booleans()):
        value = {"samples": value["samples"], "sent_at": "2026-01-01T00:00:00Z", "mode": value["mode"]}
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]))
    text = json.dumps(value, separators=separators)
    if draw(st.integers(0, 9)) == 0:
        old, new = draw(
            st.sampled_from(
                [
                    ('"power"', '"pow\\u0065r"'),
                    ('"power"', '"packet_loss"'),
                    ("{", "{{"),
                    ("}", ""),
                    ('"samples"', '"sample"'),
                    ("]", "],"),
                    ('"mode"', '"samples":[],"mode"'),
                ]
            )
        )
        text = text.replace(old, new, draw(st.integers(1, 3)))
    return text.encode()


def outcome(body: bytes, *, carefully: bool) -> Any:
    """What becomes of a body, in one pass or after a look at each item."""
    reception = Reception(NOW, 0, 86_400_000)
    try:
        if not carefully:
            taken = ingest.take(body, 10, NUMBERS, lambda _: reception)
            rejected = [(index, found.to_wire()) for index, found in taken.result.rejected]
            return taken.atomic, taken.items, rejected, stored(taken.result.blocks)
        batch = ingest.read_batch(body, 10)
    except ProblemException as error:
        return error.to_wire()
    rejected: list[tuple[int, Any]] = []
    kept: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for index, item in enumerate(batch.samples):
        found = batch.broken.get(index)
        number = None if found else NUMBERS.get((item["subject_kind"], item["subject"], item.get("device")))
        if found is None and number is None:
            rejected.append((index, "unknown-reference"))
            continue
        try:
            if found is not None:
                raise found
            moment = reception.instant(ingest.read_instant(item["observed_at"], "/observed_at"))
        except ProblemException as error:
            rejected.append((index, error.to_wire()))
            continue
        names = tuple(sorted(item.keys() - {"subject", "subject_kind", "device", "observed_at"}))
        kept.setdefault(names, []).append((number, moment, *(as_double(item[name]) for name in names)))
    return batch.atomic, len(batch.samples), rejected, kept


def as_double(value: Any) -> Any:
    """What a number of JSON stands for, where it is written as an integer of more than 53 bits."""
    return float(value) if isinstance(value, int) else value


def stored(taken: list[blocks.Block]) -> dict[tuple[str, ...], list[tuple[Any, ...]]]:
    """Rows by their measures, tables read back."""
    return {
        block.measures: [
            (number, moment, *(json.loads(v) if isinstance(v, str) and v[0] == "{" else v for v in values))
            for number, moment, _, *values in block.rows(repeat(0))
        ]
        for block in taken
        if len(block)
    }


def without_details(found: Any) -> Any:
    """An outcome with unknown references reduced to their name, which is all that the careful way above tells."""
    if isinstance(found, dict):
        return found
    atomic, items, rejected, kept = found
    names = [
        (index, "unknown-reference" if "unknown-reference" in str(problem) else problem) for index, problem in rejected
    ]
    return atomic, items, names, kept


HEAD = '{"mode":"per_item","samples":[{"subject":"n","subject_kind":"node","observed_at":"2026-01-01T00:00:00Z",'


@example((HEAD + '"power":1},' + HEAD[HEAD.index("[") + 1 :] + '"device":null,"power":1}]}').encode(), 1_000)
@example((HEAD + '"power":1,"power":2}]}').encode(), 1)
@example((HEAD.replace("00:00:", "00\\u003a00:") + '"power":1,"power":2}]}').encode(), 1_000)
@example((HEAD + '"peak_matrix_throughput":{"bf16":1,"bf16":2}}]}').encode(), 1)
@example((HEAD + '"peak_matrix_throughput":{"bf16":36893488147419103232}}]}').encode(), 1)
@example((HEAD + '"power":1},' + HEAD[HEAD.index("[") + 1 :] + '"jitter":1}]}').encode(), 1_000)
@example((HEAD + '"power":1},' + HEAD[HEAD.index("[") + 1 :] + '"power":1,"power":1,"jitter":1}]}').encode(), 1_000)
@example(b'{"mode":"per_item","samples":[{"subject":"n"', 1)
@settings(max_examples=300, deadline=None)
@given(body=bodies(), piece=st.sampled_from([1, 150, 100_000]))
def test_one_pass_comes_to_what_a_look_at_each_item_comes_to(body: bytes, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "PIECE", piece)
        quickly = outcome(body, carefully=False)
    assert without_details(quickly) == without_details(outcome(body, carefully=True))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path_factory.mktemp('rows') / 'rows.db'}", Durability.process)
    with opened.write.begin() as connection:
        for number in range(1, SUBJECTS + 1):
            connection.execute(insert(subject).values(no=number, tenant="", kind="node", id=str(number), device=""))
    yield opened
    opened.close()


@settings(max_examples=200, deadline=None)
@given(written=commits(), at=st.integers(0, INSTANTS + 2))
def test_the_table_holds_what_it_would_if_row_after_row_had_been_written(
    database: Database, written: Commits, at: int
) -> None:
    with database.write.begin() as connection:
        connection.execute(delete(sample))
    for sequence, arrivals in enumerate(written, 1):
        with database.write.begin() as connection:
            blocks.write_all(connection, arrivals, sequence)
    expected = model(written)
    with database.read.begin() as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "MAX_LIFE_MILLISECONDS", 1)
        assert read(connection) == expected
        assert queries.values(connection, range(1, SUBJECTS + 1), at) == newest_of(expected, at, 1)


def test_a_sample_that_was_merged_keeps_when_it_was_first_received(shared: Service) -> None:
    shared.register(node="met-again")
    sample = node_sample("met-again", -5)
    first = shared.send(sample | {"power": 100}).json()["received_at"]
    time.sleep(0.01)
    again = shared.send(sample | {"power": 100}).json()["received_at"]
    time.sleep(0.01)
    merged = shared.send(sample | {"power": 200, "jitter": 1}).json()["received_at"]
    assert first < again < merged
    held = shared.samples("met-again")
    assert [(item["power"], item["jitter"], item["received_at"]) for item in held] == [(100, 1, first)]


def keyed(service: Service, key: str, *samples: dict[str, Any], mode: str = "per_item") -> httpx.Response:
    body = json.dumps({"mode": mode, "samples": samples})
    return service.client.post("/v1/samples", content=body, headers=JSON | {"Idempotency-Key": key})


def test_a_refused_atomic_batch_is_refused_again_though_it_could_be_taken_by_now(shared: Service) -> None:
    sample = node_sample("comes-later", -1)
    first = keyed(shared, "atomic", sample, mode="atomic")
    assert problem(first) == "batch-refused"
    shared.register(node="comes-later")
    again = keyed(shared, "atomic", sample, mode="atomic")
    assert (problem(again), again.headers["Idempotency-Replayed"]) == ("batch-refused", "true")
    assert again.content == first.content
    assert shared.samples("comes-later") == []
    assert keyed(shared, "another", sample, mode="atomic").json()["accepted"] == 1


def test_a_body_whose_items_were_not_judged_leaves_its_key_unused(shared: Service) -> None:
    shared.register(node="unused")
    for body, name in (("{", "malformed-json"), ('{"mode": "per_item"}', "invalid-body")):
        for _ in range(2):
            refused = shared.client.post("/v1/samples", content=body, headers=JSON | {"Idempotency-Key": "unused"})
            assert (problem(refused), refused.headers.get("Idempotency-Replayed")) == (name, None)
    taken = keyed(shared, "unused", node_sample("unused", -1))
    assert (taken.json()["accepted"], taken.headers.get("Idempotency-Replayed")) == (1, None)


def test_a_first_answer_is_given_again_though_its_node_is_gone(shared: Service) -> None:
    shared.register(node="passing")
    sample = node_sample("passing", -1)
    first = keyed(shared, "passing", sample)
    assert first.json()["accepted"] == 1
    shared.client.delete("/v1/nodes/passing").raise_for_status()
    again = keyed(shared, "passing", sample)
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400, "NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("items", [1, 2000])
def test_a_number_that_no_double_is_makes_the_whole_body_malformed(shared: Service, number: str, items: int) -> None:
    shared.register(node="numbers")
    samples = ",".join([json.dumps(node_sample("numbers", -1, power=1))] * items)
    body = f'{{"mode":"per_item","samples":[{samples.replace("1}", number + "}", 1)}]}}'
    assert problem(shared.client.post("/v1/samples", content=body, headers=JSON)) == "malformed-json"
    assert shared.samples("numbers") == []


def test_a_number_is_the_double_next_to_it(shared: Service) -> None:
    shared.register(node="doubles")
    written = {
        "power": "9007199254740993",
        "jitter": "1e-400",
        "faults": "18446744073709551616",
        "queue_pressure": "-0.0",
    }
    bare = json.dumps(node_sample("doubles", -1))[:-1]
    members = "".join(f',"{name}":{number}' for name, number in written.items())
    body = f'{{"mode":"per_item","samples":[{bare}{members}}}]}}'
    assert shared.client.post("/v1/samples", content=body, headers=JSON).json()["accepted"] == 1
    held = shared.samples("doubles")[0]
    assert {name: held[name] for name in written} == {
        "power": 2.0**53,
        "jitter": 0,
        "faults": 2.0**64,
        "queue_pressure": 0,
    }


@pytest.mark.parametrize("number", ["9007199254740992", "1e20", "-1", "1e0"])
def test_an_integer_keeps_to_its_bounds_however_it_is_written(shared: Service, number: str) -> None:
    shared.register(node="counts")
    moment = instant()
    body = f'{{"beats":[{{"node":"counts","number":{number},"sent_at":"{moment}"}}]}}'
    answer = shared.client.post("/v1/heartbeats", content=body, headers=JSON).json()
    assert types(answer) == ({} if number == "1e0" else {0: "invalid-body"})
