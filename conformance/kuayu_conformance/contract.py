"""The published OpenAPI document as the suite uses it: what answer an operation may give, and whether one is such.

A status says what a target means to have done; only a body of the published media type and schema shows it. Whatever a
check counts, success and refusal alike, is therefore held against the operation that was called.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs

from kuayu_conformance.answers import FIRST_ERROR, JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE, Answer
from kuayu_schemas import schema

SERVER_ERROR = 500
"""Status from which on a service says that it has failed (RFC 9110, section 15.6)."""


@dataclass(frozen=True)
class Operation:
    """One operation of the interface.

    Attributes:
        method: HTTP method.
        template: Path with ``{names}``.
        answers: Model classes that the body may be of, for each status; none where it is none or not of the model.
        media: Media types that the body may have, for each status; none where there is no body.
        inline: JSON Schema of a JSON body that is of no class, for each status that has one.
    """

    method: str
    template: str
    answers: dict[int, tuple[str, ...]]
    media: dict[int, tuple[str, ...]] = field(default_factory=dict)
    inline: dict[int, jsonschema_rs.Draft202012Validator] = field(default_factory=dict)


@cache
def operations() -> tuple[tuple[re.Pattern[str], Operation], ...]:
    """All published operations, each with a pattern that its paths match; literal paths come first."""
    document = json.loads(files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8"))
    published = []
    for template, item in document["paths"].items():
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(template)))
        for method, operation in item.items():
            if method in {"get", "put", "post", "delete", "patch"}:
                published.append((pattern, _operation(method.upper(), template, operation["responses"])))
    return tuple(sorted(published, key=lambda row: (row[1].template.count("{"), row[1].template)))


def _operation(method: str, template: str, responses: Mapping[str, Any]) -> Operation:
    by_status = {int(status): response for status, response in responses.items() if status.isdigit()}
    inline = {status: validator for status, row in by_status.items() if (validator := _inline_of(row))}
    return Operation(
        method,
        template,
        {status: _classes_of(response) for status, response in by_status.items()},
        {status: tuple(response.get("content", {})) for status, response in by_status.items()},
        inline,
    )


def operation_of(method: str, path: str) -> Operation | None:
    """The published operation that a request is for, or None."""
    bare = path.split("?", maxsplit=1)[0]
    return next((op for pattern, op in operations() if op.method == method and pattern.fullmatch(bare)), None)


def violation(answer: Answer) -> str:
    """What keeps an answer from being one that the published operation allows, in words; empty where nothing does.

    An error has to be a problem whatever was called. What is not published may be answered with any other status.
    """
    if answer.failure:
        return f"no answer: {answer.failure}"
    operation = operation_of(answer.method, answer.path)
    if answer.status >= FIRST_ERROR:
        return _unlike((PROBLEM_MEDIA_TYPE,), answer) or _invalid(("Problem",), answer)
    if operation is None:
        return ""
    if answer.status not in operation.answers:
        return f"{operation.method} {operation.template} does not answer {answer.status}"
    media = operation.media.get(answer.status, ())
    if media and (unlike := _unlike(media, answer)):
        return unlike
    if wanted := operation.answers[answer.status]:
        return _invalid(wanted, answer)
    inline = operation.inline.get(answer.status)
    if inline and answer.media_type == JSON_MEDIA_TYPE and not inline.is_valid(answer.json):
        return "the body is not what the published operation answers with"
    return ""


def unsound(answer: Answer) -> str:
    """What keeps an answer from counting for anything, in words; empty where it is sound, be it a refusal.

    None came, or the service says that it has failed, or it is none that the published operation allows.
    """
    if answer.status >= SERVER_ERROR:
        return f"status {answer.status}"
    return violation(answer)


def _unlike(media: Sequence[str], answer: Answer) -> str:
    """What is wrong with the media type of an answer; empty where it is one of these."""
    if answer.media_type in media:
        return ""
    return f"status {answer.status} with media type {answer.media_type or 'none'}, not {' or '.join(media)}"


def _invalid(names: Sequence[str], answer: Answer) -> str:
    """Why a body is of none of these classes: what keeps it from the first; empty where it is of one."""
    if answer.json is None:
        return f"the body is not JSON, {' or '.join(names)} is expected"
    if any(schema.is_valid(name, answer.json, reader=True) for name in names):
        return ""
    wrong = schema.errors(names[0], answer.json, reader=True)
    return f"not a valid {' or '.join(names)}: {wrong[0].pointer or '/'} {wrong[0].detail}" if wrong else ""


def _classes_of(response: Mapping[str, Any]) -> tuple[str, ...]:
    for media in response.get("content", {}).values():
        of_type = media.get("schema", {})
        references = [part.get("$ref", "") for part in of_type.get("anyOf", [of_type])]
        return tuple(str(reference).rpartition("/")[2] for reference in references if reference)
    return ()


def _inline_of(response: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator | None:
    """What judges a JSON body that is of no class; as for any reader, members that it does not know pass."""
    of_type = response.get("content", {}).get(JSON_MEDIA_TYPE, {}).get("schema", {})
    if not of_type or _classes_of(response):
        return None
    open_ = {name: value for name, value in of_type.items() if name != "additionalProperties"}
    return jsonschema_rs.Draft202012Validator(open_)
