"""JUnit XML, for build servers: a suite per profile, a case per requirement."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.visible import visible
from kuayu_conformance.rendering.words import MEANINGS
from kuayu_schemas.base import write_instant
from kuayu_schemas.models import ConformanceReport, Evidence, RequirementResult
from kuayu_schemas.registers import requirements

_COUNTERS = {"pass": None, "fail": "failures", "harness-error": "errors"}  # everything else is skipped


def junit(report: ConformanceReport) -> str:
    """The report as JUnit XML; well-formed whatever the target answered."""
    view = view_of(report, requirements())
    root = Element("testsuites", name=f"kuayu {visible(report.spec_version)}")
    for group in view.groups:
        suite = SubElement(root, "testsuite", name=visible(group.profile), timestamp=write_instant(report.started_at))
        _properties(suite, view)
        for entry in group.entries:
            _case(suite, entry)
        _count(suite, group.entries)
    _count(root, view.entries)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _properties(suite: Element, view: View) -> None:
    report = view.report
    stated = {
        "target": report.target,
        "specification": report.spec_version,
        "suite": report.suite_version,
        "level": report.run_level,
        "nonce": report.nonce,
        "transcript": report.transcript,
    }
    if report.declaration:
        tested = report.declaration.implementation
        stated |= {"implementation": tested.name, "implementation version": tested.version}
    properties = SubElement(suite, "properties")
    for name, value in stated.items():
        SubElement(properties, "property", name=name, value=visible(value))


def _case(suite: Element, entry: Entry) -> None:
    seconds = (entry.result.duration if entry.result else None) or 0.0
    case = SubElement(
        suite,
        "testcase",
        classname=visible(f"kuayu.{entry.profile}"),
        name=visible(f"{entry.id} {entry.title.en}"),
        time=f"{seconds:.3f}",
    )
    match entry.state:
        case "pass":
            return
        case "fail":
            outcome = SubElement(case, "failure", type="fail")
        case "harness-error":
            outcome = SubElement(case, "error", type="harness-error")
        case state:
            SubElement(case, "skipped", message=visible(f"{state}: {_reason(entry)}"))
            return
    outcome.set("message", visible(_reason(entry)))
    outcome.text = visible(_account(entry))


def _reason(entry: Entry) -> str:
    if entry.result and entry.result.reason:
        return entry.result.reason
    because = entry.requirement.unchecked_because_en if entry.requirement else None
    return because or MEANINGS[entry.state].en


def _account(entry: Entry) -> str:
    """Everything that somebody needs who has only the build server's page."""
    lines = []
    if entry.requirement:
        lines.append(f"clause {entry.requirement.clause}: {entry.requirement.text_en}")
    if entry.result:
        lines += _figure(entry.result)
        for evidence in entry.result.evidence:
            lines += ["", *_evidence(evidence)]
        if entry.result.hint:
            lines += ["", f"hint: {entry.result.hint}"]
    return "\n".join(lines)


def _figure(result: RequirementResult) -> list[str]:
    if result.estimate is None or result.threshold is None:
        return []
    limit = result.threshold
    found = f"estimate {result.estimate!r}, bound {result.bound!r}, n {result.n}"
    return [f"{found}; required {limit.comparison} {limit.value!r} {limit.unit}"]


def _evidence(evidence: Evidence) -> list[str]:
    where = evidence.episode if evidence.exchange is None else f"{evidence.episode}, exchange {evidence.exchange}"
    parts = {
        "expected": evidence.expected,
        "found": evidence.found,
        "request": evidence.request,
        "answer": evidence.answer,
        "transcript": where,
    }
    return [f"{name}: {text}" for name, text in parts.items() if text is not None]


def _count(element: Element, entries: tuple[Entry, ...]) -> None:
    kinds = [_COUNTERS.get(entry.state, "skipped") for entry in entries]
    element.set("tests", str(len(entries)))
    for kind in ("failures", "errors", "skipped"):
        element.set(kind, str(kinds.count(kind)))
    seconds = sum((entry.result.duration or 0.0) for entry in entries if entry.result)
    element.set("time", f"{seconds:.3f}")
