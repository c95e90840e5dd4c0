"""What the document and its drafting report are made of: clauses, registers, model, what is published, and results."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from document import measure_formulas
from document.words import Language, phrases

ROOT = Path(__file__).resolve().parents[2]

Row = Mapping[str, Any]
"""An object of one of these files; which members it has, the file says."""


@dataclass(frozen=True)
class Sources:
    """Everything under ``root`` that the document is made of, read when it is asked for.

    Attributes:
        root: A checkout of the project.
    """

    root: Path = field(default=ROOT)

    @cached_property
    def order(self) -> Row:
        """What stands where in the document."""
        return self._yaml("document/order.yaml")

    @cached_property
    def requirements(self) -> Row:
        """Register of requirements."""
        return self._yaml("requirements.yaml")

    @cached_property
    def indicators(self) -> Row:
        """Register of indicators, with the collection map."""
        return self._yaml("indicators.yaml")

    @cached_property
    def problems(self) -> Mapping[str, Row]:
        """Problem types by name."""
        return {row["name"]: row for row in self._yaml("problems.yaml")["problems"]}

    @cached_property
    def stability(self) -> Row:
        """Register of stability: marks with their promises, and the mark of each item."""
        return self._yaml("stability.yaml")

    @cached_property
    def openapi(self) -> Row:
        """The published interface."""
        return self._json("openapi.json")

    @cached_property
    def definitions(self) -> Mapping[str, Row]:
        """Definitions of the published schema by name."""
        definitions: Mapping[str, Row] = self._json("kuayu.schema.json")["$defs"]
        return definitions

    @cached_property
    def results(self) -> list[Row]:
        """What committed runs of the suite last found for the reference, a row for each requirement."""
        rows: list[Row] = json.loads((self.root / "docs/results/results.json").read_text("utf-8"))
        return rows

    @cached_property
    def summaries(self) -> Mapping[str, str]:
        """What each operation is for, in Chinese, by its method and path."""
        return self._yaml("document/summaries-zh.yaml")

    @cached_property
    def chinese(self) -> Mapping[str, Mapping[str, str]]:
        """What the published interface says of operations, parameters and answers, in Chinese, by the English."""
        return self._yaml("document/interface-zh.yaml")

    @cached_property
    def pinyin(self) -> Mapping[str, str]:
        """Pinyin of the Chinese terms, by which the index lists them."""
        return self._yaml("document/pinyin.yaml")

    @cached_property
    def model(self) -> Mapping[str, Row]:
        """The information model by its parts, a file each."""
        return {part: self._yaml(f"model/{part}.yaml") for part in phrases("terms.model", "en")}

    @cached_property
    def chinese_model(self) -> Mapping[str, Row]:
        """What the information model describes, in Chinese, by those of its parts for which that is written."""
        folder = self.root / "spec/document/model-zh"
        return {file.stem: self._yaml(f"document/model-zh/{file.name}") for file in sorted(folder.glob("*.yaml"))}

    @cached_property
    def exporters(self) -> Mapping[str, Mapping[str, Any]]:
        """What the register of indicators says in English alone, in Chinese, by the English."""
        return self._yaml("document/exporters-zh.yaml")

    @cached_property
    def formulas(self) -> Mapping[str, measure_formulas.Formula]:
        """Formulas of measures in mathematics, by the words in which the register of indicators writes them."""
        return measure_formulas.read(self.root / "spec/document" / measure_formulas.FILE.name)

    @cached_property
    def annexes(self) -> Row | None:
        """Requirements that were made again from the annexes, with figures; None where nothing is kept of it."""
        file = self.root / "docs/results/annexes.json"
        found: Row | None = json.loads(file.read_text("utf-8")) if file.exists() else None
        return found

    @cached_property
    def version(self) -> str:
        """Version of the standard."""
        return str(self.requirements["spec_version"])

    def register_text(self, language: Language, what: str, text: str) -> str:
        """A text of the register of indicators in a language; one without words of either is the same in both."""
        return str(self.exporters[what].get(text, text)) if language == "zh" else text

    def exporter_note(self, language: Language, exporter: Row) -> str:
        """What to know of an exporter, in a language."""
        return "".join(self.exporters["notes"][exporter["id"]].values()) if language == "zh" else str(exporter["note"])

    def text(self, language: Language, name: str) -> str | None:
        """A file of the text; None where there is none."""
        file = self.root / "spec" / "text" / language / f"{name}.md"
        return file.read_text("utf-8") if file.exists() else None

    @cached_property
    def date(self) -> str:
        """Day of the last commit to the standard; today where there is no repository."""
        command = ["git", "-C", str(self.root), "log", "-1", "--format=%cs", "--", "spec", "schemas"]
        try:
            shown = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a fixed program
            told = shown.stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            told = ""
        return told or datetime.now(UTC).date().isoformat()

    def _yaml(self, path: str) -> Row:
        row: Row = yaml.load((self.root / "spec" / path).read_text("utf-8"), yaml.CSafeLoader)
        return row

    def _json(self, name: str) -> Row:
        row: Row = json.loads((self.root / "schemas/kuayu_schemas/published" / name).read_text("utf-8"))
        return row
