"""The classes, enumerations and types of the model, with the bounds of the published schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from kuayu_conformance.rendering.words import Language

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
from .text import phrases

NAME = "schemas"


def pages(language: Language) -> Iterator[Made]:
    """One page for each part of the model, and the list of them."""
    say = phrases(NAME, language)
    rows = []
    for part in parts():
        name = phrases(NAME, language)["names"][part.name]
        yield Made(part_page(part.name), _part(language, part), "Schemas")
        lists = (", ".join(class_link(each) for each in part.members[kind]) for kind in KINDS)
        rows.append((f"**{link(name, f'/{part_page(part.name)}')}**", *lists))
    title = f"# {say['title']}"
    yield Made("reference/schemas/index.md", page(title, say["introduction"], table(say["parts"], rows)))


def bounds_words(language: Language, definition: Mapping[str, Any]) -> str:
    """The bounds of a definition, member or parameter."""
    say = phrases(NAME, language)
    shown = []
    for name, words in say["bounds"].items():
        if name in definition:
            bound = definition[name]
            text = code(bound["pattern"] if name == "propertyNames" else bound)
            shown.append(words.format(text))
    return str(say["comma"].join(shown))


def _part(language: Language, part: Part) -> str:
    return page(
        f"# {phrases(NAME, language)['names'][part.name]}",
        plain(phrases(NAME, language)["parts_zh"][part.name] if language == "zh" else part.description),
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
    say = phrases(NAME, language)
    required = definition.get("required", ())
    rows = []
    for name, member in definition["properties"].items():
        kind = [type_words(member, say["many"]), bounds_words(language, member)]
        kind += [f"**{say['required']}**"] if name in required else []
        unit = code(member["x-unit"]) if "x-unit" in member else ""
        rows.append((code(name), "<br>".join(filter(None, kind)), unit, prose(member_meaning(language, owner, name))))
    return table(say["members"], rows)


def _values(language: Language, name: str, source: Definition) -> str:
    say = phrases(NAME, language)
    values = source["permissible_values"].items()
    rows = [(code(value), prose(value_meaning(language, name, value, row["description"]))) for value, row in values]
    is_open = source.get("annotations", {}).get("extensible") == "true"
    return page(table(say["values"], rows), say["open"] if is_open else "")
