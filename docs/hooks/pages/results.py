"""What the suite last found for the reference: the committed runs as a page, and their reports beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kuayu_conformance.rendering import page as drawn_page
from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import Unit, count, length_of_time
from kuayu_conformance.rendering.view import Entry, View, view_of
from kuayu_conformance.rendering.words import COMPARISONS, MEANINGS, REPLAYS, RUN_LEVELS, STATES, Language, named
from kuayu_conformance.transcript import PACKED_NAME
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, RequirementResult, Verdict

from . import runs
from .made import Made
from .markdown import badge, code, facts, heading, link, page, plain, quote, table
from .requirements import state_badge
from .text import phrases
from .translations import chinese, translated

NAME = "results"

FOLDER = "results/reference"
"""Where figures lie that no run of the suite gives."""

MEGABYTE_FROM = 100_000
"""Bytes from which on a size is told in megabytes."""


def shared(root: Path) -> Iterator[Made]:
    """What ``kuayu conformance run`` renders from each report."""
    for run in runs.runs(root):
        yield Made(run.file.replace(".json", ".html"), drawn_page(run.report))


def pages(language: Language, root: Path, beside: str) -> Iterator[Made]:
    """The one page of the results; ``beside`` is what else was measured."""
    say = phrases(NAME, language)
    report = runs.combined(root)
    view = view_of(translated(report, language), registers.requirements())
    judged = [(entry, entry.result) for entry in view.entries if entry.result]
    text = page(
        f"# {say['title']}",
        f'<div class="exit-{report.exit_code}" markdown="1">\n',
        quote(runs.headline(language, root)),
        "</div>",
        f"![{say['title']}](/{runs.BADGE.removeprefix('docs/')})",
        _states(language, view),
        f"## {say['runs']}",
        say["made_of"],
        "" if any(run.name == runs.CONFIRMATORY for run in runs.runs(root)) else say["not_yet_one"],
        _runs(language, root),
        *(
            page(heading(3, code(run.name), f"run-{run.name}"), run_facts(language, run.report))
            for run in runs.runs(root)
        ),
        f"## {say['figures']}",
        _figures(language, judged),
        *(_figure(language, entry, result) for entry, result in judged if result.estimate is not None),
        _troubles(language, judged),
        f"## {say['all']}",
        *(f"{say['again'][key]}: {REPLAYS[key].in_(language)}" for key in say["again"]),
        table(say["all_columns"], (_row(language, entry, result) for entry, result in judged)),
        beside,
    )
    yield Made("results.md", text)


def _runs(language: Language, root: Path) -> str:
    say = phrases(NAME, language)
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
                f"{code(PACKED_NAME)}, {kept}" if kept else say["no_transcript"],
                f"{link(say['open'], '/' + run.file.replace('.json', '.html'))}, {link('JSON', '/' + run.file)}",
            )
        )
    return table(say["run_columns"], rows)


def run_cell(requirement: str, root: Path = runs.ROOT) -> str:
    """When a requirement was last judged, with a link to the run."""
    run = runs.standing(root)[requirement].run
    return link(f"{run.date}, {run.report.run_level}", f"/results.md#run-{run.name}")


def _states(language: Language, view: View) -> str:
    say = phrases(NAME, language)
    counted = [(state, len(view.in_state(state))) for state in STATES]
    rows = [
        (badge(state, STATES[state].in_(language)), count(number), MEANINGS[state].in_(language))
        for state, number in counted
        if number
    ]
    return table(say["state_columns"], rows)


def run_facts(language: Language, report: ConformanceReport) -> str:
    """When, where and of what a report is."""
    say = phrases(NAME, language)
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
    return facts((name, rows[key]) for key, name in say["facts"].items() if key in rows)


def _figures(language: Language, judged: Sequence[tuple[Entry, RequirementResult]]) -> str:
    say = phrases(NAME, language)
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
    return table(say["figure_columns"], rows)


def aim_cell(language: Language, result: RequirementResult, unit: Unit) -> str:
    """The aim of a figure and whether it is met; a dash where there is none."""
    say = phrases(NAME, language)
    if result.aim is None:
        return "–"
    amount = f"{COMPARISONS[result.aim.comparison].in_(language)} {plain(unit.text(result.aim.value))}"
    if result.aim_met is None:
        return amount
    return f"{amount}<br>" + (badge("aim-met", say["met"]) if result.aim_met else badge("aim-missed", say["missed"]))


def _figure(language: Language, entry: Entry, result: RequirementResult) -> str:
    say = phrases(NAME, language)
    title = f"{entry.id} · {plain(entry.title.in_(language))}"
    estimator = say["estimator"].format(plain(result.estimator or "–"))
    return page(heading(3, title, f"{entry.id}-figure"), estimator, folded_parts(language, result))


def _troubles(language: Language, judged: Sequence[tuple[Entry, RequirementResult]]) -> str:
    """Every result that is no pass, with its reason and its evidence."""
    say = phrases(NAME, language)
    blocks = []
    for entry, result in judged:
        if result.verdict is Verdict.pass_:
            continue
        told = [
            said and (chinese(said, entry.profile) if language == "zh" else said)
            for said in (result.reason, result.hint)
        ]
        rows = [(name, plain(said or "")) for name, said in zip((say["reason"], say["hint"]), told, strict=True)]
        blocks.append(heading(3, f"{entry.id} · {plain(entry.title.in_(language))}", f"{entry.id}-why"))
        blocks += [state_badge(language, entry), facts(rows)]
        blocks += [quote(f"{plain(each.expected)}<br>{plain(each.found)}") for each in result.evidence]
    return page(f"## {say['troubles']}", *blocks) if blocks else ""


def _row(language: Language, entry: Entry, result: RequirementResult) -> tuple[str, ...]:
    say = phrases(NAME, language)
    place = f"/requirements/{entry.profile.lower()}.md#{entry.id}"
    return (
        f"{link(entry.id, place)}{{ #{entry.id} }}",
        plain(entry.title.in_(language)),
        state_badge(language, entry),
        count(result.n) if result.n is not None else "",
        plain(length_of_time(result.duration)) if result.duration is not None else "",
        say["again"].get(result.replay, result.replay) if result.replay else "",
        run_cell(entry.id),
    )


def folded_parts(language: Language, result: RequirementResult) -> str:
    """The parts of a figure in a table that unfolds; nothing where it has none."""
    say = phrases(NAME, language)
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
    title = say["parts"].format(len(rows))
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{table(say["part_columns"], rows)}\n</details>'


def _size(count: int) -> str:
    """How large a file is, in words."""
    return f"{count / 1e6:.1f}\u202fMB" if count >= MEGABYTE_FROM else f"{count / 1e3:.0f}\u202fkB"
