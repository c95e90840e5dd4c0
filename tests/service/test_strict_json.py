"""Strict JSON: what is read quickly is exactly what a look at every member would have let through."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kuayu.service import requests
from kuayu.service.requests import MAX_DEPTH, MalformedJsonError

TEXT = st.text(st.sampled_from('a:"\\{}[],\n é'), max_size=6)


def written(draw: st.DrawFn, depth: int) -> str:
    """A JSON text that may repeat names, escape what need not be, and bear blanks."""
    kind = draw(st.sampled_from("sna" if depth == 0 else "snaoo"))
    if kind == "s":
        return string(draw)
    if kind == "n":
        return draw(st.sampled_from(["0", "-1.5e3", "true", "null", "123456789012345678901234567890"]))
    inner = draw(st.integers(0, 3)) if depth else 0
    if kind == "a":
        return "[" + ",".join(written(draw, depth - 1) for _ in range(inner)) + "]"
    members = [f"{string(draw)} : {written(draw, depth - 1)}" for _ in range(inner)]
    return "{" + " , ".join(members) + "}"


def string(draw: st.DrawFn) -> str:
    text = json.dumps(draw(TEXT), ensure_ascii=draw(st.booleans()))
    return text.replace(":", draw(st.sampled_from([":", "\\u003a", "\\u003A"])))


TEXTS = st.composite(lambda draw: written(draw, 4))()


def repeats(text: str) -> bool:
    """Whether a name stands twice in some object, by the standard library."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return found


@given(TEXTS)
@example('{"a":1,"a":2}')
@example('{"a":"\\u003a","a":2}')  # the colon that went is there again, in a guise that bytes do not show
@example('{"b":":::","b":"","a":":"}')
def test_a_text_is_taken_unless_a_name_stands_twice(text: str) -> None:
    if repeats(text):
        with pytest.raises(MalformedJsonError, match="twice"):
            requests.load_strictly(text.encode())
    else:
        assert requests.load_strictly(text.encode()) == orjson.loads(text)  # which has long integers as floats


@pytest.mark.parametrize("innermost", ["", "1", '"a"'])
@pytest.mark.parametrize(("depth", "taken"), [(MAX_DEPTH - 1, True), (MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_what_is_nested_too_deeply_is_not_taken(depth: int, taken: bool, innermost: str) -> None:
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        core = innermost or ("[]" if opened == "[" else "{}")
        levels = depth if innermost else depth - 1
        text = (opened * levels + core + closed * levels).encode()
        if taken:
            requests.load_strictly(text)
        else:
            with pytest.raises(MalformedJsonError, match="nested"):
                requests.load_strictly(text)


def test_what_no_parser_could_climb_down_is_not_taken() -> None:
    for levels in (300, 1_000, 100_000):
        with pytest.raises(MalformedJsonError):
            requests.load_strictly(b"[" * levels + b"]" * levels)
