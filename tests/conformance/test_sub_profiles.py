"""A maker of one thing declares a part of a profile: it is tested alone, has its own badge, and is not the profile."""

import dataclasses
import importlib
import json
from collections.abc import Sequence
from pathlib import Path

import commands
import pytest
from conformance.part_services import OfPartsTakingAnyName, OfPartsThatAreNotThere, served
from conformance.rendering.samples import sample
from conformance.rendering.test_junit import parsed

from kuayu_conformance.claims import Outcome, claims
from kuayu_conformance.contract import operation_of
from kuayu_conformance.doctor import diagnose
from kuayu_conformance.folder import BADGE, verify, write
from kuayu_conformance.rendering import badge, page
from kuayu_conformance.rendering.headline import claimed, headline
from kuayu_conformance.rendering.view import view_of
from kuayu_conformance.run.resumption import Contradiction, agreed
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.submissions import check
from kuayu_conformance.transcript import Transcript
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, Verdict

ROOT = Path(__file__).parents[2]
PART = "SCH/routes"
"""A part that takes a second to test, and of whose requirements one is shared with all parts of its profile."""

WRITTEN_AND_READ = ("COM-004", "COM-006", "COM-007", "COM-008", "COM-012", "COM-013", "COM-016", "COM-018", "COM-023")


def run(target: str, folder: Path, *profiles: str, selection: Sequence[str] = ()) -> ConformanceReport:
    """A smoke run, written to a folder."""
    options = Options(target, "parts", profiles=profiles, selection=tuple(selection), level="smoke", timeout=30.0)
    report = Run(dataclasses.replace(options, watch=False), folder, Progress()).execute()
    write(folder, report)
    return report


def called(folder: Path) -> set[str]:
    """Published operations that a run has called."""
    events = [event for row in Transcript.read(folder).episodes.values() for event in row if "path" in event]
    found = (operation_of(event.get("method", "GET"), event["path"]) for event in events)
    return {f"{operation.method} {operation.template}" for operation in found if operation}


