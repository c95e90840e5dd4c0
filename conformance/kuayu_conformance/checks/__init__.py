"""All checks there are, in the order in which a run makes them.

Each is listed with what a run has to know before it imports the module: whom it concerns, whether it takes long, and
what it needs beside the suite. Modules are imported when a run makes their check, so that neither the command line nor
a run of a few requirements loads numeric libraries that it does without.
"""

from collections.abc import Mapping

from kuayu_conformance.check import Listed, RunCheck
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

CHECKS: tuple[Listed, ...] = (
    Listed("com_declaration", "interface.declaration"),
    Listed("com_errors", "interface.errors", needs=REGISTERING),
    Listed("com_writes", "interface.writes", needs=REGISTERING),
    Listed("com_paging", "interface.paging", needs=REGISTERING),
    Listed("com_bulk", "interface.bulk", needs=REGISTERING),
    Listed("com_time", "interface.time", needs=REGISTERING),
    Listed("com_extensions", "interface.extensions", needs=REGISTERING),
    Listed("com_tenancy", "interface.tenancy", needs=REGISTERING),
    Listed("met_identifiers", "metrics.identifiers"),
    Listed("met_indicators", "metrics.indicators"),
    Listed("met_exposition", "metrics.exposition"),
    Listed("met_accuracy", "metrics.accuracy"),
    Listed("met_aggregation", "metrics.aggregation"),
    Listed("met_series", "metrics.series"),
    Listed("met_scrape", "metrics.scrape"),
    Listed("met_otlp", "metrics.otlp"),
    Listed("met_graph", "metrics.graph"),
    Listed("met_changes", "metrics.changes"),
    Listed("com_patches", "interface.patches"),
    Listed("com_streams", "interface.streams", needs=("MET", "MET/graph")),
    Listed("met_sampling", "metrics.sampling"),
    Listed("met_states", "metrics.states", extra="telemetry"),
    Listed("met_sparse", "metrics.sparse", long=True, extra="telemetry"),
    Listed("com_decisions", "interface.decisions", needs=DECIDING),
    Listed("com_snapshots", "interface.snapshots", needs=("SCH", "SCH/decisions")),
    Listed("com_bases", "interface.bases", needs=("MET", "SCH", "MET/graph", "SCH/decisions")),
    Listed("idx_plans", "index.probe_plans"),
    Listed("idx_behaviour", "index.behaviour"),
    Listed("idx_explanation", "index.explanation"),
    Listed("idx_groups", "index.groups"),
    Listed("idx_error", "index.prediction_error"),
    Listed("dem_names", "demand.references"),
    Listed("dem_whole", "demand.totals"),
    Listed("dem_phases", "demand.training_phases"),
    Listed("dem_layouts", "demand.layouts"),
    Listed("dem_law", "demand.law"),
    Listed("dem_sizing", "demand.sizing", longer=("DEM-003",), extra="simulation"),
    Listed("fct_names", "forecast.references", extra="simulation"),
    Listed("fct_whole", "forecast.consistency", extra="simulation"),
    Listed("fct_waveforms", "forecast.waveforms", extra="simulation"),
    Listed("fct_phases", "forecast.curve_phases", extra="simulation"),
    Listed("fct_quantiles", "forecast.quantiles", long=True, extra="simulation"),
    Listed("fct_accuracy", "forecast.accuracy", extra="simulation"),
    Listed("sch_names", "scheduling.references"),
    Listed("sch_soundness", "scheduling.soundness", needs=("SCH", "SCH/decisions", "SCH/routes")),
    Listed("sch_routes", "scheduling.routes"),
    Listed("sch_plans", "scheduling.allocation_plans"),
    Listed("sch_shares", "scheduling.shares", extra="simulation"),
    Listed("sch_near", "scheduling.similarity", extra="simulation"),
    Listed("sch_nodes", "scheduling.nodes"),
    Listed("sch_interruptions", "scheduling.interruptions"),
    Listed("sch_overtaking", "scheduling.overtaking"),
    Listed("sch_pareto", "scheduling.pareto", extra="simulation"),
    Listed("sch_front_limits", "scheduling.front_limits", extra="simulation"),
    Listed("sch_explained", "scheduling.explanations", extra="simulation"),
    Listed("sch_contradictions", "scheduling.contradictions"),
    Listed("sch_coordination", "scheduling.coordination"),
    Listed("sch_latency", "scheduling.latency"),
    Listed("sch_gains", "scheduling.gains", long=True, extra="simulation"),
    Listed("sch_stability", "scheduling.stability", long=True, extra="simulation"),
    Listed("res_names", "resilience.references"),
    Listed("res_plans", "resilience.shard_plans", extra="simulation"),
    Listed("res_shards", "resilience.shards", extra="simulation"),
    Listed("res_collectives", "resilience.collectives", extra="simulation"),
    Listed("res_failover", "resilience.failover", extra="simulation"),
    Listed("res_backups", "resilience.backups", extra="simulation"),
    Listed("res_recoveries", "resilience.recoveries", extra="simulation"),
    Listed("res_adjusting", "resilience.adjustment_gain", extra="simulation"),
    Listed("res_adjustments", "resilience.adjustments", extra="simulation"),
    Listed("res_watching", "resilience.fault_response"),
    Listed("res_apart", "resilience.partitions", needs=("SCH",)),
    Listed("res_detection", "resilience.detection", extra="simulation"),
    Listed("job_submission", "jobs.submission"),
    Listed("job_runs", "jobs.runs"),
    Listed("job_order", "jobs.order"),
    Listed("job_accounts", "jobs.accounts"),
    Listed("job_quotas", "jobs.quotas"),
    Listed("job_elastic", "jobs.elastic"),
    Listed("job_serving", "jobs.serving"),
)

RUN_CHECKS: tuple[RunCheck, ...] = (schemas.CHECK,)
"""Checks over every exchange of the run."""

NAMES: Mapping[str, str] = {
    **{f"{__name__}.{check.module}": check.name for check in CHECKS},
    **{check.judge.__module__: check.name for check in RUN_CHECKS},
}
"""Names of checks by their modules, as the register gives these."""
