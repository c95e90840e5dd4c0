"""Domains as the suite plays them: nodes with devices, what is promised and taken of them, and every step of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kuayu_conformance.episode import instant

Json = dict[str, Any]
"""An action as a target shows it, which need not be valid, or what a domain tells of it, which repeats its words."""

NODES, PER_NODE = 32, 8
"""Nodes of a kind in a domain and devices of each: more than all allocations that are held together ask for."""

RESERVED = 30
"""Nodes beside these that devices are given of only where they are asked for by name."""

SECONDS, MOST_SECONDS = 10.0, 1e6
"""Seconds for which a promise holds where none are stated, and seconds beyond which what is stated is nonsense."""

Place = tuple[str, str, int]
"""Kind of devices, node, and how many of it."""


def stated_seconds(value: object) -> float | None:
    """Seconds that an action states; None where it states none, or nonsense."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
        return None
    return float(value)


@dataclass(frozen=True)
class DomainStep:
    """A step that a domain has carried out, or was shown and has not.

    Attributes:
        site: The domain.
        job: Whose devices it is about.
        action: Name of the action.
        kind: What was to be done.
        phase: The step.
        outcome: How it ended; empty where the domain stays silent.
        status: Status of the answer to the result; 0 where none was sent.
        stands: Phase of the allocation that this answer shows.
        devices: Devices that were asked for; 0 where the action does not say.
        accelerator: Of which kind; empty where it does not say.
        nodes: Nodes that it names, with the devices of each, in order of name.
        reservation: Action that it names as the one by which they were reserved.
    """

    site: str
    job: str
    action: str
    kind: str
    phase: str
    outcome: str
    status: int = 0
    stands: str = ""
    devices: int = 0
    accelerator: str = ""
    nodes: tuple[tuple[str, int], ...] = ()
    reservation: str = ""

    @classmethod
    def of(cls, site: str, job: str, action: Mapping[str, Any]) -> "DomainStep":
        """The step that an action asks for."""
        return cls(
            site,
            job,
            str(action.get("id")),
            str(action.get("kind")),
            str(action.get("phase")),
            outcome="",
            devices=count(action),
            accelerator=str(action.get("accelerator", "")),
            nodes=rows_of(action),
            reservation=str(action.get("reservation", "")),
        )


def count(row: Mapping[str, Any]) -> int:
    """Devices that a row states; 0 where it does not."""
    devices = row.get("devices")
    return devices if isinstance(devices, int) else 0


def rows_of(holder: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Nodes that an action, a share or a result names and the devices of each, in order of name."""
    rows = holder.get("nodes")
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return tuple(sorted((str(row.get("node")), count(row)) for row in listed))


@dataclass
class Holding:
    """Devices that are promised, or taken, by node."""

    job: str
    accelerator: str
    nodes: dict[str, int]
    taken: bool = False


@dataclass
class Site:
    """A domain.

    Attributes:
        name: Its name.
        kinds: Kinds of its devices; nodes of one kind have the same names as those of another.
        free: Free devices by kind and node.
        reservations: What is promised or taken, by action.
        reports: Results that were told, by action and step; whoever asks again is told the same.
    """

    name: str
    kinds: Sequence[str]
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    reservations: dict[str, Holding] = field(default_factory=dict)
    reports: dict[tuple[str, str], Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """All nodes are free."""
        nodes = [f"node-{number}" for number in range(NODES + RESERVED)]
        self.free = {kind: dict.fromkeys(nodes, PER_NODE) for kind in self.kinds}

    def act(self, action: Mapping[str, Any], verdict: str, now: float) -> Json:
        """Carry a step out, or refuse it, or let a promise expire; the result as it is told."""
        name, phase, job = str(action.get("id")), str(action.get("phase")), str(action.get("job"))
        if (name, phase) in self.reports and phase != "abort":
            return self.reports[name, phase]
        outcome, nodes = self._outcome(name, phase, job, action, verdict)
        result: Json = {"action": name, "phase": phase, "outcome": outcome, "at": instant(now)}
        if outcome == "prepared":
            result["expires_at"] = instant(now + (stated_seconds(action.get("expires_after")) or SECONDS))
        if outcome == "refused":
            problem = {"title": "Too few devices are free", "status": 409, "retryable": True}
            result["problem"] = {**problem, "type": "urn:kuayu:problem:no-capacity"}
        if nodes:
            result["nodes"] = [{"node": node, "devices": devices} for node, devices in nodes.items()]
        self.reports[name, phase] = result
        return result

    def _outcome(
        self, name: str, phase: str, job: str, action: Mapping[str, Any], verdict: str
    ) -> tuple[str, dict[str, int]]:
        if action.get("kind") == "release":
            return "committed", self._let_go(str(action.get("reservation")))
        if phase == "abort":
            self._let_go(name)
            return "aborted", {}
        if phase == "prepare":
            kind = str(action.get("accelerator"))
            nodes = dict(rows_of(action)) or dict(self._chosen(kind, count(action)))
            if verdict == "refuse" or not self._has(kind, nodes, count(action)):
                return "refused", {}
            for node, devices in nodes.items():
                self.free[kind][node] -= devices
            self.reservations[name] = Holding(job, kind, nodes)
            return "prepared", nodes
        if verdict == "expire" or name not in self.reservations:
            self._let_go(name)
            return "expired", {}
        self.reservations[name].taken = True
        return "committed", self.reservations[name].nodes

    def _chosen(self, kind: str, wanted: int) -> Iterator[tuple[str, int]]:
        """Free devices of the first nodes, whole ones as far as that goes; so nodes mostly have unlike shares."""
        for node, free in list(self.free.get(kind, {}).items())[:NODES]:
            taken = min(free, wanted)
            if taken:
                wanted -= taken
                yield node, taken

    def _has(self, kind: str, nodes: Mapping[str, int], wanted: int) -> bool:
        free = self.free.get(kind, {})
        return sum(nodes.values()) == wanted > 0 and all(0 < nodes[node] <= free.get(node, 0) for node in nodes)

    def _let_go(self, name: str) -> dict[str, int]:
        holding = self.reservations.pop(name, None)
        if holding is None:
            return {}
        for node, devices in holding.nodes.items():
            self.free[holding.accelerator][node] += devices
        return holding.nodes

    def lose(self, name: str, now: float) -> None:
        """The domain lets go of something that it has taken, unasked; whoever asks for the commit again is told so."""
        self._let_go(name)
        self.reports[name, "commit"] = {"action": name, "phase": "commit", "outcome": "expired", "at": instant(now)}

    def devices_of(self, job: str, *, taken: bool = False) -> int:
        """Devices that are promised to a job or taken by it; only the latter if asked for."""
        return sum(
            sum(row.nodes.values()) for row in self.reservations.values() if row.job == job and (row.taken or not taken)
        )

    def places_of(self, job: str) -> tuple[Place, ...]:
        """Where those are that it has taken, in order."""
        rows = [row for row in self.reservations.values() if row.job == job and row.taken]
        return tuple(sorted((row.accelerator, *share) for row in rows for share in row.nodes.items()))
