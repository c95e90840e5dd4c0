"""A table of measured throughput as a value, and the JSON that it is kept in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kuayu_schemas.schema import digest

if TYPE_CHECKING:
    from kuayu_schemas import documents

JUDGED_FROM = 6
"""Kinds of devices that a table needs to be judged by; with fewer there is too little left when one is left out."""


@dataclass(frozen=True)
class Table:
    """Measurements of one origin, with what is known of their devices and tasks.

    Attributes:
        name: What the table is asked for by.
        title: What was measured, for people.
        source: Where it is from: authors, address, version, and what was done to it.
        licence: SPDX name of the licence of the origin, or that there is none.
        one_party: Whether one party measured it in one way, so that a difference between devices is theirs.
        corpus: The corpus. Identifiers are the origin's names, made to fit the pattern.
        device_names: Name for people by device.
        task_names: Name for people by task.
        alike: Devices that are the same die in the same form. Who leaves one out leaves out the others too.
    """

    name: str
    title: str
    source: str
    licence: str
    one_party: bool
    corpus: "documents.Corpus"
    device_names: Mapping[str, str]
    task_names: Mapping[str, str]
    alike: tuple[frozenset[str], ...] = ()

    @cached_property
    def digest(self) -> str:
        """Digest of all that folds and verdicts depend on."""
        alike = sorted(sorted(group) for group in self.alike)
        return digest({"corpus": self.corpus, "alike": alike, "one_party": self.one_party})

    @property
    def kinds(self) -> int:
        """Number of kinds of devices; those that are alike count once."""
        return len(self.device_names) - sum(len(group) - 1 for group in self.alike)

    @property
    def judged(self) -> bool:
        """Whether the table is fit to be judged by; otherwise it is only reported."""
        return self.one_party and self.kinds >= JUDGED_FROM

    def to_json(self) -> str:
        """The table as it is kept: one line for each device, task and measurement, ending in a line feed."""
        head = {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "licence": self.licence,
            "one_party": self.one_party,
            "alike": [sorted(group) for group in self.alike],
            "device_names": self.device_names,
            "task_names": self.task_names,
        }
        members = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
        corpus: Mapping[str, Any] = self.corpus
        parts = [f"  {json.dumps(part)}: [\n{_lines(entries)}\n  ]" for part, entries in corpus.items()]
        members.append(' "corpus": {\n' + ",\n".join(parts) + "\n }")
        return "{\n" + ",\n".join(members) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> "Table":
        """The table of a text that :meth:`to_json` made."""
        members = json.loads(text)
        return cls(**members | {"alike": tuple(frozenset(group) for group in members["alike"])})


def _lines(entries: list[Mapping[str, object]]) -> str:
    return ",\n".join("   " + json.dumps(entry, ensure_ascii=False) for entry in entries)
