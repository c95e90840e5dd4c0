# ruff: noqa: SLF001 - constants are private to worlds, and the annex says what they are
"""Annex C says of the worlds what their code has: its figures are made of the constants here, in both languages.

A sentence of the annex stands here with holes, which are filled from the code; so neither can change alone.
"""

import re
from pathlib import Path

import pytest

from kuayu_conformance.checks.forecast import accuracy, curve_phases
from kuayu_conformance.checks.resilience import adjustment_gain, failover
from kuayu_conformance.checks.resilience import collectives as collectives_check
from kuayu_conformance.checks.resilience import shards as shards_check
from kuayu_conformance.testbed import collectives, curves, heartbeats, right_sizing, shards, sparse
from kuayu_conformance.testbed.adjustment import world as adjustment
from kuayu_conformance.testbed.adjustment.run import ASKED_S
from kuayu_conformance.testbed.demand import world as demand
from kuayu_conformance.testbed.recovery import world as recovery
from kuayu_conformance.testbed.scheduling import workload
from kuayu_conformance.testbed.scheduling.topology import EASTERN, LEASED, MIX, PLACES, SHEETS
from kuayu_conformance.testbed.scheduling.workload.traces import LEVELS, NEAR
from kuayu_conformance.testbed.telemetry import fault_plan as telemetry_plan
from kuayu_conformance.testbed.telemetry import population as telemetry

TEXT = Path(__file__).parents[2] / "spec/text"


def listed(numbers: object, last: str) -> str:
    """Numbers in a row, the last one behind *and* or *or*."""
    texts = [f"{number:g}" for number in numbers]  # type: ignore[attr-defined]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def weights(table: object) -> list[float]:
    """Second of each pair."""
    return [weight for _, weight in table]  # type: ignore[attr-defined]


def span(pair: tuple[float, float], by: float = 1.0) -> str:
    """Two ends."""
    return f"{pair[0] / by:g} to {pair[1] / by:g}"


KINDS_OF_DOMAIN = demand.KINDS
QUICK, FULL = heartbeats.QUICK, heartbeats.FULL

