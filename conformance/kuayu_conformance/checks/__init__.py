"""All checks there are, in the order in which a run makes them.

Each is listed with what a run has to know before it imports the module: whom it concerns, whether it takes long, and
what it needs beside the suite. Modules are imported when a run makes their check, so that neither the command line nor
a run of a few requirements loads numeric libraries that it does without.
"""

from collections.abc import Mapping

from kuayu_conformance.check import CheckEntry, RunCheck
from kuayu_conformance.checks.interface import schemas
from kuayu_conformance.checks.kit.requests import DECISIONS
from kuayu_schemas import registers

REGISTERING = ("MET", "MET/telemetry", "MET/graph")
"""Profile and sub-profiles whose resources can be registered and written to."""

DECIDING = (
    *("IDX", "DEM", "FCT", "SCH", "RES"),
    *(name for name, row in registers.sub_profiles().items() if not DECISIONS.keys().isdisjoint(row.mandatory)),
)
"""Profiles and sub-profiles with decision services."""

CHECKS: tuple[CheckEntry, ...] = (
    CheckEntry("com_declaration", "interface.declaration"),
    CheckEntry("com_errors", "interface.errors", needs=REGISTERING),
    CheckEntry("com_writes", "interface.writes", needs=REGISTERING),
    CheckEntry("com_paging", "interface.streams", "PAGING_CHECK", needs=REGISTERING),
    CheckEntry("com_bulk", "interface.writes", "BULK_CHECK", needs=REGISTERING),
    CheckEntry("com_time", "interface.writes", "TIME_CHECK", needs=REGISTERING),
    CheckEntry("com_extensions", "interface.writes", "EXTENSIONS_CHECK", needs=REGISTERING),
    CheckEntry("com_tenancy", "interface.tenancy", needs=REGISTERING),
    CheckEntry("met_identifiers", "metrics.graph", "IDENTIFIERS_CHECK"),
    CheckEntry("met_indicators", "metrics.indicators"),
    CheckEntry("met_exposition", "metrics.exposition"),
    CheckEntry("met_accuracy", "metrics.sampling", "ACCURACY_CHECK"),
    CheckEntry("met_aggregation", "metrics.indicators", "AGGREGATION_CHECK"),
    CheckEntry("met_series", "metrics.indicators", "SERIES_CHECK"),
    CheckEntry("met_scrape", "metrics.exposition", "SCRAPE_CHECK"),
    CheckEntry("met_otlp", "metrics.exposition", "OTLP_CHECK"),
    CheckEntry("met_graph", "metrics.graph"),
    CheckEntry("met_changes", "metrics.graph", "CHANGES_CHECK"),
    CheckEntry("com_patches", "interface.streams", "PATCHES_CHECK"),
    CheckEntry("com_streams", "interface.streams", needs=("MET", "MET/graph")),
    CheckEntry("met_sampling", "metrics.sampling"),
    CheckEntry("met_states", "metrics.states", extra="telemetry"),
    CheckEntry("met_sparse", "metrics.states", "SPARSE_CHECK", long=True, extra="telemetry"),
    CheckEntry("com_decisions", "interface.decisions", needs=DECIDING),
    CheckEntry("com_names", "interface.references", needs=DECIDING),
    CheckEntry("com_snapshots", "interface.decisions", "SNAPSHOTS_CHECK", needs=("SCH", "SCH/decisions")),
    CheckEntry("com_bases", "interface.decisions", "BASES_CHECK", needs=("MET", "SCH", "MET/graph", "SCH/decisions")),
    CheckEntry("idx_plans", "index.behaviour", "PLANS_CHECK"),
    CheckEntry("idx_behaviour", "index.behaviour"),
    CheckEntry("idx_explanation", "index.behaviour", "EXPLANATION_CHECK"),
    CheckEntry("idx_groups", "index.behaviour", "GROUPS_CHECK"),
    CheckEntry("idx_error", "index.prediction_error"),
    CheckEntry("dem_whole", "demand.totals"),
    CheckEntry("dem_phases", "demand.totals", "PHASES_CHECK"),
    CheckEntry("dem_layouts", "demand.layouts"),
    CheckEntry("dem_law", "demand.law"),
    CheckEntry("dem_sizing", "demand.sizing", longer=("DEM-003",), extra="simulation"),
    CheckEntry("fct_whole", "forecast.consistency", extra="simulation"),
    CheckEntry("fct_waveforms", "forecast.consistency", "WAVEFORMS_CHECK", extra="simulation"),
    CheckEntry("fct_phases", "forecast.curve_phases", extra="simulation"),
    CheckEntry("fct_quantiles", "forecast.accuracy", "QUANTILES_CHECK", long=True, extra="simulation"),
    CheckEntry("fct_accuracy", "forecast.accuracy", extra="simulation"),
    CheckEntry("sch_soundness", "scheduling.invariants", needs=("SCH", "SCH/decisions", "SCH/routes")),
    CheckEntry("sch_routes", "scheduling.routes"),
    CheckEntry("sch_plans", "scheduling.allocation_plans"),
    CheckEntry("sch_shares", "scheduling.shares", extra="simulation"),
    CheckEntry("sch_near", "scheduling.shares", "SIMILARITY_CHECK", extra="simulation"),
    CheckEntry("sch_nodes", "scheduling.invariants", "NODES_CHECK"),
    CheckEntry("sch_interruptions", "scheduling.invariants", "INTERRUPTIONS_CHECK"),
    CheckEntry("sch_overtaking", "scheduling.invariants", "OVERTAKING_CHECK"),
    CheckEntry("sch_pareto", "scheduling.pareto", extra="simulation"),
    CheckEntry("sch_front_limits", "scheduling.pareto", "LIMITS_CHECK", extra="simulation"),
    CheckEntry("sch_explained", "scheduling.explanations", extra="simulation"),
    CheckEntry("sch_contradictions", "scheduling.invariants", "CONTRADICTIONS_CHECK"),
    CheckEntry("sch_coordination", "scheduling.coordination"),
    CheckEntry("sch_latency", "scheduling.latency"),
    CheckEntry("sch_gains", "scheduling.gains", long=True, extra="simulation"),
    CheckEntry("sch_stability", "scheduling.stability", long=True, extra="simulation"),
    CheckEntry("res_plans", "resilience.shards", "PLANS_CHECK", extra="simulation"),
    CheckEntry("res_shards", "resilience.shards", extra="simulation"),
    CheckEntry("res_collectives", "resilience.collectives", extra="simulation"),
    CheckEntry("res_failover", "resilience.failover", extra="simulation"),
    CheckEntry("res_backups", "resilience.backups", extra="simulation"),
    CheckEntry("res_recoveries", "resilience.recoveries", extra="simulation"),
    CheckEntry("res_adjusting", "resilience.adjustment_gain", extra="simulation"),
    CheckEntry("res_adjustments", "resilience.adjustments", extra="simulation"),
    CheckEntry("res_watching", "resilience.fault_response"),
    CheckEntry("res_apart", "resilience.partitions", needs=("SCH",)),
    CheckEntry("res_detection", "resilience.detection", extra="simulation"),
    CheckEntry("job_submission", "jobs.submission"),
    CheckEntry("job_runs", "jobs.runs"),
    CheckEntry("job_order", "jobs.order"),
    CheckEntry("job_accounts", "jobs.order", "ACCOUNTS_CHECK"),
    CheckEntry("job_quotas", "jobs.order", "QUOTAS_CHECK"),
    CheckEntry("job_elastic", "jobs.elastic"),
    CheckEntry("job_serving", "jobs.elastic", "SERVING_CHECK"),
)

RUN_CHECKS: tuple[RunCheck, ...] = (schemas.CHECK,)
"""Checks over every exchange of the run."""

NAMES: Mapping[str, str] = {
    **{check.path: check.name for check in CHECKS},
    **{check.judge.__module__: check.name for check in RUN_CHECKS},
}
"""Names of checks by their paths, as the register gives these."""
