"""A badge: one line of the verdict as a small picture."""

from html import escape

from kuayu_conformance.rendering.view import View, view_of
from kuayu_conformance.rendering.visible import visible
from kuayu_schemas.models import ConformanceReport, Profile
from kuayu_schemas.registers import requirements

_HEIGHT = 20
_PADDING = 7
_LABEL_COLOUR = "#3a3f45"
_COLOURS = {0: "#17706b", 1: "#b8321f", 2: "#8a5c00"}
_SUITE_FAILED = "#6b4a9c"
_WIDE = frozenset("MWmw@%—…")
_SLIM = frozenset("iIjlt.,:;|'/()[] 1")


def badge(report: ConformanceReport) -> str:
    """The report's badge as SVG, such as ``kuayu 0.1 | MET quick: 24/24 pass``.

    White on each colour has a contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3).
    """
    view = view_of(report, requirements())
    label = visible(f"kuayu {'.'.join(report.spec_version.split('.')[:2])}")
    message = visible(_message(view))
    left, right = _width(label), _width(message)
    colour = _COLOURS.get(report.exit_code, _SUITE_FAILED)
    title = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f'aria-label="{title}">\n'
        f"  <title>{title}</title>\n"
        f'  <rect width="{left}" height="{_HEIGHT}" fill="{_LABEL_COLOUR}"/>\n'
        f'  <rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>\n'
        f'  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f"    {_text(label, 0, left)}\n"
        f"    {_text(message, left, right)}\n"
        f"  </g>\n"
        f"</svg>\n"
    )


def _message(view: View) -> str:
    report = view.report
    beside_common = [profile for profile in report.profiles if profile is not Profile.COM]
    scope = f"{'+'.join(beside_common or report.profiles) or 'none'} {report.run_level}"
    judged, passed, failed = view.counted(), view.counted("pass"), view.counted("fail")
    if report.exit_code not in _COLOURS:
        return f"{scope}: suite failed"
    if failed:
        return f"{scope}: {failed}/{judged} fail"
    undecided = judged - passed
    return f"{scope}: {passed}/{judged} pass" + (f", {undecided} undecided" if undecided else "")


def _text(text: str, start: int, width: int) -> str:
    inner = width - 2 * _PADDING
    return f'<text x="{start + _PADDING}" y="14" textLength="{inner}">{escape(text)}</text>'


def _width(text: str) -> int:
    """Width that the text is set to, in pixels, padding included; near to what Verdana needs at 11 px."""
    natural = sum(10.0 if c in _WIDE or not c.isascii() else 4.3 if c in _SLIM else 7.0 for c in text)
    return round(natural) + 2 * _PADDING
