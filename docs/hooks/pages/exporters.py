"""The exporters of the collection map, and where the pages come from that the suite plays."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers
from kuayu_schemas.models import Exporter

from .citations import cited
from .indicators import indicator_link
from .made import Made
from .markdown import code, facts, heading, page, plain, table
from .text import phrases
from .translations import exporter_note, register_text, said

NAME = "exporters"


def pages(language: Language) -> Iterator[Made]:
    """The one page of the exporters."""
    say = phrases(NAME, language)
    text = files("kuayu_conformance").joinpath("exporters/captures/provenance.yaml").read_text("utf-8")
    captures = {capture["exporter"]: capture for capture in yaml.safe_load(text)["captures"]}
    blocks = [_exporter(language, each, captures.get(each.id)) for each in registers.indicators().exporters]
    yield Made("reference/exporters.md", page(f"# {say['title']}", say["introduction"], *blocks))


def _exporter(language: Language, exporter: Exporter, capture: Mapping[str, Any] | None) -> str:
    say = phrases(NAME, language)
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
        facts((say["facts"][key], value) for key, value in rows.items()),
        table(say["fields"], mapped),
        _capture(language, capture) if capture else "",
    )


def _capture(language: Language, capture: Mapping[str, Any]) -> str:
    say = phrases(NAME, language)
    title = say["captured" if capture["captured"] else "specified"].format(code(capture["file"]))
    added = [
        f"{code(field['field'])}{say['colon']}{_said(language, field['confirmed_in'])}"
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
    named = ((say["capture"][key], value) for key, value in rows.items())
    return page(heading(3, title, f"{capture['exporter']}-capture"), facts(named))


def _said(language: Language, text: object) -> str:
    """A text about a captured page; one without words of either language is the same in both."""
    return plain(said(language, "captures", str(text)))
