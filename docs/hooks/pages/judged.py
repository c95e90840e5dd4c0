"""What one profile was judged by in a committed report: verdicts and figures, with their parts, tables and plots."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, DictLoader, Environment, PackageLoader, StrictUndefined

from kuayu_conformance.rendering.chart import figure_unit, sentence
from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.plot import Series, plots
from kuayu_conformance.rendering.view import Cell, Entry, Table, view_of
from kuayu_conformance.rendering.words import Language, visible
from kuayu_schemas import registers
from kuayu_schemas.models import Evidence, ReportPlot, RequirementResult

from .markdown import code, heading, link, page, plain, quote, table
from .requirements import state_badge
from .results import aim_cell, folded_parts, run_facts
from .runs import Run, runs, standing
from .text import phrases
from .translations import translated

NAME = "judged"


FEW = 14
"""Rows of a table beyond which it is folded."""
UNMET = re.compile(r"(\d+) of \d+ expectations were not met")
"""Reason of a verdict that follows from claims and not from the figure; their evidence comes first."""
ONE_LANGUAGE = """{% macro both(en, zh) %}{{ zh if language == "zh" else en }}{% endmacro %}
{% macro say(words) %}{{ words.in_(language) }}{% endmacro %}
"""
"""In place of the report's own ``parts.html.j2``, which prints both languages and lets the reader switch."""


def sections(language: Language, root: Path, profile: str) -> Iterator[str]:
    """Blocks of a page about the requirements of one profile, run by run, each with what it decides on."""
    rows = [row for name, row in standing(root).items() if name.startswith(f"{profile}-")]
    for run in runs(root):
        if any(row.run is run for row in rows):
            yield from _sections(language, root, run, profile)


def _sections(language: Language, root: Path, run: Run, profile: str) -> Iterator[str]:
    say = phrases(NAME, language)
    report = run.report
    decides = {name for name, row in standing(root).items() if row.run is run}
    judged = [
        (entry, entry.result)
        for entry in view_of(translated(report, language), registers.requirements()).entries
        if entry.result and entry.profile == profile and entry.id in decides
    ]
    yield heading(2, say["title"], f"run-{run.name}")
    yield say["about"].format(command=code(run.command), report=run.file)
    yield run_facts(language, report)
    yield table(say["columns"], (_row(language, entry, result) for entry, result in judged))
    for entry, result in judged:
        if result.estimate is not None or result.tables or result.plots or _unmet(result):
            yield _figure(language, entry, result)


def _row(language: Language, entry: Entry, result: RequirementResult) -> tuple[str, ...]:
    place = f"/requirements/{entry.profile.lower()}.md#{entry.id}"
    return (
        link(entry.id, place),
        plain(entry.title.in_(language)),
        state_badge(language, entry),
        count(result.n) if result.n is not None else "",
    )


def _figure(language: Language, entry: Entry, result: RequirementResult) -> str:
    say = phrases(NAME, language)
    blocks = [heading(3, f"{entry.id} · {plain(entry.title.in_(language))}", entry.id)]
    if entry.chart:
        found = f"**{plain(entry.chart.rows[0].text)}** {plain(sentence(result, entry.chart).in_(language))}"
        blocks.append(f"{state_badge(language, entry)} {found}")
    else:
        blocks.append(_without_threshold(language, entry, result))
    blocks += [
        quote(say["not_met"].format(expected=plain(each.expected), found=plain(each.found))) for each in _unmet(result)
    ]
    if result.estimator:
        blocks.append(say["estimator"].format(plain(result.estimator)))
    blocks.append(folded_parts(language, result))
    blocks.append(drawn(language, result.plots, entry.id))
    blocks += [_table(language, each) for each in entry.tables]
    return page(*blocks)


def _unmet(result: RequirementResult) -> Sequence[Evidence]:
    """What was expected and not found, beside the figure; nothing where the figure alone made the verdict."""
    failed = UNMET.match(result.reason or "")
    return result.evidence[: int(failed[1])] if failed else ()


def _without_threshold(language: Language, entry: Entry, result: RequirementResult) -> str:
    """What is said of a figure that nothing is required of, or of tables without a figure."""
    say = phrases(NAME, language)
    if result.estimate is None:
        return state_badge(language, entry)
    unit = figure_unit(result)
    bound = "" if result.bound is None else say["bound"].format(plain(unit.text(result.bound)))
    found = say["found"].format(
        found=plain(unit.text(result.estimate)), bound=bound, aim=aim_cell(language, result, unit).replace("<br>", " ")
    )
    return f"{state_badge(language, entry)} {found}"


def _table(language: Language, shown: Table) -> str:
    """A table beneath its title, folded where it is long."""
    say = phrases(NAME, language)
    rows = table([plain(cell.text) for cell in shown.head], ([_cell(cell) for cell in row] for row in shown.rows))
    if len(shown.rows) <= FEW:
        return page(f"**{plain(shown.title)}**", rows)
    title = say["rows"].format(title=plain(shown.title), rows=len(shown.rows))
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{rows}\n</details>'


def _cell(cell: Cell) -> str:
    """A cell; figures stay with their units."""
    return plain(cell.text).replace(" ", "\u202f") if cell.figure else plain(cell.text)


def drawn(language: Language, drawings: Sequence[ReportPlot] | None, owner: str) -> str:
    """Plots as the report draws them, in one language; nothing where there are none."""
    if not drawings:
        return ""
    macro = _environment(language).get_template("plot.html.j2").module.plots  # type: ignore[attr-defined]
    shown = [replace(each, series=tuple(_named(language, one) for one in each.series)) for each in plots(drawings)]
    lines = str(macro(shown, owner.lower())).splitlines()
    # A blank line would end the block of HTML in Markdown.
    return "\n".join(line.strip() for line in lines if line.strip())


def _named(language: Language, series: Series) -> Series:
    """A series; the name by which a graph knows its lines is said in a language only when they are drawn."""
    say = phrases(NAME, language)
    return replace(series, label=say["links"]) if series.label == phrases(NAME, "en")["links"] else series


@cache
def _environment(language: Language) -> Environment:
    made = Environment(
        loader=ChoiceLoader(
            [DictLoader({"parts.html.j2": ONE_LANGUAGE}), PackageLoader("kuayu_conformance.rendering")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.globals["language"] = language
    return made
