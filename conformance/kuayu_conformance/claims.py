"""What a report claims: conformance to a profile or a part of one at a level, over all of its requirements, or nothing.

1. A claim is about a profile or a sub-profile that the implementation declares; whoever declares a profile declares its
   parts. What holds for everybody (COM) is part of each claim and is none by itself: it says how something is done, and
   not that anything is.
2. It is over all requirements of the profile or sub-profile and of COM. Where one was not asked for, was excluded, or
   was left to longer runs, nothing is claimed of it at that level.
3. Claims of parts are no claim of the profile, not even of all parts together: it has requirements that take several of
   them. Where a profile is claimed, its parts are claimed with it and not besides.
4. A run that was limited to a selection of requirements is a diagnosis, whatever it finds.

Source: clause com-05 of the standard; ISO/IEC 17000:2020, 4.1 and 6.5 (what is attested is that specified requirements
are fulfilled, all of them).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kuayu_schemas.models import ConformanceReport, Declaration, Profile, RequirementResult, Verdict
from kuayu_schemas.registers import profiles, requirements_of, sub_profiles, withdrawn

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
    """Conformance to one profile or sub-profile.

    Attributes:
        profile: Name of the profile or sub-profile; all requirements of COM belong to it as well.
        outcome: What becomes of it.
        judged: Requirements that count.
        passed: How many of them were passed.
        failed: How many were not met.
        lacking: Requirements without which it is not claimed; empty where it is.
    """

    profile: str
    outcome: Outcome
    judged: int
    passed: int
    failed: int
    lacking: tuple[str, ...] = ()


def is_diagnosis(report: ConformanceReport) -> bool:
    """Whether a run was limited to some requirements, so that nothing is claimed whatever it finds."""
    return bool(report.selection)


def claims(report: ConformanceReport) -> tuple[Claim, ...]:
    """What becomes of all that was declared and asked for: each profile, then each sub-profile; none in a diagnosis.

    They stand in the order of the register.
    """
    if is_diagnosis(report) or report.declaration is None:
        return ()
    return tuple(_claim(name, results_of(report, name)) for name in _claimable(report, report.declaration))


def claimed_profiles(report: ConformanceReport) -> list[str]:
    """What something is claimed of, be it that it is not met: profiles and sub-profiles, for which there is a badge."""
    return [claim.profile for claim in claims(report) if claim.outcome is not Outcome.NOT_CLAIMED]


def results_of(report: ConformanceReport, *names: str) -> list[RequirementResult]:
    """What was found for the requirements of profiles and sub-profiles, and for those of COM.

    A report from before has requirements that were withdrawn since: they counted then, and count in its claims.
    """
    among = {Profile.COM.value, *names}
    wanted = {entry for name in among for entry in requirements_of(name)}
    wanted |= {row.id for row in withdrawn().values() if among & {row.profile.value, *(row.sub_profiles or ())}}
    return [result for result in report.results if result.requirement in wanted]


def _claimable(report: ConformanceReport, declaration: Declaration) -> Iterator[str]:
    """Names of what was declared and asked for; without COM, and without parts of what is claimed whole."""
    declared, parts = set(declaration.profiles), set(declaration.sub_profiles or ())
    requested, requested_parts = set(report.profiles), set(report.sub_profiles or ())
    everything = not requested and not requested_parts
    claimed = [name for name in profiles() if name in declared - {Profile.COM} and (everything or name in requested)]
    yield from claimed
    for name, row in sub_profiles().items():
        is_declared = name in parts or row.profile in declared
        is_asked = name in requested_parts or (everything and name in parts)
        if is_declared and is_asked and row.profile not in claimed:
            yield name


def _claim(profile: str, results: list[RequirementResult]) -> Claim:
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
