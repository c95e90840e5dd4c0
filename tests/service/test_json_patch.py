"""JSON Patch on large documents, and canonical JSON: what the libraries say, sooner."""

import json
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kuayu import canonical, json_patch
from kuayu_schemas import schema

NUMBERS = (
    st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**17), 10**17).map(float)
    | st.floats(-1e-3, 1e-3)
)
NAMES = st.text(st.sampled_from('ab/~0é€😀\\"e-1.,:}'), max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | NAMES | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)


@settings(max_examples=500, deadline=None)
@given(VALUES)
@example([1.0, -0.0, 1e16, 1e21, 1e-5, 1e-7, 123456789012345.0, 0.00001, True])
@example({"é": 1, "z": 2.0, "€": "1.0,", "😀": 0})
def test_canonical_json_is_that_of_the_library(value: Any) -> None:
    assert canonical.dumps(value) == schema.canonical(value)
    assert canonical.digest(value) == schema.digest(value)


@pytest.mark.parametrize("value", [2**53, [-(2**60)], {"a": float("nan")}, [float("inf")]])
def test_what_has_no_canonical_json_is_refused(value: Any) -> None:
    with pytest.raises(schema.NotCanonicalError):
        canonical.dumps(value)


@settings(max_examples=300, deadline=None)
@given(OBJECTS, OBJECTS)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    kept = deepcopy(before)
    operations = list(json_patch.difference(before, after))
    made = json_patch.apply(before, operations)
    assert canonical.dumps(made) == canonical.dumps(after)
    assert canonical.dumps(jsonpatch.apply_patch(before, operations)) == canonical.dumps(after)
    assert before == kept


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True), st.integers(0, 1))
def test_entries_that_have_names_are_followed_where_they_go(one: list[int], other: list[int], change: int) -> None:
    before = {"jobs": [{"id": name, "done": 0} for name in one]}
    after = {"jobs": [{"id": name, "done": change} for name in other]}
    operations = list(json_patch.difference(before, after, lambda _path, entry: entry["id"]))
    assert json_patch.apply(before, operations) == after == jsonpatch.apply_patch(before, operations)


def test_what_a_patch_does_not_touch_is_the_same_object_before_and_after() -> None:
    document = {"jobs": [{"spec": {"id": n}, "done": 0.0} for n in range(3)], "links": [1, 2]}
    made = json_patch.apply(document, [{"op": "replace", "path": "/jobs/1/done", "value": 5.0}])
    assert made["jobs"][1] == {"spec": {"id": 1}, "done": 5.0}
    assert made["jobs"][1]["spec"] is document["jobs"][1]["spec"]
    assert made["jobs"][0] is document["jobs"][0]
    assert made["links"] is document["links"]
    assert document["jobs"][1]["done"] == 0.0


@pytest.mark.parametrize(
    ("operation", "made"),
    [
        ({"op": "add", "path": "/list/-", "value": 9}, {"list": [1, 2, 9]}),
        ({"op": "add", "path": "/list/2", "value": 9}, {"list": [1, 2, 9]}),
        ({"op": "add", "path": "/a~1b~0c", "value": 9}, {"list": [1, 2], "a/b~c": 9}),
        ({"op": "replace", "path": "", "value": [1]}, [1]),
        ({"op": "test", "path": "/list/0", "value": 1.0}, {"list": [1, 2]}),
    ],
)
def test_an_operation_does_what_rfc_6902_says(operation: Any, made: Any) -> None:
    assert json_patch.apply({"list": [1, 2]}, [operation]) == made


@pytest.mark.parametrize(
    ("operation", "because"),
    [
        ({"op": "remove", "path": "/absent"}, "there is no member 'absent'"),
        ({"op": "replace", "path": "/absent", "value": 1}, "there is no member 'absent'"),
        ({"op": "replace", "path": "/list/2", "value": 1}, "there is no index 2 in an array of 2"),
        ({"op": "add", "path": "/list/3", "value": 1}, "there is no index 3 in an array of 3"),
        ({"op": "remove", "path": "/list/-"}, "'-' is no index of an array"),
        ({"op": "remove", "path": "/list/01"}, "'01' is no index of an array"),
        ({"op": "remove", "path": "/list/²"}, "'²' is no index of an array"),
        ({"op": "remove", "path": "/list/" + "9" * 5000}, "there is no index 9999"),
        ({"op": "add", "path": "/list/0/deeper", "value": 1}, "neither an object nor an array"),
        ({"op": "remove", "path": ""}, "nothing would be left of the document"),
        ({"op": "add", "path": "/a"}, "add needs a value"),
        ({"op": "test", "path": "/list/0", "value": True}, "there is another value at '/list/0'"),
        ({"op": "add", "path": "/a", "value": json.loads("[" * 64 + "]" * 64)}, "nested deeper than 64 levels"),
    ],
)
def test_an_operation_that_cannot_be_carried_out_says_why(operation: Any, because: str) -> None:
    document = {"list": [1, 2]}
    with pytest.raises(json_patch.PatchError, match=r".*") as refused:
        json_patch.apply(document, [{"op": "test", "path": "/list", "value": [1, 2]}, operation])
    assert refused.value.position == 1
    assert because in refused.value.detail
    assert document == {"list": [1, 2]}
