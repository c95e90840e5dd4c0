"""The classes, enumerations and types of the model, with the bounds of the published schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from kuayu_conformance.rendering.words import Language, Words

from .made import Made
from .markdown import code, heading, link, page, plain, prose, table
from .model import (
    KINDS,
    Definition,
    Part,
    class_link,
    meaning,
    member_meaning,
    part_page,
    parts,
    published,
    rules_of,
    type_words,
    value_meaning,
)
from .terms import MODEL, PARTS_IN_CHINESE

INTRODUCTION = Words(
    "One information model, written in LinkML (<code>spec/model</code>), from which JSON Schema 2020-12, the Pydantic "
    "models and OpenAPI follow. The closed schema says what a request must be; the reader schema says what a reader "
    "accepts: members that it does not know, and any text where an enumeration is open.",
    "信息模型以 LinkML 书写（<code>spec/model</code>），JSON Schema 2020-12、Pydantic 模型与 OpenAPI 均由此生成。"
    "封闭模式规定请求应有的形式；读者模式规定读者所接受的形式：未知的成员，以及开放枚举处的任意文本。",
)
MEMBERS = {"en": ("Member", "Type", "Unit", "Meaning"), "zh": ("成员", "类型", "单位", "含义")}
VALUES = {"en": ("Value", "Meaning"), "zh": ("取值", "含义")}
PARTS = {"en": ("Part", "Classes", "Enumerations", "Types"), "zh": ("部分", "类", "枚举", "类型")}
REQUIRED, MANY = Words("required", "必备"), Words("list of ", "列表：")
OPEN = Words("Open: a reader takes any text.", "开放枚举：读者接受任意文本。")
BOUNDS = {
    "minimum": Words("at least {}", "不小于 {}"),
    "maximum": Words("at most {}", "不大于 {}"),
    "minItems": Words("at least {} items", "不少于 {} 项"),
    "maxItems": Words("at most {} items", "不多于 {} 项"),
    "maxLength": Words("at most {} characters", "不多于 {} 个字符"),
    "maxProperties": Words("at most {} members", "不多于 {} 个成员"),
    "pattern": Words("of the pattern {}", "符合模式 {}"),
    "propertyNames": Words("names of the pattern {}", "成员名符合模式 {}"),
}


def pages(language: Language) -> Iterator[Made]:
    """One page for each part of the model, and the list of them."""
    rows = []
    for part in parts():
        name = MODEL[part.name].in_(language)
        yield Made(part_page(part.name), _part(language, part), "Schemas")
        lists = (", ".join(class_link(each) for each in part.members[kind]) for kind in KINDS)
        rows.append((f"**{link(name, f'/{part_page(part.name)}')}**", *lists))
    title = {"en": "# Schemas", "zh": "# 模式"}[language]
    yield Made("reference/schemas/index.md", page(title, INTRODUCTION.in_(language), table(PARTS[language], rows)))


def bounds_words(language: Language, definition: Mapping[str, Any]) -> str:
    """The bounds of a definition, member or parameter."""
    shown = []
    for name, words in BOUNDS.items():
        if name in definition:
            bound = definition[name]
            text = code(bound["pattern"] if name == "propertyNames" else bound)
            shown.append(words.in_(language).format(text))
    return {"en": ", ", "zh": "，"}[language].join(shown)


def _part(language: Language, part: Part) -> str:
    return page(
        f"# {MODEL[part.name].in_(language)}",
        plain(PARTS_IN_CHINESE[part.name] if language == "zh" else part.description),
        *(_definition(language, name, part.members[kind][name]) for kind in KINDS for name in part.members[kind]),
    )


def _definition(language: Language, name: str, source: Definition) -> str:
    definition = published()[name]
    label = f" {plain(definition['x-label-zh'])}" if language == "zh" else ""
    body = ""
    if "properties" in definition:
        body = _members(language, name, definition)
    elif "enum" in definition:
        body = _values(language, name, source)
    elif "type" in definition:
        unit = f", {code(definition['x-unit'])}" if "x-unit" in definition else ""
        bounds = bounds_words(language, definition)
        body = f"{code(definition['type'])}{unit}" + (f": {bounds}" if bounds else "")
    rules = "\n".join(f"- {prose(rule)}" for rule in rules_of(language, name))
    return page(heading(2, f"{name}{label}", name), prose(meaning(language, name)), body, rules)


def _members(language: Language, owner: str, definition: Definition) -> str:
    required = definition.get("required", ())
    rows = []
    for name, member in definition["properties"].items():
        kind = [type_words(member, MANY.in_(language)), bounds_words(language, member)]
        kind += [f"**{REQUIRED.in_(language)}**"] if name in required else []
        unit = code(member["x-unit"]) if "x-unit" in member else ""
        rows.append((code(name), "<br>".join(filter(None, kind)), unit, prose(member_meaning(language, owner, name))))
    return table(MEMBERS[language], rows)


def _values(language: Language, name: str, source: Definition) -> str:
    values = source["permissible_values"].items()
    rows = [(code(value), prose(value_meaning(language, name, value, row["description"]))) for value, row in values]
    is_open = source.get("annotations", {}).get("extensible") == "true"
    return page(table(VALUES[language], rows), OPEN.in_(language) if is_open else "")
