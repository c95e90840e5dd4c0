"""From findings to a verdict. Thresholds come from the register and from nowhere else."""

from collections.abc import Sequence
from math import isfinite

from kuayu_conformance.answers import Answer, shorten
from kuayu_conformance.findings import Claim, Figure, Finding, reaches
from kuayu_conformance.statistics import rounded
from kuayu_schemas.models import (
    Evidence,
    Modal,
    Part,
    Replay,
    Requirement,
    RequirementResult,
    Threshold,
    Verdict,
)

MOST_EVIDENCE = 8
"""Pieces of evidence kept for one requirement; more would hide the first."""

NOTHING_TO_JUDGE = "nothing that could be judged was answered"
"""Why a requirement is not met of which a check that did its part has found nothing."""


def without_verdict(
    requirement: Requirement, verdict: Verdict, reason: str, hint: str = "", *, duration: float | None = None
) -> RequirementResult:
    """Result of a requirement on which nothing was found, and why."""
    applies = verdict not in {Verdict.not_applicable, Verdict.not_supported}
    return RequirementResult(
        requirement=requirement.id,
        verdict=verdict,
        required=applies and requirement.modal is Modal.shall,
        reason=shorten(reason, 2000),
        hint=hint or None,
        threshold=requirement.threshold,
        aim=requirement.aim,
        parts=[],
        evidence=[],
        duration=duration,
    )


def conclude(
    requirement: Requirement,
    findings: Sequence[Finding],
    episode: str,
    replay: Replay,
    duration: float | None,
    last: Answer | None = None,
) -> RequirementResult:
    """Verdict on one requirement from all that was found about it.

    A claim that is not met fails the requirement. A figure passes when its bound lies on the right side of the
    threshold, fails when the estimate itself does not, nor its other bound where it has one, and is inconclusive in
    between.

    Where nothing was found although the target was asked (``last`` is its last answer), the target has answered nothing
    that could be judged, and fails. A check that has asked nothing is at fault itself.
    """
    if not findings and last is not None:
        findings = [Claim(requirement.id, "an answer that this requirement can be judged by", False, last.brief, last)]
        result = conclude(requirement, findings, episode, replay, duration)
        return result.model_copy(update={"reason": NOTHING_TO_JUDGE})
    claims = [finding for finding in findings if isinstance(finding, Claim)]
    figures = [finding for finding in findings if isinstance(finding, Figure)]
    if not findings:
        nothing = "the check asked nothing and found nothing about this requirement"
        return without_verdict(requirement, Verdict.harness_error, nothing, duration=duration)
    unmet = [claim for claim in claims if not claim.met]
    verdict = Verdict.fail if unmet else Verdict.pass_
    reason = f"{len(unmet)} of {len(claims)} expectations were not met" if unmet else None
    result = RequirementResult(
        requirement=requirement.id,
        verdict=verdict,
        required=requirement.modal is Modal.shall,
        threshold=requirement.threshold,
        aim=requirement.aim,
        n=len(claims),
        replay=replay,
        parts=[],
        evidence=[_evidence(claim, episode) for claim in unmet[:MOST_EVIDENCE]],
        duration=duration,
        reason=reason,
    )
    return _with_figure(result, figures[0], episode) if figures else result


def _with_figure(result: RequirementResult, figure: Figure, episode: str) -> RequirementResult:
    limit = result.threshold or result.aim
    if limit is None:
        raise ValueError(f"{result.requirement} has a figure, but neither a threshold nor an aim")
    estimate, bound = rounded(figure.estimate), rounded(figure.bound)
    ceiling = estimate if figure.ceiling is None else rounded(figure.ceiling)
    verdict, reason = result.verdict, result.reason
    if verdict is Verdict.pass_ and result.threshold:  # what is only aimed at is printed and not judged
        verdict, reason = _held(estimate, bound, ceiling, result.threshold)
    return result.model_copy(
        update={
            "verdict": verdict,
            "reason": reason,
            "estimate": estimate,
            "bound": bound,
            "aim_met": reaches(estimate, result.aim) if result.aim else None,
            "n": figure.n,
            "unit": limit.unit,
            "estimator": figure.estimator,
            "parts": [_part(*part) for part in ((p.label, p.estimate, p.bound, p.n) for p in figure.parts)],
            "evidence": [*result.evidence, *(_evidence(claim, episode) for claim in figure.misses)][:MOST_EVIDENCE],
            "tables": list(figure.tables) or None,
            "plots": list(figure.plots) or None,
        }
    )


def _held(estimate: float, bound: float, ceiling: float, threshold: Threshold) -> tuple[Verdict, str | None]:
    """Verdict on a figure, and why it is not a pass."""
    words = f"{estimate:g} {threshold.unit} against {threshold.comparison.value} {threshold.value:g}"
    if not (reaches(estimate, threshold) or reaches(ceiling, threshold)):
        return Verdict.fail, f"the figure misses the threshold: {words}"
    if not reaches(estimate, threshold):
        other = f"its other bound {ceiling:g} does not" if isfinite(ceiling) else "but there is too little to tell"
        return Verdict.inconclusive, f"the figure misses the threshold, {other}: {words}"
    if not reaches(bound, threshold):
        return Verdict.inconclusive, f"the figure reaches the threshold, its bound {bound:g} does not: {words}"
    return Verdict.pass_, None


def _part(label: str, estimate: float, bound: float | None, n: int) -> Part:
    return Part(label=label, estimate=rounded(estimate), bound=None if bound is None else rounded(bound), n=n)


def _evidence(claim: Claim, episode: str) -> Evidence:
    answer = claim.answer
    return Evidence(
        episode=(answer and answer.branch) or episode,
        exchange=answer.exchange if answer else None,
        expected=shorten(claim.expected, 2000),
        found=shorten(claim.found, 2000),
        request=shorten(answer.request, 2000) if answer else None,
        answer=answer.brief if answer else None,
    )
