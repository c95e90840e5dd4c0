"""The judge: what it says is wrong, where, and how documents are named by their digest."""

import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from kuayu_schemas import schema
from kuayu_schemas.schema import SchemaError

SAMPLE: dict[str, Any] = {"subject": "node-1", "subject_kind": "node", "observed_at": "2026-11-21T12:00:00.000Z"}


def test_a_valid_instance_has_no_errors() -> None:
    assert schema.is_valid("Sample", SAMPLE)
    assert schema.errors("Sample", SAMPLE) == []


def test_every_wrong_place_is_named_by_its_pointer() -> None:
    batch = {"mode": "per_item", "samples": [SAMPLE, {**SAMPLE, "power": -1}, {**SAMPLE, "a/b~c": 1}, {"subject": "n"}]}
    found = schema.errors("SampleBatch", batch)
    assert SchemaError("/samples/1/power", "-1 is less than the minimum of 0") in found
    assert SchemaError("/samples/2/a~1b~0c", "the schema does not know this member") in found
    assert {error.pointer for error in found} == {"/samples/1/power", "/samples/2/a~1b~0c", "/samples/3"}


def test_a_day_that_does_not_exist_is_no_instant() -> None:
    found = schema.errors("Sample", {**SAMPLE, "observed_at": "2026-02-30T12:00:00Z"})
    assert [error.pointer for error in found] == ["/observed_at"]


def test_no_more_than_a_hundred_errors_are_given() -> None:
    assert len(schema.errors("SampleBatch", {"mode": "atomic", "samples": [{}] * 500})) == schema.MAX_ERRORS
    assert len(schema.errors("Sample", {f"m{number}": 0 for number in range(500)})) == schema.MAX_ERRORS


@pytest.mark.parametrize("value", ["x" * 100_000, "\0" * 3000, {"a" * 5000 + "\0": 1}])
def test_an_error_fits_into_a_problem_whatever_was_sent(value: Any) -> None:
    for place in ({**SAMPLE, "subject": value}, {**SAMPLE, "power": value}, value):
        found = schema.errors("Sample", place)
        assert found
        assert all(schema.errors("Text", error.detail) == [] for error in found)


def test_half_of_a_surrogate_pair_is_an_error_and_not_an_accident() -> None:
    for broken in ({**SAMPLE, "subject": "\ud800"}, {**SAMPLE, "\ud800": 1}):
        assert not schema.is_valid("Sample", broken)
        assert schema.errors("Sample", broken)


def test_a_reader_takes_what_a_later_version_may_send() -> None:
    later = {**SAMPLE, "health_state": "resting", "mood": "good"}
    assert not schema.is_valid("Sample", later)
    assert schema.is_valid("Sample", later, reader=True)


def test_a_reader_still_refuses_what_no_version_may_send() -> None:
    assert not schema.is_valid("Sample", {**SAMPLE, "health_state": 1}, reader=True)
    assert not schema.is_valid("Sample", {**SAMPLE, "subject_kind": "planet"}, reader=True)
    assert not schema.is_valid("Sample", {**SAMPLE, "subject_kind": "device"}, reader=True)


def test_a_class_that_is_not_in_the_model_is_an_error_of_the_caller() -> None:
    with pytest.raises(schema.UnknownClassError, match="Planet"):
        schema.is_valid("Planet", {})


@pytest.mark.parametrize("reader", [False, True])
def test_the_published_documents_are_valid_schemas_with_names_of_their_version(*, reader: bool) -> None:
    document = schema.document(reader=reader)
    assert jsonschema_rs.meta.is_valid(document)
    assert document["$id"] == f"urn:kuayu:schema:0.1.0:{'reader' if reader else 'kuayu'}"
    assert set(document) == {"$schema", "$id", "title", "description", "$defs"}


def test_units_and_chinese_names_are_published_with_the_schema() -> None:
    definitions = schema.document()["$defs"]
    assert definitions["Sample"]["properties"]["power"]["x-unit"] == "W"
    assert definitions["Duration"]["x-unit"] == "s"
    assert definitions["Sample"]["x-label-zh"] == "样本"


def test_the_canonical_form_is_that_of_rfc_8785() -> None:
    # The example of RFC 8785, section 3.2.2, and the order of names of section 3.2.3.
    numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]
    text = '€$\u000f\nA\'B"\\\\"/'
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert schema.canonical({"numbers": numbers, "string": text, "literals": [None, True, False]}) == expected.encode()
    assert schema.canonical({"\u20ac": 1, "\r": 2, "😀": 3, "\ufb33": 4, "1": 5}).decode() == (
        '{"\\r":2,"1":5,"€":1,"😀":3,"\ufb33":4}'
    )


def test_a_digest_does_not_depend_on_how_the_document_was_written() -> None:
    name = schema.digest({"b": 3.0, "a": "跨域"})
    assert name == schema.digest({"a": "跨域", "b": 3})
    assert schema.is_valid("Digest", name)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1])
def test_what_has_no_canonical_form_is_refused(value: float) -> None:
    with pytest.raises(schema.NotCanonicalError):
        schema.digest({"value": value})


def test_the_published_files_hold_chinese_as_it_is_and_end_with_a_newline() -> None:
    for path in Path(schema.__file__).with_name("published").iterdir():
        text = path.read_text("utf-8")
        assert "\\u4e" not in text
        assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("class_name", "instance"),
    [
        ("SampleBatch", {"mode": "atomic", "samples": [{}] * 300_000}),
        ("HeartbeatBatch", {"beats": [{}] * 300_000}),
        ("Node", {"id": "a", "domain": "d", "devices": [{}] * 300_000}),
        ("Node", {"id": "a", "domain": "d", "extensions": {f"{number}": {} for number in range(300_000)}}),
        ("Node", {f"m{number}": [{}] for number in range(300_000)}),
        ("Node", [{}] * 300_000),
        ("PlacementRequest", {"state": {"waiting": [{}] * 300_000}}),
    ],
)
def test_the_time_does_not_follow_how_much_is_wrong(class_name: str, instance: object) -> None:
    began = time.process_time()
    found = schema.errors(class_name, instance)
    assert 1 <= len(found) <= schema.MAX_ERRORS
    assert time.process_time() - began < 2  # to collect all errors took a minute


def test_errors_of_large_instances_stand_where_those_of_small_ones_do() -> None:
    beat = {"node": "a", "number": 0, "sent_at": "2026-01-01T00:00:00Z"}
    broken = {"beats": [*([beat] * 200), {**beat, "number": -1}, {**beat, "more": 1}, {"node": "a", "number": 0}]}
    assert [error.pointer for error in schema.errors("HeartbeatBatch", broken)] == [
        *("/beats/200/number", "/beats/201/more", "/beats/202")
    ]
    names = schema.errors("Domain", {"id": "d", "extensions": {f"x/{number}": 0 for number in range(65)}})
    assert [error.pointer for error in names] == ["/extensions"]
    assert schema.errors("HeartbeatBatch", {"beats": [beat] * 200}) == []
    missing = schema.errors("HeartbeatBatch", {"more": [0] * 200})
    assert sorted(error.pointer for error in missing) == ["", "/more"]
