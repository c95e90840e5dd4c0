"""What the register of indicators says in English alone, in the language of a page."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import Exporter

CHINESE = Path(__file__).parents[3] / "spec/document/exporters-zh.yaml"
"""The Chinese of it, by the English; annex D of the document takes it from there too."""


def register_text(language: Language, what: str, text: str) -> str:
    """A text of the register; one without words of either language is the same in both."""
    return str(_chinese()[what].get(text, text)) if language == "zh" else text


def exporter_note(language: Language, exporter: Exporter) -> str:
    """What to know of an exporter."""
    return "".join(_chinese()["notes"].get(exporter.id, {}).values()) if language == "zh" else exporter.note or ""


@cache
def _chinese() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = yaml.safe_load(CHINESE.read_text("utf-8"))
    return found
