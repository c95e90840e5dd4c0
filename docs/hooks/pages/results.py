"""What the suite found for the reference: the committed report as a page, and the report itself beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kuayu_conformance.rendering import badge as drawn_badge
from kuayu_conformance.rendering import page as drawn_page
from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import Unit, count, length_of_time
from kuayu_conformance.rendering.headline import coverage, headline, meaning
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, MEANINGS, REPLAYS, RUN_LEVELS, STATES, Language, Words, named
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, RequirementResult, Verdict

from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, quote, table
from .requirements import state_badge

FOLDER = "results/reference"

TITLE = Words("Results of the reference", "参考实现的结果")
OPEN = Words("Open the report", "打开报告")
FACTS = {
    "implementation": Words("Implementation", "实现"),
    "when": Words("Run", "运行时间"),
    "level": Words("Level", "运行级别"),
    "versions": Words("Standard, suite", "标准、套件"),
    "nonce": Words("Nonce", "随机种子"),
    "environment": Words("Environment", "运行环境"),
    "features": Words("Declared", "声明"),
    "exit": Words("Exit code", "退出码"),
    "transcript": Words("Transcript", "记录摘要"),
}
FIGURES, ALL = Words("Figures", "数值项"), Words("All that was judged", "全部判定")
TROUBLES = Words("What did not pass", "未通过的项目")
FIGURE_COLUMNS = {
    "en": ("Requirement", "Found", "Bound", "Required", "Aim", "n", "Verdict"),
    "zh": ("要求", "估计值", "置信界", "要求值", "目标值", "n", "判定"),
}
PART_COLUMNS = {"en": ("Part", "Found", "Bound", "n"), "zh": ("分项", "估计值", "置信界", "n")}
PARTS, ESTIMATOR = Words("Parts: {}", "分项：{}"), Words("**Estimator:** {}", "**估计方法：**{}")
MET, MISSED = Words("aim met", "达到目标"), Words("aim missed", "未达目标")
REASON, HINT = Words("Reason", "原因"), Words("What would help", "建议")
ALL_COLUMNS = {
    "en": ("Requirement", "Title", "Verdict", "n", "Took", "Judged again"),
    "zh": ("要求", "名称", "判定", "n", "用时", "复核"),
}
AGAIN = {"deterministic": Words("replayed", "重放"), "recorded-times": Words("recorded times", "记录的时刻")}
STATE_COLUMNS = {"en": ("Verdict", "Requirements", "Meaning"), "zh": ("判定", "要求数", "含义")}


def reference(root: Path) -> ConformanceReport:
    """The committed report of the reference."""
    text = (root / f"docs/{FOLDER}/report.json").read_text("utf-8")
    return ConformanceReport.model_validate_json(text)


def shared(report: ConformanceReport) -> Iterator[Made]:
    """What ``kuayu conformance run`` renders from a report."""
    yield Made(f"{FOLDER}/report.html", drawn_page(report))
    yield Made(f"{FOLDER}/badge.svg", drawn_badge(report))


def pages(language: Language, report: ConformanceReport, beside: str) -> Iterator[Made]:
    """The one page of the results; ``beside`` is what else was measured."""
    view = view_of(report, registers.requirements())
    judged = [(entry, entry.result) for entry in view.entries if entry.result]
    text = page(
        f"# {TITLE.in_(language)}",
        f'<div class="exit-{report.exit_code}" markdown="1">\n',
        quote(f"**{plain(headline(view).in_(language))}** {plain(meaning(view).in_(language))}"),
        "</div>",
        plain(coverage(view).in_(language)),
        f"![{TITLE.in_(language)}](/{FOLDER}/badge.svg) {link(OPEN.in_(language), f'/{FOLDER}/report.html')} · "
        f"{link('report.json', f'/{FOLDER}/report.json')}",
        _states(language, view),
        run_facts(language, report),
        f"## {FIGURES.in_(language)}",
        _figures(language, judged),
        *(_figure(language, entry, result) for entry, result in judged if result.estimate is not None),
        _troubles(language, judged),
        f"## {ALL.in_(language)}",
        *(f"{AGAIN[key].in_(language)}: {REPLAYS[key].in_(language)}" for key in AGAIN),
        table(ALL_COLUMNS[language], (_row(language, entry, result) for entry, result in judged)),
        beside,
    )
    yield Made("results.md", text)


def _states(language: Language, view: View) -> str:
    counted = [(state, len(view.in_state(state))) for state in STATES]
    rows = [
        (badge(state, STATES[state].in_(language)), count(number), MEANINGS[state].in_(language))
        for state, number in counted
        if number
    ]
    return table(STATE_COLUMNS[language], rows)


def run_facts(language: Language, report: ConformanceReport) -> str:
    """When, where and of what a report is."""
    declared, environment = report.declaration, report.environment
    took = length_of_time((report.finished_at - report.started_at).total_seconds())
    machine = f"{environment.platform}, {environment.processors} × CPU, Python {environment.python}"
    rows = {
        "when": f"{report.started_at:%Y-%m-%d %H:%M} UTC, {plain(took)}",
        "level": plain(named(RUN_LEVELS, report.run_level).in_(language)),
        "versions": plain(f"{report.spec_version}, {report.suite_version}"),
        "nonce": code(report.nonce),
        "environment": f"{plain(machine)}<br>{plain(', '.join(environment.packages))}",
        "exit": str(report.exit_code),
        "transcript": code(report.transcript),
    }
    if declared:
        implementation = declared.implementation
        rows = {
            "implementation": plain(f"{implementation.name} {implementation.version}"),
            "features": plain(", ".join((*declared.profiles, *declared.features))),
        } | rows
    return facts((FACTS[key].in_(language), rows[key]) for key in FACTS if key in rows)


def _figures(language: Language, judged: Sequence[tuple[Entry, RequirementResult]]) -> str:
    rows = []
    for entry, result in judged:
        if result.estimate is None or result.threshold is None:
            continue
        unit = figure_unit(result)
        rows.append(
            (
                f"{link(entry.id, f'#{entry.id}-figure')}<br>{plain(entry.title.in_(language))}",
                plain(unit.text(result.estimate, apart_from=[result.threshold.value])),
                plain(unit.text(result.bound, apart_from=[result.threshold.value])) if result.bound is not None else "",
                f"{COMPARISONS[result.threshold.comparison].in_(language)} {plain(unit.text(result.threshold.value))}",
                aim_cell(language, result, unit),
                count(result.n or 0),
                state_badge(language, entry),
            )
        )
    return table(FIGURE_COLUMNS[language], rows)


def aim_cell(language: Language, result: RequirementResult, unit: Unit) -> str:
    """The aim of a figure and whether it is met; a dash where there is none."""
    if result.aim is None:
        return "–"
    amount = f"{COMPARISONS[result.aim.comparison].in_(language)} {plain(unit.text(result.aim.value))}"
    if result.aim_met is None:
        return amount
    return f"{amount}<br>" + (
        badge("aim-met", MET.in_(language)) if result.aim_met else badge("aim-missed", MISSED.in_(language))
    )


def _figure(language: Language, entry: Entry, result: RequirementResult) -> str:
    title = f"{entry.id} · {plain(entry.title.in_(language))}"
    estimator = ESTIMATOR.in_(language).format(plain(result.estimator or "–"))
    return page(heading(3, title, f"{entry.id}-figure"), estimator, folded_parts(language, result))


def _troubles(language: Language, judged: Sequence[tuple[Entry, RequirementResult]]) -> str:
    """Every result that is no pass, with its reason and its evidence."""
    blocks = []
    for entry, result in judged:
        if result.verdict is Verdict.pass_:
            continue
        rows = [(REASON.in_(language), plain(result.reason or "")), (HINT.in_(language), plain(result.hint or ""))]
        blocks.append(heading(3, f"{entry.id} · {plain(entry.title.in_(language))}", f"{entry.id}-why"))
        blocks += [state_badge(language, entry), facts(rows)]
        blocks += [quote(f"{plain(each.expected)}<br>{plain(each.found)}") for each in result.evidence]
    return page(f"## {TROUBLES.in_(language)}", *blocks) if blocks else ""


def _row(language: Language, entry: Entry, result: RequirementResult) -> tuple[str, ...]:
    place = f"/requirements/{entry.profile.lower()}.md#{entry.id}"
    return (
        f"{link(entry.id, place)}{{ #{entry.id} }}",
        plain(entry.title.in_(language)),
        state_badge(language, entry),
        count(result.n) if result.n is not None else "",
        plain(length_of_time(result.duration)) if result.duration is not None else "",
        named(AGAIN, result.replay).in_(language) if result.replay else "",
    )


def folded_parts(language: Language, result: RequirementResult) -> str:
    """The parts of a figure in a table that unfolds; nothing where it has none."""
    if not result.parts:
        return ""
    unit = figure_unit(result)
    rows = [
        (
            plain(part.label),
            plain(unit.text(part.estimate)),
            "" if part.bound is None else plain(unit.text(part.bound)),
            count(part.n),
        )
        for part in result.parts
    ]
    title = PARTS.in_(language).format(len(rows))
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{table(PART_COLUMNS[language], rows)}\n</details>'
