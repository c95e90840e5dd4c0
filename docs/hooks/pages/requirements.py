"""Every requirement with its sentence, its measure, its check or the reason that there is none, and what was found."""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.check import Check, RunCheck
from kuayu_conformance.checks import CHECKS, RUN_CHECKS
from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import unit_of
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, MODALS, STATES, Language, Words, named
from kuayu_conformance.run.plan import check_of, claimable
from kuayu_schemas import registers
from kuayu_schemas.models import Requirement, Threshold

from . import runs
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, prose, quote, table
from .source_words import requirement_source
from .stability import STABILITY, mark_badge
from .standard import clause_link
from .terms import LEVELS

CHINESE = Path(__file__).with_name("checks-zh.yaml")
"""What each check does, in Chinese, by its name."""

INTRODUCTION = Words(
    "Every normative sentence of the standard, once. An identifier is permanent. Of {total} requirements {checked} "
    "have a check; the others say why not. Verdicts are those last found for the reference, by {report}.",
    "标准的每条规范性条文各列一次，标识永久不变。共 {total} 项要求，其中 {checked} 项有检验，其余说明原因。"
    "判定为参考实现最近一次的结果，依据{report}。",
)
WITHDRAWN = Words("Withdrawn", "已撤销")
WITHDRAWN_TEXT = Words(
    "These identifiers are not used again. Reports from before keep their verdicts.",
    "下列编号不再使用，先前报告中的判定保留。",
)
WITHDRAWN_COLUMNS = {
    "en": ("Requirement", "Title", "First version without it", "Replaced by", "Because"),
    "zh": ("要求", "名称", "首个不含该要求的版本", "替代项", "原因"),
}
REPEAT = Words("Make it again", "重新运行")
SEED = Words("seed {}", "种子 {}")
CHECKS_TITLE = Words("From a check to its requirements", "由检验查要求")
CHECKS_TEXT = Words(
    "The checks of the suite, and what each of them judges. <code>kuayu conformance explain ID</code> prints a "
    "requirement on the terminal.",
    "测试套件的各项检验及其所判定的要求。<code>kuayu conformance explain ID</code> 在终端打印一项要求。",
)
COLUMNS = {
    "en": ("Requirement", "Title", "Force", "Level", "Check", "Reference"),
    "zh": ("要求", "名称", "效力", "级别", "检验", "参考实现"),
}
FORCE, LEVEL, FEATURE = Words("Force", "效力"), Words("Level", "级别"), Words("Only with feature", "仅限特性")
FEATURES = Words("Features: {}", "特性：{}")
PARTS = Words("Of the sub-profiles", "所属子专规")
REQUIRED, AIM = Words("Required", "要求值"), Words("Aim", "目标值")
AIM_NOTE = Words("printed, never judged", "仅列出，不作判定")
METHOD, SOURCE = Words("How it is measured", "测量方法"), Words("Source", "来源")
CLAUSE = Words("Stated in", "所在条款")
CHECK, WHY_NOT = Words("Check", "检验"), Words("No check, because", "尚无检验的原因")
FOUND = Words("Found for the reference", "参考实现的判定")


def pages(language: Language, root: Path) -> Iterator[Made]:
    """One page for each profile, and the list of all."""
    view = view_of(runs.combined(root), registers.requirements())
    for group in view.groups:
        entries = [entry for entry in group.entries if entry.requirement]
        text = page(
            f"# {group.profile} · {group.name.in_(language)}",
            _features(language, group.profile),
            *(
                _entry(language, entry, entry.requirement, runs.standing(root).get(entry.id))
                for entry in entries
                if entry.requirement
            ),
        )
        yield Made(f"requirements/{group.profile.lower()}.md", text, "Requirements")
    yield Made("requirements/index.md", _index(language, view, runs.made_of(language, root)))


