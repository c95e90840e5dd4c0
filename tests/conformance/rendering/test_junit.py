"""JUnit agrees with the report, whatever the target said."""

from xml.etree import ElementTree as ET

import pytest
from conformance.rendering.samples import every_verdict, hostile, sample, with_reason

from kuayu_conformance.rendering import junit
from kuayu_schemas.models import ConformanceReport
from kuayu_schemas.registers import requirements


def parsed(report: ConformanceReport) -> ET.Element:
    """The report's JUnit, read back."""
    return ET.fromstring(junit(report))  # noqa: S314 - written a line above


def names(root: ET.Element) -> list[str]:
    """Requirements that are listed, in order."""
    return [str(case.get("name")).split()[0] for case in root.iter("testcase")]


def test_there_is_a_suite_for_each_profile_and_a_case_for_each_requirement_that_was_to_be_tested() -> None:
    root = parsed(sample())
    assert [suite.get("name") for suite in root] == ["COM", "MET"]
    checked = [row.id for row in requirements().requirements if row.profile in {"COM", "MET"} and row.check]
    assert names(root) == checked
    declared = parsed(sample(profiles=[]))
    assert names(declared) == checked, "without profiles that were asked for, those that are declared"
    coverage = next(entry.get("value") for entry in root.iter("property") if entry.get("name") == "coverage")
    assert "have no check yet" in str(coverage)


def test_of_a_selection_only_what_was_selected_is_listed() -> None:
    unchecked = next(row.id for row in requirements().requirements if not row.check)
    root = parsed(sample(selection=["COM-008", "MET-003", unchecked]))
    assert sorted(names(root)) == sorted(["COM-008", "MET-003", unchecked])
    assert [root.get(counter) for counter in ("tests", "skipped")] == ["3", "1"]


def test_what_was_excluded_is_skipped_and_says_why() -> None:
    why = "excluded: one tenant only"
    root = parsed(with_reason(sample({"COM-019": "not-applicable"}), "COM-019", why))
    case = next(case for case in root.iter("testcase") if str(case.get("name")).startswith("COM-019"))
    assert [(child.tag, child.get("message")) for child in case] == [("skipped", why)]


def test_requirements_of_one_check_share_its_time() -> None:
    root = parsed(sample())
    checks: dict[str, list[str]] = {}
    for row in requirements().requirements:
        checks.setdefault(row.check or "", []).append(row.id)
    of_one = next(listed for listed in checks.values() if "COM-002" in listed)
    assert len(of_one) > 1
    times = {str(case.get("name")).split()[0]: float(case.get("time", "")) for case in root.iter("testcase")}
    took = 1.25
    assert sum(times[name] for name in of_one) == pytest.approx(took, abs=0.001 * len(of_one))
    assert len({times[name] for name in of_one}) == 1
    made = {requirement.check for requirement in requirements().requirements if requirement.id in times}
    assert float(root.get("time", "")) == pytest.approx(took * len(made), abs=0.01)


def test_every_verdict_becomes_what_a_build_server_knows() -> None:
    root = parsed(every_verdict())
    cases = {str(case.get("name")).split()[0]: case for case in root.iter("testcase")}
    kinds = {name: [child.tag for child in case] for name, case in cases.items()}
    assert kinds["COM-001"] == []
    assert kinds["COM-006"] == kinds["COM-019"] == kinds["MET-002"] == ["error"], "nothing that is open looks well"
    assert kinds["COM-008"] == kinds["MET-003"] == ["failure"]
    assert kinds["MET-007"] == kinds["MET-010"] == ["skipped"]
    error = cases["COM-019"][0]
    said = (error.get("type"), error.get("message"))
    assert said == ("not-testable", "no credentials of a second tenant were given")


def test_what_stays_open_and_is_not_required_is_skipped() -> None:
    report = with_reason(sample({"MET-003": "inconclusive"}), "MET-003", "too few")
    results = [result.model_copy(update={"required": False}) for result in report.results]
    skipped = parsed(report.model_copy(update={"results": results})).findall(".//testcase/skipped")
    assert [element.get("message") for element in skipped] == ["inconclusive: too few"]


def test_the_counts_are_those_of_the_cases() -> None:
    root = parsed(every_verdict())
    for suite in [root, *root]:
        cases = list(suite.iter("testcase"))
        assert suite.get("tests") == str(len(cases))
        for counter, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(counter) == str(sum(case.find(tag) is not None for case in cases))


def test_a_failure_carries_clause_expectation_request_and_answer() -> None:
    failure = parsed(every_verdict()).find(".//testcase/failure")
    assert failure is not None
    assert failure.text is not None
    lines = [line.partition(":")[0] for line in failure.text.splitlines() if line]
    assert lines[:5] == ["clause com-08-writes", "expected", "found", "request", "answer"]


def test_the_properties_name_target_versions_and_nonce() -> None:
    properties = {entry.get("name"): entry.get("value") for entry in parsed(sample()).iter("property")}
    assert properties["target"] == "http://127.0.0.1:8080"
    assert properties["nonce"] == "7f3b9c1e"
    assert properties["specification"] == properties["suite"] == "0.1.0"


@pytest.mark.parametrize("words", ["\x01\x08\x1b[0m", "]]><x>&", "\ufffe\uffff", "a\u202eb"])
def test_it_is_well_formed_whatever_the_target_said(words: str) -> None:
    root = parsed(sample({"COM-008": "fail"}, words=words))
    assert root.find(".//failure") is not None


def test_it_is_well_formed_against_a_hostile_target() -> None:
    assert parsed(hostile()).find(".//failure") is not None