def said(report: ConformanceReport) -> list[str]:
    """What the summary says of each claim, in both languages."""
    return [text for words in claimed(view_of(report, registers.requirements())) for text in (words.en, words.zh)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report on a service that has one part, of which nothing was asked for in particular."""
    made = tmp_path_factory.mktemp("part")
    with served(PART) as target:
        run(target, made)
    return made


@pytest.fixture
def report(folder: Path) -> ConformanceReport:
    return ConformanceReport.model_validate_json((folder / "report.json").read_bytes())


def test_a_maker_of_one_thing_conforms_to_it_and_to_nothing_else(folder: Path, report: ConformanceReport) -> None:
    assert report.exit_code == 0
    (claim,) = claims(report)
    assert (claim.profile, claim.outcome, claim.lacking) == (PART, Outcome.MET, ())
    judged = {row.requirement for row in report.results if row.required}
    assert {name for name in judged if not name.startswith("COM-")} == set(registers.requirements_of(PART))
    assert {"COM-001", "COM-002", "COM-003", "COM-028", "COM-029", "COM-030"} <= judged
    assert len(judged) == claim.judged
    assert all(verdict.agrees for verdict in verify(folder))


def test_it_is_asked_for_its_operations_and_for_no_others(folder: Path) -> None:
    assert called(folder) == set(registers.mandatory(["COM", PART]))


def test_what_is_left_out_is_said_with_its_reason(report: ConformanceReport) -> None:
    reasons = {row.requirement: row.reason for row in report.results if row.verdict is Verdict.not_applicable}
    assert reasons["SCH-013"] == "profile SCH beyond SCH/routes is not declared"
    assert reasons["RES-010"] == "profile RES is not declared"
    assert reasons["COM-008"] == "shows only through profile MET, which is not declared"


def test_badge_page_and_summary_name_the_part_and_never_the_profile(folder: Path, report: ConformanceReport) -> None:
    assert f"kuayu 0.1: SCH/routes smoke: {claims(report)[0].judged}/" in (folder / BADGE).read_text("utf-8")
    assert said(report) == [
        f"SCH/routes at level smoke: conforms, all {claims(report)[0].judged} requirements met",
        f"SCH/routes（级别 smoke）：符合，{claims(report)[0].judged} 项要求均满足",
    ]
    html = page(report)
    assert "SCH/routes at level smoke: conforms" in html
    assert "SCH at level" not in html


def test_the_build_server_sees_a_suite_of_the_part(report: ConformanceReport) -> None:
    suites = parsed(report)
    names = {suite.get("name"): [case.get("name", "")[:7] for case in suite.iter("testcase")] for suite in suites}
    assert list(names) == ["COM", PART]
    assert names[PART] == ["SCH-016"]


def test_the_result_can_be_handed_in_and_is_listed_as_that_of_a_part(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "router"
    done = commands.run("conformance", "publish", folder, "-o", made, "--contact", "router@acme.example")
    assert done.returncode == 0, done.stderr
    submission = json.loads((made / "submission.json").read_text("utf-8"))
    assert [(claim["profile"], claim["outcome"]) for claim in submission["claims"]] == [(PART, "met")]
    assert "- **SCH/routes**: conforms;" in (made / "README.md").read_text("utf-8")
    (found,) = check([made])
    assert found.faults == ()
    assert "SCH/routes met" in found.note
    results = tmp_path / "project" / "docs" / "results"
    (results / "submissions").mkdir(parents=True)
    (results / "submissions" / "router").symlink_to(made)
    (results / "runs").symlink_to(ROOT / "docs" / "results" / "runs")
    monkeypatch.syspath_prepend(ROOT / "docs" / "hooks")
    implementations = importlib.import_module("pages.implementations")  # as mkdocs imports it
    for language in ("en", "zh"):
        (listed,) = implementations.pages(language, tmp_path / "project")
        row = next(line for line in listed.text.splitlines() if "SCH/routes" in line and "8/8" in line)
        assert "<code>SCH</code>" not in row


def test_a_part_can_be_asked_of_a_service_that_has_the_whole_profile(options: Options, tmp_path: Path) -> None:
    asked = dataclasses.replace(options, selection=(), profiles=(PART,), level="smoke")
    report = Run(asked, tmp_path, Progress()).execute()
    assert (report.profiles, report.sub_profiles) == ([], [PART])
    assert [(claim.profile, claim.outcome) for claim in claims(report)] == [(PART, Outcome.MET)]
    assert called(tmp_path) == set(registers.mandatory(["COM", PART])), "what else it has counts for nothing"
    reasons = {row.requirement: row.reason for row in report.results}
    assert reasons["COM-008"] == "shows only through profile MET, which is not asked for"
    assert reasons["SCH-013"] == "profile SCH beyond SCH/routes was not asked for"


def test_parts_of_one_profile_are_claimed_one_by_one_and_are_not_the_profile(tmp_path: Path) -> None:
    with served(PART, "SCH/plans") as target:
        report = run(target, tmp_path)
    assert [(claim.profile, claim.outcome) for claim in claims(report)] == [
        ("SCH/plans", Outcome.MET),
        (PART, Outcome.MET),
    ]
    assert "SCH/plans+SCH/routes smoke: " in (badge(report) or "")
    judged = {row.requirement for row in report.results if row.required and row.requirement.startswith("SCH")}
    assert judged == {"SCH-015", "SCH-016", "SCH-020"}


def test_a_part_of_which_a_requirement_fails_is_not_met(tmp_path: Path) -> None:
    with served(PART, kind=OfPartsTakingAnyName) as target:
        report = run(target, tmp_path)
    assert report.exit_code == 1
    (claim,) = claims(report)
    assert (claim.profile, claim.outcome) == (PART, Outcome.NOT_MET)
    assert {row.requirement for row in report.results if row.verdict is Verdict.fail} >= {"COM-042"}
    assert "SCH/routes smoke: " in (badge(report) or "")
    assert "does not conform" in said(report)[0]


def test_a_declared_part_that_is_not_there_is_not_met(tmp_path: Path) -> None:
    with served(PART, kind=OfPartsThatAreNotThere) as target:
        report = run(target, tmp_path)
    assert report.exit_code == 1
    assert [(claim.profile, claim.outcome) for claim in claims(report)] == [(PART, Outcome.NOT_MET)]
    (unanswered,) = (row for row in report.results if row.requirement == "COM-002")
    assert [evidence.expected for evidence in unanswered.evidence] == [
        "POST /v1/routes is carried out: 200 or 201 or 204"
    ]


def test_a_part_that_is_not_declared_is_not_claimed_though_it_was_asked_for(tmp_path: Path) -> None:
    with served("SCH/plans") as target:
        report = run(target, tmp_path, PART)
    assert (report.exit_code, claims(report)) == (2, ())
    assert called(tmp_path) <= set(registers.mandatory(["COM", PART]))
    assert BADGE not in {path.name for path in tmp_path.iterdir()}


def test_a_part_that_this_version_does_not_know_says_nothing(tmp_path: Path) -> None:
    with served("SCH/telepathy") as target:
        report = run(target, tmp_path)
        looked = {row.subject: row for row in diagnose(Options(target, "n"), machine=False)}
    assert (report.exit_code, claims(report)) == (2, ())
    assert {row.requirement for row in report.results if row.verdict is Verdict.fail} == set()
    assert not (tmp_path / BADGE).exists()
    assert "declares no profile and no sub-profile" in headline(view_of(report, registers.requirements())).en
    assert "SCH/telepathy: not known to this suite" in looked["profiles"].observed
    assert looked["profiles"].well is None


@pytest.mark.parametrize("part", ["MET/telemetry", "MET/graph"])
def test_common_behaviour_of_a_service_with_one_half_of_perception(part: str, tmp_path: Path) -> None:
    with served(part) as target:
        report = run(target, tmp_path, selection=WRITTEN_AND_READ)
    found = {row.requirement: row for row in report.results if row.requirement in WRITTEN_AND_READ}
    streams = found.pop("COM-023")
    assert {name: row.verdict for name, row in found.items()} == dict.fromkeys(found, Verdict.pass_)
    assert streams.verdict is (Verdict.pass_ if part == "MET/graph" else Verdict.not_applicable)
    beyond = called(tmp_path) - set(registers.mandatory(["COM", part]))
    assert beyond == {"POST /v1/domains/{id}"} & beyond, "which is a method that the path has not"


def test_a_profile_that_is_claimed_is_not_claimed_again_by_its_parts() -> None:
    declaration = sample().model_dump(mode="json", exclude_none=True)["declaration"]
    both = sample(declaration={**declaration, "sub_profiles": ["MET/telemetry"]}, profiles=[])
    assert [claim.profile for claim in claims(both)] == ["MET"]
    asked = sample(profiles=[], sub_profiles=["MET/telemetry"])
    assert [claim.profile for claim in claims(asked)] == ["MET/telemetry"], "whoever declares MET declares its parts"


def test_a_failure_beside_the_part_is_none_of_it() -> None:
    part = {"profiles": [], "sub_profiles": ["MET/telemetry"]}
    (claim,) = claims(sample({"MET-017": "fail"}, **part))
    assert claim.outcome is Outcome.MET
    (claim,) = claims(sample({"MET-003": "fail"}, **part))
    assert claim.outcome is Outcome.NOT_MET
    (claim,) = claims(sample({"COM-008": "fail"}, **part))
    assert claim.outcome is Outcome.NOT_MET


def test_a_run_over_a_part_is_not_gone_on_with_over_another(folder: Path) -> None:
    header = {**Transcript.read(folder).header, "sub_profiles": [PART]}
    target = header["target"]
    assert agreed(Options(target, "", level=""), header).profiles == (PART,)
    with pytest.raises(Contradiction, match="begun with --profile SCH/routes, not SCH/plans"):
        agreed(Options(target, "", level="", profiles=("SCH/plans",)), header)
