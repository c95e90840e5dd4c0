"""Annex D: the collection map, exporter by exporter, from the register of indicators."""

from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, number, plain
from document.sources import Row, Sources
from document.words import Language, phrases, said

WIDTHS = (7, 20, 30, 6, 11, 8, 16, 8, 30)

IN_WORDS = frozenset({"vendor", "source"})
"""Facts with words of a language in them, beside the note."""


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the map, a subclause for each exporter."""
    manuscript.say("exporters.introduction", "met-02-expositions")
    language = manuscript.language
    for exporter in sources.indicators["exporters"]:
        name = exporter["id"]
        manuscript.heading(level, plain(name), f"exporter-{name}")
        facts = [
            f"- {words}{said('document.colon', language)}{_fact(sources, language, exporter, key)}"
            for key, words in phrases("exporters.facts", language).items()
            if exporter.get(key)
        ]
        manuscript.add("\n".join(facts))
        rows = list(_rows(manuscript, sources, name))
        if rows:
            manuscript.table(
                said("exporters.map", language).format(plain(name)),
                phrases("exporters.headings", language),
                rows,
                WIDTHS,
            )


def _fact(sources: Sources, language: Language, exporter: Row, key: str) -> str:
    value = exporter[key]
    if isinstance(value, list):
        return said("document.comma", language).join(
            code(f"{item:.0f}" if isinstance(item, float) else item) for item in value
        )
    if key == "note":
        return plain(sources.exporter_note(language, exporter))
    return plain(sources.register_text(language, f"{key}s", value) if key in IN_WORDS else value)


def _rows(manuscript: Manuscript, sources: Sources, exporter: str) -> Iterator[list[str]]:
    for indicator in sources.indicators["indicators"]:
        for measure in indicator["measures"]:
            for entry in measure.get("collection", ()):
                if entry["exporter"] == exporter:
                    yield [indicator["id"], code(measure["name"]), *_entry(manuscript, sources, entry)]


def _entry(manuscript: Manuscript, sources: Sources, entry: Row) -> Iterator[str]:
    language = manuscript.language
    yield lines(code(name) for name in entry["fields"])
    yield plain(entry["field_unit"])
    factor = "" if entry["factor"] == 1 else f" × {number(entry['factor'])}"
    states = (plain(f"{number(state['value'])} → {state['state']}") for state in entry.get("states", ()))
    parts = [code(f"parts: {entry['parts']}")] if "parts" in entry else []
    yield lines((plain(phrases("terms.transforms", language)[entry["transform"]] + factor), *states, *parts))
    yield phrases("terms.subjects", language)[entry["subject"]]
    yield lines(code(f'{match["label"]}="{match["value"]}"') for match in entry.get("match", ()))
    yield plain(number(entry["resolution"])) if entry["resolution"] else "–"
    yield plain(sources.register_text(language, "sources", entry["source"]))
