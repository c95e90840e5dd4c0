"""The registers that the specification publishes: indicators, requirements and problem types."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files

from kuayu_schemas.models import (
    SPEC_VERSION,
    IndicatorRegister,
    ProblemRegister,
    ProfileDefinition,
    RequirementRegister,
    SubProfileDefinition,
    WithdrawnRequirement,
)

__all__ = [
    "SPEC_VERSION",
    "indicators",
    "mandatory",
    "problems",
    "profiles",
    "requirements",
    "requirements_of",
    "sub_profiles",
    "withdrawn",
]


@cache
def indicators() -> IndicatorRegister:
    """The twelve indicators and the map from exporters' fields to their measures."""
    return IndicatorRegister.model_validate_json(_published("indicators"))


@cache
def requirements() -> RequirementRegister:
    """Every normative sentence of the standard, and the profiles that they belong to."""
    return RequirementRegister.model_validate_json(_published("requirements"))


@cache
def profiles() -> Mapping[str, ProfileDefinition]:
    """Every profile by its name, in order."""
    return {row.profile.value: row for row in requirements().profiles}


@cache
def sub_profiles() -> Mapping[str, SubProfileDefinition]:
    """Every sub-profile by its name, such as ``RES/collectives``, in order; names of later versions are not there."""
    return {row.name: row for row in requirements().sub_profiles or ()}


def mandatory(names: Iterable[str]) -> tuple[str, ...]:
    """Operations that cannot be left out of profiles and sub-profiles, as ``METHOD /path``.

    Each stands there once, also where several share it: those of profiles first, in the order of the register, then
    those of sub-profiles. Unknown names have none.
    """
    wanted = set(names)
    rows: list[tuple[str, ProfileDefinition | SubProfileDefinition]] = [*profiles().items(), *sub_profiles().items()]
    return tuple(dict.fromkeys(operation for name, row in rows if name in wanted for operation in row.mandatory))


@cache
def requirements_of(name: str) -> Collection[str]:
    """Identifiers of the requirements of a profile or sub-profile, without those of COM; of an unknown name none."""
    if name in sub_profiles():
        return frozenset(sub_profiles()[name].requirements)
    return frozenset(row.id for row in requirements().requirements if row.profile.value == name)


@cache
def withdrawn() -> Mapping[str, WithdrawnRequirement]:
    """Requirements that are no more by their identifiers, in the order in which they were withdrawn."""
    return {row.id: row for row in requirements().withdrawn or ()}


@cache
def problems() -> ProblemRegister:
    """Every problem type that an answer may name."""
    return ProblemRegister.model_validate_json(_published("problems"))


def _published(name: str) -> bytes:
    return (files("kuayu_schemas") / "published" / f"{name}.json").read_bytes()
