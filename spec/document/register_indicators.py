"""The metric model in full: every measure of every indicator, from the register of indicators."""

from collections.abc import Iterator

from document import measure_formulas
from document.manuscript import Manuscript
from document.markdown import code, lines, link, mathematics, plain, spaced
from document.marks import mark_text
from document.sources import Row, Sources
from document.words import Language, phrases, said


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the indicators, a subclause for each dimension."""
    language = manuscript.language
    manuscript.say("indicators.formulas", "annex-exporters")
    for dimension, name in phrases("terms.dimensions", language).items():
        manuscript.heading(level, said("indicators.dimension", language).format(name), f"dimension-{dimension}")
        for indicator in sources.indicators["indicators"]:
            if indicator["dimension"] == dimension:
                title = f"{indicator['id']} {plain(indicator[f'name_{language}'])}"
                manuscript.heading(level + 1, title, f"indicator-{indicator['id']}")
                manuscript.add(plain(indicator[f"definition_{language}"]))
                mark = mark_text(sources, language, "indicators", indicator["id"])
                colon, stop = said("document.colon", language), said("document.full_stop", language)
                manuscript.add(f"{said('marks.stability', language)}{colon}{mark}{stop}")
                _measures(manuscript, sources, indicator)


def _measures(manuscript: Manuscript, sources: Sources, indicator: Row) -> None:
    """One table for an indicator, a column for each measure."""
    language = manuscript.language
    columns = [dict(_facts(manuscript, sources, measure)) for measure in indicator["measures"]]
    headings = [said("indicators.measure", language)]
    for measure in indicator["measures"]:
        label = f"{plain(measure['name_zh'])}<br>" if language == "zh" else ""
        headings.append(f"{label}{code(measure['name'])}")
    rows = [
        [words, *(column.get(key, "–") for column in columns)]
        for key, words in phrases("indicators.rows", language).items()
        if any(key in column for column in columns)
    ]
    widths = [16, *([84 // len(columns)] * len(columns))]
    manuscript.table(said("indicators.measures", language).format(indicator["id"]), headings, rows, widths)


def _facts(manuscript: Manuscript, sources: Sources, measure: Row) -> Iterator[tuple[str, str]]:
    language = manuscript.language
    yield "definition", plain(measure[f"definition_{language}"])
    yield "formula", lines(_formula(language, measure["formula"], sources.formulas[measure["formula"]]))
    yield "unit", code(measure["unit"])
    if measure["display_unit"] != measure["unit"]:
        yield "shown", code(measure["display_unit"])
    yield "kind", phrases("terms.kinds", language)[measure["kind"]]
    if "minimum" in measure:
        most = f" – {measure['maximum']:g}" if "maximum" in measure else ""
        yield "range", plain(f"{measure['minimum']:g}{most}" if most else f"≥ {measure['minimum']:g}")
    if "ceiling" in measure:
        yield "ceiling", _number(measure["ceiling"])
    yield "constancy", phrases("terms.constancies", language)[measure["constancy"]]
    if "period" in measure:
        yield "period", said("indicators.period", language).format(measure["period"])
    yield (
        "accuracy",
        plain(f"± {measure['accuracy']:.0%}") if measure["accuracy"] else said("indicators.exact", language),
    )
    yield "direction", phrases("terms.directions", language)[measure["direction"]]
    yield (
        "subjects",
        said("document.comma", language).join(
            phrases("terms.subjects", language)[subject] for subject in measure["subjects"]
        ),
    )
    yield "aggregation", phrases("terms.aggregations", language)[measure["aggregation"]]
    notes = []
    if "collection_note" in measure:
        notes.append(plain(sources.register_text(language, "collection", measure["collection_note"])))
    notes += [said("indicators.mapped", language)] if "collection" in measure else []
    yield "note", "<br>".join(notes)
    yield "requirements", said("document.comma", language).join(link(name, name) for name in _requirements(measure))


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
