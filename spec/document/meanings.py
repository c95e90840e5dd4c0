"""What the classes, members, values, types and rules of the information model mean, in the language of the document.

The model says it in English (``spec/model``), ``spec/document/model-zh`` in Chinese, a file for each part. What is not
there in Chinese yet stays English.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from document.sources import Row, Sources
from document.words import Language

KINDS = ("classes", "enums", "types")

Described = Mapping[str, Mapping[str, Any]]
"""Descriptions of a part by kind and by name: of a class with its members and rules, of an enumeration with its values,
of a type by itself; the form of the files of ``model-zh``."""


def in_english(part: Row) -> Described:
    """The descriptions of a part of the model in the form of the files of ``model-zh``."""
    classes, enums, types = (part.get(kind, {}) for kind in KINDS)
    found: dict[str, dict[str, Any]] = {
        "classes": {name: _class(row) for name, row in classes.items()},
        "enums": {
            name: {"description": row["description"], "values": _descriptions(row["permissible_values"])}
            for name, row in enums.items()
        },
        "types": _descriptions(types),
    }
    return {kind: rows for kind, rows in found.items() if rows}


class Meanings:
    """Looks descriptions of the model up.

    Args:
        sources: What the document is made of.
        language: Its language.
    """

    def __init__(self, sources: Sources, language: Language) -> None:
        """Keep what the descriptions are read from."""
        self._sources, self._language = sources, language

    def of(self, name: str) -> str:
        """Description of a class, an enumeration or a type."""
        said = (rows[name] for tree in self._trees for rows in tree.values() if name in rows)
        return next(row if isinstance(row, str) else str(row["description"]) for row in said)

    def of_member(self, name: str, member: str) -> str:
        """Description of a member of a class, which the class may inherit."""
        return self._below("classes", "members", list(self._lineage(name)), member)

    def of_value(self, name: str, value: str) -> str:
        """Description of a value of an enumeration."""
        return self._below("enums", "values", [name], value)

    def of_rules(self, name: str) -> list[str]:
        """Descriptions of the rules that a class itself has."""
        return next((row["rules"] for tree in self._trees if "rules" in (row := tree["classes"].get(name, {}))), [])

    def _below(self, kind: str, below: str, names: list[str], entry: str) -> str:
        for tree in self._trees:
            for name in names:
                described = tree[kind].get(name, {}).get(below, {})
                if entry in described:
                    return str(described[entry])
        raise KeyError(entry)

    def _lineage(self, name: str) -> Iterator[str]:
        """A class and those that it inherits from, itself first."""
        ancestor: str | None = name
        while ancestor is not None:
            yield ancestor
            ancestor = self._classes[ancestor].get("is_a")

    @cached_property
    def _classes(self) -> Mapping[str, Row]:
        return {name: row for part in self._sources.model.values() for name, row in part.get("classes", {}).items()}

    @cached_property
    def _trees(self) -> list[Described]:
        """Descriptions of all parts, the first that has one counts."""
        english = _together(map(in_english, self._sources.model.values()))
        if self._language == "en":
            return [english]
        return [_together(self._sources.chinese_model.values()), english]


def _class(row: Row) -> dict[str, Any]:
    described: dict[str, Any] = {"description": row["description"]}
    if "attributes" in row:
        described["members"] = _descriptions(row["attributes"])
    if "rules" in row:
        described["rules"] = [rule["description"] for rule in row["rules"]]
    return described


def _descriptions(rows: Mapping[str, Row]) -> dict[str, str]:
    return {name: row["description"] for name, row in rows.items()}


def _together(parts: Iterable[Described]) -> Described:
    found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for part in parts:
        for kind, rows in part.items():
            found[kind].update(rows)
    return found
