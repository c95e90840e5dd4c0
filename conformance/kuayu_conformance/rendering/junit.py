"""JUnit XML, for build servers: a suite per profile, a case per requirement that the run was to test.

**Parts.** Where sub-profiles of a profile were to be tested and not the profile, its suite has their names.

**What is listed.** Requirements of the profiles that were asked for, or else of those that are declared, and of common
behaviour; of a selection only what was selected. Those without a check are listed where they were selected by name, for
otherwise nothing was to be run; the property ``coverage`` says how many there are.

**What is red.** A failure is a failure. What is required and could not be decided is an error, as is a fault of the
suite, for a build server takes what is skipped for well. What nothing rests on is skipped: what is not required and
stayed undecided, features that are not declared, and what was excluded or left to a longer run, each with its reason.

**Times.** A check takes its time once and may judge several requirements. It is divided evenly among those that it
judged, since nothing tells which of its exchanges were for which. So the times of all cases add up to the time of all
checks, which is more than the run took where checks went on beside each other. Requirements that are looked for in the
exchanges of the whole run have no time of their own.
"""

from collections import Counter
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.headline import coverage
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, EXCLUDED, MEANINGS, UNASKED, UNTESTED, visible
from kuayu_schemas.base import write_instant
from kuayu_schemas.models import ConformanceReport, Evidence, Profile, RequirementResult
from kuayu_schemas.registers import requirements, requirements_of, sub_profiles

_UNDECIDED = frozenset({"inconclusive", "not-testable"})
_COUNTERS = {None: None, "failure": "failures", "error": "errors", "skipped": "skipped"}


def junit(report: ConformanceReport) -> str:
    """The report as JUnit XML; well-formed whatever the target answered."""
    view = view_of(report, requirements())
    root = Element("testsuites", name=f"kuayu {visible(report.spec_version)}")
    listed = [entry for entry in view.entries if _is_listed(entry, view)]
    times = _times(listed)
    for group in view.groups:
        entries = [entry for entry in group.entries if _is_listed(entry, view)]
        if not entries:
            continue
        name = "+".join(_parts(group.profile, report)) or group.profile
        suite = SubElement(root, "testsuite", name=visible(name), timestamp=write_instant(report.started_at))
        _properties(suite, view)
        for entry in entries:
            _case(suite, entry, times[entry.id])
        _count(suite, entries, times)
    _count(root, listed, times)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _is_listed(entry: Entry, view: View) -> bool:
    """Whether the run was to test a requirement."""
    report = view.report
    if report.selection:
        return entry.id in report.selection
    if entry.state in {UNTESTED, UNASKED}:
        return False
    asked_for = _asked_for(report)
    if not (asked_for and entry.requirement) or entry.profile in {Profile.COM, *asked_for}:
        return True
    return any(entry.id in requirements_of(name) for name in _parts(entry.profile, report))


def _asked_for(report: ConformanceReport) -> set[str]:
    """Names of the profiles and sub-profiles that were to be tested: those asked for, else those declared."""
    requested = {*report.profiles, *(report.sub_profiles or ())}
    declared = report.declaration
    return requested or ({*declared.profiles, *(declared.sub_profiles or ())} if declared else set())


def _parts(profile: str, report: ConformanceReport) -> list[str]:
    """Sub-profiles of a profile that were to be tested where it was not itself, in order of the register."""
    requested = _asked_for(report)
    return [
        name for name, row in sub_profiles().items() if name in requested and row.profile == profile not in requested
    ]


def _times(entries: Iterable[Entry]) -> dict[str, float]:
    """Seconds for each requirement: its share of those that its check took."""
    judged = {entry.id: entry.result.duration for entry in entries if entry.result and entry.result.duration}
    checks = {entry.id: (entry.requirement and entry.requirement.check) or entry.id for entry in entries}
    shared = Counter(checks[name] for name in judged)
    return {name: judged[name] / shared[check] if name in judged else 0.0 for name, check in checks.items()}


def _properties(suite: Element, view: View) -> None:
    report = view.report
    stated = {
        "target": report.target,
        "specification": report.spec_version,
        "suite": report.suite_version,
        "level": report.run_level,
        "nonce": report.nonce,
        "transcript": report.transcript,
        "coverage": coverage(view).en,
    }
    if report.declaration:
        tested = report.declaration.implementation
        stated |= {"implementation": tested.name, "implementation version": tested.version}
    properties = SubElement(suite, "properties")
    for name, value in stated.items():
        SubElement(properties, "property", name=name, value=visible(value))


def _outcome(entry: Entry) -> str | None:
    """Name of the element that a case has; None for one that passed."""
    required = entry.result is not None and entry.result.required
    match entry.state:
        case "pass":
            return None
        case "fail":
            return "failure"
        case "harness-error":
            return "error"
        case state:
            return "error" if required and state in _UNDECIDED else "skipped"


def _case(suite: Element, entry: Entry, seconds: float) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=visible(f"kuayu.{entry.profile}"),
        name=visible(f"{entry.id} {entry.title.en}"),
        time=f"{seconds:.3f}",
    )
    tag = _outcome(entry)
    if tag is None:
        return
    if tag == "skipped":
        SubElement(case, tag, message=visible(_skipped(entry)))
        return
    outcome = SubElement(case, tag, type=entry.state, message=visible(_reason(entry)))
    outcome.text = visible(_account(entry))


def _skipped(entry: Entry) -> str:
    reason = _reason(entry)
    return reason if entry.state == EXCLUDED else f"{entry.state}: {reason}"


def _reason(entry: Entry) -> str:
    if entry.result_reason:
        return entry.result_reason
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
    unit, limit = figure_unit(result), result.threshold
    figures = [figure for figure in (result.estimate, result.bound, limit.value) if figure is not None]
    bound = "" if result.bound is None else f", bound {unit.text(result.bound, apart_from=figures)}"
    text = f"estimate {unit.text(result.estimate, apart_from=figures)}{bound}, n {result.n}"
    return [f"{text}; required {COMPARISONS[limit.comparison].en} {unit.text(limit.value)}"]


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


def _count(element: Element, entries: list[Entry], times: dict[str, float]) -> None:
    kinds = [_COUNTERS[_outcome(entry)] for entry in entries]
    element.set("tests", str(len(entries)))
    for kind in ("failures", "errors", "skipped"):
        element.set(kind, str(kinds.count(kind)))
    element.set("time", f"{sum(times[entry.id] for entry in entries):.3f}")
