"""The twelve indicators: what they are, how they are measured, and from which fields they are collected."""

from collections.abc import Iterator

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers
from kuayu_schemas.models import CollectionEntry, Indicator, Measure

from .citations import cited
from .formulas import measure_formula
from .made import Made
from .markdown import code, facts, heading, link, number, page, plain, table
from .stability import mark_badge, stability_word
from .text import phrases, term, terms
from .translations import register_text

NAME = "indicators"


def pages(language: Language) -> Iterator[Made]:
    """The one page of the indicators."""
    say = phrases(NAME, language)
    indicators = registers.indicators().indicators
    blocks = []
    for dimension, name in terms(language)["dimensions"].items():
        mine = [indicator for indicator in indicators if indicator.dimension == dimension]
        blocks += [heading(2, name, dimension), *(_indicator(language, each) for each in mine)]
    yield Made("reference/indicators.md", page(f"# {say['title']}", say["introduction"], _overview(language), *blocks))


def indicator_link(identifier: str) -> str:
    """A link to an indicator."""
    return link(identifier, f"/reference/indicators.md#{identifier}")


def _name(language: Language, indicator: Indicator) -> str:
    return plain(indicator.name_zh if language == "zh" else indicator.name_en)


def _overview(language: Language) -> str:
    indicators = registers.indicators().indicators
    dimensions = terms(language)["dimensions"]
    columns = [[i for i in indicators if i.dimension == dimension] for dimension in dimensions]
    rows = [
        [f"{indicator_link(each.id)}<br>{_name(language, each)}" for each in row] for row in zip(*columns, strict=True)
    ]
    return table(list(dimensions.values()), rows)


def _indicator(language: Language, indicator: Indicator) -> str:
    definition = indicator.definition_zh if language == "zh" else indicator.definition_en
    say = phrases(NAME, language)
    return page(
        heading(3, f"{indicator.id} · {_name(language, indicator)}", indicator.id),
        plain(definition),
        f"{stability_word(language)}{say['colon']}{mark_badge(language, 'indicators', indicator.id)}",
        *(_measure(language, measure) for measure in indicator.measures),
    )


def _measure(language: Language, measure: Measure) -> str:
    say = phrases(NAME, language)
    chinese = language == "zh"
    title = f"{plain(measure.name_zh)} {code(measure.name)}" if chinese else code(measure.name)
    rows = [
        ("formula", measure_formula(language, measure.formula)),
        ("unit", code(measure.unit)),
        ("shown", "" if measure.display_unit == measure.unit else code(measure.display_unit)),
        ("kind", term(language, "kinds", measure.kind)),
        ("range", _range(measure)),
        ("constancy", _constancy(language, measure)),
        ("accuracy", f"± {measure.accuracy:.0%}" if measure.accuracy else say["exact"]),
        ("direction", term(language, "directions", measure.direction)),
        ("subjects", ", ".join(term(language, "subjects", subject) for subject in measure.subjects)),
        ("aggregation", term(language, "aggregations", measure.aggregation)),
        ("note", plain(register_text(language, "collection", measure.collection_note or ""))),
    ]
    collection = [_collection(language, entry) for entry in measure.collection or ()]
    return page(
        heading(4, title, measure.name),
        plain(measure.definition_zh if chinese else measure.definition_en),
        facts((say["facts"][key], value) for key, value in rows),
        table(say["collection"], collection) if collection else "",
    )


def _range(measure: Measure) -> str:
    if measure.minimum is None:
        return ""
    return f"{measure.minimum:g} – {measure.maximum:g}" if measure.maximum is not None else f"≥ {measure.minimum:g}"


def _constancy(language: Language, measure: Measure) -> str:
    say = phrases(NAME, language)
    constancy = term(language, "constancies", measure.constancy)
    period = say["period"].format(f"{measure.period:g}") if measure.period else ""
    return ", ".join(filter(None, (constancy, period)))


def _collection(language: Language, entry: CollectionEntry) -> tuple[str, ...]:
    conditions = [code(f'{match.label}="{match.value}"') for match in entry.match or ()]
    states = [f"{number(match.value)} → {plain(match.state)}" for match in entry.states or ()]
    factor = "" if entry.factor == 1 else f" × {number(entry.factor)}"
    transform = f"{term(language, 'transforms', entry.transform)}{factor}"
    return (
        link(entry.exporter, f"/reference/exporters.md#{entry.exporter}"),
        " +<br>".join(code(field) for field in entry.fields),
        "<br>".join((transform, *states)),
        term(language, "subjects", entry.subject),
        "<br>".join(conditions),
        f"{number(entry.resolution)} {plain(entry.field_unit)}" if entry.resolution else "–",
        cited(register_text(language, "sources", entry.source)),
    )
