"""What the suite last found for the reference: the committed runs as a page, and their reports beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kuayu_conformance.rendering import page as drawn_page
from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import Unit, count, length_of_time
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, MEANINGS, REPLAYS, RUN_LEVELS, STATES, Language, Words, named
from kuayu_conformance.transcript import PACKED_NAME
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, RequirementResult, Verdict

from . import runs
from .judged_words import chinese, translated
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, quote, table
from .requirements import state_badge

FOLDER = "results/reference"
"""Where figures lie that no run of the suite gives."""

TITLE = Words("Results of the reference", "参考实现的结果")
OPEN = Words("report", "报告")
MADE_OF = Words(
    "For each requirement that run decides which measured most, and of these the last; what none was asked for is not "
    "judged here. Anybody can judge the runs again, in a clone, from the transcripts beside their reports: "
    "`kuayu conformance verify docs/results/runs/NAME`. The whole table is [results.json](/results/results.json).",
    "每项要求以测量最充分的运行为准，同级者以最近一次为准；未受测的项目不在此列。任何人均可在克隆的仓库中依据报告旁的记录复核各次运行："
    "`kuayu conformance verify docs/results/runs/NAME`。完整表格见 [results.json](/results/results.json)。",
)
MEGABYTE_FROM = 100_000
"""Bytes from which on a size is told in megabytes."""

NOT_YET_ONE = Words(
    "These are several runs. One run of everything, at level full with a seed that is written down beforehand, is made "
    "by `make report`; it is not among them yet.",
    "以上为多次运行。以事先写明的种子、full 级别进行的一次全量运行由 `make report` 完成，目前尚未包括在内。",
)
RUN_COLUMNS = {
    "en": ("Run", "Made by", "Ended", "Level", "Decides", "Judged again by", "Report"),
    "zh": ("运行", "命令", "结束", "级别", "所定项数", "复核用记录", "报告"),
}
NO_TRANSCRIPT = Words("no transcript was kept", "未保留记录")
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
RUNS = Words("The runs", "各次运行")
FIGURES, ALL = Words("Figures", "数值项"), Words("All that was judged", "全部判定")
TROUBLES = Words("What did not pass", "未通过的项目")
FIGURE_COLUMNS = {
    "en": ("Requirement", "Found", "Bound", "Required", "Aim", "n", "Verdict", "Run"),
    "zh": ("要求", "估计值", "置信界", "要求值", "目标值", "n", "判定", "运行"),
}
PART_COLUMNS = {"en": ("Part", "Found", "Bound", "n"), "zh": ("分项", "估计值", "置信界", "n")}
PARTS, ESTIMATOR = Words("Parts: {}", "分项：{}"), Words("**Estimator:** {}", "**估计方法：**{}")
MET, MISSED = Words("aim met", "达到目标"), Words("aim missed", "未达目标")
REASON, HINT = Words("Reason", "原因"), Words("What would help", "建议")
ALL_COLUMNS = {
    "en": ("Requirement", "Title", "Verdict", "n", "Took", "Judged again", "Run"),
    "zh": ("要求", "名称", "判定", "n", "用时", "复核", "运行"),
}
AGAIN = {"deterministic": Words("replayed", "重放"), "recorded-times": Words("recorded times", "记录的时刻")}
STATE_COLUMNS = {"en": ("Verdict", "Requirements", "Meaning"), "zh": ("判定", "要求数", "含义")}


def shared(root: Path) -> Iterator[Made]:
    """What ``kuayu conformance run`` renders from each report."""
    for run in runs.runs(root):
        yield Made(run.file.replace(".json", ".html"), drawn_page(run.report))


def pages(language: Language, root: Path, beside: str) -> Iterator[Made]:
    """The one page of the results; ``beside`` is what else was measured."""
    report = runs.combined(root)
    view = view_of(translated(report, language), registers.requirements())
    judged = [(entry, entry.result) for entry in view.entries if entry.result]
    text = page(
        f"# {TITLE.in_(language)}",
        f'<div class="exit-{report.exit_code}" markdown="1">\n',
        quote(runs.headline(language, root)),
        "</div>",
        f"![{TITLE.in_(language)}](/{runs.BADGE.removeprefix('docs/')})",
        _states(language, view),
        f"## {RUNS.in_(language)}",
        MADE_OF.in_(language),
        "" if any(run.name == runs.CONFIRMATORY for run in runs.runs(root)) else NOT_YET_ONE.in_(language),
        _runs(language, root),
        *(
            page(heading(3, code(run.name), f"run-{run.name}"), run_facts(language, run.report))
            for run in runs.runs(root)
        ),
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


def _runs(language: Language, root: Path) -> str:
    rows = []
    for run in runs.runs(root):
        decides = sum(row.run is run for row in runs.standing(root).values())
        packed = root / runs.FOLDER / run.name / PACKED_NAME
        kept = _size(packed.stat().st_size) if packed.is_file() else ""
        rows.append(
            (
                link(code(run.name), f"#run-{run.name}"),
                code(run.command),
                run.date,
                run.report.run_level,
                count(decides),
                f"{code(PACKED_NAME)}, {kept}" if kept else NO_TRANSCRIPT.in_(language),
                f"{link(OPEN.in_(language), '/' + run.file.replace('.json', '.html'))}, {link('JSON', '/' + run.file)}",
            )
        )
    return table(RUN_COLUMNS[language], rows)


def run_cell(requirement: str, root: Path = runs.ROOT) -> str:
    """When a requirement was last judged, with a link to the run."""
    run = runs.standing(root)[requirement].run
    return link(f"{run.date}, {run.report.run_level}", f"/results.md#run-{run.name}")


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
            "features": plain(", ".join((*declared.profiles, *(declared.sub_profiles or ()), *declared.features))),
        } | rows
    return facts((FACTS[key].in_(language), rows[key]) for key in FACTS if key in rows)


def _figures(language: Language, judged: Sequence[tuple[Entry, RequirementResult]]) -> str:
    rows = []
    for entry, result in judged:
        if result.estimate is None:
            continue
        unit, limit = figure_unit(result), result.threshold
        apart = [limit.value] if limit else []
        required = f"{COMPARISONS[limit.comparison].in_(language)} {plain(unit.text(limit.value))}" if limit else "–"
        rows.append(
            (
                f"{link(entry.id, f'#{entry.id}-figure')}<br>{plain(entry.title.in_(language))}",
                plain(unit.text(result.estimate, apart_from=apart)),
                plain(unit.text(result.bound, apart_from=apart)) if result.bound is not None else "",
                required,
                aim_cell(language, result, unit),
                count(result.n or 0),
                state_badge(language, entry),
                run_cell(entry.id),
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
        told = [
            said and (chinese(said, entry.profile) if language == "zh" else said)
            for said in (result.reason, result.hint)
        ]
        rows = [(name.in_(language), plain(said or "")) for name, said in zip((REASON, HINT), told, strict=True)]
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
        run_cell(entry.id),
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


def _size(count: int) -> str:
    """How large a file is, in words."""
    return f"{count / 1e6:.1f}\u202fMB" if count >= MEGABYTE_FROM else f"{count / 1e3:.0f}\u202fkB"