def _features(language: Language, profile: str) -> str:
    """The features of a profile with their marks; nothing where it has none."""
    features = next((row.features for row in registers.requirements().profiles if row.profile == profile), ())
    shown = [f"{code(name)} {mark_badge(language, 'features', name)}" for name in features]
    return FEATURES.in_(language).format(", ".join(shown)) if shown else ""


def requirement_link(identifier: str) -> str:
    """A link to a requirement."""
    return link(identifier, f"/requirements/{identifier[:3].lower()}.md#{identifier}")


def state_badge(language: Language, entry: Entry) -> str:
    """What was found for the reference, in its colour."""
    return badge(entry.state, STATES[entry.state].in_(language))


def threshold_words(language: Language, threshold: Threshold) -> str:
    """A threshold in units for people."""
    amount = unit_of(threshold.unit, [threshold.value]).text(threshold.value)
    return f"{COMPARISONS[threshold.comparison].in_(language)} {plain(amount)}"


def _entry(language: Language, entry: Entry, row: Requirement, last: runs.Row | None) -> str:
    chinese = language == "zh"
    aim = f"{threshold_words(language, row.aim)} ({AIM_NOTE.in_(language)})" if row.aim else ""
    because = row.unchecked_because_zh if chinese else row.unchecked_because_en
    rows = [
        (FORCE.in_(language), MODALS[row.modal].in_(language)),
        (LEVEL.in_(language), named(LEVELS, row.level).in_(language)),
        (STABILITY.in_(language), mark_badge(language, "requirements", row.id)),
        (FEATURE.in_(language), code(row.feature) if row.feature else ""),
        (PARTS.in_(language), ", ".join(code(name) for name in sorted(claimable(row)) if "/" in name)),
        (REQUIRED.in_(language), threshold_words(language, row.threshold) if row.threshold else ""),
        (AIM.in_(language), aim),
        (METHOD.in_(language), prose(row.method_zh if chinese else row.method_en)),
        (CLAUSE.in_(language), link(row.clause, clause_link(row.clause, row.id))),
        (SOURCE.in_(language), plain(requirement_source(language, row.source))),
        (
            CHECK.in_(language),
            f"{_source(row)}<br>{plain(purpose(language, checks()[check_of(row)]))}" if row.check else "",
        ),
        (WHY_NOT.in_(language), prose(because or "")),
        (FOUND.in_(language), _found(language, entry, last) if last else ""),
        (REPEAT.in_(language), code(_again(last, row.id)) if last else ""),
    ]
    title = f"{row.id} · {plain(row.title_zh if chinese else row.title_en)}"
    return page(heading(2, title, row.id), quote(prose(row.text_zh if chinese else row.text_en)), facts(rows))


def _found(language: Language, entry: Entry, last: runs.Row) -> str:
    """The verdict with its figure, and by which run."""
    result = last.result
    said = [f"{link(state_badge(language, entry), f'/results.md#{entry.id}')}"]
    if result.estimate is not None:
        unit, apart = figure_unit(result), [result.threshold.value] if result.threshold else []
        said.append(plain(unit.text(result.estimate, apart_from=apart)))
        if result.bound is not None:
            said.append(f"({plain(unit.text(result.bound, apart_from=apart))})")
    seed = SEED.in_(language).format(plain(last.run.seed))
    where = f"{last.run.date}, {last.run.report.run_level}, {seed}"
    if last.outdated:
        said.append(runs.EARLIER.in_(language))
    return f"{' '.join(said)}<br>{link(where, f'/results.md#run-{last.run.name}')}"


def _again(last: runs.Row, requirement: str) -> str:
    """The command that judges just this requirement again with what the run drew."""
    again = f"--seed {last.run.seed}" if last.run.report.nonce != last.run.seed else f"--nonce {last.run.seed}"
    return f"kuayu check --level {last.run.report.run_level} {again} --requirement {requirement}"


