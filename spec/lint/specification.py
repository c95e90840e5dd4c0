"""All that rules read: clauses of both languages, registers, enumerations of the model, and what is published."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from document import measure_formulas
from lint.clauses import LANGUAGES, Clause, Sentence

REGISTERS = ("indicators", "problems", "requirements", "stability")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found, where, and what to do about it."""

    rule: str
    file: str
    line: int
    sentence: str
    advice: str

    def __str__(self) -> str:
        """As the command prints it."""
        return f"{self.file}:{self.line}: {self.rule}: {self.advice}\n    {self.sentence}"


def at(rule: str, sentence: Sentence, advice: str) -> Finding:
    """Finding about a sentence."""
    return Finding(rule, sentence.file, sentence.line, sentence.text, advice)


@dataclass(frozen=True)
class Specification:
    """The specification, read once."""

    clauses: Mapping[str, Mapping[str, Clause]]
    """Clauses by language and by name."""
    registers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Registers by name, as YAML holds them."""
    register_texts: Mapping[str, str] = field(default_factory=dict)
    enumerations: Mapping[str, list[str]] = field(default_factory=dict)
    """Values of the model's enumerations, in order."""
    published: str = ""
    """Texts of the published schema and of the registers, for words that have to be in them."""
    figures: frozenset[str] = frozenset()
    """Files beside the clauses, as a clause links to them."""
    formulas: Mapping[str, measure_formulas.Formula] = field(default_factory=dict)
    """Formulas of measures in mathematics, by the words in which the register writes them."""
    operations: frozenset[str] = frozenset()
    """Published operations, as ``METHOD /path``."""

    def sentences(self, language: str | None = None) -> Iterator[Sentence]:
        """All sentences, of one language or of both."""
        for name in [language] if language else LANGUAGES:
            for clause in self.clauses[name].values():
                yield from clause.sentences

    def pairs(self) -> Iterator[tuple[Clause, Clause]]:
        """English and Chinese text of each clause that both languages have."""
        for name, chinese in self.clauses["zh"].items():
            if name in self.clauses["en"]:
                yield self.clauses["en"][name], chinese

    @property
    def requirements(self) -> list[Mapping[str, Any]]:
        """Rows of the register of requirements."""
        return list(self.registers.get("requirements", {}).get("requirements", []))

    @property
    def withdrawn(self) -> list[Mapping[str, Any]]:
        """Rows of the requirements that are no more."""
        return list(self.registers.get("requirements", {}).get("withdrawn") or ())

    def register_strings(self) -> Iterator[tuple[str, int, str, str]]:
        """Texts in words of all registers: register, line, member (``text_zh``) and text."""
        for register, rows in self.registers.items():
            whole = self.register_texts.get(register, "")
            for member, text in _strings(rows):
                place = max(whole.find(text[:20]), 0)
                yield register, whole.count("\n", 0, place) + 1, member, text

    def in_register(self, rule: str, identifier: str, sentence: str, advice: str) -> Finding:
        """Finding about a row of the register of requirements."""
        text = self.register_texts.get("requirements", "")
        found = re.search(rf"^ *- id: {identifier}$", text, re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        return Finding(rule, "spec/requirements.yaml", line, sentence, advice)


def read(root: Path) -> Specification:
    """Read the specification of the repository at ``root``."""
    spec, published = root / "spec", root / "schemas" / "kuayu_schemas" / "published"
    clauses = {
        language: {
            path.stem: Clause(language, path.stem, path.read_text("utf-8"))
            for path in sorted((spec / "text" / language).glob("*.md"))
        }
        for language in LANGUAGES
    }
    texts = {name: (spec / f"{name}.yaml").read_text("utf-8") for name in REGISTERS}
    openapi = json.loads((published / "openapi.json").read_text("utf-8"))
    operations = frozenset(
        f"{method.upper()} {path}"
        for path, item in openapi["paths"].items()
        for method in item
        if method in {"get", "put", "post", "delete"}
    )
    words = "\n".join(path.read_text("utf-8") for path in sorted(published.glob("*.json")))
    figures = frozenset(f"../{path.relative_to(spec / 'text')}" for path in (spec / "text").glob("figures/*"))
    return Specification(
        clauses,
        {name: _yaml(text) for name, text in texts.items()},
        texts,
        _enumerations(spec),
        words,
        figures,
        measure_formulas.read(spec / "document" / measure_formulas.FILE.name),
        operations,
    )


def _strings(node: Any) -> Iterator[tuple[str, str]]:
    """Members of a register that are told in a language, wherever they stand."""
    if isinstance(node, list):
        for row in node:
            yield from _strings(row)
    elif isinstance(node, dict):
        for member, value in node.items():
            if isinstance(value, str) and member.endswith(("_en", "_zh")):
                yield member, value
            else:
                yield from _strings(value)


def _enumerations(spec: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((spec / "model").glob("*.yaml")):
        for name, definition in (_yaml(path.read_text("utf-8")).get("enums") or {}).items():
            found[name] = list(definition.get("permissible_values") or {})
    return found


def _yaml(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return loaded
