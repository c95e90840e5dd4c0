"""The twelve indicators: what they are, how they are measured, and from which fields they are collected."""

from collections.abc import Iterator

from kuayu_conformance.rendering.words import Language, Words, named
from kuayu_schemas import registers
from kuayu_schemas.models import CollectionEntry, Indicator, Measure

from .citations import cited
from .formulas import measure_formula
from .made import Made
from .markdown import code, facts, heading, link, number, page, plain, table
from .register_words import register_text
from .stability import STABILITY, mark_badge
from .terms import AGGREGATIONS, CONSTANCIES, DIMENSIONS, DIRECTIONS, KINDS, SUBJECTS, TRANSFORMS

INTRODUCTION = Words(
    "Four dimensions with three indicators each. The first measure of an indicator is its own value; the others help "
    "to read it. Values travel in the unit on the wire, whatever an exporter writes; the collection map says how one "
    "becomes the other.",
    "四个维度，每个维度三项指标。指标的第一个测度为其自身的值，其余用于辅助解读。"
    "无论采集器采用何种单位，值均以传输单位传送，采集映射规定换算方法。",
)
FACTS = {
    "formula": Words("Formula", "计算公式"),
    "unit": Words("Unit on the wire", "传输单位"),
    "shown": Words("Unit for people", "显示单位"),
    "kind": Words("Value", "值类型"),
    "range": Words("Range", "取值范围"),
    "constancy": Words("Constancy", "静动态"),
    "accuracy": Words("Accuracy", "准确度"),
    "direction": Words("Direction", "优劣方向"),
    "subjects": Words("Reported for", "观测对象"),
    "aggregation": Words("Node and domain", "节点与域的聚合"),
    "note": Words("Collected", "采集"),
}
PERIOD = Words("sampled at least every {} s", "采样间隔不大于 {} s")
EXACT = Words("exact", "精确")
COLON = {"en": ": ", "zh": "："}
COLLECTION = {
    "en": ("Exporter", "Field", "Conversion", "About", "Where", "Step", "Source"),
    "zh": ("采集器", "字段", "换算", "对象", "标签条件", "分辨力", "来源"),
}


def pages(language: Language) -> Iterator[Made]:
    """The one page of the indicators."""
    indicators = registers.indicators().indicators
    blocks = []
    for dimension, name in DIMENSIONS.items():
        mine = [indicator for indicator in indicators if indicator.dimension == dimension]
        blocks += [heading(2, name.in_(language), dimension), *(_indicator(language, each) for each in mine)]
    title = {"en": "# The twelve indicators", "zh": "# 十二项指标"}[language]
    yield Made("reference/indicators.md", page(title, INTRODUCTION.in_(language), _overview(language), *blocks))


def indicator_link(identifier: str) -> str:
    """A link to an indicator."""
    return link(identifier, f"/reference/indicators.md#{identifier}")


def _name(language: Language, indicator: Indicator) -> str:
    return plain(indicator.name_zh if language == "zh" else indicator.name_en)


def _overview(language: Language) -> str:
    indicators = registers.indicators().indicators
    columns = [[i for i in indicators if i.dimension == dimension] for dimension in DIMENSIONS]
    rows = [
        [f"{indicator_link(each.id)}<br>{_name(language, each)}" for each in row] for row in zip(*columns, strict=True)
    ]
    return table([name.in_(language) for name in DIMENSIONS.values()], rows)


def _indicator(language: Language, indicator: Indicator) -> str:
    definition = indicator.definition_zh if language == "zh" else indicator.definition_en
    return page(
        heading(3, f"{indicator.id} · {_name(language, indicator)}", indicator.id),
        plain(definition),
        f"{STABILITY.in_(language)}{COLON[language]}{mark_badge(language, 'indicators', indicator.id)}",
        *(_measure(language, measure) for measure in indicator.measures),
    )


def _measure(language: Language, measure: Measure) -> str:
    chinese = language == "zh"
    title = f"{plain(measure.name_zh)} {code(measure.name)}" if chinese else code(measure.name)
    rows = [
        ("formula", measure_formula(language, measure.formula)),
        ("unit", code(measure.unit)),
        ("shown", "" if measure.display_unit == measure.unit else code(measure.display_unit)),
        ("kind", named(KINDS, measure.kind).in_(language)),
        ("range", _range(measure)),
        ("constancy", _constancy(language, measure)),
        ("accuracy", f"± {measure.accuracy:.0%}" if measure.accuracy else EXACT.in_(language)),
        ("direction", named(DIRECTIONS, measure.direction).in_(language)),
        ("subjects", ", ".join(named(SUBJECTS, subject).in_(language) for subject in measure.subjects)),
        ("aggregation", named(AGGREGATIONS, measure.aggregation).in_(language)),
        ("note", plain(register_text(language, "collection", measure.collection_note or ""))),
    ]
    collection = [_collection(language, entry) for entry in measure.collection or ()]
    return page(
        heading(4, title, measure.name),
        plain(measure.definition_zh if chinese else measure.definition_en),
        facts((FACTS[key].in_(language), value) for key, value in rows),
        table(COLLECTION[language], collection) if collection else "",
    )


def _range(measure: Measure) -> str:
    if measure.minimum is None:
        return ""
    return f"{measure.minimum:g} – {measure.maximum:g}" if measure.maximum is not None else f"≥ {measure.minimum:g}"


def _constancy(language: Language, measure: Measure) -> str:
    constancy = named(CONSTANCIES, measure.constancy).in_(language)
    period = PERIOD.in_(language).format(f"{measure.period:g}") if measure.period else ""
    return ", ".join(filter(None, (constancy, period)))


def _collection(language: Language, entry: CollectionEntry) -> tuple[str, ...]:
    conditions = [code(f'{match.label}="{match.value}"') for match in entry.match or ()]
    states = [f"{number(match.value)} → {plain(match.state)}" for match in entry.states or ()]
    factor = "" if entry.factor == 1 else f" × {number(entry.factor)}"
    transform = f"{named(TRANSFORMS, entry.transform).in_(language)}{factor}"
    return (
        link(entry.exporter, f"/reference/exporters.md#{entry.exporter}"),
        " +<br>".join(code(field) for field in entry.fields),
        "<br>".join((transform, *states)),
        named(SUBJECTS, entry.subject).in_(language),
        "<br>".join(conditions),
        f"{number(entry.resolution)} {plain(entry.field_unit)}" if entry.resolution else "–",
        cited(register_text(language, "sources", entry.source)),
    )
