"""Validation against the published JSON Schema, and the canonical form that digests are made of.

The JSON Schema is the judge of what may be sent; the Pydantic models of :mod:`kuayu_schemas.models` follow it.
Formats are asserted, not only noted. A validator is built when its class is first asked for and kept.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import jsonschema_rs
import rfc8785

MAX_ERRORS = 100
MAX_DETAIL = 500
AT_ONCE = 64
"""Members and items, in all, of an instance whose errors are collected at once."""

_BASE = "urn:kuayu:schema"

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

    Takes what :func:`is_valid` takes, and raises what it raises. At most :data:`MAX_ERRORS` errors are given, and no
    more are looked for, so that the time follows the size of the instance and not how much of it is wrong. A missing
    member is reported at the object that lacks it, an unknown one at its own place.
    """
    try:
        return list(islice(_explain(f"/$defs/{class_name}", instance, [], reader=reader), MAX_ERRORS))
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
    return _validator_at(f"/$defs/{class_name}", reader=reader)


@cache
def _column_validator(class_name: str, member: str) -> jsonschema_rs.Draft202012Validator:
    _member(f"/$defs/{class_name}", reader=False)
    return _built(
        {"type": "array", "items": {"$ref": f"{_BASE}#/$defs/{class_name}/properties/{member}"}}, reader=False
    )


@cache
def _validator_at(pointer: str, *, reader: bool) -> jsonschema_rs.Draft202012Validator:
    """The validator of a part of the published schema."""
    _member(pointer, reader=reader)
    return _built({"$ref": f"{_BASE}#{pointer}"}, reader=reader)


def _member(pointer: str, *, reader: bool) -> dict[str, Any]:
    """A part of the published schema.

    Raises:
        UnknownClassError: There is none.
    """
    member: Any = document(reader=reader)
    for step in pointer.split("/")[1:]:
        if step not in member:
            raise UnknownClassError(f"the model has no class {step}")
        member = member[step]
    part: dict[str, Any] = member
    return part


@cache
def _registry(*, reader: bool) -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([(_BASE, document(reader=reader))], draft=jsonschema_rs.Draft202012)


def _built(judging: dict[str, Any], *, reader: bool) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        judging,
        registry=_registry(reader=reader),
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(),  # never backtracks, whatever the pattern
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """An object or array of the schema without what is in it.

    Attributes:
        alone: Judges the object or array itself: its type, its members' names, its length.
        types: JSON types that it may have; empty where it may have any.
        most: Most items or members.
        members: Where the schemas of its members are.
        rest: Where the schema of its items, or of members with other names, is.
        names: Where the schema of its members' names is.
    """

    alone: jsonschema_rs.Draft202012Validator
    types: frozenset[str]
    most: int | None
    members: Mapping[str, str]
    rest: str | None
    names: str | None


@cache
def _shape(pointer: str, *, reader: bool) -> _Shape:
    node = _member(pointer, reader=reader)
    while "$ref" in node:
        pointer = node["$ref"].removeprefix("#")
        node = _member(pointer, reader=reader)
    alone = {name: value for name, value in node.items() if name not in {"items", "propertyNames"}}
    members = {name: f"{pointer}/properties/{name}" for name in node.get("properties", {})}
    alone["properties"] = dict.fromkeys(members, True)
    further, rest = node.get("additionalProperties"), None
    if isinstance(further, dict):
        alone["additionalProperties"], rest = True, f"{pointer}/additionalProperties"
    if isinstance(node.get("items"), dict):
        rest = f"{pointer}/items"
    types = node.get("type", ())
    return _Shape(
        _built(alone, reader=reader),
        frozenset([types] if isinstance(types, str) else types),
        node.get("maxItems", node.get("maxProperties")),
        members,
        rest,
        f"{pointer}/propertyNames" if "propertyNames" in node else None,
    )


def _explain(pointer: str, instance: Any, path: list[str | int], *, reader: bool) -> Iterator[SchemaError]:
    """Errors of an instance, each looked for only once it is asked for.

    The validator finds all errors of an instance before it tells the first, and needs a tenth of a millisecond for
    each. So it is given little at once: a large object or array is judged by itself first, then member by member, of
    which those that are valid cost next to nothing.
    """
    validator = _validator_at(pointer, reader=reader)
    if not _exceeds(instance, AT_ONCE):
        yield from _errors(validator, instance, path)
        return
    if validator.is_valid(instance):
        return
    shape = _shape(pointer, reader=reader)
    if shape.types and ("object" if isinstance(instance, dict) else "array") not in shape.types:
        yield from _errors(
            shape.alone, type(instance)(), path
        )  # what is in it says nothing more, and takes long to say
        return
    if shape.most is not None and len(instance) > shape.most:
        unit = "members" if isinstance(instance, dict) else "items"
        yield SchemaError(_pointer(path), f"{len(instance)} {unit}, where {shape.most} are the most")
        return
    if isinstance(instance, list):
        yield from _errors(shape.alone, [None] * len(instance), path)
        children: Iterable[tuple[str | int, Any]] = enumerate(instance)
    else:
        strangers = islice((name for name in instance if name not in shape.members), MAX_ERRORS)
        seen = {name: instance[name] for name in (*(shape.members.keys() & instance), *strangers)}
        # Conditions look at strings and numbers alone, and what is written of an error need not repeat the rest.
        flat = {name: None if isinstance(value, dict | list) else value for name, value in seen.items()}
        yield from _errors(shape.alone, flat, path)
        if shape.names is not None:
            names = _validator_at(shape.names, reader=reader)
            wrong = (name for name in instance if not names.is_valid(name))
            yield from (
                SchemaError(_pointer(path), f"{_shortened(name)!r} is no name of a member here") for name in wrong
            )
        children = instance.items()
    for step, child in children:
        inside = shape.members.get(step, shape.rest) if isinstance(step, str) else shape.rest
        if inside is not None and not _validator_at(inside, reader=reader).is_valid(child):
            yield from _explain(inside, child, [*path, step], reader=reader)


def _exceeds(value: Any, most: int) -> bool:
    """Whether a value of JSON has more members and items in all than ``most``; looks at no more than these."""
    inside = [value]
    while inside:
        item = inside.pop()
        if isinstance(item, dict | list):
            most -= len(item)
            if most < 0:
                return True
            inside += item.values() if isinstance(item, dict) else item
    return False


def _errors(
    validator: jsonschema_rs.Draft202012Validator, instance: Any, path: list[str | int]
) -> Iterator[SchemaError]:
    for error in validator.iter_errors(instance):
        place = [*path, *error.instance_path]
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
            for name in error.kind.unexpected:
                yield SchemaError(_pointer([*place, name]), "the schema does not know this member")
        else:
            yield SchemaError(_pointer(place), _shortened(error.message))


def _pointer(path: list[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _shortened(message: str) -> str:
    """The message as text that a problem may carry: no NUL, and not the whole of a large value."""
    message = message.replace("\0", "\\u0000")
    return message if len(message) <= MAX_DETAIL else message[: MAX_DETAIL // 2] + " … " + message[-MAX_DETAIL // 2 :]