SENTENCES = {
    "levels of curves": listed([100 * level for level in LEVELS], "and") + " % of the jobs",
    "before": f"Jobs are drawn from {workload.SETTLED / 86_400:g} days before",
    "usual share": {0.25: "a quarter of the load at least"}[workload.MIN_SHARE_OF_HOMES],
    "likeness": f"lie within {NEAR:g} of these",
    "larger": f"where {workload.OVER[0]:g} times these and a node are no more than half of all devices",
    "largest": f"as much work as one of {workload.MAX_TRACE_DEVICES} devices of the largest group",
    "data": f"one of the {workload.RECENT} data sets",
    "language models": f"with {workload.MIN_PARAMETERS_PER_DEVICE / 1e9:g} to "
    f"{workload.MAX_PARAMETERS_PER_DEVICE / 1e9:g} thousand million parameters a device",
    "served by": f"what {workload.SERVED_BY} train",
    "efficiency": f"at {workload.EFFICIENCY:g} of {workload.REFERENCE_PEAK / 1e12:g} TFLOP/s",
    "memory": f"its memory {workload.WORKING / 1e9:g} GB and {workload.STATE:g} bytes a parameter",
    "checkpoint": f"its checkpoint {workload.CHECKPOINT:g} bytes a parameter",
    "used": {0.1: "Nobody keeps less than a tenth of the devices busy"}[workload.MIN_USED_SHARE],
    "shapes": "; ".join(f"{s.layers}, {s.hidden}, {s.tokens / 1e3:g}" for s in workload.SHAPES),
    "telemetry sizes": f"Level quick has {telemetry.QUICK.domains} domains, {telemetry.QUICK.nodes} nodes and "
    f"{telemetry.QUICK.seconds} s, level full {telemetry.FULL.domains} domains, 10 000 nodes and "
    f"{telemetry.FULL.seconds} s; a warm-up of {telemetry.FULL.warm_up} s",
    "telemetry ticks": f"{telemetry.TICKS} ticks a second",
    "churn": f"{100 * telemetry.FULL.churn:g} % of the nodes change their state",
    "dwell": f"keeps a state for {telemetry.DWELL} s",
    "slow": f"at {telemetry_plan.SLOWEST:g} to {telemetry_plan.LEAST_SLOW:g} of their speed",
    "margin": f"in the {telemetry_plan.MARGIN} s around",
    "sparse sizes": f"Level quick has {sparse.QUICK.healthy} subjects with which nothing is wrong and "
    f"{sparse.QUICK.faulty} that stop, level full {sparse.FULL.healthy} and {sparse.FULL.faulty}, in {sparse.DOMAINS} "
    f"domains; {sparse.FULL.warm_up} s of warm-up and then {sparse.QUICK.seconds} or {sparse.FULL.seconds} s",
    "measures": f"sends {listed([count for count, _ in sparse.HOW_MANY], 'or')} of ten measures with weights "
    + listed(weights(sparse.HOW_MANY), "and"),
    "periods": f"every {listed([period for period, _ in sparse.PERIODS], 'or')} s with weights "
    + listed(weights(sparse.PERIODS), "and"),
    "quick periods": f"every {listed([period for period, _ in sparse.QUICK_PERIODS], 'or')} s with weights "
    + listed(weights(sparse.QUICK_PERIODS), "and"),
    "pages": f"for {listed([page for page, _ in sparse.PAGES], 'or')} s with weights "
    + listed(weights(sparse.PAGES), "and"),
    "by device": f"In {100 * sparse.BY_DEVICE:g} % of the subjects",
    "patterns": "with weights " + listed([weight for _, weight in sparse.PATTERNS.values()], "and"),
    "waiting": f"{sparse.WAITING:g} of the power above rest",
    "troubles": "Weights are " + listed([fault.weight for fault in sparse.INJECTED_FAULTS.values()], "and"),
    "families of nodes": f"{listed(sparse.FAMILY.tolist(), 'or')} nodes",
    "grace": f"{sparse.GRACE:g} s and two samples or pages",
    "guide": f"send {sparse.GUIDE[0].split('_')[1]} 0.93 and power 68.5 W",
    "domains": f"five domains with {listed([kind.capacity for kind in KINDS_OF_DOMAIN], 'and')} devices",
    "loads": f"load to {listed([kind.load for kind in KINDS_OF_DOMAIN], 'and')}",
    "scales": f"at {listed([kind.scale for kind in KINDS_OF_DOMAIN], 'and')} of their size",
    "served": f"hold {listed([kind.served for kind in KINDS_OF_DOMAIN], 'and')} devices",
    "forecast sizes": f"Level quick has {accuracy.QUICK.worlds} worlds of {accuracy.QUICK.days} days with "
    f"{accuracy.QUICK.origins} instants, level full {accuracy.FULL.worlds} of {accuracy.FULL.days} days with "
    f"{accuracy.FULL.origins}. Jobs come from {demand.WARM / 86_400:g} days before on",
    "misjudged": f"off together by {demand.MISJUDGED:g}",
    "restarts": f"with restarts of {span(demand.RESTART, 60)} min",
    "given up": f"{100 * demand.GIVEN_UP:g} % are given up",
    "announced": f"{100 * demand.ANNOUNCED:g} % of the trainings are announced, {span(demand.ANNOUNCED_AHEAD, 3600)} h "
    f"before; they "
    f"come with a deviation of {demand.PUNCTUAL:g} s, and {100 * demand.WITHDRAWN:g} % of them never",
    "events": f"for {span(demand.LASTS, 3600)} h and 5 to 12 % of the devices; {100 * demand.COMES:g} % of "
    f"the campaigns",
    "curves": f"Level quick has {curve_phases.QUICK.curves} curves with {curve_phases.QUICK.spread} steps each, "
    f"level full "
    f"{curve_phases.FULL.curves} with {curve_phases.FULL.spread}",
    "steps of curves": f"for {span(curves._STEPS)} steps".replace("1e+06", "1 000 000"),
    "law of curves": f"an exponent of {span(curves._EXPONENT)} and one break of sharpness {curves._SHARPNESS:g}",
    "cluster": f"has {right_sizing.CAPACITY[0]:g} devices, {right_sizing.CAPACITY[1]:g} cores and "
    f"{right_sizing.CAPACITY[2]:g} GB. Tasks arrive "
    f"for {right_sizing.WINDOW / 3600:g} h by a Poisson process of {right_sizing.RATE:g} an hour",
    "mixes": "in the mixes " + f"{', '.join(list(right_sizing.MIXES)[:-1])} and {list(right_sizing.MIXES)[-1]}",
    "use": "; ".join(f"{k.use[0]:g}, {k.use[1]:g} and {k.use[2]:g}" for k in right_sizing.KINDS),
    "hours": f"Tasks take {listed([round(k.duration / 3600, 2) for k in right_sizing.KINDS], 'and')} h",
    "need": f"Need is {right_sizing.BURST:g} times use",
    "over-request": f"{right_sizing.OVER_REQUEST:g} times the need is asked for",
    "task noise": f"a noise of {right_sizing.NOISE:g}",
    "shards": f"Steps take {shards.STEP_S:g} s; a window has 600 s of steps at level quick and "
    f"{shards.WINDOW_S} s at level full, after {shards.HISTORY_S} s that were measured every "
    f"{shards.INTERVAL_S} s with a deviation of {shards.NOISE:g}, and {shards.LEAD_S} s",
    "latencies": f"a request {span(shards.LATENCIES_S)} s",
    "local": f"{100 * shards.LOCAL:g} % of the steps have local data. The others need {span(shards.LOADS)} of",
    "rooms": f"room for {listed(shards.ROOMS, 'or')} steps",
    "asked": f"every {shards.AGAIN_S:g} s for {shards.HORIZON_S:g} s ahead. Level quick has "
    f"{shards_check.QUICK.windows[shards.MILD]} windows and level full "
    f"{shards_check.FULL.windows[shards.MILD]}",
    "collectives": f"a window of {collectives.COUNT} min at level full and {collectives.COUNT // 2} min at "
    f"level quick, after {collectives.PAST} min that were measured with a deviation of "
    f"{collectives.NOISE:g}; "
    f"a switch takes {collectives.SWITCH:g} s",
    "collective windows": f"Level quick has {collectives_check.QUICK.windows} windows of each kind and level full "
    f"{collectives_check.FULL.windows}",
    "recovery": f"have {recovery.JOBS[0]} to {recovery.JOBS[-1]} jobs of 1 to 6 replicas with 1 to 4 nodes each, and "
    f"{span(recovery.FREE)} free nodes, in a tenth of the cases {span(recovery.SCARCE)}. States have "
    f"{span(recovery.STATES, 1e9)} GB, stores {span(recovery.STORES, 1e9)} Gbit/s, a replica "
    f"{span(recovery.REPLICA_BANDWIDTHS, 1e9)} Gbit/s; starting takes {span(recovery.STARTS_S)} s, regrouping "
    f"{span(recovery.REGROUPS_S)} s, a checkpoint {span(recovery.PAUSES_S)} s, repair {span(recovery.REPAIRS_S)} s. "
    f"Leases are {span(recovery.LEASES_S)} s",
    "recovery links": f"{span(recovery.LEVELS, 1e9)} Gbit/s, ±30 % as above, and {span(recovery.LATENCIES_S, 1e-3)} ms",
    "faults": f"After {recovery.LEAD_S:g} s of copying things fail for {recovery.FAULTS_S / 3600:g} h, and "
    f"{recovery.TAIL_S:g} s follow",
    "sped up": f"{recovery.SPED_UP:g} times as often as in the training of Llama 3, a rack of "
    f"{recovery.RACK_SIZES[0]} to {recovery.RACK_SIZES[-1]} nodes every {recovery.RACKS_S / 3600:g} h, a domain every "
    f"{recovery.DOMAINS_S / 3600:g} h for "
    f"{span(recovery.OUTAGES_S)} s; a domain is cut off every {recovery.CUT_OFFS_S / 3600:g} h, for "
    f"{span(recovery.SHORT)} of "
    f"the lease or {span(recovery.LONG_S)} s longer",
    "apart": f"{recovery.APART_S:g} s pass between",
    "failover windows": f"Level quick has {failover.QUICK.windows} windows, level full {failover.FULL.windows}",
    "adjusted": f"{adjustment.DOMAINS[0]} to {adjustment.DOMAINS[-1]} domains have {adjustment.JOBS[0]} to "
    f"{adjustment.JOBS[-1]} jobs over two domains or more. Links have {span(adjustment.BANDWIDTHS, 1e9)} Gbit/s and "
    f"{span(adjustment.LATENCIES_S, 1e-3)} ms. A step has {span(adjustment.PARTS)} parts and takes "
    f"{span(adjustment.STEPS_S)} s; the exchange is {span(adjustment.EXCHANGES, 1e9)} GB",
    "short": f"it is {span(adjustment.SMALL, 1e9)} GB, and the step takes {span(adjustment.SHORT_S)} s",
    "moves": f"moving one takes {span(adjustment.MOVES_S)} s, a switch {span(adjustment.SWITCHES_S)} s",
    "disturbed": f"Loads begin at {span(adjustment.BEGINS)} and stay within {adjustment.BOUNDS[0]:g} and "
    f"{adjustment.BOUNDS[1]:g}. Five events come {span(adjustment.APART_S)} s apart",
    "slowed": f"rises to {span(adjustment.SLOWED)} times",
    "told": f"Means of {adjustment.INTERVAL_S:g} s are told, {adjustment.PAST} of them, with a deviation of "
    f"{adjustment.NOISE:g} and a spike every {adjustment.SPIKES_APART_S:g} s of {adjustment.LOAD_SPIKE:g} times "
    f"a load or "
    f"{adjustment.LATENCY_SPIKE:g} times a latency",
    "changes": f"The service is asked every {ASKED_S:g} s. A change is {adjustment.LOAD_CHANGED:g} of a load or "
    f"{adjustment.LATENCY_CHANGED:g} of a latency, and below {adjustment.LOAD_CALM:g} or "
    f"{adjustment.LATENCY_CALM:g} it is calm",
    "adjustment windows": f"Level quick has {adjustment_gain.QUICK} windows, level full {adjustment_gain.FULL}",
    "heartbeats": f"Five domains have {QUICK.nodes} nodes each, of {heartbeats.DEVICES} devices, with a heartbeat "
    f"every {heartbeats.PERIOD:g} s, which come in batches every {heartbeats.SLOT:g} s",
    "silent": f"silent for more than {heartbeats.MAX_SILENT_SLOTS} batches",
    "racks": f"racks of {heartbeats.RACK_NODES} nodes die",
    "recovers": f"Between two faults of a node {heartbeats.RECOVERY:g} s pass",
    "told in time": f"not told within {heartbeats.TOLD:g} s is lost. After {QUICK.warm_up:g} s of warm-up level "
    f"quick has "
    f"{QUICK.incidents} incidents in {QUICK.seconds:g} s, level full {FULL.incidents} in {FULL.seconds:g} s; "
    f"{QUICK.settle:g} s follow",
}
"""What the English annex says, by what it is about; the rules of the text hold the Chinese one to its numbers."""


