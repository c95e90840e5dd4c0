"""The API keeps to its own document, whatever it is sent."""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from service.conftest import Service

from kuayu.service.app import create_app
from kuayu.service.routes.jobs import MAX_WAIT_SECONDS
from kuayu.service.settings import Settings

if TYPE_CHECKING:
    from schemathesis import Case

LEFT_OUT = {
    "positive_data_acceptance",  # a body that the schema allows may still name what is not registered
    "ensure_resource_availability",
    "use_after_free",
    "ignored_auth",
    "unsupported_method",  # 405 is tested by itself; TRACE and the like never reach the application
}
ANSWERED_ITEM_BY_ITEM = {"/v1/samples", "/v1/heartbeats", "/v1/log-lines"}
"""Where a bad item is named in an answer with status 200."""

SHORT = 0.05
"""Seconds that an operation waits for something in these tests."""

FOLLOWED = 1.0
"""Seconds for which a stream, which has no end, is followed."""

EXAMPLES = 5
"""Requests to each operation, those that keep to the document and others; there are many operations."""

SPENT = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

REJECTIONS = ["400", "404", "409", "413", "415", "422"]
"""How a bad request is answered; 413 too, where what makes it bad is its length."""

PUBLISHED = json.loads(files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8"))
OPERATIONS = [(method.upper(), path) for path, item in PUBLISHED["paths"].items() for method in item]


@cache
def document() -> Any:
    """The document as schemathesis reads it; only whoever runs these tests pays for importing it."""
    import schemathesis

    expected = {"checks": {"negative_data_rejection": {"expected-statuses": REJECTIONS}}}
    return schemathesis.openapi.from_dict(create_app().openapi(), config=schemathesis.Config.from_dict(expected))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[" ".join(operation) for operation in OPERATIONS])
@pytest.mark.filterwarnings("ignore:Skipped test cases with unsupported payload media types. application/x-protobuf")
def test_no_request_breaks_the_service_or_the_document(shared: Service, method: str, path: str) -> None:
    from schemathesis.checks import CHECKS

    left_out = LEFT_OUT | ({"negative_data_rejection"} if path in ANSWERED_ITEM_BY_ITEM else set())
    checks = CHECKS.get_by_names([name for name in CHECKS.get_all_names() if name not in left_out])
    followed = {"timeout": FOLLOWED} if path.endswith("/events") else {}

    @SPENT
    @given(document()[path][method].as_strategy())
    def holds(case: "Case[Any]") -> None:
        _shorten_wait(case)
        case.validate_response(case.call(base_url=shared.url, **followed), checks=checks)

    holds()


def _shorten_wait(case: "Case[Any]") -> None:
    """What may wait for half a minute is tested in a moment."""
    try:
        wait = float(str(case.query["wait"]))
    except (KeyError, ValueError):
        return
    if SHORT < wait <= MAX_WAIT_SECONDS:
        case.query["wait"] = SHORT


def test_making_the_document_touches_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = create_app(Settings(database="sqlite:///never.db")).openapi()
    assert made["openapi"].startswith("3.1")
    assert list(tmp_path.iterdir()) == []


def test_every_operation_has_a_name_a_summary_and_problems() -> None:
    operations: list[dict[str, Any]] = [
        operation for item in create_app().openapi()["paths"].values() for operation in item.values()
    ]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["summary"]
        problems = [found for status, found in operation["responses"].items() if int(status) >= 400]
        assert problems
        assert all("application/problem+json" in found["content"] for found in problems)


def test_every_reference_in_the_document_leads_somewhere() -> None:
    made = create_app().openapi()
    text = json.dumps(made)
    named = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert named <= made["components"]["schemas"].keys()


def test_the_running_service_serves_the_same_document(shared: Service) -> None:
    served: httpx.Response = shared.client.get("/openapi.json")
    assert served.json() == json.loads(json.dumps(create_app().openapi()))
