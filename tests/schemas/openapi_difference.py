"""What two OpenAPI documents promise differently; words for people and the order of things do not count."""

from collections.abc import Iterator
from typing import Any

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
WORDS = ("title", "description", "examples", "x-label-zh")


def differences(published: dict[str, Any], running: dict[str, Any]) -> list[str]:
    """One line for each promise that only one of the documents makes, or that each makes differently."""
    ours, theirs = dict(_promises(published)), dict(_promises(running))
    lines = [f"{name}: only published" for name in ours.keys() - theirs.keys()]
    lines += [f"{name}: only in the running service" for name in theirs.keys() - ours.keys()]
    for name in ours.keys() & theirs.keys():
        if ours[name] != theirs[name]:
            lines.append(f"{name}: published {ours[name]}, running {theirs[name]}")
    return sorted(lines)


def _promises(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for path, item in document["paths"].items():
        if not path.startswith("/v1/"):
            continue
        for method in METHODS:
            if method in item:
                operation = f"{method.upper()} {path}"
                yield operation, "is there"
                parameters = [*item.get("parameters", ()), *item[method].get("parameters", ())]
                yield from _of_operation(operation, parameters, item[method])


def _of_operation(name: str, parameters: list[Any], operation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for parameter in parameters:
        required = parameter.get("required", False)
        yield (
            f"{name}: {parameter['in']} parameter {parameter['name']}",
            (required, _without_null(_bare(parameter["schema"]))),
        )
    body = operation.get("requestBody")
    if body is not None:
        yield f"{name}: body", body.get("required", False)
        yield from _media(f"{name}: body", body)
    for status, answer in operation["responses"].items():
        yield f"{name}: answer {status}", sorted(answer.get("headers", ()))
        yield from _media(f"{name}: answer {status}", answer)


def _media(name: str, holder: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for media_type, content in holder.get("content", {}).items():
        yield f"{name} as {media_type}", _bare(content.get("schema", {}))
        if "x-item-schema" in content:
            yield f"{name} as {media_type}: items", _bare(content["x-item-schema"])


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without the choice of null, which no text in a URL can be."""
    kept = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return rest | (kept[0] if len(kept) == 1 else {"anyOf": kept} if kept else {})


def _bare(schema: Any) -> Any:
    """The schema without what is for people only."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key not in WORDS}
    return [_bare(item) for item in schema] if isinstance(schema, list) else schema
