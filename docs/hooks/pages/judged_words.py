"""The words of checks in Chinese. What a check prints beside its verdict is English; what is unknown here stays so."""

import re
from collections.abc import Sequence

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport, ReportPlot, ReportTable, RequirementResult

from .judged_patterns import PATTERNS
from .judged_phrases import PHRASES

_BARE = re.compile(r"[^a-z]*")
"""Nothing to translate: figures, identifiers in capitals, signs."""


def translated(report: ConformanceReport, language: Language) -> ConformanceReport:
    """The report with the words of its parts, tables and plots in a language."""
    if language == "en":
        return report
    return report.model_copy(update={"results": [_result(each) for each in report.results]})


def chinese(text: str) -> str:
    """A phrase in Chinese; as it is where it is not known whole, or in all parts between commas."""
    if text in PHRASES:
        return PHRASES[text]
    for pattern, said in PATTERNS:
        if found := pattern.fullmatch(text):
            return said.format(*(chinese(group) for group in found.groups()))
    parts = text.split(", ")
    if len(parts) > 1:
        told = [_known(part) for part in parts]
        if all(told):
            return "，".join(map(str, told))
    return text


def _known(part: str) -> str | None:
    told = chinese(part)
    return told if told != part or _BARE.fullmatch(part) else None


def _result(result: RequirementResult) -> RequirementResult:
    return result.model_copy(
        update={
            "estimator": result.estimator and chinese(result.estimator),
            "parts": [part.model_copy(update={"label": chinese(part.label)}) for part in result.parts or ()],
            "tables": [_table(each) for each in result.tables or ()],
            "plots": [_plot(each) for each in result.plots or ()],
        }
    )


def _table(shown: ReportTable) -> ReportTable:
    rows = [row.model_copy(update={"cells": _all(row.cells)}) for row in shown.rows]
    columns = [chinese(column) for column in shown.columns]
    return shown.model_copy(update={"title": chinese(shown.title), "columns": columns, "rows": rows})


def _plot(shown: ReportPlot) -> ReportPlot:
    series = [each.model_copy(update={"label": chinese(each.label)}) for each in shown.series]
    told = {name: chinese(getattr(shown, name)) for name in ("title", "x_label", "y_label")}
    return shown.model_copy(update={**told, "series": series})


def _all(texts: Sequence[str]) -> list[str]:
    return [chinese(text) for text in texts]
