"""Annex B, second part: the information model, with the bounds of the published schema."""

from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, plain, prose
from document.meanings import Meanings
from document.schema import bounds_text, type_text
from document.sources import Row, Sources
from document.words import phrases, said

WIDTHS, VALUE_WIDTHS = (26, 34, 9, 41), (28, 72)


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the model, a subclause for each of its parts."""
    manuscript.say("model.introduction")
    meanings = Meanings(sources, manuscript.language)
    for part, name in phrases("terms.model", manuscript.language).items():
        manuscript.heading(level, name, f"model-{part}")
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
        manuscript.table(
            said("model.class_table", language).format(code(name)), phrases("model.members", language), rows, WIDTHS
        )
    elif "enum" in definition:
        rows = [[code(value), prose(meanings.of_value(name, value))] for value in source["permissible_values"]]
        manuscript.table(
            said("model.value_table", language).format(code(name)),
            phrases("model.values", language),
            rows,
            VALUE_WIDTHS,
        )
        if source.get("annotations", {}).get("extensible") == "true":
            manuscript.say("model.open")
    elif "type" in definition:
        unit = f", {code(definition['x-unit'])}" if "x-unit" in definition else ""
        bounds = bounds_text(language, definition)
        manuscript.add(f"{code(definition['type'])}{unit}{said('document.colon', language) if bounds else ''}{bounds}")
    manuscript.add("\n".join(f"- {prose(rule)}" for rule in meanings.of_rules(name)))


def _members(manuscript: Manuscript, meanings: Meanings, owner: str, definition: Row) -> Iterator[list[str]]:
    language = manuscript.language
    for name, member in definition["properties"].items():
        required = said("model.required", language) if name in definition.get("required", ()) else ""
        kind = lines((type_text(language, member), bounds_text(language, member), required))
        unit = code(member["x-unit"]) if "x-unit" in member else ""
        yield [code(name), kind, unit, prose(meanings.of_member(owner, name))]
