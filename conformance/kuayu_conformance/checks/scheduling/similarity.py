"""Jobs that communicate much are placed on nodes near to each other (SCH-010)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import GIGABYTE, PLACEMENTS, StateBuilder, queued
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import mean_upper_bound
from kuayu_schemas.models import ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

WINDOWS_QUICK, WINDOWS_FULL = 12, 100
JOBS, DEVICES = 8, 16
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


def observe(episode: Episode) -> tuple[Window, ...]:
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
    nodes = _nodes(builder, dense, JOBS // 2 * DEVICES // 8 // dense, 8)
    nodes += _nodes(builder, sparse, JOBS // 2 * DEVICES // 2 // sparse, 2)
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
    for number in chance.sample(range(JOBS), JOBS):
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


def judge(observation: tuple[Window, ...]) -> Iterable[Finding]:
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
        [_table(observation)],
    )


def _placed(observation: Sequence[Window]) -> float:
    return sum(len(window.traffic) for window in observation) / sum(window.placements for window in observation)


def _table(observation: Sequence[Window]) -> ReportTable:
    """Mean distance by rank of traffic, over the windows in which all jobs were placed."""
    whole = [window for window in observation if len(window.traffic) == window.placements]
    rows = []
    for rank in range(JOBS if whole else 0):
        far = [window.distance[sorted(range(JOBS), key=window.traffic.__getitem__)[rank]] for window in whole]
        rows.append(TableRow(cells=[str(rank + 1), f"{sum(far) / len(far):.3f}"]))
    title = "Distance between the devices of a job (0 on a node, 1 on a switch, 2 in a domain)"
    return ReportTable(title=title, columns=["traffic, from the least", "mean distance"], rows=rows)


CHECK = Check("sch_near", ("SCH-010",), observe, judge)
