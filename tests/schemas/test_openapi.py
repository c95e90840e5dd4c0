"""The committed OpenAPI document is the contract, and the reference serves it."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemas.openapi_difference import differences
from starlette.routing import Route

from generator import openapi
from generator.__main__ import SPEC, application
from generator.model import Model
from kuayu.service.app import create_app
from kuayu_schemas import registers, schema

PUBLISHED: dict[str, Any] = json.loads((files("kuayu_schemas") / "published" / "openapi.json").read_text("utf-8"))

Change = Callable[[dict[str, Any]], object]


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from references(child)


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in PUBLISHED["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def test_the_document_is_openapi_of_the_version_of_the_standard() -> None:
    assert PUBLISHED["openapi"].startswith("3.1.")
    assert PUBLISHED["info"]["version"] == registers.SPEC_VERSION
    assert list(OpenAPIV31SpecValidator(PUBLISHED).iter_errors()) == []


def test_its_schemas_are_those_of_the_model_and_every_reference_leads_to_one() -> None:
    components, definitions = PUBLISHED["components"]["schemas"], schema.document()["$defs"]
    assert set(components) <= set(definitions)
    as_published = json.loads(json.dumps(components).replace("#/components/schemas/", "#/$defs/"))
    assert as_published == {name: definitions[name] for name in components}
    assert {reference.rpartition("/")[2] for reference in references(PUBLISHED)} == set(components)
    assert jsonschema_rs.meta.is_valid({"$schema": PUBLISHED["jsonSchemaDialect"], "$defs": as_published})


def test_the_running_service_promises_what_is_published() -> None:
    assert differences(PUBLISHED, application()) == []


def test_every_route_of_the_reference_is_published_and_no_other() -> None:
    """Also one that keeps itself out of the document that the service makes."""
    routes = {
        f"{method} {route.path}"
        for route in create_app().routes
        if isinstance(route, Route) and route.path.startswith("/v1/")
        for method in route.methods or ()
    }
    assert routes == {name for name, _ in operations()}


def test_every_operation_of_the_register_of_profiles_is_published() -> None:
    published = {name for name, _ in operations()}
    for definition in registers.requirements().profiles:
        assert set(definition.mandatory) <= published


def test_every_failure_is_told_as_a_problem() -> None:
    for name, operation in operations():
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")):
                problem = answer["content"]["application/problem+json"]["schema"]
                assert problem == {"$ref": "#/components/schemas/Problem"}, f"{name}: {status}"


def test_every_stream_names_the_class_of_its_events() -> None:
    streams = {}
    for name, operation in operations():
        for answer in operation["responses"].values():
            if media := answer.get("content", {}).get("text/event-stream"):
                event = media["x-item-schema"]["properties"]
                assert jsonschema_rs.meta.is_valid(
                    {"$schema": PUBLISHED["jsonSchemaDialect"], **media["x-item-schema"]}
                )
                data = event["data"]["contentSchema"]["$ref"].rpartition("/")[2]
                streams[name] = event["event"]["const"], data
    assert streams == {
        "GET /v1/graph/events": ("change", "GraphChange"),
        "GET /v1/faults/events": ("fault", "Fault"),
        "GET /v1/jobs/events": ("job", "JobRecord"),
    }
    assert [name for name, _ in operations() if name.endswith("/events")] == sorted(streams)


ELSEWHERE = {
    "ConformanceReport": "a report is a file that the suite writes",
    "Submission": "a submission is a file that whoever hands a report in writes",
    "RequirementRegister": "the register of requirements is published as a file",
    "ResourceSnapshot": "no operation takes or gives all resources at once",
    "JobStatus": "jobs are run by domains, which are asked for actions alone",
}
"""Classes of the model that no operation takes or gives, and why."""


def test_every_class_is_led_to_by_an_operation_unless_it_goes_elsewhere() -> None:
    definitions = schema.document()["$defs"]
    left = set(definitions) - set(PUBLISHED["components"]["schemas"])
    assert ELSEWHERE.keys() <= left
    waiting, elsewhere = list(ELSEWHERE), set[str]()
    while waiting:
        if (name := waiting.pop()) not in elsewhere:
            elsewhere.add(name)
            waiting += [reference.rpartition("/")[2] for reference in references(definitions[name])]
    assert left - elsewhere == set()


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda paths: paths.pop("/v1/health"), "GET /v1/health: only published"),
        (lambda paths: paths.update({"/v1/extra": paths["/v1/health"]}), "GET /v1/extra: only in the running service"),
        (lambda paths: paths["/v1/nodes"]["get"]["responses"].pop("200"), "GET /v1/nodes: answer 200: only published"),
        (
            lambda paths: paths["/v1/nodes"]["get"]["responses"]["200"]["content"]["application/json"].update(
                schema={"$ref": "#/components/schemas/LinkPage"}
            ),
            "GET /v1/nodes: answer 200 as application/json: published",
        ),
        (
            lambda paths: next(p for p in paths["/v1/nodes"]["get"]["parameters"] if p["name"] == "limit").update(
                required=True
            ),
            "GET /v1/nodes: query parameter limit: published",
        ),
        (
            lambda paths: paths["/v1/faults/events"]["get"]["responses"]["200"]["content"]["text/event-stream"].pop(
                "x-item-schema"
            ),
            "GET /v1/faults/events: answer 200 as text/event-stream: items: only published",
        ),
    ],
)
def test_a_promise_that_changed_is_told(change: Change, told: str) -> None:
    changed = deepcopy(PUBLISHED)
    change(changed["paths"])
    assert any(line.startswith(told) for line in differences(PUBLISHED, changed))


def test_words_for_people_are_no_promise() -> None:
    changed = deepcopy(PUBLISHED)
    for _, operation in [(path, item["get"]) for path, item in changed["paths"].items() if "get" in item]:
        operation["summary"] = "In other words."
        for parameter in operation.get("parameters", ()):
            parameter["description"] = "In other words."
    assert differences(PUBLISHED, changed) == []


def test_a_route_that_names_an_unknown_class_is_refused() -> None:
    model = Model(SPEC / "model" / "kuayu.yaml")
    stray = {"paths": {"/v1/x": {"get": {"responses": {"200": {"$ref": "#/components/schemas/HTTPValidationError"}}}}}}
    with pytest.raises(openapi.OpenApiError, match="HTTPValidationError"):
        openapi.document(model, schema.document(), stray)
