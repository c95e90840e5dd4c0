"""The service's OpenAPI 3.1 document: paths from the routes, components from the published schema."""

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from kuayu.service import access
from kuayu_schemas import registers, schema

OpenApiObject = dict[str, Any]
"""An object of an OpenAPI document; there are dozens of kinds, and OpenAPI 3.1 says what each has in it."""

EVERYWHERE = ("invalid-parameter", "unauthorised", "forbidden", "rate-limited", "overloaded", "internal")
"""Problems that any operation may answer with."""

BODY = ("malformed-json", "payload-too-large", "unsupported-media-type", "invalid-body")
"""Problems of whatever has a JSON body."""

IF_MATCH: OpenApiObject = {
    "name": "If-Match",
    "in": "header",
    "description": "Only if the record is at this revision; otherwise stale-revision.",
    "schema": {"type": "string", "pattern": '^"[A-Za-z0-9][A-Za-z0-9._-]{0,127}:(0|[1-9][0-9]{0,15})"$'},
}
IDEMPOTENCY_KEY: OpenApiObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body gets the first answer again, where its items were judged.",
    "schema": {"type": "string", "pattern": "^[\\x21-\\x7e]{1,255}$"},
}
LAST_EVENT_ID: OpenApiObject = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The last event that was read, or the revision of a snapshot; the stream goes on after it.",
    "schema": {"type": "string", "pattern": "^([A-Za-z0-9][A-Za-z0-9._-]{0,127}):(0|[1-9][0-9]{0,15})$"},
}
ETAG: OpenApiObject = {"ETag": {"description": "Revision of the record.", "schema": {"type": "string"}}}
REPLAYED: OpenApiObject = {
    "Idempotency-Replayed": {
        "description": "true where the answer was given before under the same key.",
        "schema": {"type": "string", "const": "true"},
    }
}


def reference(class_name: str) -> OpenApiObject:
    """A class of the model."""
    return {"$ref": f"#/components/schemas/{class_name}"}


def answer(class_name: str, description: str, headers: OpenApiObject | None = None) -> OpenApiObject:
    """An answer that is an instance of a class."""
    result = answer_of_any((class_name,), description)
    return result | {"headers": headers} if headers else result


def answer_of_any(class_names: Sequence[str], description: str) -> OpenApiObject:
    """An answer that is an instance of one of several classes."""
    schemas = [reference(name) for name in class_names]
    of_any = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"description": description, "content": {"application/json": {"schema": of_any}}}


def events(kind: str, class_name: str) -> OpenApiObject:
    """An answer that is a stream of events of one type.

    OpenAPI 3.1 has no word for what a stream consists of. ``x-item-schema`` says it in the form that ``itemSchema`` has
    in OpenAPI 3.2 for server-sent events: the fields of an event, its data being text that holds JSON.
    """
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": reference(class_name)}
    item = {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {"id": LAST_EVENT_ID["schema"], "event": {"type": "string", "const": kind}, "data": data},
    }
    return {
        "description": (
            f"Server-sent events of the type {kind}; the data of each is one line of JSON, class {class_name}."
        ),
        "content": {"text/event-stream": {"schema": {"type": "string"}, "x-item-schema": item}},
    }


def problems(*names: str) -> dict[int | str, OpenApiObject]:
    """Answers that are problems, by status; those that any operation may give are added."""
    types = _problem_types()
    result: dict[int | str, OpenApiObject] = {}
    for status in sorted({types[name][0] for name in (*names, *EVERYWHERE)}):
        titles = [f"{name}: {types[name][1]}" for name in (*EVERYWHERE, *names) if types[name][0] == status]
        result[status] = {
            "description": "; ".join(dict.fromkeys(titles)) + ".",
            "content": {"application/problem+json": {"schema": reference("Problem")}},
        }
    return result


def body(class_name: str, *parameters: OpenApiObject) -> OpenApiObject:
    """What a route with a JSON body adds to its operation."""
    content = {"application/json": {"schema": reference(class_name)}}
    return {"requestBody": {"required": True, "content": content}, "parameters": list(parameters)}


def page_body(*parameters: OpenApiObject) -> OpenApiObject:
    """What the route for exporters' pages adds to its operation."""
    content = {"text/plain": {"schema": {"type": "string", "description": "Prometheus text format 0.0.4."}}}
    return {"requestBody": {"required": True, "content": content}, "parameters": list(parameters)}


def install(app: FastAPI) -> None:
    """Make ``app.openapi()`` give the whole document."""
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]


def _document(app: FastAPI) -> OpenApiObject:
    if app.openapi_schema is None:
        outcome = get_openapi(
            title=app.title,
            version=app.version,
            openapi_version="3.1.0",
            summary=app.summary,
            description=app.description,
            routes=app.routes,
            license_info=app.license_info,
        )
        for operation in _operations(outcome):
            operation.update(access.shown(operation["operationId"]))
            operation["responses"] = {
                status: result
                for status, result in operation["responses"].items()
                if "HTTPValidationError" not in str(result)
            }
        bearer = {"type": "http", "scheme": "bearer"}
        outcome["components"] = {"schemas": _components(), "securitySchemes": {"bearer": bearer}}
        outcome["security"] = [{}, {"bearer": []}]
        app.openapi_schema = outcome
    return app.openapi_schema


def _operations(document: OpenApiObject) -> Iterator[OpenApiObject]:
    for item in document["paths"].values():
        yield from item.values()


def _components() -> OpenApiObject:
    """Classes of the published schema, with references as OpenAPI has them."""

    def moved(value: Any) -> Any:
        match value:
            case {"$ref": str(target), **others}:
                return {"$ref": target.replace("#/$defs/", "#/components/schemas/"), **moved(others)}
            case dict():
                return {name: moved(member) for name, member in value.items()}
            case list():
                return [moved(member) for member in value]
        return value

    components: OpenApiObject = moved(copy.deepcopy(schema.document()["$defs"]))
    return components


@cache
def _problem_types() -> dict[str, tuple[int, str]]:
    return {kind.name: (kind.status, kind.title_en) for kind in registers.problems().problems}
