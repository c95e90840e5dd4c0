"""Reasons of results in words for people.

A report keeps a reason as it was judged, with figures as they are computed, since whoever judges again has to come to
the same bytes: ``0.35 1 against at_least 0.4``. Here the figures in it are written as the tables write them: ``35 %
against at least 40 %``. The unit ``1`` of UCUM says that a figure has no dimension, and is never printed.
"""

import re
from math import isfinite

from kuayu_conformance.rendering.chart import figure_unit
from kuayu_conformance.rendering.figures import Unit, unit_of
from kuayu_conformance.rendering.words import COMPARISONS
from kuayu_schemas.models import RequirementResult, Threshold

_NUMBER = r"-?(?:\d\S*|inf)"
_COMPARED = re.compile(
    rf"(?:(?P<other>other )?bound (?P<bound>{_NUMBER}) does not: )?"
    rf"(?P<estimate>{_NUMBER}) \S+ against (?P<side>{'|'.join(COMPARISONS)}) (?P<limit>{_NUMBER})"
)
"""How a judgement words a figure that does not pass (:mod:`kuayu_conformance.run.verdicts`)."""


def reason_of(result: RequirementResult) -> str | None:
    """Why a result is what it is; None where it does not say."""
    threshold = result.threshold
    if not result.reason or threshold is None:
        return result.reason
    return _COMPARED.sub(lambda match: _worded(match, result, threshold), result.reason)


def _worded(match: re.Match[str], result: RequirementResult, threshold: Threshold) -> str:
    """The same comparison, in the unit that the figure is shown in elsewhere."""
    figures = {name: match[name] for name in ("bound", "estimate", "limit") if match[name]}
    try:
        values = {name: float(figure) for name, figure in figures.items()}
    except ValueError:  # no judgement of ours
        return match[0]
    if result.estimate is not None:  # what is compared is written with six digits, and the report has them all
        values |= {"estimate": result.estimate, "limit": threshold.value}
        if "bound" in values and not match["other"] and result.bound is not None:
            values["bound"] = result.bound
    finite = [value for value in values.values() if isfinite(value)]
    unit = unit_of(threshold.unit, finite) if result.estimate is None else figure_unit(result)
    shown = {name: _shown(unit, value, finite) for name, value in values.items()}
    compared = f"{shown['estimate']} against {COMPARISONS[match['side']].en} {shown['limit']}"
    return f"{match['other'] or ''}bound {shown['bound']} does not: {compared}" if "bound" in shown else compared


def _shown(unit: Unit, value: float, others: list[float]) -> str:
    return unit.text(value, apart_from=others) if isfinite(value) else f"{value:g}"


def limit_of(threshold: Threshold, *others: Threshold | None) -> str:
    """A threshold in words, such as ``at least 40 %``, in a unit that suits ``others`` too."""
    unit = unit_of(threshold.unit, [threshold.value, *(other.value for other in others if other)])
    return f"{COMPARISONS[threshold.comparison].en} {unit.text(threshold.value)}"
