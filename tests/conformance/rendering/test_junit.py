"""JUnit agrees with the report, whatever the target said."""

from xml.etree import ElementTree as ET

import pytest
from conformance.rendering.samples import every_verdict, hostile, sample

from kuayu_conformance.rendering import junit
from kuayu_schemas.models import ConformanceReport
from kuayu_schemas.registers import requirements


def parsed(report: ConformanceReport) -> ET.Element:
    """The report's JUnit, read back."""
    return ET.fromstring(junit(report))  # noqa: S314 - written a line above


def test_there_is_a_suite_for_each_profile_and_a_case_for_each_requirement() -> None:
    root = parsed(sample())
    assert [suite.get("name") for suite in root] == [row.profile for row in requirements().profiles]
    assert len(root.findall(".//testcase")) == len(requirements().requirements)


def test_every_verdict_becomes_what_a_build_server_knows() -> None:
    root = parsed(every_verdict())
    cases = {str(case.get("name")).split()[0]: case for case in root.iter("testcase")}
    kinds = {name: [child.tag for child in case] for name, case in cases.items()}
    assert kinds["COM-001"] == []
    assert kinds["COM-006"] == ["error"]
    assert kinds["COM-008"] == kinds["MET-003"] == ["failure"]
    for name in ("COM-019", "COM-020", "MET-002", "MET-007", "MET-010"):
        assert kinds[name] == ["skipped"], name
    assert cases["COM-019"][0].get("message") == "not-testable: no credentials of a second tenant were given"


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
