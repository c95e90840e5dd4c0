"""The words of checks in Chinese. What a check prints beside its verdict is English; what is unknown here stays so."""

import re
from collections.abc import Callable
from functools import partial

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport, ReportPlot, ReportTable, RequirementResult

from .text import Vocabulary, vocabulary

_Say = Callable[[str], str]

_BARE = re.compile(r"[^a-z]*")
"""Nothing to translate: figures, identifiers in capitals, signs."""

_OWN = {"MET": "judged_measured", "IDX": "judged_measured", "SCH": "judged_scheduling", "RES": "judged_resilience"}
"""Words that mean something else in the checks of a profile than in others: a step of a load is no step of training."""
_NONE = Vocabulary({}, {}, ())


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
