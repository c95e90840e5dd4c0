"""The information model beside the schema that is published from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import schema

from .markdown import code, link
from .text import phrases

KINDS = ("classes", "enums", "types")
ROOT = Path(__file__).parents[3]

Definition = Mapping[str, Any]
"""A JSON Schema of a class, or what LinkML has of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the model.

    Attributes:
        name: Name of the file, without its ending.
        description: What it is about.
        members: Entries of each of :data:`KINDS` that are published, by name, as the model has them.
    """

    name: str
    description: str
    members: Mapping[str, Mapping[str, Definition]]


@cache
def parts() -> tuple[Part, ...]:
    """The parts of the model in the order of ``docs/hooks/text/schemas.yaml``."""
    return tuple(_read(name) for name in phrases("schemas", "en")["names"])


def published() -> Mapping[str, Definition]:
    """Definitions of the published schema, by name."""
    definitions: Mapping[str, Definition] = schema.document()["$defs"]
    return definitions


def part_page(name: str) -> str:
    """Where a part of the model stands on the site; the part ``index`` must not take the place of the list of parts."""
    return f"reference/schemas/{'compute-index' if name == 'index' else name}.md"


def class_link(name: str) -> str:
    """A link to a definition of the schema."""
    return link(name, f"/{part_page(_place(name))}#{name}")


def named_type(inline: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reference to the type of the model that has the same pattern, where there is one; otherwise what was given."""
    pattern = inline.get("pattern")
    same = (name for name, definition in published().items() if pattern and definition.get("pattern") == pattern)
    name = next(same, None)
    return {"$ref": f"#/$defs/{name}"} if name else inline


def type_words(member: Mapping[str, Any], many: str) -> str:
    """Type of a member or parameter: a link to its definition, or the JSON type; ``many`` stands before a list's."""
    if "$ref" in member:
        return class_link(str(member["$ref"]).rpartition("/")[2])
    if member.get("type") == "array":
        return f"{many}{type_words(member['items'], many)}"
    if "anyOf" in member:
        return " / ".join(type_words(each, many) for each in member["anyOf"])
    return code(member["type"])


def meaning(language: Language, name: str) -> str:
    """What a class, an enumeration or a type is; in English where the Chinese is not written yet."""
    row = _chinese().get(name) if language == "zh" else None
    return str(row.get("description") if isinstance(row, Mapping) else row or published()[name]["description"])


def member_meaning(language: Language, name: str, member: str) -> str:
    """What a member of a class is, which the class may inherit."""
    rows = [_chinese().get(each, {}).get("members", {}) for each in _lineage(name)] if language == "zh" else []
    english = published()[name]["properties"][member]["description"]
    return next((str(row[member]) for row in rows if member in row), str(english))


def value_meaning(language: Language, name: str, value: str, english: str) -> str:
    """What a value of an enumeration is."""
    values = _chinese().get(name, {}).get("values", {}) if language == "zh" else {}
    return str(values.get(value, english))


def rules_of(language: Language, name: str) -> Iterator[str]:
    """What the rules of a class and of its ancestors say."""
    for ancestor in _lineage(name):
        english = [rule["description"] for rule in _classes()[ancestor].get("rules", ())]
        yield from (_chinese().get(ancestor, {}).get("rules", english) if language == "zh" else english)


def _lineage(name: str) -> Iterator[str]:
    """A class and those that it inherits from, itself first."""
    ancestor: str | None = name
    while ancestor is not None and ancestor in _classes():
        yield ancestor
        ancestor = _classes()[ancestor].get("is_a")


@cache
def _place(name: str) -> str:
    return next(part.name for part in parts() if any(name in part.members[kind] for kind in KINDS))


@cache
def _classes() -> Mapping[str, Definition]:
    """All classes of the model, those that are not published too."""
    return {
        each: row
        for name in phrases("schemas", "en")["names"]
        for each, row in _source(name).get("classes", {}).items()
    }


@cache
def _chinese() -> Mapping[str, Any]:
    """What classes, enumerations and types mean in Chinese, by name, as far as it is written."""
    files = sorted((ROOT / "spec/document/model-zh").glob("*.yaml"))
    parts_ = [yaml.load(file.read_text("utf-8"), yaml.CSafeLoader) for file in files]
    return {each: row for part in parts_ for rows in part.values() for each, row in rows.items()}


@cache
def _source(name: str) -> Definition:
    source: Definition = yaml.load((ROOT / f"spec/model/{name}.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return source


def _read(name: str) -> Part:
    source = _source(name)
    members = {kind: {each: row for each, row in source.get(kind, {}).items() if each in published()} for kind in KINDS}
    return Part(name, source["description"], members)
