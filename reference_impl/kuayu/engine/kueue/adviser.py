"""Asks a Kuayu service where workloads belong: data place, cost and expected wait, by its own decision.

1. *State.* What the service knows of domains, nodes, links, faults and its own jobs, and what the manager cluster knows
   of workloads, together make one scheduling state (:mod:`kuayu.jobs.federation`). Domains that are no clusters of the
   manager, or clusters that Kueue does not reach, offer no devices in it; data may lie there, and be fetched, unless
   the service hears nothing of the domain.
2. *Joint decision.* All workloads that wait are decided on together (``POST /v1/placements``), so that no two are sent
   to the same devices. Who may start is told where, the best first: the decision and its alternatives.
3. *Comparison.* Of a workload that has to wait, a decision names no place. So the state is decided on once more for
   each cluster, with all such workloads kept in it, and what is expected of them there is compared: by the money for
   devices and transfers, and by what the time until the first step counts.
4. Nothing that runs is moved for a workload: no dispatcher can stop what runs in a cluster, so the state shows nothing
   that may be interrupted.

What the service has registered is read again when it is older than :data:`REFRESH_SECONDS`; a pass in which nothing is
to be decided asks for no decision.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from kuayu.client import Client, NotFoundError
from kuayu.engine.kueue.workloads import DeviceKind
from kuayu.jobs.accelerators import main_kind
from kuayu.jobs.federation import NOT_WORKING, FederationSnapshot, FederationState, HeldAllocation, scheduling_state
from kuayu_schemas.base import write_instant
from kuayu_schemas.models import AllocationRecord, FaultState, PlacementDecision, PlacementRequest, PlacementVerb

if TYPE_CHECKING:
    from kuayu_schemas import documents

REFRESH_SECONDS = 30.0
"""Seconds for which what a service has told of domains and jobs is good enough."""

SECONDS_PER_HOUR = 3600.0
MAX_ALTERNATIVES = 10
ACTIVE = frozenset({"starting", "running", "restarting"})
"""States of jobs that hold devices."""

UNFINISHED = frozenset({"preparing", "committing", "committed", "aborting", "releasing"})
"""Phases of allocations that hold devices, or are about to."""

UNKNOWN_VENDOR = "unknown"


@dataclass(frozen=True, slots=True)
class PredictedOutcome:
    """What is expected of a workload in a domain.

    Attributes:
        domain: The domain.
        delay_seconds: Until its first step: until devices are free and its data are there.
        cost: What running it there costs from now on, for devices and for transfers, in the federation's currency.
    """

    domain: str
    delay_seconds: float
    cost: float


def rank(outcomes: Iterable[PredictedOutcome], hour_price: float) -> list[PredictedOutcome]:
    """Domains, best first: by what a workload costs there, and what it counts that it begins later.

    Where two come to the same, the one in which it begins earlier goes first.

    Args:
        outcomes: What is expected of each.
        hour_price: What an hour until its first step counts, in the same currency.
    """

    def total(outcome: PredictedOutcome) -> tuple[float, float, str]:
        price = outcome.cost + hour_price * outcome.delay_seconds / SECONDS_PER_HOUR
        return price, outcome.delay_seconds, outcome.domain

    return sorted(outcomes, key=total)


class Situation(NamedTuple):
    """What decisions rest on, beside the workloads that wait.

    Attributes:
        federation: What the service knows.
        open_domains: Domains that workloads can be sent to.
        running: Workloads that run, as jobs.
    """

    federation: "Federation"
    open_domains: Collection[str]
    running: "Sequence[documents.JobRecord]"


class Question(NamedTuple):
    """A workload that waits, and where it may go.

    Attributes:
        record: The workload as a job that is queued.
        domains: Domains that it may be sent to.
    """

    record: "documents.JobRecord"
    domains: Sequence[str]


@dataclass(frozen=True, slots=True)
class Advice:
    """What was decided about a workload.

    Attributes:
        starts: Domains where it can start now, the best first; empty where it has to wait.
        reason: Why, in the words of the service.
    """

    starts: Sequence[str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """What a service knows, as far as decisions rest on it.

    Attributes:
        reading: How often it was read until then.
        revision: Of its graph.
        domains: Registered ones, class Domain.
        nodes: Registered ones, class Node.
        links: Registered ones, class Link.
        states: States of nodes that do not work, by name.
        quality: What links offer, class LinkVertex, by name.
        faults: Open ones, class Fault.
        jobs: Jobs of its own that hold devices, class JobRecord.
        allocations: What is held by them, and by others.
        unreachable: Domains of which nothing is heard any more.
    """

    reading: int
    revision: "documents.Revision"
    domains: "Sequence[documents.Domain]"
    nodes: "Sequence[documents.Node]"
    links: "Sequence[documents.Link]"
    states: Mapping[str, str] = field(default_factory=dict)
    quality: "Mapping[str, documents.LinkVertex]" = field(default_factory=dict)
    faults: "Sequence[documents.Fault]" = ()
    jobs: "Sequence[documents.JobRecord]" = ()
    allocations: Sequence[HeldAllocation] = ()
    unreachable: frozenset[str] = frozenset()

    def missing(self, domain: str) -> str | None:
        """Why nothing can be sent to a domain, in words; None where it can."""
        if domain not in {entry["id"] for entry in self.domains}:
            return f"the service knows no domain {domain}"
        if not any(node["domain"] == domain and node.get("devices") for node in self.nodes):
            return f"the service knows no accelerators in the domain {domain}"
        if domain in self.unreachable:
            return f"the service hears nothing of the domain {domain}"
        return None

    def offers(self, domain: str, kind: DeviceKind) -> bool:
        """Whether a domain has devices that a resource of pods stands for."""
        return any(
            device["kind"] == kind.kind and _is_of(device["vendor"], kind.vendor)
            for node in self.nodes
            if node["domain"] == domain
            for device in node.get("devices", ())
        )

    def node_sizes(self, domains: frozenset[str]) -> set[int]:
        """Devices of the nodes of some domains."""
        return {len(node["devices"]) for node in self.nodes if node["domain"] in domains and node.get("devices")}

    def placement(self, domain: str, devices: int, kind: DeviceKind) -> "documents.JobPlacement | None":
        """Devices of a domain as somebody holds them; None where it has none."""
        nodes = [node for node in self.nodes if node["domain"] == domain and node.get("devices")]
        fitting = [node for node in nodes if any(_is_of(device["vendor"], kind.vendor) for device in node["devices"])]
        if not nodes:
            return None
        accelerator = min(main_kind(node)[0] for node in fitting or nodes)
        return {
            "shares": [{"domain": domain, "accelerator": accelerator, "devices": devices}],
            "split_mode": "none",
        }


def _is_of(vendor: str, wanted: str) -> bool:
    name = vendor.casefold()
    return not wanted or wanted in name or name == UNKNOWN_VENDOR


class Adviser:
    """Has a service decide.

    Args:
        client: Of the service.
        refresh_seconds: How old what it has told may be.
        clock: Seconds that only grow.
        now: The present instant.
    """

    def __init__(
        self,
        client: Client,
        *,
        refresh_seconds: float = REFRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._refresh = refresh_seconds
        self._clock = clock
        self._now = now
        self._federation: Federation | None = None
        self._read_at = float("-inf")
        self._readings = 0

    def federation(self) -> Federation:
        """What the service knows.

        Raises:
            ClientError: It does not answer, or refuses.
        """
        if self._federation is None or self._clock() - self._read_at >= self._refresh:
            self._readings += 1
            self._federation = _read(self._client, self._readings)
            self._read_at = self._clock()
        return self._federation

    def decide(self, situation: Situation, questions: Sequence[Question]) -> dict[str, Advice]:
        """Where workloads are to start, by job; all of them are decided on together.

        Args:
            situation: What the decision rests on.
            questions: Workloads that wait.

        Raises:
            ClientError: The service does not answer, or refuses.
        """
        decided = self._ask(situation, questions)
        return {job: _advice(decision) for job, decision in decided.items()}

    def compare(
        self, situation: Situation, questions: Sequence[Question], wanted: Collection[str]
    ) -> dict[str, list[PredictedOutcome]]:
        """What is expected of some workloads in each domain that they may be sent to, by job.

        A domain in which there is no way for a workload is left out.

        Args:
            situation: As for :meth:`decide`.
            questions: As for :meth:`decide`.
            wanted: Jobs of these that are to be compared.
        """
        outcomes: dict[str, list[PredictedOutcome]] = {job: [] for job in wanted}
        domains = sorted({name for entry in questions if entry.record["id"] in wanted for name in entry.domains})
        for domain in domains:
            confined = [
                entry._replace(domains=[domain]) if entry.record["id"] in wanted else entry
                for entry in questions
                if entry.record["id"] not in wanted or domain in entry.domains
            ]
            now = self._now()
            for job, decision in self._ask(situation, confined).items():
                outcome = decision.explanation.outcome if decision.explanation else None
                if job in wanted and outcome is not None:
                    delay = max((outcome.run_at - now).total_seconds(), 0.0)
                    cost = outcome.price + outcome.communication_cost
                    outcomes[job].append(PredictedOutcome(domain, delay, cost))
        return outcomes

    def _ask(self, situation: Situation, questions: Sequence[Question]) -> dict[str, PlacementDecision]:
        """Decisions on workloads that wait, by job."""
        waiting = [
            cast("documents.JobRecord", {**entry.record, "domains": sorted(entry.domains)}) for entry in questions
        ]
        state = state_of(situation, waiting, write_instant(self._now()))
        body = {"state": state.document, "explain": True, "alternatives": MAX_ALTERNATIVES}
        report = self._client.place(PlacementRequest.model_validate(body))
        names = {record["id"] for record in waiting}
        decided = {decision.job: decision for decision in report.decisions if decision.job in names}
        for job, why in state.apart.items():
            decided[job] = PlacementDecision.model_validate(
                {"job": job, "verb": "wait", "explanation": {"alternatives": [], "reason": why}}
            )
        return decided


def state_of(situation: Situation, waiting: "Sequence[documents.JobRecord]", now: str) -> FederationState:
    """What the service knows and what the manager cluster knows, as one scheduling state.

    Args:
        situation: Both.
        waiting: Workloads that wait, as jobs.
        now: The present instant.
    """
    federation, open_domains, running = situation
    holdings: list[HeldAllocation] = [
        {"id": record["id"], "job": record["id"], "phase": "committed", "placement": record["placement"]}
        for record in running
    ]
    snapshot = FederationSnapshot(
        now=now,
        revision=federation.revision,
        domains=federation.domains,
        nodes=[node for node in federation.nodes if node["domain"] in open_domains],
        links=federation.links,
        reachable={domain["id"] for domain in federation.domains} - federation.unreachable,
        faults=federation.faults,
        states=federation.states,
        quality=federation.quality,
        allocations=[*federation.allocations, *holdings],
        waiting=waiting,
        active=[*federation.jobs, *running],
    )
    state = scheduling_state(snapshot)
    for entry in state.document["running"]:
        entry.pop("used", None)  # without it nothing that runs may be moved
    return state


def _advice(decision: PlacementDecision) -> Advice:
    explanation = decision.explanation
    reason = explanation.reason if explanation else ""
    if decision.verb is not PlacementVerb.start or decision.placement is None:
        return Advice((), reason)
    placements = [decision.placement, *(entry.placement for entry in (explanation.alternatives if explanation else ()))]
    domains = [share.domain for placement in placements if placement for share in placement.shares]
    return Advice(tuple(dict.fromkeys(domains)), reason)


def _read(client: Client, reading: int) -> Federation:
    """Read what a service knows; one that runs no jobs, or recognises no faults, has none."""
    graph = client.graph()
    return Federation(
        reading=reading,
        revision=cast("documents.Revision", graph.revision.to_wire()),
        domains=[cast("documents.Domain", entry.to_wire()) for entry in client.domains()],
        nodes=[cast("documents.Node", entry.to_wire()) for entry in client.nodes()],
        links=[cast("documents.Link", entry.to_wire()) for entry in client.links()],
        states={node.id: node.state.value for node in graph.nodes if node.state.value in NOT_WORKING},
        quality={link.id: cast("documents.LinkVertex", link.to_wire()) for link in graph.links},
        faults=[
            cast("documents.Fault", fault.to_wire()) for fault in _or_none(lambda: client.faults(state=FaultState.open))
        ],
        jobs=[
            cast("documents.JobRecord", job.to_wire())
            for job in _or_none(client.jobs)
            if job.state.value in ACTIVE and job.placement is not None
        ],
        allocations=[
            _held_allocation(record) for record in _or_none(client.allocations) if record.phase.value in UNFINISHED
        ],
        unreachable=frozenset(domain.id for domain in graph.domains if not domain.reachable),
    )


Item = TypeVar("Item")


def _or_none(listing: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """What is listed; nothing where the service has no such list."""
    with suppress(NotFoundError):
        yield from listing()


def _held_allocation(record: AllocationRecord) -> HeldAllocation:
    """What an allocation holds, or tries to."""
    placement = record.placement if record.held is None else record.held
    return {
        "id": record.id,
        "job": record.job,
        "phase": record.phase.value,
        "placement": cast("documents.JobPlacement", placement.to_wire()),
    }
