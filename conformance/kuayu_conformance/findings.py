"""What a judge says: claims about behaviour and figures to hold against thresholds."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.contract import unsound, violation
from kuayu_schemas.models import Comparison, ReportPlot, ReportTable, Threshold


@dataclass(frozen=True)
class Claim:
    """One thing that a requirement promises, seen or not seen.

    Attributes:
        requirement: Identifier of the requirement.
        expected: What the clause asks for here, in words.
        met: Whether it was seen.
        found: What was seen, in words.
        answer: The exchange that shows it, where one does.
    """

    requirement: str
    expected: str
    met: bool
    found: str
    answer: Answer | None = None


@dataclass(frozen=True)
class PartFigure:
    """Figure of a part, such as a stratum: label, estimate, bound (None where there is none), observations."""

    label: str
    estimate: float
    bound: float | None
    n: int


@dataclass(frozen=True)
class Figure:
    """An estimate with its bound, to be held against the requirement's threshold.

    Attributes:
        requirement: Identifier of the requirement.
        estimate: The figure, in the threshold's unit.
        bound: One-sided 95 % bound on the side that counts; the estimate itself where nothing was sampled.
        n: Observations.
        estimator: How the figure and its bound were computed, in words.
        parts: Figures of the parts.
        misses: What speaks against it, at most a handful.
        tables: Further figures, printed and not judged.
        plots: Pictures.
        ceiling: The other one-sided bound, the best that the figure may be: where there is one, nobody fails by luck.
            None where the estimate alone tells that the threshold is missed.
    """

    requirement: str
    estimate: float
    bound: float
    n: int
    estimator: str
    parts: Sequence[PartFigure] = ()
    misses: Sequence[Claim] = ()
    tables: Sequence[ReportTable] = ()
    plots: Sequence[ReportPlot] = ()
    ceiling: float | None = None


Finding = Claim | Figure


def answered(
    requirement: str, answer: Answer, status: int | Sequence[int], because: str, *, problem: str = ""
) -> Claim:
    """Claim that an answer has a status (one of several), and a problem type where one is named.

    A status alone is no answer: the body has to be what the published operation gives with it, by media type and by
    schema, and an error has to be a problem.
    """
    wanted = (status,) if isinstance(status, int) else tuple(status)
    expected = f"{because}: {' or '.join(map(str, wanted))}" + (f" with problem {problem}" if problem else "")
    if answer.status not in wanted or (problem and answer.problem != problem):
        return Claim(requirement, expected, met=False, found=answer.brief, answer=answer)
    wrong = violation(answer)
    return Claim(requirement, expected, not wrong, f"{wrong}: {answer.brief}" if wrong else answer.brief, answer)


def holds(requirement: str, met: bool, expected: str, observed: object, answer: Answer | None = None) -> Claim:  # noqa: FBT001
    """Claim about anything else."""
    return Claim(requirement, expected, met, str(observed), answer)


def lacks(requirement: str, answer: Answer, unwanted: Sized, expected: str) -> Claim:
    """Claim that an answer holds nothing of a sort, ``unwanted`` being what it holds of it.

    Where there is no sound answer, nothing is there to hold it: that shows nothing, and the claim is not met.
    """
    wrong = unsound(answer)
    observed = f"{wrong}: {answer.brief}" if wrong else str(unwanted)
    return Claim(requirement, expected, not wrong and not len(unwanted), observed, answer)


def reaches(value: float, threshold: Threshold) -> bool:
    """Whether a figure lies on the right side of a threshold."""
    if threshold.comparison is Comparison.at_least:
        return value >= threshold.value
    return value <= threshold.value
