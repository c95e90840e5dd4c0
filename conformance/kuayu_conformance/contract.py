"""The published OpenAPI document as the suite uses it: what answer an operation may give."""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Operation:
    """One operation of the interface.

    Attributes:
        method: HTTP method.
        template: Path with ``{names}``.
        answers: Model classes that the body may be of, for each status; none where it is none or not of the model.
    """

    method: str
    template: str
    answers: dict[int, tuple[str, ...]]


@cache
def operations() -> tuple[tuple[re.Pattern[str], Operation], ...]:
    """All published operations, each with a pattern that its paths match; literal paths come first."""
    document = json.loads(files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8"))
    found = []
    for template, item in document["paths"].items():
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(template)))
        for method, operation in item.items():
            if method in {"get", "put", "post", "delete", "patch"}:
                answers = {int(s): _classes_of(r) for s, r in operation["responses"].items() if s.isdigit()}
                found.append((pattern, Operation(method.upper(), template, answers)))
    return tuple(sorted(found, key=lambda row: (row[1].template.count("{"), row[1].template)))


def operation_of(method: str, path: str) -> Operation | None:
    """The published operation that a request is for, or None."""
    bare = path.split("?", maxsplit=1)[0]
    return next((op for pattern, op in operations() if op.method == method and pattern.fullmatch(bare)), None)


def _classes_of(response: dict[str, Any]) -> tuple[str, ...]:
    for media in response.get("content", {}).values():
        of_type = media.get("schema", {})
        references = [part.get("$ref", "") for part in of_type.get("anyOf", [of_type])]
        return tuple(str(reference).rpartition("/")[2] for reference in references if reference)
    return ()
