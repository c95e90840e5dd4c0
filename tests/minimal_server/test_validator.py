"""The minimal server's own reading of the published schemas gives the verdicts that other readers give."""

import json

from schemas.mutations import mutated_examples
from schemas.verdicts import schema_accepts

from minimal_server.client import SCHEMAS
from minimal_server.validator import Validator, parse

CLASSES = {"Sample", "SampleBatch", "Node", "ComputeIdentifier"}


def accepts(validator: Validator, class_name: str, body: bytes) -> bool:
    try:
        return not validator.errors(class_name, parse(body))
    except ValueError:
        return False


def test_it_accepts_and_refuses_what_other_readers_do() -> None:
    validator = Validator(json.loads((SCHEMAS / "kuayu.schema.json").read_text("utf-8")))
    judged = [(one, accepts(validator, one.class_name, one.body)) for one in mutated_examples(CLASSES)]
    assert {verdict for _, verdict in judged} == {True, False}
    assert [one.origin for one, verdict in judged if verdict != schema_accepts(one.class_name, one.body)] == []


def test_numbers_are_read_as_doubles_and_nesting_has_an_end() -> None:
    assert [repr(parse(text)) for text in (b"1.0", b"-0.0", b"1e3", b"12345678901234567890", b"0.5")] == [
        "1",
        "0",
        "1000",
        "1.2345678901234567e+19",
        "0.5",
    ]
    assert parse(b"[" * 64 + b"]" * 64)
    for text in (
        b"[" * 65 + b"]" * 65,
        b"[" * 100_000,
        b"1e400",
        b"9" * 5000,
        b'{"a":1,"\\u0061":2}',
        b'"\\ud800"',
        b"NaN",
    ):
        try:
            parse(text)
        except ValueError:
            continue
        raise AssertionError(text[:20])
