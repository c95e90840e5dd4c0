"""Where requirements and tables of measurements are from, in the language of a page.

Registers, tables and committed runs say it in English alone. Titles of papers, names of repositories and commits stay.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from kuayu_conformance.rendering.words import Language

from .register_words import register_text

CHINESE = Path(__file__).parent / "tables-zh.yaml"
"""What tables say of themselves, in Chinese by the English."""

PAPER = "Yang, Hong and Tang, abstract and experiments 1 to 3"
REQUIREMENTS = (
    (re.compile(r"this standard"), "本标准"),
    (re.compile(r"brief (.+)"), "课题任务书 {}"),
    (
        re.compile(r"this standard \(OTLP 1\.9, OpenTelemetry semantic conventions for hardware\)"),
        "本标准（OTLP 1.9，OpenTelemetry 硬件语义约定）",
    ),
    (re.compile(r"this standard \(Prometheus text format ([\d.]+)\)"), "本标准（Prometheus 文本格式 {}）"),
    (re.compile(r"this standard \((.+)\)"), "本标准（{}）"),
    (re.compile(re.escape(PAPER)), "Yang、Hong 与 Tang，摘要与实验 1 至 3"),
)
TASKS = (
    (re.compile(r"(.+), inference, sequence (\d+), batch (\d+)"), "{}，推理，序列长度 {}，批量 {}"),
    (re.compile(r"(.+), training step, sequence (\d+), batch (\d+)"), "{}，训练步，序列长度 {}，批量 {}"),
)
VENDORS = {"Kunlunxin": "昆仑芯", "Moore Threads": "摩尔线程"}
"""Vendors that the register of exporters does not name."""
DEVICES = ((re.compile(r"(.+) of an (.+)"), "{}（{}）"),)


def requirement_source(language: Language, source: str) -> str:
    """What a requirement follows from."""
    return _said(language, source, REQUIREMENTS)


def task_name(language: Language, name: str) -> str:
    """A task of a table; most are named by the model alone, which is the same in both languages."""
    return _said(language, name, TASKS)


def vendor_name(language: Language, name: str) -> str:
    """A vendor of accelerators."""
    return VENDORS[name] if language == "zh" and name in VENDORS else register_text(language, "vendors", name)


def device_name(language: Language, name: str) -> str:
    """A device of a table by its vendor's name, and the machine that it is in where the name says it."""
    return _said(language, name, DEVICES)


def table_text(language: Language, text: str) -> str:
    """A table's title, source or method."""
    return _chinese().get(text, text) if language == "zh" else text


def _said(language: Language, text: str, patterns: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    if language == "zh":
        for pattern, said in patterns:
            if found := pattern.fullmatch(text):
                return said.format(*found.groups())
    return text


@cache
def _chinese() -> Mapping[str, str]:
    found: Mapping[str, str] = yaml.safe_load(CHINESE.read_text("utf-8"))
    return found
