"""All checks there are, in the order in which a run makes them."""

from typing import Any

from kuayu_conformance.check import Check, RunCheck
from kuayu_conformance.checks import (
    com_bulk,
    com_decisions,
    com_declaration,
    com_errors,
    com_extensions,
    com_paging,
    com_schemas,
    com_tenancy,
    com_time,
    com_writes,
    idx_behaviour,
    idx_error,
    idx_explanation,
    idx_groups,
    idx_plans,
    met_accuracy,
    met_aggregation,
    met_exposition,
    met_identifiers,
    met_indicators,
    met_sampling,
    met_scrape,
)

CHECKS: tuple[Check[Any], ...] = (
    com_declaration.CHECK,
    com_errors.CHECK,
    com_writes.CHECK,
    com_paging.CHECK,
    com_bulk.CHECK,
    com_time.CHECK,
    com_extensions.CHECK,
    com_tenancy.CHECK,
    met_identifiers.CHECK,
    met_indicators.CHECK,
    met_exposition.CHECK,
    met_accuracy.CHECK,
    met_aggregation.CHECK,
    met_scrape.CHECK,
    met_sampling.CHECK,
    com_decisions.CHECK,
    idx_plans.CHECK,
    idx_behaviour.CHECK,
    idx_explanation.CHECK,
    idx_groups.CHECK,
    idx_error.CHECK,
)

RUN_CHECKS: tuple[RunCheck, ...] = (com_schemas.CHECK,)
"""Checks over every exchange of the run."""
