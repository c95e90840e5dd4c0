"""What the reference is known to miss.

``kuayu check`` ends well where nothing but this is amiss, and says so each time. A requirement leaves the list when the
reference meets it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kuayu_schemas.models import RequirementResult, Verdict

RIGHT = frozenset({Verdict.pass_, Verdict.not_applicable, Verdict.not_supported})


@dataclass(frozen=True)
class Shortfall:
    """A requirement that the reference does not meet, or does not always.

    Attributes:
        requirement: Which.
        verdict: The worst verdict that is known of.
        because: Why, and how far it is off.
    """

    requirement: str
    verdict: Verdict
    because: str


KNOWN = (
    Shortfall(
        "IDX-001",
        Verdict.inconclusive,
        "about 9 % on average over the measurements that come with the suite, but they are of so few devices that the "
        "bound lies above 10 %",
    ),
)


def of(results: Iterable[RequirementResult]) -> tuple[list[Shortfall], list[str]]:
    """Known shortfalls that a report shows, and requirements that are amiss and not known to be."""
    known = {each.requirement: each for each in KNOWN}
    amiss = [result for result in results if result.required and result.verdict not in RIGHT]
    shown = [
        known[r.requirement] for r in amiss if r.requirement in known and r.verdict is known[r.requirement].verdict
    ]
    expected = {each.requirement for each in shown}
    return shown, [result.requirement for result in amiss if result.requirement not in expected]
