"""The registers that the specification publishes: indicators, requirements and problem types."""

from functools import cache
from importlib.resources import files

from kuayu_schemas.models import SPEC_VERSION, IndicatorRegister, ProblemRegister, RequirementRegister

__all__ = ["SPEC_VERSION", "indicators", "problems", "requirements"]


@cache
def indicators() -> IndicatorRegister:
    """The twelve indicators and the map from exporters' fields to their measures."""
    return IndicatorRegister.model_validate_json(_published("indicators"))


@cache
def requirements() -> RequirementRegister:
    """Every normative sentence of the standard, and the profiles that they belong to."""
    return RequirementRegister.model_validate_json(_published("requirements"))


@cache
def problems() -> ProblemRegister:
    """Every problem type that an answer may name."""
    return ProblemRegister.model_validate_json(_published("problems"))


def _published(name: str) -> bytes:
    return (files("kuayu_schemas") / "published" / f"{name}.json").read_bytes()
