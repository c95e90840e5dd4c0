"""Implementations that are wrong in one way each: the suite is on trial before them.

Every mutant is the miniature with one promise replaced. It declares the exact set of requirements that do not pass
because of it, so that the suite is held both to find what is wrong and to blame nothing else. Every requirement that
has a check is broken by at least one; every figure has a near-miss, and each that is not a count has a control. Figures
whose measurement takes minutes have theirs among the tests of their judges (``declaration.JUDGED_BY_THEMSELVES``).

The figures of the compute index would be beyond the miniature: :mod:`mutants.oracle`, a test double that knows what was
measured, stands beneath all of them.
"""

from mutants import (
    aggregation,
    allocating,
    bulk,
    buying,
    collectives,
    conversion,
    counters,
    declaring,
    demands,
    dividing,
    doubts,
    errors,
    estimates,
    explanations,
    figures,
    forecasts,
    fronts,
    graph,
    identifiers,
    indices,
    layouts,
    naming,
    otlp,
    paging,
    peaks,
    phased,
    placing,
    plans,
    premises,
    reasons,
    referring,
    reservations,
    routing,
    scraping,
    series,
    shards,
    sharing,
    sizes,
    states,
    streams,
    tenancy,
    time,
    units,
    waits,
    waveforms,
    writes,
)
from mutants.declaration import DECLARED, Mutant

SUBJECTS = (
    declaring,
    errors,
    writes,
    paging,
    bulk,
    time,
    tenancy,
    figures,
    units,
    counters,
    conversion,
    identifiers,
    aggregation,
    scraping,
    series,
    otlp,
    estimates,
    indices,
    explanations,
    plans,
    graph,
    streams,
    states,
    naming,
    placing,
    sharing,
    reasons,
    fronts,
    buying,
    routing,
    allocating,
    demands,
    dividing,
    phased,
    layouts,
    sizes,
    referring,
    forecasts,
    reservations,
    waveforms,
    peaks,
    premises,
    doubts,
    shards,
    waits,
    collectives,
)

MUTANTS: tuple[Mutant, ...] = tuple(
    mutant for subject in SUBJECTS for mutant in DECLARED.values() if mutant.service.__module__ == subject.__name__
)
"""All mutants, subject by subject."""
