"""Jobs lie on nodes as they ask for, and are not cut where a node has room for them (SCH-021)."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import GIGABYTE, PLACEMENTS, StateBuilder, queued
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

WINDOWS_QUICK, WINDOWS_FULL = 3, 20
PER_NODE = 8
SILENT: "documents.CommunicationProfile" = {
    "step_time": 2.0,
    "exchange": 0.0,
    "boundary": 0.0,
    "checkpoint_size": 10 * GIGABYTE,
}
"""What a job sends that sends nothing."""
LOUD: "documents.CommunicationProfile" = {**SILENT, "exchange": 40 * GIGABYTE, "boundary": GIGABYTE}


@dataclass(frozen=True)
class Wish:
    """How a job's devices are to lie on nodes.

    Attributes:
        what: In words.
        devices: How many it asks for, no more and no fewer.
        free: Free devices of nodes, by switch.
        starts: Whether there is room for them so.
        nodes: What it says of nodes.
        sends: What it says of its communication, if anything.
    """

    what: str
    devices: int
    free: tuple[tuple[int, ...], ...]
    starts: bool
    nodes: "documents.NodeNeed | None" = None
    sends: "documents.CommunicationProfile | None" = None


@dataclass(frozen=True)
class NodeGrant:
    """A wish, the nodes that the job was given, by switch, and whatever else is wrong with the answer."""

    wish: Wish
    given: tuple[tuple[int, ...], ...] | None
    faults: tuple[str, ...]
    answer: Answer


def observe(episode: Episode) -> tuple[NodeGrant, ...]:
    """Ask for each wish a few times, with nodes, switches and sizes drawn anew."""
    builder = StateBuilder.of(episode)
    windows = WINDOWS_FULL if episode.settings.full else WINDOWS_QUICK
    return tuple(_granted(episode, builder, wish) for _ in range(windows) for wish in wishes(builder.chance))


def wishes(chance: Random) -> tuple[Wish, ...]:
    """What jobs ask for of a pool of which part of each node is taken."""
    many, per_node = chance.choice((5, 6)), chance.choice((2, 4))
    few = PER_NODE - many
    # one node has room for all; on a tighter switch two have so together
    whole = ((1, PER_NODE), (many, few))
    portions = ((per_node, per_node - 1, PER_NODE), (per_node + 1, per_node, per_node - 1))
    portion: documents.NodeNeed = {"devices_per_node": per_node}
    on_node: documents.NodeNeed = {"within": "node"}
    at_switch: documents.NodeNeed = {"within": "switch"}
    one, none = ((many - 1, few), (many, few)), ((many - 1, few), (many - 1, few))
    both = 2 * many
    return (
        Wish("a job that fits on one node, and tells nothing of what it sends", many, whole, starts=True),
        Wish("a job of a whole node that sends nothing to other domains", PER_NODE, whole, starts=True, sends=SILENT),
        Wish("a job of a whole node that sends much", PER_NODE, whole, starts=True, sends=LOUD),
        Wish(f"{per_node} devices on each node", 4 * per_node, portions, starts=True, nodes=portion, sends=SILENT),
        Wish(
            f"{per_node} devices on each of more nodes than have them",
            5 * per_node,
            portions,
            starts=False,
            nodes=portion,
        ),
        Wish("one node", many, one, starts=True, nodes=on_node),
        Wish("one node where none has room", many, none, starts=False, nodes=on_node),
        Wish("one switch", both, ((PER_NODE, few), (many, many)), starts=True, nodes=at_switch),
        Wish("one switch where none has room", both + 1, ((many, few), (many, many)), starts=False, nodes=at_switch),
    )


def _granted(episode: Episode, builder: StateBuilder, wish: Wish) -> NodeGrant:
    exchange = ask(episode, PLACEMENTS, {"state": _state(builder, wish)})
    state, decisions = exchange.body["state"], exchange.decision["decisions"]
    faults = tuple(Account(state).faults(decisions))
    started = [decision["placement"]["shares"] for decision in decisions if decision["verb"] == "start"]
    if faults or not started:
        return NodeGrant(wish, None, faults, exchange.answer)
    leaves = {node["id"]: node["switch"] for domain in state["domains"] for pool in domain["pools"]
              for node in pool["nodes"]}  # fmt: skip
    by_switch: dict[str, list[int]] = {}
    for share in started[0]:
        for node in share["nodes"]:
            by_switch.setdefault(leaves[node["node"]], []).append(node["devices"])
    return NodeGrant(wish, tuple(tuple(sorted(counts)) for counts in by_switch.values()), faults, exchange.answer)


def _state(builder: StateBuilder, wish: Wish) -> "documents.SchedulingState":
    """One domain with free devices on its nodes as they are said to be; another is full."""
    chance, profile = builder.chance, builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    nodes: list[documents.PoolNode] = [
        {"id": builder.name(), "devices": PER_NODE, "free": free, "switch": leaf}
        for leaf, row in zip(builder.names(len(wish.free)), wish.free, strict=True)
        for free in row
    ]
    full = builder.pool(kind, 2, switches=1)
    full["free"], full["nodes"] = 0, [{**node, "free": 0} for node in full["nodes"]]
    domains = [builder.domain(_pool(kind, chance.sample(nodes, len(nodes)))), builder.domain(full)]
    names = [domain["id"] for domain in domains]
    lasting = {"expected": 7200.0, "low": 3600.0, "high": 14400.0, "coverage": 0.8}
    members: dict[str, Any] = {"duration": lasting, "submitted_at": instant(builder.now - 600)}
    spec = builder.spec(profile, names[0], (wish.devices,) * 3, **members)
    del spec["communication"]
    if wish.sends:
        spec["communication"] = wish.sends
    if wish.nodes:
        spec["nodes"] = wish.nodes
    return queued(builder.state([kind], domains, builder.mesh(names)), [spec])


def _pool(kind: "documents.OfferedAccelerator", nodes: "list[documents.PoolNode]") -> "documents.ComputePool":
    free = sum(node["free"] for node in nodes)
    return {
        "accelerator": kind["id"], "devices": PER_NODE * len(nodes), "free": free, "devices_per_node": PER_NODE,
        "nodes": nodes,
    }  # fmt: skip


def judge(observation: tuple[NodeGrant, ...]) -> Iterable[Finding]:
    """Claims about nodes."""
    for entry in observation:
        wish = entry.wish
        yield holds(
            "SCH-021", not entry.faults, f"{wish.what}: what the state can carry", list(entry.faults), entry.answer
        )
        if entry.faults:
            continue
        started = entry.given is not None
        expected = "it starts" if wish.starts else "it does not start"
        yield holds(
            "SCH-021", started is wish.starts, f"{wish.what}: {expected}", _shares_text(entry.given), entry.answer
        )
        if entry.given is not None and wish.starts and not wish.nodes:
            whole = f"{wish.what}: it is not cut"
            yield holds("SCH-021", len(_nodes(entry.given)) == 1, whole, _shares_text(entry.given), entry.answer)


def _nodes(given: tuple[tuple[int, ...], ...]) -> list[int]:
    return [devices for leaf in given for devices in leaf]


def _shares_text(given: tuple[tuple[int, ...], ...] | None) -> str:
    if given is None:
        return "it does not"
    return "; ".join(f"{' + '.join(map(str, leaf))} on one switch" for leaf in given)


CHECK = Check("sch_nodes", ("SCH-021",), observe, judge)
