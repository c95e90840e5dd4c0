"""The exporters of the collection map, and where the pages come from that the suite plays."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language, Words
from kuayu_schemas import registers
from kuayu_schemas.models import Exporter

from .citations import cited
from .indicators import indicator_link
from .made import Made
from .markdown import code, facts, heading, page, plain, table
from .register_words import exporter_note, register_text

INTRODUCTION = Words(
    "The exporters that the collection map knows, what each yields, and the public pages in whose form the suite plays "
    "them: a parser and a page written by one hand would prove nothing. Of a captured page names, labels and order are "
    "the exporter's; the suite replaces the values by its own, whose truth it knows.",
    "采集映射所知的采集器、各自给出的测度，以及测试套件扮演采集器所依据的公开页面：解析器与页面若出自同一人之手，"
    "便什么也证明不了。公开的采集器输出，其名称、标签与次序均为采集器原有，套件仅以其掌握真值的数值替换原值。",
)
FACTS = {
    "vendor": Words("Reports on", "所属"),
    "version": Words("Version of the map", "映射所依据的版本"),
    "label": Words("Label of the device", "加速器标签"),
    "source": Words("Source", "来源"),
    "note": Words("To know", "注意事项"),
}
CAPTURE = {
    "what": Words("The page", "页面"),
    "version": Words("Version", "版本"),
    "repository": Words("Published in", "出处"),
    "committed": Words("Committed", "提交日期"),
    "licence": Words("Licence", "许可证"),
    "left_out": Words("Left out", "未收录"),
    "missing": Words("Fields added by the suite", "由套件补充的字段"),
    "cross_check": Words("Cross-check", "旁证"),
}
CAPTURED = Words("Captured page {}", "公开的采集器输出 {}")
SPECIFIED = Words("Page {} made from the specification", "依规范构造的页面 {}")
COLON = {"en": ": ", "zh": "："}
FIELDS = {"en": ("Indicator", "Measure", "Fields"), "zh": ("指标", "测度", "字段")}

CHINESE = Path(__file__).parent / "captures-zh.yaml"
"""What is said of captured pages, in Chinese, by the English."""


def pages(language: Language) -> Iterator[Made]:
    """The one page of the exporters."""
    text = files("kuayu_conformance").joinpath("exporters/captures/provenance.yaml").read_text("utf-8")
    captures = {capture["exporter"]: capture for capture in yaml.safe_load(text)["captures"]}
    blocks = [_exporter(language, each, captures.get(each.id)) for each in registers.indicators().exporters]
    title = {"en": "# Exporters and captures", "zh": "# 采集器及其输出"}[language]
    yield Made("reference/exporters.md", page(title, INTRODUCTION.in_(language), *blocks))


def _exporter(language: Language, exporter: Exporter, capture: Mapping[str, Any] | None) -> str:
    rows = {
        "vendor": plain(register_text(language, "vendors", exporter.vendor)),
        "version": plain(exporter.version),
        "label": code(exporter.device_label) if exporter.device_label else "",
        "source": cited(register_text(language, "sources", exporter.source)),
        "note": plain(exporter_note(language, exporter)),
    }
    mapped = [
        (indicator_link(indicator.id), code(measure.name), ", ".join(code(field) for field in entry.fields))
        for indicator in registers.indicators().indicators
        for measure in indicator.measures
        for entry in measure.collection or ()
        if entry.exporter == exporter.id
    ]
    return page(
        heading(2, plain(exporter.id), exporter.id),
        facts((FACTS[key].in_(language), value) for key, value in rows.items()),
        table(FIELDS[language], mapped),
        _capture(language, capture) if capture else "",
    )


def _capture(language: Language, capture: Mapping[str, Any]) -> str:
    title = (CAPTURED if capture["captured"] else SPECIFIED).in_(language).format(code(capture["file"]))
    added = [
        f"{code(field['field'])}{COLON[language]}{_said(language, field['confirmed_in'])}"
        for field in capture["missing_fields"]
    ]
    rows = {
        "what": _said(language, capture["what"]),
        "version": _said(language, capture["version"]),
        "repository": f"<{capture['repository']}> {code(capture['path'])} @{plain(capture['commit'][:7])}",
        "committed": _said(language, capture["committed"]),
        "licence": _said(language, capture["licence"]),
        "left_out": _said(language, capture["left_out"]),
        "missing": "<br>".join(added),
        "cross_check": _said(language, capture.get("cross_check", "")),
    }
    named = ((CAPTURE[key].in_(language), value) for key, value in rows.items())
    return page(heading(3, title, f"{capture['exporter']}-capture"), facts(named))


def _said(language: Language, text: object) -> str:
    """A text about a captured page; one without words of either language is the same in both."""
    return plain(_chinese().get(str(text), text) if language == "zh" else text)


@cache
def _chinese() -> Mapping[str, str]:
    found: Mapping[str, str] = yaml.safe_load(CHINESE.read_text("utf-8"))
    return found
