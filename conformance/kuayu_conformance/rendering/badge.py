"""A badge: one line of the verdict as a small picture. Where nothing is claimed there is none.

It names what is claimed: profiles, and of those that are not claimed whole the sub-profiles.
"""

from html import escape

from kuayu_conformance.claims import claimed_profiles, results_of
from kuayu_conformance.rendering.visible import visible
from kuayu_schemas.models import ConformanceReport, Verdict

_HEIGHT = 20
_PADDING = 7
_LABEL_COLOUR = "#3a3f45"
_COLOURS = {0: "#17706b", 1: "#b8321f", 2: "#8a5c00"}
_SUITE_FAILED = "#6b4a9c"
_WIDE = frozenset("MWmw@%—…")
_SLIM = frozenset("iIjlt.,:;|'/()[] 1")


def badge(report: ConformanceReport) -> str | None:
    """The report's badge as SVG, such as ``kuayu 0.1 | MET quick: 24/24 pass``; None where nothing is claimed.

    White on each colour has a contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3).
    """
    if not (profiles := claimed_profiles(report)):
        return None
    label = visible(f"kuayu {'.'.join(report.spec_version.split('.')[:2])}")
    message = visible(_message(report, profiles))
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


def _message(report: ConformanceReport, profiles: list[str]) -> str:
    verdicts = [result.verdict for result in results_of(report, *profiles) if result.required]
    judged, passed, failed = len(verdicts), verdicts.count(Verdict.pass_), verdicts.count(Verdict.fail)
    scope = f"{'+'.join(profiles)} {report.run_level}"
    if report.exit_code not in _COLOURS:
        return f"{scope}: suite failed"
    if failed:
        errors = verdicts.count(Verdict.harness_error)
        return f"{scope}: {failed}/{judged - errors} fail" + (f", {errors} not judged" if errors else "")
    undecided = judged - passed
    return f"{scope}: {passed}/{judged} pass" + (f", {undecided} undecided" if undecided else "")


def _text(text: str, start: int, width: int) -> str:
    inner = width - 2 * _PADDING
    return f'<text x="{start + _PADDING}" y="14" textLength="{inner}">{escape(text)}</text>'


def _width(text: str) -> int:
    """Width that the text is set to, in pixels, padding included; near to what Verdana needs at 11 px."""
    natural = sum(10.0 if c in _WIDE or not c.isascii() else 4.3 if c in _SLIM else 7.0 for c in text)
    return round(natural) + 2 * _PADDING