@cache
def checks() -> Mapping[str, Check[Any] | RunCheck]:
    """All checks by name."""
    everything: list[Check[Any] | RunCheck] = [*(listed.load() for listed in CHECKS), *RUN_CHECKS]
    return {check.name: check for check in everything}


def purpose(language: Language, check: Check[Any] | RunCheck) -> str:
    """What a check does: as it says itself, else the first line of its module, or its Chinese by the check's name."""
    if language == "zh":
        return _chinese()[check.name]
    said = check.summary if isinstance(check, Check) else ""
    return said or (sys.modules[module_of(check)].__doc__ or "").strip().splitlines()[0]


def module_of(check: Check[Any] | RunCheck) -> str:
    """The module of a check, which judges there too."""
    return check.judge.__module__


@cache
def _chinese() -> Mapping[str, str]:
    found: Mapping[str, str] = yaml.safe_load(CHINESE.read_text("utf-8"))
    return found


def _index(language: Language, view: View, made_of: str) -> str:
    entries = [entry for entry in view.entries if entry.requirement]
    checked = sum(bool(entry.requirement and entry.requirement.check) for entry in entries)
    introduction = INTRODUCTION.in_(language).format(
        total=len(entries), checked=checked, report=link(made_of, "/results.md")
    )
    blocks = []
    for group in view.groups:
        rows = (_row(language, entry, entry.requirement) for entry in group.entries if entry.requirement)
        blocks += [f"## {group.profile} · {group.name.in_(language)}", table(COLUMNS[language], rows)]
    title = {"en": "# Requirements and their checks", "zh": "# 要求与检验"}[language]
    return page(title, introduction, *blocks, _withdrawn(language), _checks(language))


def _withdrawn(language: Language) -> str:
    """Requirements that are no more, and what replaced them; nothing where there are none."""
    rows = [
        (
            plain(row.id),
            plain(row.title_zh if language == "zh" else row.title_en),
            plain(row.withdrawn_in),
            ", ".join(requirement_link(name) for name in row.replaced_by) or "–",
            plain(row.because_zh if language == "zh" else row.because_en),
        )
        for row in registers.withdrawn().values()
    ]
    if not rows:
        return ""
    return page(f"## {WITHDRAWN.in_(language)}", WITHDRAWN_TEXT.in_(language), table(WITHDRAWN_COLUMNS[language], rows))


def shared() -> Iterator[Made]:
    """The source of each module of checks, as text that a browser shows."""
    for path, module in sorted({source_path(check): module_of(check) for check in checks().values()}.items()):
        yield Made(path.removeprefix("/"), inspect.getsource(sys.modules[module]))


def source_path(check: Check[Any] | RunCheck) -> str:
    """Where the source of a check's module lies in the site."""
    return f"/checks/{module_of(check).removeprefix('kuayu_conformance.')}.py.txt"


def _source(row: Requirement) -> str:
    return link(code(row.check or ""), source_path(checks()[check_of(row)]))


def _row(language: Language, entry: Entry, row: Requirement) -> tuple[str, ...]:
    check = code(check_of(row)) if row.check else "–"
    return (
        requirement_link(row.id),
        plain(row.title_zh if language == "zh" else row.title_en),
        MODALS[row.modal].in_(language),
        named(LEVELS, row.level).in_(language),
        check,
        state_badge(language, entry) if row.check else badge("untested", STATES["untested"].in_(language)),
    )


def _checks(language: Language) -> str:
    headings = {"en": ("Check", "What it does", "Requirements"), "zh": ("检验", "内容", "要求")}[language]

    def links(identifiers: Iterable[str]) -> str:
        return ", ".join(requirement_link(identifier) for identifier in identifiers)

    rows = [
        (
            link(code(check.name), source_path(check)),
            plain(purpose(language, check)),
            links(check.requirements),
        )
        for check in checks().values()
    ]
    return page(f"## {CHECKS_TITLE.in_(language)}", CHECKS_TEXT.in_(language), table(headings, rows))