@pytest.fixture(scope="module")
def annex() -> str:
    """The annex in one line."""
    text = (TEXT / "en/annex-c-testbed.md").read_text("utf-8")
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("about", SENTENCES)
def test_the_annex_says_what_the_code_has(about: str, annex: str) -> None:
    assert SENTENCES[about] in annex


@pytest.mark.parametrize("name", sorted({*MIX}))
def test_the_annex_lists_accelerators_with_their_figures(name: str, annex: str) -> None:
    sheet = SHEETS[name]
    figures = f"{sheet.sustained / 1e12:.6g} | {sheet.bandwidth / 1e9:g} | {sheet.memory / 1e9:g}"
    assert f"| {name} | {figures} |" in annex


def test_the_annex_lists_conventional_models(annex: str) -> None:
    rows = [f"| {n.parameters / 1e6:g} | {n.step:g} | {n.fixed:g} | {n.memory / 1e9:g} |" for n in workload.NETWORKS]
    assert [row for row in rows if row not in annex] == []


def test_the_annex_leases_lines_and_names_places(annex: str) -> None:
    sizes, shares = zip(*LEASED, strict=True)
    assert f"leases {listed([size / 1e9 for size in sizes], 'or')} Gbit/s" in annex
    assert "0.25, 0.35, 0.20, 0.12 and 0.08" in annex
    assert shares == (0.25, 0.35, 0.20, 0.12, 0.08)
    first = [place.name for place in PLACES[:6]]
    assert f"{', '.join(name.title() for name in first[:-1])} and {first[-1].title()}" in annex
    eastern = [place.name.title() for place in PLACES[:6] if place.hub in EASTERN]
    assert f"{', '.join(eastern[:-1])} and {eastern[-1]} count as eastern" in annex


def test_stepping_lasts_as_long_as_the_annex_says(annex: str) -> None:
    """Hangs and stragglers of jobs."""
    assert f"for {span(heartbeats._LASTS)} s" in annex
    assert f"between two of a job {span(heartbeats._FAULT_REST)} s" in annex
