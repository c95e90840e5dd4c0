"""All checks there are, in the order in which a run makes them.

Each is listed with what a run has to know before it imports the module: whom it concerns, whether it takes long, and
what it needs beside the suite. Modules are imported when a run makes their check, so that neither the command line nor
a run of a few requirements loads numeric libraries that it does without.
"""

from kuayu_conformance.check import Listed, RunCheck
from kuayu_conformance.checks import com_schemas
from kuayu_conformance.checks.least import DECISIONS
from kuayu_schemas import registers

REGISTERING = ("MET", "MET/telemetry", "MET/graph")
"""Profile and sub-profiles whose resources can be registered and written to."""

DECIDING = (
    *("IDX", "DEM", "FCT", "SCH", "RES"),
    *(name for name, row in registers.sub_profiles().items() if not DECISIONS.keys().isdisjoint(row.mandatory)),
)
"""Profiles and sub-profiles with decision services."""

CHECKS: tuple[Listed, ...] = (
    Listed("com_declaration"),
    Listed("com_errors", needs=REGISTERING),
    Listed("com_writes", needs=REGISTERING),
    Listed("com_paging", needs=REGISTERING),
    Listed("com_bulk", needs=REGISTERING),
    Listed("com_time", needs=REGISTERING),
    Listed("com_extensions", needs=REGISTERING),
    Listed("com_tenancy", needs=REGISTERING),
    Listed("met_identifiers"),
    Listed("met_indicators"),
    Listed("met_exposition"),
    Listed("met_accuracy"),
    Listed("met_aggregation"),
    Listed("met_series"),
    Listed("met_scrape"),
    Listed("met_otlp"),
    Listed("met_graph"),
    Listed("met_changes"),
    Listed("com_patches"),
    Listed("com_streams", needs=("MET", "MET/graph")),
    Listed("met_sampling"),
    Listed("met_states", extra="telemetry"),
    Listed("met_sparse", long=True, extra="telemetry"),
    Listed("com_decisions", needs=DECIDING),
    Listed("com_snapshots", needs=("SCH", "SCH/decisions")),
    Listed("com_bases", needs=("MET", "SCH", "MET/graph", "SCH/decisions")),
    Listed("idx_plans"),
    Listed("idx_behaviour"),
    Listed("idx_explanation"),
    Listed("idx_groups"),
    Listed("idx_error"),
    Listed("dem_names"),
    Listed("dem_whole"),
    Listed("dem_phases"),
    Listed("dem_layouts"),
    Listed("dem_law"),
    Listed("dem_sizing", extra="simulation"),
    Listed("fct_names", extra="simulation"),
    Listed("fct_whole", extra="simulation"),
    Listed("fct_waveforms", extra="simulation"),
    Listed("fct_phases", extra="simulation"),
    Listed("fct_quantiles", extra="simulation"),
    Listed("fct_accuracy", extra="simulation"),
    Listed("sch_names"),
    Listed("sch_soundness", needs=("SCH", "SCH/decisions", "SCH/routes")),
    Listed("sch_routes"),
    Listed("sch_plans"),
    Listed("sch_shares", extra="simulation"),
    Listed("sch_near", extra="simulation"),
    Listed("sch_nodes"),
    Listed("sch_interruptions"),
    Listed("sch_overtaking"),
    Listed("sch_pareto", extra="simulation"),
    Listed("sch_explained", extra="simulation"),
    Listed("sch_contradictions"),
    Listed("sch_coordination"),
    Listed("sch_latency"),
    Listed("sch_gains", long=True, extra="simulation"),
    Listed("sch_stability", long=True, extra="simulation"),
    Listed("res_names", extra="simulation"),
    Listed("res_plans", extra="simulation"),
    Listed("res_shards", extra="simulation"),
    Listed("res_collectives", extra="simulation"),
    Listed("res_failover", extra="simulation"),
    Listed("res_backups", extra="simulation"),
    Listed("res_recoveries", extra="simulation"),
    Listed("res_adjusting", extra="simulation"),
    Listed("res_adjustments", extra="simulation"),
    Listed("res_watching"),
    Listed("res_apart", needs=("SCH",)),
    Listed("res_detection", extra="simulation"),
)

RUN_CHECKS: tuple[RunCheck, ...] = (com_schemas.CHECK,)
"""Checks over every exchange of the run."""
