"""Shares of compute that domains are given, against those that were planned (SCH-007)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import is_answer
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, PLANS, StateBuilder, queued
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import clustered_mean, mean_upper_bound
from kuayu_schemas.models import ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

PLANS_QUICK, PLANS_FULL = 6, 60
"""Plans of each kind: the operator's, and the service's own."""
JOBS, DOMAINS = 250, 5
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
            outcomes.append(PlanOutcome(OWN, {}, {}, JOBS, 0, ("no shares were planned",), plan))
    return tuple(outcomes)


def roomy(
    builder: StateBuilder, profiles: Sequence[str], kinds: "Sequence[documents.OfferedAccelerator]"
) -> "documents.SchedulingState":
    """A federation in which each domain has room for half of the many jobs that wait; their data are everywhere.

    Where the service plans by itself, devices differ little, for it plans for reference devices what jobs ask for in
    devices: the faster these are, the fewer jobs it has planned for.
    """
    chance = builder.chance
    sizes = [chance.choice((1, 1, 1, 2, 2, 4, 8)) for _ in range(JOBS)]
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
        return PlanOutcome(whose, planned, {}, JOBS, 0, (answer.brief,), answer)
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
        tables=[_table(observation)],
    )


def _part(observation: Sequence[PlanOutcome], whose: str) -> PartFigure:
    errors = [[entry.error] for entry in observation if entry.whose == whose]
    return PartFigure(whose, clustered_mean(errors), mean_upper_bound(errors, f"SCH-007 {whose}"), len(errors))


def _table(observation: Sequence[PlanOutcome]) -> ReportTable:
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


CHECK = Check("sch_shares", ("SCH-007",), observe, judge)
