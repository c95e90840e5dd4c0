"""OpenAPI 3.1: paths as the reference's routes state them, schemas as the model states them.

The published file is the contract. It holds only what the standard is about (paths under ``/v1``), and of the schemas
those that the paths lead to.
"""

from collections.abc import Iterator
from typing import Any

from generator.json_schema import DIALECT, Schema
from generator.model import Model

COMPONENTS = "#/components/schemas/"
DEFINITIONS = "#/$defs/"


class OpenApiError(Exception):
    """A route of the reference names a schema that the model does not have."""


def document(model: Model, schema: Schema, application: Schema) -> Schema:
    """Put together the published document.

    Args:
        model: The information model.
        schema: Its closed JSON Schema.
        application: What the reference's application says of itself.

    Raises:
        OpenApiError: A route refers to a schema that is not of the model.
    """
    paths = {path: _tidy(item) for path, item in sorted(application["paths"].items()) if path.startswith("/v1/")}
    definitions = _reachable(paths, schema["$defs"])
    components: Schema = {"schemas": {name: _renamed(definitions[name]) for name in sorted(definitions)}}
    if schemes := application.get("components", {}).get("securitySchemes"):
        components["securitySchemes"] = schemes
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kuayu",
            "version": model.version,
            "summary": "Interface of the Kuayu standard for cross-domain AI compute",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": DIALECT,
        "security": application.get("security", []),
        "paths": paths,
        "components": components,
    }


def _tidy(item: Schema) -> Schema:
    """The operations of a path, their parameters without what FastAPI reads out of Python."""
    tidied = {}
    for method, operation in item.items():
        parameters = [_tidy_parameter(parameter) for parameter in operation.get("parameters", [])]
        tidied[method] = operation | ({"parameters": parameters} if parameters else {})
    return tidied


def _tidy_parameter(parameter: Schema) -> Schema:
    """The parameter without a title made of its name, and without null: what stands in a URL is text."""
    schema = {key: value for key, value in parameter["schema"].items() if key not in {"title", "description"}}
    kept = [choice for choice in schema.pop("anyOf", []) if choice != {"type": "null"}]
    return parameter | {"schema": schema | (kept[0] if len(kept) == 1 else {"anyOf": kept} if kept else {})}


def _reachable(paths: Schema, definitions: Schema) -> Schema:
    """The definitions that the paths refer to, and those that these refer to in turn."""
    found: Schema = {}
    waiting = list(_references(paths, COMPONENTS))
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            raise OpenApiError(f"a route refers to {name}, which is no class of the model; name one that is")
        if name not in found:
            found[name] = definitions[name]
            waiting += _references(definitions[name], DEFINITIONS)
    return found


def _references(part: Any, prefix: str) -> Iterator[str]:
    if isinstance(part, dict):
        target = part.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(prefix)
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _references(child, prefix)


def _renamed(part: Any) -> Any:
    """The same schema, its references pointing to where OpenAPI keeps schemas."""
    if isinstance(part, dict):
        return {key: _target(value) if key == "$ref" else _renamed(value) for key, value in part.items()}
    return [_renamed(item) for item in part] if isinstance(part, list) else part


def _target(reference: str) -> str:
    return COMPONENTS + reference.removeprefix(DEFINITIONS)
