"""Where jobs are placed: shares of domains as they were planned, and nodes near to each other (SCH-007, SCH-010).

1. Shares of compute that domains are given are held against those that were planned (SCH-007).
2. Jobs that communicate much are placed on nodes near to each other (SCH-010).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask, is_answer
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState
from kuayu_conformance.checks.scheduling.placement_requests import GIGABYTE, PLACEMENTS, PLANS, StateBuilder, queued
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import clustered_mean, mean_upper_bound
from kuayu_schemas.models import ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

PLANS_QUICK, PLANS_FULL = 6, 60
"""Plans of each kind: the operator's, and the service's own."""
SHARED_JOBS, DOMAINS = 250, 5
MIN_STARTED_SHARE = 0.5
"""Part of the jobs that has to start; all of them fit."""
OPERATOR, OWN = "operator's shares", "the service's own plan"


@dataclass(frozen=True)
class PlanOutcome:
    """A plan and what became of it.

    Attributes:
        whose: Whose plan it is.
        planned: Share of each domain that is planned one.
        allocated: Share of each domain in the compute of the jobs that start.
        jobs: How many waited.
        started: How many start.
        faults: Why decisions cannot be carried out; what is wrong with the answer where it is none.
        answer: The exchange.
    """

    whose: str
    planned: Mapping[str, float]
    allocated: Mapping[str, float]
    jobs: int
    started: int
    faults: tuple[str, ...]
    answer: Answer

    @property
    def error(self) -> float:
        """Distance over the planned share of the domain that is worst; one where a domain was to be given nothing."""
        if not self.allocated:
            return 1.0
        errors = [
            abs(self.allocated.get(name, 0.0) - share) / share for name, share in self.planned.items() if share > 0.0
        ]
        unplanned = any(self.planned.get(name, 0.0) == 0.0 and share > 0.0 for name, share in self.allocated.items())
        return max([*errors, 1.0 if unplanned else 0.0])


def observe(episode: Episode) -> tuple[PlanOutcome, ...]:
    """Have jobs started by shares that are drawn, then by those that the service plans."""
    builder = StateBuilder.of(episode)
    outcomes = []
    for _ in range(PLANS_FULL if episode.settings.full else PLANS_QUICK):
        profiles = builder.names(2)
        state = roomy(builder, profiles, [builder.accelerator(profiles) for _ in range(3)])
        outcomes.append(_allocated(episode, OPERATOR, state, _drawn(builder, state)))
        speeds = [1.0, builder.chance.uniform(0.8, 1.0), builder.chance.uniform(1.0, 1.25)]
        state = roomy(builder, profiles[:1], [builder.accelerator(profiles[:1], speed=speed) for speed in speeds])
        plan = episode.ask_patiently("POST", PLANS, {"state": state, "horizon": 3600.0})
        if is_answer(PLANS, plan) and plan.json["shares"]:
            outcomes.append(_allocated(episode, OWN, state, plan.json["shares"]))
        else:
            outcomes.append(PlanOutcome(OWN, {}, {}, SHARED_JOBS, 0, ("no shares were planned",), plan))
    return tuple(outcomes)


def roomy(
    builder: StateBuilder, profiles: Sequence[str], kinds: "Sequence[documents.OfferedAccelerator]"
) -> "documents.SchedulingState":
    """A federation in which each domain has room for half of the many jobs that wait; their data are everywhere.

    Where the service plans by itself, devices differ little, for it plans for reference devices what jobs ask for in
    devices: the faster these are, the fewer jobs it has planned for.
    """
    chance = builder.chance
    sizes = [chance.choice((1, 1, 1, 2, 2, 4, 8)) for _ in range(SHARED_JOBS)]
    nodes = sum(sizes) // 16 + 4
    domains = []
    for _ in range(DOMAINS):
        kind, other = chance.sample(kinds, 2)
        domains.append(builder.domain(builder.pool(kind, nodes, switches=4), builder.pool(other, nodes // 3)))
    names = [domain["id"] for domain in domains]
    specs = []
    for devices in sizes:
        spec = builder.spec(chance.choice(profiles), chance.choice(names), (devices,) * 3)
        spec["data"][0]["domains"] = names
        specs.append(spec)
    return queued(builder.state(kinds, domains, builder.mesh(names)), specs)


def _drawn(builder: StateBuilder, state: "documents.SchedulingState") -> "list[documents.PlannedShare]":
    """Shares of a tenth to some thirty per cent."""
    parts = [builder.chance.uniform(0.5, 1.5) for _ in state["domains"]]
    shares: list[documents.PlannedShare] = [
        {"domain": domain["id"], "share": part / sum(parts)}
        for domain, part in zip(state["domains"], parts, strict=True)
    ]
    shares[-1]["share"] = 1.0 - sum(share["share"] for share in shares[:-1])
    return shares


def _allocated(
    episode: Episode, whose: str, state: "documents.SchedulingState", shares: "Sequence[documents.PlannedShare]"
) -> PlanOutcome:
    planned = {share["domain"]: share["share"] for share in shares}
    answer = episode.ask_patiently("POST", PLACEMENTS, {"state": state, "shares": list(shares)})
    if not is_answer(PLACEMENTS, answer):
        return PlanOutcome(whose, planned, {}, SHARED_JOBS, 0, (answer.brief,), answer)
    account, cluster = Account(state), ClusterState(state)
    decisions = answer.json["decisions"]
    faults = tuple(account.faults(decisions))
    started = [decision for decision in decisions if decision["verb"] == "start"] if not faults else []
    given: dict[str, float] = {}
    for entry in started:
        spec = account.waiting[entry["job"]]["spec"]
        for domain, compute in cluster.compute(spec, entry["placement"]).items():
            given[domain] = given.get(domain, 0.0) + compute
    total = sum(given.values())
    allocated = {name: compute / total for name, compute in given.items()}
    return PlanOutcome(whose, planned, allocated, len(account.waiting), len(started), faults, answer)


def judge(observation: tuple[PlanOutcome, ...]) -> Iterable[Finding]:
    """The error of shares over all plans; claims that jobs start, and that they can."""
    for item in observation:
        expected = f"{item.whose}: jobs are started by it, as the state can carry"
        yield Claim("SCH-007", expected, not item.faults, str(list(item.faults[:3])), item.answer)
        some = item.started >= MIN_STARTED_SHARE * item.jobs
        expected = f"{item.whose}: at least {MIN_STARTED_SHARE:.0%} of {item.jobs} jobs start, all of which fit"
        yield holds("SCH-007", some, expected, item.started, item.answer)
    errors = [[entry.error] for entry in observation]
    yield Figure(
        "SCH-007",
        clustered_mean(errors),
        mean_upper_bound(errors, "SCH-007"),
        len(observation),
        "distance between allocated and planned share over the planned share, compute weighted by index, in the worst "
        "domain of each plan; mean over plans with its one-sided 95 % bootstrap bound",
        [_part(observation, whose) for whose in (OPERATOR, OWN)],
        tables=[_share_table(observation)],
    )


def _part(observation: Sequence[PlanOutcome], whose: str) -> PartFigure:
    errors = [[entry.error] for entry in observation if entry.whose == whose]
    return PartFigure(whose, clustered_mean(errors), mean_upper_bound(errors, f"SCH-007 {whose}"), len(errors))


def _share_table(observation: Sequence[PlanOutcome]) -> ReportTable:
    rows = [
        TableRow(cells=[entry.whose, f"{entry.started} of {entry.jobs}", *_worst(entry), f"{entry.error:.2%}"])
        for entry in observation[:12]
    ]
    columns = ["plan", "jobs started", "planned share", "allocated share", "relative error"]
    return ReportTable(title="Shares of the worst domain of each plan", columns=columns, rows=rows)


def _worst(plan_outcome: PlanOutcome) -> tuple[str, str]:
    names = sorted(
        sorted({*plan_outcome.planned, *plan_outcome.allocated}),
        key=lambda name: (
            abs(plan_outcome.allocated.get(name, 0.0) - plan_outcome.planned.get(name, 0.0))
            / max(plan_outcome.planned.get(name, 0.0), 1e-9)
        ),
    )
    if not names:
        return "–", "–"
    return f"{plan_outcome.planned.get(names[-1], 0.0):.4f}", f"{plan_outcome.allocated.get(names[-1], 0.0):.4f}"


CHECK = Check(
    "sch_shares",
    ("SCH-007",),
    observe,
    judge,
    summary="Shares of compute that domains are given, against those that were planned (SCH-007).",
)


WINDOWS_QUICK, WINDOWS_FULL = 12, 100
NEAR_JOBS, DEVICES = 8, 16
MIN_PLACED_JOBS = 6
"""Jobs of a window that have to be placed, so that there is an order."""


@dataclass(frozen=True)
class Window:
    """Jobs that are alike but for what they send, and how far from each other their devices are.

    Attributes:
        traffic: Bytes a second of each job that was placed.
        distance: Mean distance between two of its devices: one on a switch, two over the domain, zero on a node.
        placements: How many jobs there were.
        faults: Why decisions cannot be carried out.
        answer: The exchange.
    """

    traffic: tuple[float, ...]
    distance: tuple[float, ...]
    placements: int
    faults: tuple[str, ...]
    answer: Answer

    @property
    def correlation(self) -> float:
        """Rank correlation of the two; zero where too few jobs were placed, or all are as far."""
        if len(self.traffic) < MIN_PLACED_JOBS or len(set(self.distance)) == 1:
            return 0.0
        from scipy.stats import kendalltau

        return float(kendalltau(self.traffic, self.distance).statistic)


def observe_similarity(episode: Episode) -> tuple[Window, ...]:
    """Have jobs placed that just fill what is free: half of it on few switches, half scattered."""
    builder = StateBuilder.of(episode)
    count = WINDOWS_FULL if episode.settings.full else WINDOWS_QUICK
    return tuple(_window(ask(episode, PLACEMENTS, {"state": scattered(builder)})) for _ in range(count))


def scattered(builder: StateBuilder) -> "documents.SchedulingState":
    """A domain in which whole nodes are free on some switches, and two devices of each node on the others.

    Four other domains are full, so that there is only one place to be.
    """
    chance, profile = builder.chance, builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    dense, sparse = chance.choice((2, 4)), chance.choice((8, 16))
    nodes = _nodes(builder, dense, NEAR_JOBS // 2 * DEVICES // 8 // dense, 8)
    nodes += _nodes(builder, sparse, NEAR_JOBS // 2 * DEVICES // 2 // sparse, 2)
    nodes = chance.sample(nodes, len(nodes))
    free = sum(node["free"] for node in nodes)
    pool: documents.ComputePool = {
        "accelerator": kind["id"],
        "devices": 8 * len(nodes),
        "free": free,
        "devices_per_node": 8,
        "nodes": nodes,
    }
    domains = [builder.domain(pool), *(builder.domain(_taken(builder.pool(kind, 2, switches=1))) for _ in range(4))]
    names = [domain["id"] for domain in domains]
    specs = []
    for number in chance.sample(range(NEAR_JOBS), NEAR_JOBS):
        spec = builder.spec(
            profile, names[0], (DEVICES,) * 3, submitted_at=instant(builder.now - 600),
            duration={"expected": 7200.0, "low": 3600.0, "high": 14400.0, "coverage": 0.8},
        )  # fmt: skip
        heavy = chance.uniform(1.0, 1.5) * 3.0**number
        spec["communication"] = {"step_time": 2.0, "exchange": 0.01 * GIGABYTE * heavy, "boundary": 0.01 * GIGABYTE,
                                 "checkpoint_size": 10 * GIGABYTE}  # fmt: skip
        spec["data"][0]["size"] = 10 * GIGABYTE
        specs.append(spec)
    return queued(builder.state([kind], domains, builder.mesh(names)), specs)


def _nodes(builder: StateBuilder, switches: int, per_switch: int, free: int) -> "list[documents.PoolNode]":
    return [
        {"id": builder.name(), "devices": 8, "free": free, "switch": leaf}
        for leaf in builder.names(switches)
        for _ in range(per_switch)
    ]


def _taken(pool: "documents.ComputePool") -> "documents.ComputePool":
    """A pool of which nothing is free."""
    return {**pool, "free": 0, "nodes": [{**node, "free": 0} for node in pool["nodes"]]}


def _window(exchange: DecisionExchange) -> Window:
    state = exchange.body["state"]
    account = Account(state)
    decisions = exchange.decision["decisions"]
    faults = tuple(account.faults(decisions))
    placed = (
        {decision["job"]: decision["placement"] for decision in decisions if decision["verb"] == "start"}
        if not faults
        else {}
    )
    switches = {node["id"]: node["switch"] for domain in state["domains"] for pool in domain["pools"]
                for node in pool["nodes"]}  # fmt: skip
    sent = {name: entry["spec"]["communication"] for name, entry in account.waiting.items()}
    return Window(
        tuple(sent[name]["exchange"] / sent[name]["step_time"] for name in placed),
        tuple(spread(placement["shares"], switches) for placement in placed.values()),
        len(account.waiting),
        faults,
        exchange.answer,
    )


def spread(shares: "Sequence[documents.DomainShare]", switches: Mapping[str, str]) -> float:
    """Mean distance between two devices: zero on one node, one on one switch, two in one domain, three beyond."""
    holders = [
        (share["domain"], switches.get(node["node"], node["node"]), node["node"], node["devices"])
        for share in shares
        for node in share["nodes"]
    ]
    pairs = sum(devices for *_, devices in holders) * (sum(devices for *_, devices in holders) - 1) / 2
    total = 0.0
    for (domain, switch, _, one), (elsewhere, other, _, more) in combinations(holders, 2):
        total += one * more * (3 if domain != elsewhere else 2 if switch != other else 1)
    return total / pairs if pairs else 0.0


def judge_similarity(observation: tuple[Window, ...]) -> Iterable[Finding]:
    """The rank correlation over windows; nothing counts where too little was placed."""
    wrong = [window for window in observation if window.faults]
    for window in wrong[:1]:
        expected = "decisions that the state can carry out"
        yield holds("SCH-010", False, expected, list(window.faults[:3]), window.answer)
    correlations = [[window.correlation] for window in observation]
    estimate = sum(entry for (entry,) in correlations) / len(correlations)
    expected = "devices the nearer to each other, the more a job sends"
    yield holds("SCH-010", estimate < 0, expected, f"mean rank correlation {estimate:.3f}", observation[0].answer)
    yield Figure(
        "SCH-010",
        estimate,
        mean_upper_bound(correlations, "SCH-010"),
        len(observation),
        "mean over windows of Kendall's rank correlation of a job's traffic with the distance between its devices, jobs"
        " being alike otherwise; one-sided 95 % bootstrap bound over windows",
        [PartFigure("jobs placed, share", _placed(observation), None, sum(w.placements for w in observation))],
        [
            holds("SCH-010", False, expected, f"rank correlation {window.correlation:.3f}", window.answer)
            for window in observation
            if window.correlation >= 0
        ],
        [_distance_table(observation)],
    )


def _placed(observation: Sequence[Window]) -> float:
    return sum(len(window.traffic) for window in observation) / sum(window.placements for window in observation)


def _distance_table(observation: Sequence[Window]) -> ReportTable:
    """Mean distance by rank of traffic, over the windows in which all jobs were placed."""
    whole = [window for window in observation if len(window.traffic) == window.placements]
    rows = []
    for rank in range(NEAR_JOBS if whole else 0):
        far = [window.distance[sorted(range(NEAR_JOBS), key=window.traffic.__getitem__)[rank]] for window in whole]
        rows.append(TableRow(cells=[str(rank + 1), f"{sum(far) / len(far):.3f}"]))
    title = "Distance between the devices of a job (0 on a node, 1 on a switch, 2 in a domain)"
    return ReportTable(title=title, columns=["traffic, from the least", "mean distance"], rows=rows)


SIMILARITY_CHECK = Check(
    "sch_near",
    ("SCH-010",),
    observe_similarity,
    judge_similarity,
    summary="Jobs that communicate much are placed on nodes near to each other (SCH-010).",
)
