"""COM-042: every row of the table is asked, told by itself, and about an operation that the target declares."""

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

import pytest
from conformance.complaints import LOOKS
from conformance.conforming_forecaster import wrong
from conforming import TENANTS, Edit, Fake, InProcess, Json
from minimal_server.client import SCHEMAS
from minimal_server.core import Answer as Answered
from minimal_server.core import Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks import DECIDING
from kuayu_conformance.checks.forecast import forecast_requests
from kuayu_conformance.checks.interface import references
from kuayu_conformance.checks.interface.references import (
    CHECK,
    INVALID,
    NOWHERE,
    ROWS,
    UNKNOWN,
    Row,
    SpoiltRequest,
    SpoiltRequests,
    judge,
    observe,
    put,
)
from kuayu_conformance.checks.kit.requests import DECISIONS
from kuayu_conformance.episode import Episode, Settings, SetUpFailure
from kuayu_conformance.findings import Claim, Finding
from kuayu_schemas import registers, schema

SETTINGS = Settings("nonce", "run", full=False, features=frozenset(), limits={}, other_tenant=False)
OPENAPI: Json = json.loads((files("kuayu_schemas") / "published" / "openapi.json").read_text("utf-8"))
OF_FORECASTS = ("/v1/forecasts", "/v1/reservations", "/v1/waveforms", "/v1/peak-plans", "/v1/training-phases")
OF_THE_SCHEMA = "a job without periods"
"""What is wrong by the schema as well."""
MANY = ("/v1/shard-plans", "/v1/collectives")
"""Operations in whose requests one thing that is wrong can be seen in two places."""
TABLE = [(path, row) for path, rows in ROWS.items() for row in rows]


@cache
def fake() -> Fake:
    """A service that keeps to the text."""
    return Fake(MinimalServer(SCHEMAS, TENANTS))


def episode(edit: Edit | None = None, settings: Settings = SETTINGS) -> Episode:
    return Episode(CHECK.name, settings, InProcess(fake(), edit))


@cache
def seen() -> SpoiltRequests:
    """What comes of the check where nothing is wrong with the service."""
    return observe(episode())


@cache
def right() -> dict[str, Json]:
    """Requests that are right, as :func:`seen` was asked them, by operation."""
    drawn = episode()
    return {path: dict(body) for path, body in references.requests(drawn.random, drawn.naming).items()}


def unmet(found: list[Finding]) -> list[str]:
    return [claim.expected for claim in found if isinstance(claim, Claim) and not claim.met]


def asked(of: Episode) -> set[str]:
    """Operations that an episode has asked for decisions."""
    return {f"{request.method} {request.path}" for request, _ in of.exchanges if request.method == "POST"}


def test_who_keeps_to_the_text_passes_and_is_asked_every_row() -> None:
    assert unmet(judge(seen())) == []
    assert [(request.path, request.row) for request in seen().requests] == TABLE
    assert {f"POST {path}" for path in ROWS} == set(DECISIONS)


@pytest.mark.parametrize(("path", "row"), TABLE, ids=[f"{path} {row.what}" for path, row in TABLE])
def test_who_overlooks_one_thing_is_told_which(path: str, row: Row) -> None:
    careless = episode().ask("POST", path, right()[path])
    found = unmet(
        judge(
            SpoiltRequests(
                tuple(
                    replace(request, answer=careless) if (request.path, request.row) == (path, row) else request
                    for request in seen().requests
                )
            )
        )
    )
    assert len(found) == 2
    assert all(said.startswith(f"{row.what} ({path}): ") for said in found)
    assert found[1].endswith(f"the place {row.where}")


def test_every_row_of_an_operation_has_words_of_its_own() -> None:
    for path, rows in ROWS.items():
        assert len({row.what for row in rows}) == len(rows), path


