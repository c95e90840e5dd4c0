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
from kuayu_conformance.rendering.words import Language, Words
from kuayu_conformance.submissions import OUTCOMES, REFERENCE, SUBMISSION
from kuayu_schemas.models import ClaimOutcome, ConformanceReport, RunLevel, Submission

from . import runs
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, table

FOLDER = "docs/results/submissions"
PAGE = "implementations.md"

TITLE = Words("Implementations", "实现列表")
INTRODUCTION = Words(
    "What was tested, and what became of each claim. Conformance is claimed of a profile, or of a part of one such as "
    "`RES/collectives`, at a level, over all of its requirements and those of COM; what is declared and was not asked "
    "for is not listed, and a part that conforms says nothing of its profile. The reference "
    "stands here by its committed runs, all others by what their vendors handed in, failures included. Each submission "
    "was checked before it was taken, and anybody can check it again, in a clone: "
    "`kuayu conformance check-submission docs/results/submissions/NAME`.",
    "列出受测的实现及其各项结论。符合性结论针对专规或子专规（专规的一部分，如 `RES/collectives`）的某一级别，"
    "涵盖其与 COM 的全部要求；已声明而未选测的不列出，子专规符合不表示其所属专规符合。"
    "参考实现依据仓库中的各次运行，其余依据厂商所提交的结果，未满足的项目照列。每份提交在收录前均经检查，"
    "任何人均可在克隆的仓库中再次检查：`kuayu conformance check-submission docs/results/submissions/NAME`。",
)
LIMIT = Words(
    "A submission shows that its report follows from the answers that were recorded. It does not show who gave them, "
    "and a nonce that the vendor chose himself may be the best of several runs. The table says who chose it, as the "
    "report has it.",
    "提交的结果表明报告出自所记录的响应，不能说明响应出自何者；厂商自选的随机种子可能取自多次运行中最好的一次。"
    "随机种子由谁选定，依报告所载列出。",
)
HAND_IN = Words(
    "How to hand in a result: [for vendors](/guides/vendor.md#submit).",
    "如何提交结果：[厂商指南](/guides/vendor.md#submit)。",
)
COLUMNS = {
    "en": ("Implementation", "Version", "Vendor", "Claim", "Level", "Ended", "Nonce chosen by", "Report"),
    "zh": ("实现", "版本", "厂商", "结论", "级别", "结束", "随机种子选定者", "报告"),
}
OPEN, RESULTS = Words("report", "报告"), Words("results", "结果")
CLASSES = {
    ClaimOutcome.met: "pass",
    ClaimOutcome.not_met: "fail",
    ClaimOutcome.undecided: "inconclusive",
    ClaimOutcome.not_claimed: "",
}
"""Classes by which the style sheet colours outcomes."""

SELF_ASSERTED = "self-asserted"
ORIGINS = {
    SELF_ASSERTED: Words("whoever ran the suite", "运行套件者自选"),
    "challenged": Words("somebody else", "他方选定"),
    "witnessed": Words("a witness, who ran the suite", "见证方选定并运行"),
}
"""Who chose a nonce, by the member ``origin`` of the report."""

CONTACT = Words("the project's issue tracker", "本项目的问题跟踪系统")
"""What the project's own submission names; those of others stand as they were handed in."""

FACTS = {
    "claims": Words("Claims", "结论"),
    "contact": Words("Contact", "联系方式"),
    "versions": Words("Standard, suite", "标准、套件"),
    "nonce": Words("Nonce", "随机种子"),
    "submitted": Words("Handed in", "提交日期"),
    "made": Words("Made by", "运行命令"),
    "again": Words("Made again by", "复现命令"),
    "files": Words("Files", "文件"),
}


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
    text = page(
        f"# {TITLE.in_(language)}",
        INTRODUCTION.in_(language),
        table(COLUMNS[language], (row for each in every for row in _rows(language, each))),
        LIMIT.in_(language),
        HAND_IN.in_(language),
        *(_details(language, each, each.submission) for each in every if each.submission),
    )
    yield Made(PAGE, text)


def _place(each: Listed) -> str:
    return f"{FOLDER.removeprefix('docs/')}/{each.name}"


def _rows(language: Language, each: Listed) -> Iterator[tuple[str, ...]]:
    """A row for each claim; what is the same in all stands in the first."""
    declaration = each.report.declaration
    assert declaration is not None  # nothing is claimed without one
    product = declaration.implementation
    if each.submission:
        name, report = link(plain(product.name), f"#{each.name}"), f"/{_place(each)}/report.html"
        opened = link(OPEN.in_(language), report)
    else:
        name, opened = plain(product.name), link(RESULTS.in_(language), "/results.md")
    said = [ORIGINS[kind].in_(language) if kind in ORIGINS else code(kind) for kind in each.origins]
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
    files = [link(code(name), f"/{_place(each)}/{name}") for name in ("report.html", REPORT, SUBMISSION)]
    rows = {
        "claims": "<br>".join(
            plain(said_of(claim, submission.run_level).in_(language)) for claim in claims(each.report)
        ),
        "contact": plain(CONTACT.in_(language) if submission.contact == CONTACT.en else submission.contact),
        "versions": plain(f"{submission.spec_version}, {submission.suite_version}"),
        "nonce": code(submission.nonce),
        "submitted": f"{submission.submitted_at:%Y-%m-%d}",
        "made": code(submission.made_by),
        "again": "<br>".join(code(command) for command in submission.repeat_by),
        "files": ", ".join(files),
    }
    title = plain(f"{submission.implementation.name} {submission.implementation.version}")
    return page(heading(2, title, each.name), facts((FACTS[key].in_(language), rows[key]) for key in FACTS))
