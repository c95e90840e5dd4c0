"""What others say in English alone, in the language of a page: checks, benchmarks, tables, registers.

1. Vocabularies lie in ``docs/hooks/text`` (:func:`pages.text.vocabulary`). What is not known stays as it is, and tests
   hold what is shown against them.
2. A check's own words come before those of others: a step of a load is no step of training.
3. Names of programs, exporters, packages and exceptions, titles of papers, commits, and measures such as F1 stay.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport, Exporter, ReportPlot, ReportTable, RequirementResult

from .text import Vocabulary, vocabulary

REGISTER = Path(__file__).parents[3] / "spec/document/exporters-zh.yaml"
"""What the register of indicators says, in Chinese, by the English; annex D of the document takes it from there too."""

_Say = Callable[[str], str]

_BARE = re.compile(r"[^a-z]*")
"""Nothing to translate: figures, identifiers in capitals, signs."""

_OWN = {"MET": "judged_measured", "IDX": "judged_measured", "SCH": "judged_scheduling", "RES": "judged_resilience"}
"""Words that mean something else in the checks of a profile than in others: a step of a load is no step of training."""
_NONE = Vocabulary({}, {}, ())


def said(language: Language, name: str, text: str) -> str:
    """A text by a vocabulary; one that it does not know, or without words of either language, is the same in both."""
    return vocabulary(name).said(text) if language == "zh" else text


def source_text(language: Language, text: str) -> str:
    """What a requirement follows from, or a task or a device of a table."""
    return said(language, "sources", text)


def table_text(language: Language, text: str) -> str:
    """A table's title, source or method."""
    return said(language, "tables", text)


def vendor_name(language: Language, name: str) -> str:
    """A vendor of accelerators; the register of exporters names most of them."""
    return register_text(language, "vendors", source_text(language, name))


def register_text(language: Language, what: str, text: str) -> str:
    """A text of the register of indicators; one without words of either language is the same in both."""
    return str(_register()[what].get(text, text)) if language == "zh" else text


def exporter_note(language: Language, exporter: Exporter) -> str:
    """What to know of an exporter."""
    return "".join(_register()["notes"].get(exporter.id, {}).values()) if language == "zh" else exporter.note or ""


@cache
def _register() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = yaml.load(REGISTER.read_text("utf-8"), yaml.CSafeLoader)
    return found


def figure_name(language: Language, text: str) -> str:
    """A name that a benchmark gives a figure, or a word among them; ``STATE: REASON`` is said part by part."""
    if language == "en":
        return text
    names, states = vocabulary("figures"), vocabulary("judged_measured").lists["states"]
    state, _, reason = text.partition(": ")
    if state in states and reason in names.lists["reasons"]:
        return f"{states[state]}：{names.lists['reasons'][reason]}"
    return states.get(text) or names.said(text)


def translated(report: ConformanceReport, language: Language) -> ConformanceReport:
    """The report with the words of its parts, evidence, tables and plots in a language."""
    if language == "en":
        return report
    return report.model_copy(update={"results": [_result(each) for each in report.results]})


def chinese(text: str, profile: str = "") -> str:
    """A phrase in Chinese; as it is where it is not known whole, or in all parts between commas.

    Args:
        text: The phrase.
        profile: Identifier of the profile whose check says it.
    """
    own, common = vocabulary(_OWN[profile]) if profile in _OWN else _NONE, vocabulary("judged")
    if known := own.phrases.get(text) or common.phrases.get(text):
        return known
    for pattern, said in (*own.patterns, *common.patterns):
        if found := pattern.fullmatch(text):
            return said.format(*(chinese(group, profile) for group in found.groups()))
    parts = text.split(", ")
    if len(parts) > 1:
        told = [_known(part, profile) for part in parts]
        if all(told):
            return "，".join(map(str, told))
    return text


def _known(part: str, profile: str) -> str | None:
    told = chinese(part, profile)
    return told if told != part or _BARE.fullmatch(part) else None


def _result(result: RequirementResult) -> RequirementResult:
    say = partial(chinese, profile=result.requirement.partition("-")[0])
    return result.model_copy(
        update={
            "estimator": result.estimator and say(result.estimator),
            "parts": [part.model_copy(update={"label": say(part.label)}) for part in result.parts or ()],
            "evidence": [
                each.model_copy(update={"expected": say(each.expected), "found": say(each.found)})
                for each in result.evidence or ()
            ],
            "tables": [_table(each, say) for each in result.tables or ()],
            "plots": [_plot(each, say) for each in result.plots or ()],
        }
    )


def _table(shown: ReportTable, say: _Say) -> ReportTable:
    rows = [row.model_copy(update={"cells": list(map(say, row.cells))}) for row in shown.rows]
    columns = list(map(say, shown.columns))
    return shown.model_copy(update={"title": say(shown.title), "columns": columns, "rows": rows})


def _plot(shown: ReportPlot, say: _Say) -> ReportPlot:
    series = [each.model_copy(update={"label": say(each.label)}) for each in shown.series]
    told = {name: say(getattr(shown, name)) for name in ("title", "x_label", "y_label")}
    return shown.model_copy(update={**told, "series": series})
