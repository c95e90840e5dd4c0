"""What all operations share is asked of faults too, where a target declares them."""

import json
from pathlib import Path

import pytest
from conformance.fault_slips import served

from kuayu_conformance import contract
from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.interface import streams as com_streams
from kuayu_conformance.checks.kit.requests import mandatory
from kuayu_conformance.contract import Operation
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import FILE_NAME
from kuayu_schemas import registers
from kuayu_schemas.models import RequirementResult, Verdict

SHARED = {"GET /v1/actions", "POST /v1/action-results"}
"""Operations that profiles SCH and RES share."""


def said_of(target: str, folder: Path, *requirements: str) -> dict[str, RequirementResult]:
    """What a run says of requirements; those alone are looked at, and one that is left out is no pass."""
    options = Options(
        watch=False,
        target=target,
        nonce="faults",
        headers={"authorization": "Bearer own"},
        other_headers={"authorization": "Bearer other"},
        selection=requirements,
        timeout=30,
    )
    results = Run(options, folder, Progress()).execute().results
    return {result.requirement: result for result in results if result.requirement in requirements}


def asked(folder: Path) -> list[str]:
    """Method and path, without its query, of each request of a run."""
    events = map(json.loads, (folder / FILE_NAME).read_text("utf-8").splitlines())
    return [f"{event['method']} {event['path'].partition('?')[0]}" for event in events if "path" in event]


def words(result: RequirementResult) -> str:
    """What was expected and not found."""
    return " ".join(evidence.expected for evidence in result.evidence or [])


def declaring(*profiles: str) -> Answer:
    kind = {"content-type": "application/json"}
    return Answer(0, "GET /v1/conformance", 200, kind, json.dumps({"profiles": profiles}).encode())


def test_an_operation_of_two_profiles_is_asked_for_once() -> None:
    of = {row.profile.value: row.mandatory for row in registers.requirements().profiles}
    assert set(of["SCH"]) & set(of["RES"]) == SHARED
    both = mandatory(declaring("SCH", "RES"))
    assert len(both) == len(set(both)) == len(of["COM"]) + len(of["SCH"]) + len(of["RES"]) - len(SHARED)
    assert set(mandatory(declaring("RES"))) == {*of["COM"], *of["RES"]}


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("OfFaultsAndPerception", "/v1/nodes/"),
        ("OfFaultsAndScheduling", "/v1/allocations/"),
        ("OfFaultsAlone", "/v1/nodes/"),
    ],
)
def test_every_operation_that_can_be_called_is_called(kind: str, kept: str, tmp_path: Path) -> None:
    """A result needs an action: one of an allocation, or of a node that fails."""
    with served(kind) as target:
        results = said_of(target, tmp_path, "COM-001", "COM-002")
    assert {result.verdict for result in results.values()} == {Verdict.pass_}
    requests = asked(tmp_path)
    assert any(request.startswith(f"PUT {kept}") for request in requests)
    reports = ("POST /v1/heartbeats", "POST /v1/log-lines", "GET /v1/faults", "GET /v1/faults/events")
    assert all(requests.count(operation) >= 1 for operation in (*reports, "GET /v1/actions"))
    assert requests.count("POST /v1/action-results") == 1


@pytest.mark.parametrize(
    ("kind", "requirement", "told"),
    [
        ("FaultsAreListedAsTheyAre", "COM-012", ["they show each fault as it was at the first page"]),
        ("CursorsOfFaultsFitAnyState", "COM-012", ["the cursor of a listing of faults, given to one of other states"]),
        ("FaultsAreTwiceOnAPage", "COM-012", ["they hold each fault once", "no page of faults holds more than 1"]),
        (
            "TenantsShareFaults",
            "COM-019",
            [
                "a listing of faults holds nothing of another tenant",
                "a stream of faults tells nothing of another tenant",
                "an action that another tenant was asked for cannot be answered",
            ],
        ),
        ("AnyoneBeats", "COM-019", ["a heartbeat of another tenant's node is not taken"]),
        ("AnyEventOfFaultsIsHeld", "COM-024", ["/v1/faults/events: an event that never was is not held either"]),
        (
            "BatchesOfReportsAreOpen",
            "COM-005",
            ["heartbeats with an unknown member", "log lines with an unknown member"],
        ),
        ("LinesBreakTheService", "COM-006", ["lines: odd texts"]),
    ],
)
def test_a_slip_about_faults_is_found(
    kind: str, requirement: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(com_streams, "CHANGES", 1)
    with served(kind) as target:
        result = said_of(target, tmp_path, requirement)[requirement]
    assert result.verdict is Verdict.fail
    assert [each for each in told if each not in words(result)] == []


def test_who_does_not_slip_passes_and_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(com_streams, "CHANGES", 1)
    names = ("COM-004", "COM-005", "COM-006", "COM-007", "COM-012", "COM-019", "COM-024")
    with served("OfFaultsAndPerception") as target:
        results = said_of(target, tmp_path, *names)
    assert {name: result.verdict for name, result in results.items()} == dict.fromkeys(names, Verdict.pass_)
    requests = asked(tmp_path)
    assert requests.count("GET /v1/faults/events") >= 1 + 1 + 3
    assert requests.count("GET /v1/faults") > 10


def test_who_declares_no_faults_is_not_asked_for_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(com_streams, "CHANGES", 1)
    names = ("COM-002", "COM-004", "COM-012", "COM-019", "COM-024")
    with served("OfPerceptionAlone") as target:
        results = said_of(target, tmp_path, *names)
    assert {name: result.verdict for name, result in results.items()} == dict.fromkeys(names, Verdict.pass_)
    reports = ("/v1/faults", "/v1/heartbeats", "/v1/log-lines", "/v1/action")
    assert not [request for request in asked(tmp_path) if request.split()[1].startswith(reports)]


def test_an_answer_of_one_of_several_classes_is_held_against_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What became of an action is answered with an allocation or with a fault, and with nothing else."""
    operation = Operation("POST", "/v1/action-results", {200: ("AllocationRecord", "Fault")})
    monkeypatch.setattr(contract, "operation_of", lambda *_: operation)

    def told(body: bytes) -> str:
        kind = {"content-type": "application/json"}
        return contract.violation(Answer(0, "POST /v1/action-results", 200, kind, body))

    examples = Path(__file__).parents[2] / "spec" / "examples"
    for name in ("AllocationRecord/valid/committed.json", "Fault/valid/cleared-and-released.json"):
        assert told((examples / name).read_bytes()) == ""
    wrong = (examples / "Fault/invalid/cleared-without-when.json").read_bytes()
    assert told(wrong).startswith("not a valid AllocationRecord or Fault: ")
    assert told(b"{") == "the body is not JSON, AllocationRecord or Fault is expected"
