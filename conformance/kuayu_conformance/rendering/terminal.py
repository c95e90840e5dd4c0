"""What the command prints when a run is over.

1. A row for each requirement that has a figure or is no pass. Of the others, how many pass and how many do not apply,
   where they are many: the report has them all.
2. Beneath, what is not met, undecided or excluded, and why; then the verdict on each profile.
3. Titles give way where the terminal is narrow: names, verdicts and figures are never cut.
"""

from collections.abc import Sequence

from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.headline import claimed, headline
from kuayu_conformance.rendering.view import Entry, view_of
from kuayu_conformance.rendering.words import EXCLUDED, STATES, UNASKED, UNTESTED, Language, Words, visible
from kuayu_schemas.models import ConformanceReport, Evidence, RequirementResult, Threshold
from kuayu_schemas.registers import requirements

_STYLES = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "yellow",
    "not-testable": "yellow",
    "harness-error": "bold magenta",
}
_EXPLAINED = ("fail", "harness-error", "inconclusive", "not-testable")
_SIGNS = {"at_least": "≥", "at_most": "≤"}
_COLUMNS = (
    Words("Requirement", "要求"),
    Words("Title", "名称"),
    Words("Verdict", "判定"),
    Words("Estimate", "估计值"),
    Words("95 % bound", "95 % 置信界"),
    Words("Required", "要求值"),
    Words("Aim", "目标值"),
)
_TITLE, _FIGURES_FROM = 1, 3  # column of titles; columns from here on hold figures
_FEW = 10  # requirements that pass without a figure and have their rows all the same


def summary(report: ConformanceReport, language: Language = "en") -> RenderableType:
    """Figures, and what is no pass, in rows; beneath, what is not met, undecided or excluded, and why."""
    view = view_of(report, requirements())
    judged = [entry for entry in view.entries if entry.state not in {UNTESTED, UNASKED}]
    applicable = [entry for entry in judged if entry.state != "not-applicable"]
    shown = [entry for entry in applicable if not _is_plain(entry)]
    if len(applicable) - len(shown) <= _FEW:
        shown = applicable
    figures: list[RenderableType] = [_table([_cells(entry, language) for entry in shown], language)] if shown else []
    figures += [
        Text(Words(f"{count} {english}", f"另有 {count} 项{chinese}").in_(language), style="dim")
        for count, english, chinese in (
            (len(applicable) - len(shown), "more pass without a figure", "无数值的要求通过"),
            (len(judged) - len(applicable), "do not apply to this run", "要求不适用于本次运行"),
        )
        if count
    ]
    explained = [_explanation(entry, language) for entry in view.in_state(*_EXPLAINED)]
    excluded = [_exclusion(entry, language) for entry in view.in_state(EXCLUDED)]
    verdict = Text(visible(headline(view).in_(language)), style="bold")
    lines = [Text(visible(item.in_(language)), style="dim") for item in claimed(view)]
    if longer := [entry.id for entry in view.left_to_longer_runs]:
        again = " ".join(f"--requirement {name}" for name in longer)
        left = Words(f"Left to longer runs: --level quick {again}", f"留待更高级别运行：--level quick {again}")
        lines.append(Text(visible(left.in_(language)), style="dim"))
    return Group(*figures, Text(), *explained, *excluded, *([Text()] if excluded else []), verdict, *lines)


def _is_plain(entry: Entry) -> bool:
    """Whether there is no more to say of a requirement than that it is met."""
    return entry.state == "pass" and (entry.result is None or entry.result.estimate is None)


def _table(rows: Sequence[Sequence[Text]], language: Language) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(_COLUMNS):
        justify: JustifyMethod = "right" if number >= _FIGURES_FROM else "left"
        table.add_column(name.in_(language), justify=justify, no_wrap=number != _TITLE)
    for row in rows:
        table.add_row(*row)
    return table


def _exclusion(entry: Entry, language: Language) -> RenderableType:
    """One requirement that was left out, and why."""
    reason = entry.reason.in_(language) if entry.reason else STATES[EXCLUDED].in_(language)
    return Text.assemble((visible(entry.id), "bold"), " ", visible(entry.title.in_(language)), "  ", visible(reason))


def _cells(entry: Entry, language: Language) -> list[Text]:
    style = _STYLES.get(entry.state, "dim")
    names = [
        Text(visible(entry.id)),
        Text(visible(entry.title.in_(language)), no_wrap=True, overflow="ellipsis"),
        Text(STATES[entry.state].in_(language), style=style),
    ]
    return names + [Text(text) for text in _figures(entry.result)]


def _figures(result: RequirementResult | None) -> tuple[str, str, str, str]:
    if result is None or result.estimate is None:
        return "", "", "", ""
    unit = figure_unit(result)
    others = [figure for figure in (result.estimate, result.bound) if figure is not None]
    others += [result.threshold.value] if result.threshold else []
    return (
        unit.text(result.estimate, apart_from=others),
        "" if result.bound is None else unit.text(result.bound, apart_from=others),
        _limit(result, result.threshold),
        _limit(result, result.aim),
    )


def _limit(result: RequirementResult, limit: Threshold | None) -> str:
    return f"{_SIGNS[limit.comparison]} {figure_unit(result).text(limit.value)}" if limit else ""


def _explanation(entry: Entry, language: Language) -> RenderableType:
    """One requirement with clause, reason, hint and evidence."""
    head = Text.assemble(
        (STATES[entry.state].in_(language), _STYLES[entry.state]),
        "  ",
        (visible(entry.id), "bold"),
        " ",
        visible(entry.title.in_(language)),
    )
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(entry, language):
        facts.add_row(name.in_(language), Text(visible(text)))
    return Group(head, Padding(facts, (0, 0, 1, 2)))


def _facts(entry: Entry, language: Language) -> list[tuple[Words, str]]:
    shown: list[tuple[Words, str | None]] = []
    if entry.requirement:
        text = Words(entry.requirement.text_en, entry.requirement.text_zh).in_(language)
        shown.append((Words(f"clause {entry.requirement.clause}", f"条款 {entry.requirement.clause}"), text))
    if entry.result:
        shown += [(Words("reason", "原因"), entry.result_reason)]
        shown += [fact for evidence in entry.result.evidence for fact in _evidence(evidence)]
        shown += [(Words("hint", "提示"), entry.result.hint)]
    return [(name, text) for name, text in shown if text]


def _evidence(evidence: Evidence) -> list[tuple[Words, str | None]]:
    return [
        (Words("expected", "期望"), evidence.expected),
        (Words("found", "实际"), evidence.found),
        (Words("request", "请求"), evidence.request),
        (Words("answer", "响应"), evidence.answer),
    ]