def test_every_request_is_one_that_the_schema_lets_pass_and_a_spoilt_one_differs() -> None:
    for path, rows in ROWS.items():
        content = OPENAPI["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        model = content["schema"]["$ref"].rpartition("/")[2]
        assert schema.is_valid(model, right()[path]), path
        for row in rows:
            spoilt = row.spoil(right()[path])
            assert spoilt != right()[path]
            assert schema.is_valid(model, spoilt) == (row.what != OF_THE_SCHEMA), (path, row.what)


@pytest.mark.parametrize("path", LOOKS)
def test_what_is_wrong_of_resilience_is_one_thing_each_time(path: str) -> None:
    """Who refuses for another reason than the one that is meant is not taken for one who looked."""
    assert list(LOOKS[path](right()[path])) == []
    for row in ROWS[path]:
        complaints = list(LOOKS[path](row.spoil(right()[path])))
        assert len(complaints) == 1 or path in MANY, row.what
        problem, pointer = complaints[0]
        assert problem == row.problem, row.what
        assert row.names(pointer), row.what


@pytest.mark.parametrize("path", OF_FORECASTS)
def test_what_is_wrong_of_forecasts_is_seen_by_somebody_else(path: str) -> None:
    assert wrong(path, right()[path]) == {}
    for row in ROWS[path]:
        (error,) = wrong(path, row.spoil(right()[path]))["errors"]
        assert row.names(error["pointer"]), row.what


def test_paths_are_those_of_the_checks_of_forecasts() -> None:
    """They stand twice, for those checks need a library of numbers, and this one does not."""
    for name in ("FORECASTS", "WAVEFORMS", "PEAKS", "RESERVATIONS", "PHASES"):
        assert getattr(forecast_requests, name) == getattr(references, name)


@pytest.mark.parametrize("profile", ["IDX", "DEM", "FCT", "SCH", "RES"])
def test_who_declares_one_profile_is_judged_on_its_operations_alone(profile: str) -> None:
    class Declaring(MinimalServer):
        @override
        def declaration(self, request: Request) -> Answered:
            return Answered(200, {**super().declaration(request).body, "profiles": ["COM", profile]})

    of = Episode(CHECK.name, SETTINGS, InProcess(Fake(Declaring(SCHEMAS, TENANTS))))
    found = observe(of)
    own = set(registers.profiles()[profile].mandatory) & DECISIONS.keys()
    assert asked(of) == own
    assert {f"POST {request.path}" for request in found.requests} == own
    assert unmet(judge(found)) == []


@pytest.mark.parametrize("part", [name for name in registers.sub_profiles() if name in DECIDING])
def test_a_run_about_a_part_asks_its_operations_alone(part: str) -> None:
    operations = frozenset(registers.mandatory(["COM", part]))
    of = episode(settings=replace(SETTINGS, operations=operations))
    observe(of)
    assert asked(of) == operations & DECISIONS.keys()


def test_a_service_without_answers_to_what_is_right_shows_nothing_unless_another_fails() -> None:
    silent = Edit(frozenset({"/v1/routes"}), request=lambda _: {})
    found = observe(episode(silent))
    assert "/v1/routes" not in {request.path for request in found.requests}
    with pytest.raises(SetUpFailure, match="/v1/routes"):
        judge(found)
    careless = Edit(frozenset({"/v1/routes", "/v1/task-sizes"}), request=_first_task)
    assert unmet(judge(observe(episode(careless)))) == [
        "task, twice (/v1/task-sizes): 422 with problem invalid-body",
        "task, twice (/v1/task-sizes): the place /tasks/1/id",
    ]


def _first_task(body: Json) -> Json:
    """A request of tasks without all but the first; any other is spoilt."""
    return {**body, "tasks": body["tasks"][:1]} if "tasks" in body else {}


@pytest.mark.parametrize(
    ("problem", "count"),
    [("unknown-reference", sum(row.problem == INVALID for _, row in TABLE)),
     ("invalid-body", sum(row.problem == UNKNOWN for _, row in TABLE))],
)  # fmt: skip
def test_one_problem_for_all_is_seen(problem: str, count: int) -> None:
    def renamed(_: Json, said: Json) -> Json:
        return {**said, "type": f"urn:kuayu:problem:{problem}"}

    assert len(unmet(judge(observe(episode(Edit(frozenset(ROWS), problem=renamed)))))) == count


def test_a_pointer_to_another_place_is_seen() -> None:
    def elsewhere(_: Json, said: Json) -> Json:
        return {**said, "errors": [{"pointer": "/revision", "detail": ""}]}

    found = unmet(judge(observe(episode(Edit(frozenset(ROWS), problem=elsewhere)))))
    assert len(found) == len(TABLE)
    assert all("the place" in said for said in found)


@pytest.mark.parametrize(
    ("within", "instead", "pointer", "named"),
    [
        (False, "", "/series/1", True),
        (False, "", "/series/1/id", False),
        (False, "", "/series", False),
        (True, "", "/series/1/values/7", True),
        (True, "", "/series/10/values", False),
        (True, "/jobs/2", "/jobs/2", True),
        (True, "/jobs/2", "/jobs/2/shares/2/domain", True),
        (True, "/jobs/2", "/jobs/20", False),
        (True, "/jobs/2", "/jobs", False),
        (True, "", "", False),
    ],
)
def test_the_place_is_named(within: bool, instead: str, pointer: str, named: bool) -> None:
    row = Row("a series", INVALID, "/series/1", put("/series/1/id", NOWHERE), within, instead)
    said = {"type": f"urn:kuayu:problem:{INVALID}", "title": "", "status": 422, "retryable": False}
    answer = Answer(0, "POST /v1/forecasts", 422, {"content-type": "application/problem+json"},
                    json.dumps({**said, "errors": [{"pointer": pointer, "detail": ""}]}).encode())  # fmt: skip
    assert [claim.met for claim in SpoiltRequest("/v1/forecasts", row, answer).claims()] == [True, named]


def test_a_run_is_made_again_from_its_nonce_and_another_asks_otherwise() -> None:
    first, again, other = episode(), episode(), episode(settings=replace(SETTINGS, nonce="other"))
    for of in (first, again, other):
        observe(of)
    said = [[answer.request for _, answer in of.exchanges] for of in (first, again, other)]
    assert said[0] == said[1]
    assert not set(said[0][1:]) & set(said[2][1:])
