"""The guide for vendors: its commands carry a maker of one thing from the first look to a result that is handed in.

The service is the minimal server with what the guide itself declares; a run of it is broken off and gone on with.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conformance.part_services import served
from docs.typed import GUIDES, WRITTEN_FOR, blocks
from docs.watched import Terminal

PAGE = "vendor.md"
PATIENCE_S = 900.0
"""A busy machine needs minutes for a run that takes another one."""


def typed(command: str) -> str:
    """The one block of the guide that holds a command."""
    (found,) = (text for kind, text in blocks(PAGE) if kind == "sh" and command in text)
    return found


@pytest.fixture(scope="module")
def declared() -> dict[str, list[str]]:
    """What the guide declares of a service that makes one thing."""
    (text,) = (text for kind, text in blocks(PAGE) if kind == "json")
    return json.loads(text)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def target(declared: dict[str, list[str]]) -> Iterator[str]:
    assert declared["profiles"] == ["COM"]
    with served(*declared["sub_profiles"]) as url:
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vendor")


@pytest.fixture(scope="module")
def terminal(target: str, folder: Path) -> Terminal:
    return Terminal(folder, {WRITTEN_FOR: target})


@pytest.fixture(scope="module")
def printed(terminal: Terminal) -> str:
    """What the run prints that goes on with the one that was broken off."""
    with terminal.watch(typed("-o report\n")) as run:
        run.until("COM-042 pass", PATIENCE_S)
        assert run.interrupt() != 0
    return terminal.type(typed("--resume"), PATIENCE_S)


def test_what_it_declares_is_what_the_service_declares(target: str, declared: dict[str, list[str]]) -> None:
    answer = httpx.get(f"{target}/v1/conformance", trust_env=False).json()
    assert {member: answer[member] for member in declared} == declared


@pytest.mark.slow
def test_the_doctor_finds_nothing_in_the_way(terminal: Terminal) -> None:
    looked = terminal.type(typed("conformance doctor"))
    assert "ok   target" in looked
    assert "profiles COM, RES/collectives; features none" in looked


@pytest.mark.slow
def test_a_run_that_was_broken_off_is_gone_on_with_and_claims_the_part(printed: str, folder: Path) -> None:
    assert "RES/collectives at level quick: conforms, all 7 requirements met" in printed
    report = json.loads((folder / "report/report.json").read_text("utf-8"))
    assert report["resumptions"]
    badge = (folder / "report/badge.svg").read_text("utf-8")
    assert "RES/collectives quick: 7/7 pass" in badge
    for language in ("en", "zh"):
        assert "`RES/collectives quick: 7/7 pass`" in (GUIDES / language / "guides" / PAGE).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("printed")
def test_the_report_is_verified_and_handed_in(terminal: Terminal, folder: Path) -> None:
    assert "the report follows from its transcript" in terminal.type(typed("conformance verify"), PATIENCE_S)
    handed = terminal.type(typed("conformance publish"), PATIENCE_S)
    assert "submission acme-scheduler" in handed
    assert "RES/collectives met" in handed
    submission = json.loads((folder / "submission/submission.json").read_text("utf-8"))
    assert submission["name"] == "acme-scheduler"


@pytest.mark.slow
def test_a_file_of_expected_failures_is_read_as_the_guide_writes_it(terminal: Terminal, folder: Path) -> None:
    """COM-009 was not tested, so that the run ends with 1 and says why, as the guide tells of such an entry."""
    (text,) = (text for kind, text in blocks(PAGE) if kind == "text")
    (folder / "expected").write_text(text, "utf-8")
    run = typed("-o report\n").replace("-o report", "-o expecting --requirement COM-042 --expected-failures expected")
    with terminal.watch(run) as watched:
        assert watched.end(PATIENCE_S) == 1
        assert "COM-009" in watched.printed
