"""Implementations that were tested: the reference by its committed runs, all others by what their vendors handed in.

A submission lies in ``docs/results/submissions/NAME`` (:mod:`kuayu_conformance.submissions`); ``make submissions`` says
whether it is right. What it says is shown as it is, failures included. Who chose the nonce is what the report says;
where it says nothing, whoever ran the suite did.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuayu_conformance.claims import Claim, Outcome, claims
from kuayu_conformance.folder import REPORT
from kuayu_conformance.rendering import page as drawn_page
from kuayu_conformance.rendering.headline import said_of
from kuayu_conformance.rendering.words import Language
from kuayu_conformance.submissions import OUTCOMES, REFERENCE, SUBMISSION
from kuayu_schemas.models import ClaimOutcome, ConformanceReport, RunLevel, Submission

from . import runs
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain
from .text import phrases, text

FOLDER = "docs/results/submissions"
NAME = "implementations"
PAGE = "implementations.md"

CLASSES = {
    ClaimOutcome.met: "pass",
    ClaimOutcome.not_met: "fail",
    ClaimOutcome.undecided: "inconclusive",
    ClaimOutcome.not_claimed: "",
}
"""Classes by which the style sheet colours outcomes."""

SELF_ASSERTED = "self-asserted"
OWN_CONTACT = "the project's issue tracker"
"""What the project's own submission names, which is said in the language of the page."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An implementation as the table lists it.

    Attributes:
        name: Its anchor in the page.
        report: What was found.
        levels: Levels of the runs that decide.
        origins: Who chose their nonces.
        submission: What its vendor handed in; None for the reference.
    """

    name: str
    report: ConformanceReport
    levels: Sequence[RunLevel]
    origins: Sequence[str]
    submission: Submission | None = None


def listed(root: Path) -> Iterator[Listed]:
    """The reference, then all submissions by name."""
    deciding = {row.run.name: row.run for row in runs.standing(root).values()}
    levels = [level for level in runs.LEVELS if any(run.report.run_level is level for run in deciding.values())]
    origins = {_origin(root / runs.FOLDER / name) for name in deciding}
    yield Listed(REFERENCE, runs.combined(root), levels, sorted(origins))
    for file in sorted((root / FOLDER).glob(f"*/{SUBMISSION}")):
        submission = Submission.model_validate_json(file.read_bytes())
        report = ConformanceReport.model_validate_json((file.parent / REPORT).read_bytes())
        yield Listed(submission.name, report, [report.run_level], [_origin(file.parent)], submission)


def _origin(folder: Path) -> str:
    report: dict[str, Any] = json.loads((folder / REPORT).read_bytes())
    return str((report.get("origin") or {}).get("kind", SELF_ASSERTED))


def shared(root: Path) -> Iterator[Made]:
    """What ``kuayu conformance run`` renders from the report of each submission."""
    for each in listed(root):
        if each.submission:
            yield Made(f"{_place(each)}/report.html", drawn_page(each.report))


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of the implementations."""
    every = list(listed(root))
    block = text(
        NAME,
        language,
        rows=[row for each in every for row in _rows(language, each)],
        details=[_details(language, each, each.submission) for each in every if each.submission],
    )
    yield Made(PAGE, page(block))


def _place(each: Listed) -> str:
    return f"{FOLDER.removeprefix('docs/')}/{each.name}"


def _rows(language: Language, each: Listed) -> Iterator[tuple[str, ...]]:
    """A row for each claim; what is the same in all stands in the first."""
    declaration = each.report.declaration
    assert declaration is not None  # nothing is claimed without one
    say = phrases(NAME, language)
    product = declaration.implementation
    if each.submission:
        name, report = link(plain(product.name), f"#{each.name}"), f"/{_place(each)}/report.html"
        opened = link(say["open"], report)
    else:
        name, opened = plain(product.name), link(say["results"], "/results.md")
    said = [say["origins"].get(kind) or code(kind) for kind in each.origins]
    levels = ", ".join(each.levels)
    first = (name, plain(product.version), plain(product.vendor or "–"))
    last = (f"{each.report.finished_at:%Y-%m-%d}", "<br>".join(said), opened)
    for claim in claims(each.report):
        yield (*first, _claim(language, claim), levels, *last)
        first, last = ("", "", ""), ("", "", "")


def _claim(language: Language, claim: Claim) -> str:
    outcome = ClaimOutcome(Outcome(claim.outcome).value)
    counted = f"{claim.passed}/{claim.judged}"
    return f"{code(claim.profile)} {badge(CLASSES[outcome], OUTCOMES[outcome].in_(language))} {counted}"


def _details(language: Language, each: Listed, submission: Submission) -> str:
    say = phrases(NAME, language)
    files = [link(code(name), f"/{_place(each)}/{name}") for name in ("report.html", REPORT, SUBMISSION)]
    rows = {
        "claims": "<br>".join(
            plain(said_of(claim, submission.run_level).in_(language)) for claim in claims(each.report)
        ),
        "contact": plain(say["contact"] if submission.contact == OWN_CONTACT else submission.contact),
        "versions": plain(f"{submission.spec_version}, {submission.suite_version}"),
        "nonce": code(submission.nonce),
        "submitted": f"{submission.submitted_at:%Y-%m-%d}",
        "made": code(submission.made_by),
        "again": "<br>".join(code(command) for command in submission.repeat_by),
        "files": ", ".join(files),
    }
    title = plain(f"{submission.implementation.name} {submission.implementation.version}")
    return page(heading(2, title, each.name), facts((name, rows[key]) for key, name in say["facts"].items()))
