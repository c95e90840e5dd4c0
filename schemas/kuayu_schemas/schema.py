"""Validation against the published JSON Schema, and the canonical form that digests are made of.

The JSON Schema is the judge of what may be sent; the Pydantic models of :mod:`kuayu_schemas.models` follow it.
Formats are asserted, not only noted. A validator is built when its class is first asked for and kept.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import jsonschema_rs
import rfc8785

MAX_ERRORS = 100
MAX_DETAIL = 500

_FILES = {False: "kuayu.schema.json", True: "kuayu.reader.schema.json"}


@dataclass(frozen=True, slots=True)
class SchemaError:
    """One place where an instance breaks the schema: a JSON Pointer (RFC 6901) and what is wrong there."""

    pointer: str
    detail: str


class UnknownClassError(LookupError):
    """The published schema has no class of the name that was asked for."""


class NotCanonicalError(ValueError):
    """The value has no canonical JSON: it holds NaN, an infinity, or an integer that a double cannot hold."""


@cache
def document(*, reader: bool = False) -> dict[str, Any]:
    """The published JSON Schema with all classes under ``$defs``; ``reader`` gives the variant for readers."""
    text = (files("kuayu_schemas") / "published" / _FILES[reader]).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def is_valid(class_name: str, instance: object, *, reader: bool = False) -> bool:
    """Whether a JSON value is a valid instance of a class of the model.

    Args:
        class_name: Name of the class, such as ``Sample``.
        instance: The value as a JSON parser gives it, without NaN and infinities, which are not JSON.
        reader: Whether to judge by what a reader accepts (unknown members and unknown values of extensible
            enumerations pass) instead of by what may be sent.

    Raises:
        UnknownClassError: The model has no such class.
    """
    try:
        return _validator(class_name, reader=reader).is_valid(instance)
    except UnicodeEncodeError:
        return False


def errors(class_name: str, instance: object, *, reader: bool = False) -> list[SchemaError]:
    """Where and how a JSON value breaks the schema of a class; empty where it does not.

    Takes what :func:`is_valid` takes, and raises what it raises. At most :data:`MAX_ERRORS` errors are given. A
    missing member is reported at the object that lacks it, an unknown one at its own place.
    """
    validator = _validator(class_name, reader=reader)
    try:
        return list(islice(_explain(validator, instance), MAX_ERRORS))
    except UnicodeEncodeError:
        return [SchemaError("", "a string holds half of a surrogate pair, which is not a character")]


def are_valid(class_name: str, member: str, values: Sequence[object]) -> bool:
    """Whether each of some JSON values is valid as a member of a class; quicker than to judge as many instances.

    Raises:
        UnknownClassError: The model has no such class.
    """
    try:
        return _column_validator(class_name, member).is_valid(values)
    except UnicodeEncodeError:
        return False


def canonical(instance: object) -> bytes:
    """The canonical JSON (RFC 8785) of a JSON value, in UTF-8.

    Raises:
        NotCanonicalError: The value has none.
    """
    try:
        return rfc8785.dumps(instance)  # type: ignore[arg-type]
    except rfc8785.CanonicalizationError as error:
        raise NotCanonicalError(f"no canonical JSON: {error}") from error


def digest(instance: object) -> str:
    """The digest of a JSON value: ``sha256:`` and the hexadecimal SHA-256 of its canonical JSON.

    Raises:
        NotCanonicalError: The value has no canonical JSON.
    """
    return "sha256:" + hashlib.sha256(canonical(instance)).hexdigest()


@cache
def _validator(class_name: str, *, reader: bool) -> jsonschema_rs.Draft202012Validator:
    return _built(class_name, {"$ref": f"#/$defs/{class_name}"}, reader=reader)


@cache
def _column_validator(class_name: str, member: str) -> jsonschema_rs.Draft202012Validator:
    items = {"$ref": f"#/$defs/{class_name}/properties/{member}"}
    return _built(class_name, {"type": "array", "items": items}, reader=False)


def _built(class_name: str, judging: dict[str, Any], *, reader: bool) -> jsonschema_rs.Draft202012Validator:
    whole = document(reader=reader)
    if class_name not in whole["$defs"]:
        raise UnknownClassError(f"the model has no class {class_name}")
    return jsonschema_rs.Draft202012Validator(
        whole | judging,
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(),  # never backtracks, whatever the pattern
    )


def _explain(validator: jsonschema_rs.Draft202012Validator, instance: object) -> Iterator[SchemaError]:
    for error in validator.iter_errors(instance):
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
            for name in error.kind.unexpected:
                yield SchemaError(_pointer([*error.instance_path, name]), "the schema does not know this member")
        else:
            yield SchemaError(_pointer(error.instance_path), _shortened(error.message))


def _pointer(path: list[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _shortened(message: str) -> str:
    """The message as text that a problem may carry: no NUL, and not the whole of a large value."""
    message = message.replace("\0", "\\u0000")
    return message if len(message) <= MAX_DETAIL else message[: MAX_DETAIL // 2] + " … " + message[-MAX_DETAIL // 2 :]
