"""The metric model in full: every measure of every indicator, from the register of indicators."""

from collections.abc import Iterator

from document import measure_formulas
from document.manuscript import Manuscript
from document.markdown import code, lines, link, mathematics, plain, spaced
from document.marks import STABILITY, mark_text
from document.sources import Row, Sources
from document.words import (
    AGGREGATIONS,
    COLON,
    COMMA,
    CONSTANCIES,
    DIMENSIONS,
    DIRECTIONS,
    KINDS,
    SUBJECTS,
    Language,
    Words,
)

FORMULAS = Words(
    "各指标的首个测度为指标自身的值，其余用于辅助解读。采集映射见附录 {}。",
    "The first measure of an indicator is its own value; the others help to read it. The collection map is annex {}.",
)
DIMENSION = Words("{}维度", "{} dimension")
MEASURES = Words("{} 的测度", "Measures of {}")
ROWS = {
    "definition": Words("定义", "Definition"),
    "formula": Words("计算公式", "Formula"),
    "unit": Words("传输单位", "Unit on the wire"),
    "shown": Words("显示单位", "Unit for people"),
    "kind": Words("值类型", "Value"),
    "range": Words("取值范围", "Range"),
    "ceiling": Words("单个序列上限", "Ceiling of one series"),
    "constancy": Words("静动态", "Constancy"),
    "period": Words("采样间隔", "Period"),
    "accuracy": Words("准确度", "Accuracy"),
    "direction": Words("优劣方向", "Direction"),
    "subjects": Words("观测对象", "Subjects"),
    "aggregation": Words("聚合", "Aggregation"),
    "note": Words("采集", "Collection"),
    "requirements": Words("适用的要求", "Requirements"),
}
MEASURE = Words("测度", "Measure")
PERIOD = Words("不大于 {:g} s", "at most {:g} s")
STOP = Words("。", ".")
EXACT = Words("精确", "exact")
MAPPED = Words("见附录 D", "see annex D")


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the indicators, a subclause for each dimension."""
    language = manuscript.language
    manuscript.say(FORMULAS, "annex-exporters")
    for dimension, name in DIMENSIONS.items():
        manuscript.heading(level, DIMENSION.in_(language).format(name.in_(language)), f"dimension-{dimension}")
        for indicator in sources.indicators["indicators"]:
            if indicator["dimension"] == dimension:
                title = f"{indicator['id']} {plain(indicator[f'name_{language}'])}"
                manuscript.heading(level + 1, title, f"indicator-{indicator['id']}")
                manuscript.add(plain(indicator[f"definition_{language}"]))
                mark = mark_text(sources, language, "indicators", indicator["id"])
                manuscript.add(f"{STABILITY.in_(language)}{COLON.in_(language)}{mark}{STOP.in_(language)}")
                _measures(manuscript, sources, indicator)


def _measures(manuscript: Manuscript, sources: Sources, indicator: Row) -> None:
    """One table for an indicator, a column for each measure."""
    language = manuscript.language
    columns = [dict(_facts(manuscript, sources, measure)) for measure in indicator["measures"]]
    headings = [MEASURE.in_(language)]
    for measure in indicator["measures"]:
        label = f"{plain(measure['name_zh'])}<br>" if language == "zh" else ""
        headings.append(f"{label}{code(measure['name'])}")
    rows = [
        [words.in_(language), *(column.get(key, "–") for column in columns)]
        for key, words in ROWS.items()
        if any(key in column for column in columns)
    ]
    widths = [16, *([84 // len(columns)] * len(columns))]
    manuscript.table(MEASURES.in_(language).format(indicator["id"]), headings, rows, widths)


def _facts(manuscript: Manuscript, sources: Sources, measure: Row) -> Iterator[tuple[str, str]]:
    language = manuscript.language
    yield "definition", plain(measure[f"definition_{language}"])
    yield "formula", lines(_formula(language, measure["formula"], sources.formulas[measure["formula"]]))
    yield "unit", code(measure["unit"])
    if measure["display_unit"] != measure["unit"]:
        yield "shown", code(measure["display_unit"])
    yield "kind", KINDS[measure["kind"]].in_(language)
    if "minimum" in measure:
        most = f" – {measure['maximum']:g}" if "maximum" in measure else ""
        yield "range", plain(f"{measure['minimum']:g}{most}" if most else f"≥ {measure['minimum']:g}")
    if "ceiling" in measure:
        yield "ceiling", _number(measure["ceiling"])
    yield "constancy", CONSTANCIES[measure["constancy"]].in_(language)
    if "period" in measure:
        yield "period", PERIOD.in_(language).format(measure["period"])
    yield "accuracy", plain(f"± {measure['accuracy']:.0%}") if measure["accuracy"] else EXACT.in_(language)
    yield "direction", DIRECTIONS[measure["direction"]].in_(language)
    yield "subjects", COMMA.in_(language).join(SUBJECTS[subject].in_(language) for subject in measure["subjects"])
    yield "aggregation", AGGREGATIONS[measure["aggregation"]].in_(language)
    notes = []
    if "collection_note" in measure:
        notes.append(plain(sources.register_text(language, "collection", measure["collection_note"])))
    notes += [MAPPED.in_(language)] if "collection" in measure else []
    yield "note", "<br>".join(notes)
    yield "requirements", COMMA.in_(language).join(link(name, name) for name in _requirements(measure))


def _formula(language: Language, text: str, formula: Row) -> list[str]:
    """A formula that stands alone is displayed; among words it stands within the line."""
    alone = formula.get(language, "{}") == "{}"

    def shown(tex: str, whole: bool) -> str:  # noqa: FBT001 - what a formula is shown by
        return mathematics(tex, displayed=alone and whole)

    return measure_formulas.shown(text, formula, language, spaced, shown)


def _number(value: float) -> str:
    """A number, as a product with a power of ten where it is large."""
    digits, _, power = f"{value:g}".partition("e+")
    return mathematics(rf"{digits}\times 10^{{{int(power)}}}") if power else plain(digits)


def _requirements(measure: Row) -> Iterator[str]:
    """What tests a measure: that it is given, how often, how truly, and how it is aggregated."""
    yield "MET-001"
    if "period" in measure:
        yield "MET-002"
    if "collection" in measure:
        yield "MET-003"
    if measure["aggregation"] != "none":
        yield "MET-009"
