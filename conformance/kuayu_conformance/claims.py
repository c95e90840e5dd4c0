"""What a report claims: conformance to a profile at a level, over all of its requirements, or nothing.

1. A claim is about a profile that the implementation declares. What holds for everybody (COM) is part of each claim and
   is none by itself: it says how something is done, and not that anything is.
2. It is over all requirements of the profile and of COM. Where one was not asked for, was excluded, or was left to
   longer runs, the profile is not claimed at that level.
3. A run that was limited to a selection of requirements is a diagnosis, whatever it finds.

Source: clause com-05 of the standard; ISO/IEC 17000:2020, 4.1 and 6.5 (what is attested is that specified requirements
are fulfilled, all of them).
"""

from dataclasses import dataclass
from enum import StrEnum

from kuayu_schemas.models import ConformanceReport, Profile, RequirementResult, Verdict
from kuayu_schemas.registers import requirements

LEFT_TO_LONGER_RUNS = "takes longer than a smoke run has; level quick or full measures it"
"""Why a requirement is left out of a smoke run, as its result says."""

NOT_ASKED_FOR = "was not asked for"
"""Why a requirement is left out of a run that was limited to others."""

EXCLUDED_BECAUSE = "excluded: "
"""What the reason begins with for which whoever ran the suite left a requirement out."""


class Outcome(StrEnum):
    """What becomes of a claim."""

    MET = "met"
    NOT_MET = "not-met"
    UNDECIDED = "undecided"
    NOT_CLAIMED = "not-claimed"


@dataclass(frozen=True, slots=True)
class Claim:
    """Conformance to one profile.

    Attributes:
        profile: Of which profile; all requirements of COM belong to it as well.
        outcome: What becomes of it.
        judged: Requirements that count.
        passed: How many of them were passed.
        failed: How many were not met.
        lacking: Requirements without which it is not claimed; empty where it is.
    """

    profile: Profile
    outcome: Outcome
    judged: int
    passed: int
    failed: int
    lacking: tuple[str, ...] = ()


def is_diagnosis(report: ConformanceReport) -> bool:
    """Whether a run was limited to some requirements, so that nothing is claimed whatever it finds."""
    return bool(report.selection)


def claims(report: ConformanceReport) -> tuple[Claim, ...]:
    """What becomes of each declared profile that was asked for, in the order of the register; none in a diagnosis."""
    if is_diagnosis(report) or report.declaration is None:
        return ()
    profile_of = {row.id: row.profile for row in requirements().requirements}
    results: dict[Profile, list[RequirementResult]] = {}
    for result in report.results:
        results.setdefault(profile_of.get(result.requirement, Profile.unknown), []).append(result)
    asked = set(report.profiles) or set(report.declaration.profiles)
    declared = [row.profile for row in requirements().profiles if row.profile in report.declaration.profiles]
    common = results.get(Profile.COM, [])
    return tuple(
        _claim(profile, [*common, *results.get(profile, [])])
        for profile in declared
        if profile is not Profile.COM and profile in asked
    )


def claimed_profiles(report: ConformanceReport) -> list[Profile]:
    """Profiles of which something is claimed, be it that they are not met; a report has a badge where there is one."""
    return [claim.profile for claim in claims(report) if claim.outcome is not Outcome.NOT_CLAIMED]


def _claim(profile: Profile, results: list[RequirementResult]) -> Claim:
    lacking = tuple(result.requirement for result in results if _is_lacking(result))
    counted = [result.verdict for result in results if result.required]
    passed, failed = counted.count(Verdict.pass_), counted.count(Verdict.fail)
    if failed:
        outcome = Outcome.NOT_MET
    elif lacking:
        outcome = Outcome.NOT_CLAIMED
    else:
        outcome = Outcome.MET if passed == len(counted) else Outcome.UNDECIDED
    return Claim(profile, outcome, len(counted), passed, failed, lacking)


def _is_lacking(result: RequirementResult) -> bool:
    """Whether a requirement would have applied and was left out."""
    reason = result.reason or ""
    return result.verdict is Verdict.not_applicable and (
        reason in {LEFT_TO_LONGER_RUNS, NOT_ASKED_FOR} or reason.startswith(EXCLUDED_BECAUSE)
    )
