"""A figure in a sentence: what was found, how sure it is, what was required."""

from collections.abc import Callable

from kuayu_conformance.rendering.chart import Chart
from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import COMPARISONS, Words
from kuayu_schemas.models import RequirementResult, Threshold

_Phrase = Callable[[RequirementResult, Chart], Words | None]


def sentence(result: RequirementResult, chart: Chart) -> Words:
    """What is said beside the estimate."""
    said = [words for phrase in (_confidence, _required, _aim, _observations) if (words := phrase(result, chart))]
    return Words(" ".join(words.en for words in said), "".join(words.zh for words in said))


def _confidence(result: RequirementResult, chart: Chart) -> Words:
    bound = chart.rows[0].bound_text
    if not bound or result.threshold is None:
        return Words("found.", "为所得值。")
    side = _side(result.threshold)
    return Words(
        f"found, and {side.en} {bound} with 95\u202f% confidence.",
        f"为估计值，以 95\u202f% 的置信度{side.zh} {bound}。",
    )


def _required(result: RequirementResult, chart: Chart) -> Words | None:
    if result.threshold is None:
        return None
    side = _side(result.threshold)
    return Words(f"Required: {side.en} {chart.threshold.label}.", f"要求{side.zh} {chart.threshold.label}。")


def _aim(result: RequirementResult, chart: Chart) -> Words | None:
    if result.aim is None or chart.aim is None:
        return None
    side = _side(result.aim)
    reached = {
        True: Words(", reached", "，已达到"),
        False: Words(", not reached", "，未达到"),
        None: Words("", ""),
    }[result.aim_met]
    return Words(f"Aim: {side.en} {chart.aim.label}{reached.en}.", f"目标{side.zh} {chart.aim.label}{reached.zh}。")


def _observations(result: RequirementResult, chart: Chart) -> Words | None:  # noqa: ARG001 - one signature for all
    if result.n is None:
        return None
    plural = "" if result.n == 1 else "s"
    return Words(f"From {count(result.n)} observation{plural}.", f"共 {count(result.n)} 次观测。")


def _side(limit: Threshold) -> Words:
    return COMPARISONS[limit.comparison]
