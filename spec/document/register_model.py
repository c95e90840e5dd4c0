"""Annex B, second part: the information model, with the bounds of the published schema."""

from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, plain, prose
from document.meanings import Meanings
from document.schema import bounds_text, type_text
from document.sources import Row, Sources
from document.words import COLON, MODEL, Words

INTRODUCTION = Words(
    "本条给出信息模型的类、枚举与类型，与公布的 JSON Schema 同源。发送给服务的内容不含未列出的成员；"
    "读取方忽略其不认识的成员，并将开放枚举中不认识的取值视为 unknown。",
    "This subclause has the classes, enumerations and types of the information model, of the same source as the "
    "published JSON Schema. What is sent to a service has no other members; readers ignore members that they do not "
    "know, and take an unknown value of an open enumeration for unknown.",
)
MEMBERS = {"zh": ("成员", "类型与约束", "单位", "说明"), "en": ("Member", "Type and bounds", "Unit", "Meaning")}
VALUES = {"zh": ("取值", "说明"), "en": ("Value", "Meaning")}
WIDTHS, VALUE_WIDTHS = (26, 34, 9, 41), (28, 72)
CLASS_TABLE, VALUE_TABLE = Words("{} 的成员", "Members of {}"), Words("{} 的取值", "Values of {}")
REQUIRED = Words("必备", "required")
OPEN = Words("开放枚举。", "The enumeration is open.")


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the model, a subclause for each of its parts."""
    manuscript.say(INTRODUCTION)
    meanings = Meanings(sources, manuscript.language)
    for part, name in MODEL.items():
        manuscript.heading(level, name.in_(manuscript.language), f"model-{part}")
        for kind in ("classes", "enums", "types"):
            for defined, row in sources.model[part].get(kind, {}).items():
                if defined in sources.definitions:
                    _definition(manuscript, meanings, level, defined, sources.definitions[defined], row)


def _definition(
    manuscript: Manuscript, meanings: Meanings, level: int, name: str, definition: Row, source: Row
) -> None:
    language = manuscript.language
    label = f" {plain(definition['x-label-zh'])}" if language == "zh" and "x-label-zh" in definition else ""
    manuscript.heading(level + 1, f"{code(name)}{label}", f"class-{name}")
    manuscript.add(prose(meanings.of(name)))
    if "properties" in definition:
        rows = list(_members(manuscript, meanings, name, definition))
        manuscript.table(CLASS_TABLE.in_(language).format(code(name)), MEMBERS[language], rows, WIDTHS)
    elif "enum" in definition:
        rows = [[code(value), prose(meanings.of_value(name, value))] for value in source["permissible_values"]]
        manuscript.table(VALUE_TABLE.in_(language).format(code(name)), VALUES[language], rows, VALUE_WIDTHS)
        if source.get("annotations", {}).get("extensible") == "true":
            manuscript.say(OPEN)
    elif "type" in definition:
        unit = f", {code(definition['x-unit'])}" if "x-unit" in definition else ""
        bounds = bounds_text(language, definition)
        manuscript.add(f"{code(definition['type'])}{unit}{COLON.in_(language) if bounds else ''}{bounds}")
    manuscript.add("\n".join(f"- {prose(rule)}" for rule in meanings.of_rules(name)))


def _members(manuscript: Manuscript, meanings: Meanings, owner: str, definition: Row) -> Iterator[list[str]]:
    language = manuscript.language
    for name, member in definition["properties"].items():
        required = REQUIRED.in_(language) if name in definition.get("required", ()) else ""
        kind = lines((type_text(language, member), bounds_text(language, member), required))
        unit = code(member["x-unit"]) if "x-unit" in member else ""
        yield [code(name), kind, unit, prose(meanings.of_member(owner, name))]
