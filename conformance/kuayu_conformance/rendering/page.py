"""The report as one HTML file that needs nothing else, in both languages.

Strict by construction: every value is escaped and made visible where it is printed, and a content security policy
admits only the style sheet and the script that this package wrote, by their digests.
"""

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kuayu_conformance.rendering import words
from kuayu_conformance.rendering.chart import sentence
from kuayu_conformance.rendering.figures import count, length_of_time
from kuayu_conformance.rendering.headline import claimed, coverage, headline, meaning, origin, resumed, tone
from kuayu_conformance.rendering.view import view_of
from kuayu_conformance.rendering.words import visible
from kuayu_schemas.models import ConformanceReport
from kuayu_schemas.registers import requirements


def page(report: ConformanceReport) -> str:
    """The report as HTML."""
    view = view_of(report, requirements())
    style, javascript = _asset("report.css") + _asset("plot.css"), _asset("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            view=view,
            headline=headline(view),
            tone=tone(view),
            claimed=claimed(view),
            meaning=meaning(view),
            coverage=coverage(view),
            origin=origin(report),
            resumed=resumed(report),
            took=length_of_time((report.finished_at - report.started_at).total_seconds()),
            style=Markup(style),  # noqa: S704 - from this package
            script=Markup(javascript),  # noqa: S704 - from this package
            policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
            f"style-src '{_digest(style)}'; script-src '{_digest(javascript)}'",
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kuayu_conformance.rendering"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"count": count, "duration": length_of_time, "named": _named, "moment": _moment}
    environment.globals |= {"words": words, "sentence": sentence}
    return environment


def _shown(value: object) -> object:
    """Whatever the template prints: markup of its own as it is, everything else made visible."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value)


def _named(key: str, phrases: dict[str, words.Words]) -> words.Words:
    return words.named(phrases, key)


def _moment(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@cache
def _asset(name: str) -> str:
    return files("kuayu_conformance.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
