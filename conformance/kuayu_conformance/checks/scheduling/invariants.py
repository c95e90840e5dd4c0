"""Decisions that the state can carry out, and that jobs can rely on (SCH-013, SCH-020 to SCH-024, COM-030).

1. *Soundness.* Decisions can be carried out in the state, and nothing is given out twice (SCH-013, COM-030).
2. *Contradictions.* States whose numbers contradict each other are refused (SCH-020). Whatever is decided on such a
   state is wrong, and so is the reason that is given for it: the job of a state with more free devices than there are
   would wait for ever, for want of a pool that can hold it.
3. *Nodes.* Jobs lie on nodes as they ask for, and are not cut where a node has room for them (SCH-021).
4. *Temptations.* States in which a job gains by having its devices changed, or somebody else does: it is interrupted
   long ago, or shortly before. How often it may be interrupted in an hour follows from how soon it may be again
   (SCH-022).
5. *Priority.* All devices that would do for a job are held for long by jobs of lower priority, some of which can do
   with fewer. What is given up is compared with what the job needs (SCH-023).
6. *Overtaking.* A job that waits is not overtaken without end: the service says until when, and keeps to it (SCH-024).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import DecisionExchange, ask
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.placement_requests import (
    FRONTS,
    GIGABYTE,
    PLACEMENTS,
    PLANS,
    ROUTES,
    TRAPS,
    StateBuilder,
    alone,
    congested,
    crowd,
    grid,
    queued,
    take,
)
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.findings import Finding, answered, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

CROWDS_QUICK, CROWDS_FULL = 6, 60
ROUTED_QUICK, ROUTED_FULL = 2, 20


@dataclass(frozen=True)
class StateDecision:
    """What was made of a state.

    Attributes:
        scenario: What is special about the state.
        decisions: How many jobs were decided on.
        started: How many of them are to start.
        wanted: Revision of the state.
        revision: Revision of the answer.
        faults: Why they cannot be carried out; nothing where they can.
        again: Whether the same question got the same decisions.
        answer: The exchange.
    """

    scenario: str
    decisions: int
    started: int
    wanted: Mapping[str, Any]
    revision: Mapping[str, Any]
    faults: tuple[str, ...]
    again: bool
    answer: Answer


@dataclass(frozen=True)
class RoutedLinks:
    """Links that were given out, and those of them that do not have as much."""

    demands: int
    over: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class SoundnessAnswers:
    """States that were decided on, the one in which everything is free first, and demands that were routed.

    Where the run is about parts of the profile, either may be missing.
    """

    decided: tuple[StateDecision, ...]
    routed: tuple[RoutedLinks, ...]


def observe(episode: Episode) -> SoundnessAnswers:
    """Ask for decisions on states, then for routes over narrow links, as far as the run is about them."""
    builder, settings = StateBuilder.of(episode), episode.settings
    decided = _decided(episode, builder) if settings.asks(f"POST {PLACEMENTS}") else ()
    routed = []
    if settings.asks(f"POST {ROUTES}"):
        for _ in range(ROUTED_FULL if settings.full else ROUTED_QUICK):
            exchange = ask(episode, ROUTES, grid(builder, demands=30))
            over = tuple(congested(exchange.body["links"], exchange.decision["routes"]))
            routed.append(RoutedLinks(len(exchange.body["demands"]), over, exchange.answer))
    return SoundnessAnswers(decided, tuple(routed))


def _decided(episode: Episode, builder: StateBuilder) -> tuple[StateDecision, ...]:
    """Ask for decisions on a free federation, on traps, and on crowds; then again, in another order."""
    bodies: list[tuple[str, documents.PlacementRequest]] = [("everything is free", {"state": _idle(builder)})]
    bodies += [(scenario, {"state": trap(builder)}) for scenario, trap in TRAPS.items()]
    crowds = CROWDS_FULL if episode.settings.full else CROWDS_QUICK
    bodies += [("a crowd", _request(builder, number)) for number in range(crowds)]
    first = [(scenario, ask(episode, PLACEMENTS, body)) for scenario, body in bodies]
    order = episode.random.sample(range(len(bodies)), len(bodies))
    again = {number: ask(episode, PLACEMENTS, bodies[number][1]) for number in order}
    return tuple(_judged(scenario, exchange, again[number]) for number, (scenario, exchange) in enumerate(first))


def _idle(builder: StateBuilder) -> "documents.SchedulingState":
    profile = builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    domains = [builder.domain(builder.pool(kind, 4, switches=2)) for _ in range(5)]
    names = [domain["id"] for domain in domains]
    specs = [builder.spec(profile, name, (4, 4, 4)) for name in names]
    return queued(builder.state([kind], domains, builder.mesh(names)), specs)


def _request(builder: StateBuilder, number: int) -> "documents.PlacementRequest":
    """A crowd, every other one with explanations, weights, or shares."""
    state = crowd(builder, jobs=40)
    body: documents.PlacementRequest = {"state": state}
    if number % 2:
        body["explain"], body["alternatives"] = True, 2
    if number % 3 == 1:
        body["weights"] = {"period": 1.0, "price": builder.chance.uniform(0.0, 5.0), "communication": 1.0}
    if number % 3 == 2:
        body["shares"] = [{"domain": domain["id"], "share": 0.2} for domain in state["domains"]]
    return body


def _judged(scenario: str, exchange: DecisionExchange, again: DecisionExchange) -> StateDecision:
    report = exchange.decision
    decisions = report["decisions"]
    return StateDecision(
        scenario,
        len(decisions),
        sum(decision["verb"] == "start" for decision in decisions),
        exchange.body["state"]["revision"],
        report["revision"],
        tuple(Account(exchange.body["state"]).faults(decisions)),
        again.decision["decisions"] == decisions,
        exchange.answer,
    )


def judge(observation: SoundnessAnswers) -> Iterable[Finding]:
    """Claims about every state."""
    for free in observation.decided[:1]:
        yield holds(
            "SCH-013", free.started > 0, f"{free.scenario}: jobs are started", f"{free.started} are", free.answer
        )
    for entry in observation.decided:
        expected = f"{entry.scenario}: decisions that the state can carry out, in their order"
        yield holds("SCH-013", not entry.faults, expected, list(entry.faults[:3]), entry.answer)
        echoed = entry.revision == entry.wanted
        yield holds("SCH-013", echoed, f"{entry.scenario}: revision {entry.wanted}", entry.revision, entry.answer)
        yield holds("SCH-013", entry.again, f"{entry.scenario}: the same decisions again", entry.again, entry.answer)
        over = [fault for fault in entry.faults if "are free" in fault or "more than the offer" in fault]
        expected = f"{entry.scenario}: no more devices given out than are free"
        yield holds("COM-030", not over, expected, over[:3], entry.answer)
    for routed in observation.routed:
        expected = f"{routed.demands} demands: no more of a link given out than is available"
        yield holds("COM-030", not routed.over, expected, list(routed.over[:3]), routed.answer)


CHECK = Check(
    "sch_soundness",
    ("SCH-013", "COM-030"),
    observe,
    judge,
    summary="Decisions that the state can carry out, and nothing given out twice (SCH-013, COM-030).",
)


POOL_POINTER = "/state/domains/0/pools/0"
DEVICES = 8
"""Devices of a node."""


@dataclass(frozen=True)
class Contradiction:
    """A request whose state contradicts itself: in what, where, and the answer."""

    what: str
    place: str
    answer: Answer


def observe_contradictions(episode: Episode) -> tuple[Contradiction, ...]:
    """Ask for each decision on a state that holds together, then with one contradiction in it each time.

    Raises:
        SetUpFailure: The state that holds together is not answered.
    """
    builder = StateBuilder.of(episode)
    contradictions = []
    bodies = {
        path: body for path, body in contradictory_requests(builder).items() if episode.settings.asks(f"POST {path}")
    }
    for path, body in bodies.items():
        ask(episode, path, body)
        for what, place, change in CONTRADICTIONS:
            wrong = deepcopy(body)
            if change(wrong["state"]):
                contradictions.append(Contradiction(f"{what} ({path})", place, episode.ask("POST", path, wrong)))
    return tuple(contradictions)


def contradictory_requests(builder: StateBuilder) -> dict[str, Mapping[str, Any]]:
    """A request for each decision on a state: two domains, of which the first has a job that runs, and one waits."""
    profile = builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    domains = [builder.domain(builder.pool(kind, 2, switches=1)) for _ in range(2)]
    names = [domain["id"] for domain in domains]
    state = queued(builder.state([kind], domains, builder.mesh(names)), [builder.spec(profile, names[0], (4, 4, 8))])
    idle = deepcopy(state)
    placement = alone(names[0], domains[0]["pools"][0], 4)
    take(domains[0]["pools"][0], placement["shares"][0])
    spec = builder.spec(profile, names[0], (4, 4, 4))
    state["running"] = [{"spec": spec, "placement": placement, "phase": "running", "done": 10.0, "rate": 4.0}]
    demand: documents.DemandForecast = {
        "domain": names[0],
        "profile": profile,
        "expected": 2.0,
        "high": 3.0,
        "movable": 1.0,
        "interruptible": 0.0,
    }
    placements: documents.PlacementRequest = {"state": state}
    fronts: documents.ParetoRequest = {"state": idle, "slot": 3600.0, "solutions": 3}
    plans: documents.AllocationPlanRequest = {"state": state, "horizon": 3600.0, "forecast": [demand]}
    return {PLACEMENTS: placements, FRONTS: fronts, PLANS: plans}


def _more_free(state: "documents.SchedulingState") -> bool:
    """One device more is free than there are, of the pool and so of one of its nodes."""
    pool = state["domains"][0]["pools"][0]
    pool["free"] = pool["devices"] + 1
    return True


def _more_free_on_a_node(state: "documents.SchedulingState") -> bool:
    state["domains"][0]["pools"][0]["nodes"][1]["free"] = DEVICES + 1
    return True


def _more_held(state: "documents.SchedulingState") -> bool:
    """Running jobs hold one device more than the pool has; none of them is free."""
    for job in state["running"]:
        pool = state["domains"][0]["pools"][0]
        share = job["placement"]["shares"][0]
        share["devices"] = pool["devices"] + 1
        share["nodes"] = [{"node": node["id"], "devices": node["devices"]} for node in pool["nodes"]]
        pool["free"] = 0
        for node in pool["nodes"]:
            node["free"] = 0
        job["spec"]["devices"] = {"minimum": 1, "maximum": pool["devices"] + 1}
    return bool(state["running"])


def _least_above_most(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 8, "maximum": 4}
    return True


def _asks_for_less(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 4, "maximum": 8, "requested": 3}
    return True


def _asks_for_more(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 4, "maximum": 8, "requested": 9}
    return True


JOB_POINTER = "/state/waiting/0/spec/devices"
CONTRADICTIONS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("more devices of a pool are free than work", POOL_POINTER, _more_free),
    ("more devices of a node are free than work", POOL_POINTER, _more_free_on_a_node),
    ("running jobs hold more devices than work", POOL_POINTER, _more_held),
    ("the least that a job works with is above the most", JOB_POINTER, _least_above_most),
    ("a job asks for fewer devices than the least", JOB_POINTER, _asks_for_less),
    ("a job asks for more devices than the most", JOB_POINTER, _asks_for_more),
)
"""What contradicts itself, the place that a pointer has to lie in, and how a state is made so, if it can be."""


def judge_contradictions(observation: tuple[Contradiction, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for entry in observation:
        yield answered("SCH-020", entry.answer, 422, entry.what, problem="invalid-body")
        pointers = [error.get("pointer") for error in entry.answer.items("errors") if isinstance(error, dict)]
        inside = any(isinstance(pointer, str) and f"{pointer}/".startswith(f"{entry.place}/") for pointer in pointers)
        yield holds("SCH-020", inside, f"{entry.what}: a place in {entry.place}", pointers, entry.answer)


CONTRADICTIONS_CHECK = Check(
    "sch_contradictions",
    ("SCH-020",),
    observe_contradictions,
    judge_contradictions,
    summary="States whose numbers contradict each other are refused (SCH-020).",
)


NODE_WINDOWS_QUICK, NODE_WINDOWS_FULL = 3, 20
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


def observe_nodes(episode: Episode) -> tuple[NodeGrant, ...]:
    """Ask for each wish a few times, with nodes, switches and sizes drawn anew."""
    builder = StateBuilder.of(episode)
    windows = NODE_WINDOWS_FULL if episode.settings.full else NODE_WINDOWS_QUICK
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
    exchange = ask(episode, PLACEMENTS, {"state": _node_state(builder, wish)})
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


def _node_state(builder: StateBuilder, wish: Wish) -> "documents.SchedulingState":
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


def judge_nodes(observation: tuple[NodeGrant, ...]) -> Iterable[Finding]:
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


NODES_CHECK = Check(
    "sch_nodes",
    ("SCH-021",),
    observe_nodes,
    judge_nodes,
    summary="Jobs lie on nodes as they ask for, and are not cut where a node has room for them (SCH-021).",
)


LEFT_ALONE = 1_800
"""Seconds after a decision interrupted a job before which none does again (SCH-022)."""
INTERRUPTS = ("stop", "migrate", "resize")
INTERRUPTION_WINDOWS_QUICK, INTERRUPTION_WINDOWS_FULL = 2, 12
DAYS = 100 * 86_400.0
"""How long jobs have before them that hold devices: hundred days on the reference device."""
SENDS = {"step_time": 2.0, "exchange": GIGABYTE, "boundary": GIGABYTE, "checkpoint_size": 10 * GIGABYTE}


@dataclass(frozen=True)
class RunningJob:
    """A job that runs.

    Attributes:
        devices: Fewest, those that it holds, and most.
        interrupted: Seconds since a decision interrupted it last; none did where it is None.
        priority: Its own.
        domain: Number of the domain where it is.
    """

    devices: tuple[int, int, int]
    interrupted: int | None = None
    priority: int = 0
    domain: int = 0


@dataclass(frozen=True)
class InterruptionState:
    """A state: devices of two domains, the second of another speed; who runs, and what is asked for.

    Attributes:
        what: In words.
        speeds: Of both domains' devices; the reference device's is one.
        devices: Of both.
        running: Who runs.
        needs: Devices that a job of ten minutes waits for, if there is one.
        priority: That job's.
        freeable: Whether it has to be made room for.
    """

    what: str
    running: tuple[RunningJob, ...]
    devices: tuple[int, int] = (2 * PER_NODE, 2 * PER_NODE)
    speeds: tuple[float, float] = (1.0, 1.0)
    needs: int = 0
    priority: int = 0
    freeable: bool = False


@dataclass(frozen=True)
class Interruption:
    """What became of those who ran, in their order: verb and devices that each goes on with.

    Attributes:
        scenario: Where.
        verbs: Verb, or None of one that is left alone.
        left: Devices that each goes on with.
        starts: Whether the job that waits starts at once.
        faults: What the state cannot carry.
        answer: The service's.
    """

    scenario: InterruptionState
    verbs: tuple[str | None, ...]
    left: tuple[int, ...]
    starts: bool
    faults: tuple[str, ...]
    answer: Answer


def observe_interruptions(episode: Episode) -> tuple[Interruption, ...]:
    """Ask what becomes of each scene, a few times with everything drawn anew."""
    builder = StateBuilder.of(episode)
    windows = INTERRUPTION_WINDOWS_FULL if episode.settings.full else INTERRUPTION_WINDOWS_QUICK
    return tuple(
        _interrupted(episode, builder, scenario) for _ in range(windows) for scenario in tempting_states(builder)
    )


def tempting_states(builder: StateBuilder) -> Iterator[InterruptionState]:
    """Temptations, long after the last interruption and shortly after it; then jobs of higher priority."""
    chance = builder.chance
    soon, long_ago = chance.choice((60, 600, LEFT_ALONE - 1)), chance.choice((86_400, None))
    full = (2 * PER_NODE, PER_NODE)
    for interrupted in (long_ago, soon):
        elastic = RunningJob((4, 16, 16), interrupted)
        other = RunningJob((PER_NODE, PER_NODE, PER_NODE), domain=1)
        yield InterruptionState("a short job waits, and a long one can do with fewer", (elastic, other), full, needs=4)
        yield InterruptionState("devices are free that a long job can use", (RunningJob((4, 4, 16), interrupted),))
        slow = RunningJob((PER_NODE, PER_NODE, PER_NODE), interrupted)
        yield InterruptionState("devices four times as fast are free", (slow,), (PER_NODE, PER_NODE), (1.0, 4.0))
        rigid = RunningJob((PER_NODE, PER_NODE, PER_NODE), interrupted)
        taken = RunningJob((PER_NODE, PER_NODE, PER_NODE), priority=1_000, domain=1)
        urgent = chance.choice((1, 100, 1_000))
        both = (rigid, RunningJob((PER_NODE, PER_NODE, PER_NODE)), taken)
        words = "rigid jobs of lower priority hold all that would do"
        yield InterruptionState(words, both, full, needs=PER_NODE, priority=urgent, freeable=True)
        words = "a job of lower priority can do with fewer"
        yield InterruptionState(words, (elastic, taken), full, needs=4, priority=urgent,
                    freeable=interrupted != soon)  # fmt: skip


def _interrupted(episode: Episode, builder: StateBuilder, scenario: InterruptionState) -> Interruption:
    state, names = _interruption_state(builder, scenario)
    exchange = ask(episode, PLACEMENTS, {"state": state})
    decisions = exchange.decision["decisions"]
    decision_of = {item["job"]: item for item in decisions}
    faults = tuple(Account(state).faults(decisions))
    verbs, left = [], []
    for name, running_job in zip(names, scenario.running, strict=True):
        decision = decision_of.get(name)
        verb = decision["verb"] if decision and decision["verb"] in INTERRUPTS else None
        stays = not faults and decision and verb == "resize"
        shares = decision["placement"]["shares"] if decision and stays else []
        verbs.append(verb)
        left.append(sum(share["devices"] for share in shares) if verb else running_job.devices[1])
    starts = any(decision_of[entry["spec"]["id"]]["verb"] == "start" for entry in state["waiting"]
                 if entry["spec"]["id"] in decision_of)  # fmt: skip
    return Interruption(scenario, tuple(verbs), tuple(left), starts, faults, exchange.answer)


def _interruption_state(
    builder: StateBuilder, scenario: InterruptionState
) -> "tuple[documents.SchedulingState, list[str]]":
    """A state, and names of those who run in it."""
    profile = builder.name()
    kinds = [builder.accelerator([profile], speed=speed) for speed in scenario.speeds]
    pools = [builder.pool(kind, count // PER_NODE) for kind, count in zip(kinds, scenario.devices, strict=True)]
    domains = [builder.domain(pool) for pool in pools]
    names = [domain["id"] for domain in domains]
    running: list[documents.RunningJob] = []
    for running_job in scenario.running:
        least, now, most = running_job.devices
        placement = alone(names[running_job.domain], pools[running_job.domain], now)
        take(pools[running_job.domain], placement["shares"][0])
        spec = _tempted_spec(builder, profile, names, (least, now, most), DAYS / now, running_job.priority)
        job: documents.RunningJob = {
            "spec": spec,
            "placement": placement,
            "phase": "running",
            "used": 1.0,
            "done": DAYS / 10,
            "rate": now * scenario.speeds[running_job.domain],
            "checkpoint_domain": names[running_job.domain],
        }
        if running_job.interrupted is not None:
            job["interrupted_at"] = instant(builder.now - running_job.interrupted)
        running.append(job)
    state: documents.SchedulingState = {**builder.state(kinds, domains, builder.mesh(names)), "running": running}
    if scenario.needs:
        waits = _tempted_spec(builder, profile, names, (scenario.needs,) * 3, 600.0, scenario.priority)
        state = queued(state, [waits])
    return state, [job["spec"]["id"] for job in running]


def _tempted_spec(
    builder: StateBuilder,
    profile: str,
    names: list[str],
    devices: tuple[int, int, int],
    lasts: float,
    priority: int,
) -> "documents.JobSpec":
    """A job whose data are everywhere, submitted two hours ago."""
    members: dict[str, Any] = {
        "duration": {"expected": lasts, "low": lasts / 2, "high": 2 * lasts, "coverage": 0.8},
        "submitted_at": instant(builder.now - 7_200),
        "data": [{"id": builder.name(), "size": GIGABYTE, "domains": list(names)}],
        "communication": SENDS,
        "priority": priority,
    }
    return builder.spec(profile, names[0], devices, **members)


def judge_interruptions(observation: tuple[Interruption, ...]) -> Iterable[Finding]:
    """Claims about who is interrupted, and for how many devices."""
    for entry in observation:
        scenario = entry.scenario
        said = ", ".join(f"{verb or 'left alone'} ({left})" for verb, left in zip(entry.verbs, entry.left, strict=True))
        for running_job, verb in zip(scenario.running, entry.verbs, strict=True):
            if running_job.interrupted is not None and running_job.interrupted < LEFT_ALONE:
                alone_ = f"{scenario.what}: nobody is interrupted {running_job.interrupted} s after the last time"
                yield holds("SCH-022", verb is None, alone_, said, entry.answer)
        if scenario.priority:
            carried = f"{scenario.what}: what the state can carry"
            yield holds("SCH-023", not entry.faults, carried, list(entry.faults), entry.answer)
        if scenario.freeable and not entry.faults:
            gave = [
                running_job.devices[1] - left for running_job, left in zip(scenario.running, entry.left, strict=True)
            ]
            lower = sum(
                given
                for running_job, given in zip(scenario.running, gave, strict=True)
                if running_job.priority < scenario.priority
            )
            freed = f"{scenario.what}: {scenario.needs} devices are given up by jobs of lower priority"
            yield holds("SCH-023", entry.starts or lower >= scenario.needs, freed, said, entry.answer)
            yield holds("SCH-023", sum(gave) <= scenario.needs, f"{scenario.what}: and no more", said, entry.answer)


INTERRUPTIONS_CHECK = Check(
    "sch_interruptions",
    ("SCH-022", "SCH-023"),
    observe_interruptions,
    judge_interruptions,
    summary="Running jobs are left alone after an interruption (SCH-022), and make room for higher priority (SCH-023).",
)


OVERTAKEN = "SCH-024"
OVERTAKING_WINDOWS_QUICK, OVERTAKING_WINDOWS_FULL = 2, 12
WEEK, LENGTHS = 7 * 86_400.0, 10.0
"""A bound lies no later than a week after the job was submitted, or so many times its length."""
SLACK = 1.0
"""Seconds by which a bound may move from one answer to the next."""
AFTER = 60.0
"""Seconds after the bound at which newcomers come."""
HOUR = 3_600.0


@dataclass(frozen=True)
class WaitingJob:
    """How a job was told to wait, and what became of newcomers.

    Attributes:
        submitted: When it was, Unix time.
        length: Seconds that it takes.
        bounds: Until when it may be overtaken, in the answers to two states an hour apart; None where none is said.
        answers: These answers.
        after: Behind the bound: what was free, who started (the job, the newcomer), what is wrong, and the answer.
    """

    submitted: float
    length: float
    bounds: tuple[float | None, float | None]
    answers: tuple[Answer, Answer]
    after: tuple[tuple[str, bool, bool, tuple[str, ...], Answer], ...]


def observe_overtaking(episode: Episode) -> tuple[WaitingJob, ...]:
    """Have large jobs wait, and newcomers come as soon as these may not overtake them any more."""
    builder = StateBuilder.of(episode)
    return tuple(
        _waited(episode, builder)
        for _ in range(OVERTAKING_WINDOWS_FULL if episode.settings.full else OVERTAKING_WINDOWS_QUICK)
    )


def _waited(episode: Episode, builder: StateBuilder) -> WaitingJob:
    chance, profile = builder.chance, builder.name()
    kind, length = builder.accelerator([profile], speed=1.0), HOUR * chance.uniform(2.0, 20.0)
    domain = builder.domain(builder.pool(kind, 2))
    submitted, begun = builder.now - chance.uniform(600.0, HOUR), builder.now
    large = _overtaken_spec(builder, profile, domain["id"], 2 * PER_NODE, length, submitted)
    runs = _overtaken_spec(builder, profile, domain["id"], PER_NODE, 40 * HOUR, submitted - HOUR)

    def state(now: float, *, busy: bool, newcomer: bool) -> "documents.SchedulingState":
        """The large job waits, half of the devices may be held, and a job for the other half may have come."""
        builder.now = now
        pool: documents.ComputePool = {**domain["pools"][0]}
        base = builder.state([kind], [{**domain, "pools": [pool]}], [])
        if busy:
            placement = alone(domain["id"], pool, PER_NODE)
            take(pool, placement["shares"][0])
            done = max(runs["duration"]["expected"] * PER_NODE - HOUR * PER_NODE, 0.0)
            base["running"] = [{"spec": runs, "placement": placement, "phase": "running", "used": 1.0, "done": done,
                                "rate": float(PER_NODE), "interrupted_at": instant(now - 60.0)}]  # fmt: skip
        half = _overtaken_spec(builder, profile, domain["id"], PER_NODE, length, now - AFTER / 2)
        return queued(base, [large, half] if newcomer else [large])

    first, second = (
        ask(episode, PLACEMENTS, {"state": state(begun + later, busy=True, newcomer=False), "explain": True})
        for later in (0.0, HOUR)
    )
    bounds = _bound(first, large), _bound(second, large)
    after = []
    if bounds[0] is not None and bounds[0] - submitted <= max(WEEK, LENGTHS * length):
        now = max(bounds[0] + AFTER, begun)
        for what, busy in (("all devices are free", False), ("half of the devices are free", True)):
            exchange = ask(episode, PLACEMENTS, {"state": state(now, busy=busy, newcomer=True)})
            decisions = exchange.decision["decisions"]
            faults = tuple(Account(exchange.body["state"]).faults(decisions))
            started = {decision["job"] for decision in decisions if decision["verb"] == "start"}
            after.append((what, large["id"] in started, bool(started - {large["id"]}), faults, exchange.answer))
    return WaitingJob(submitted, length, bounds, (first.answer, second.answer), tuple(after))


def _overtaken_spec(
    builder: StateBuilder, profile: str, home: str, devices: int, length: float, submitted: float
) -> "documents.JobSpec":
    members: dict[str, Any] = {
        "duration": {"expected": length, "low": length / 2, "high": 2 * length, "coverage": 0.8},
        "submitted_at": instant(submitted),
        "data": [{"id": builder.name(), "size": GIGABYTE, "domains": [home]}],
    }
    return builder.spec(profile, home, (devices,) * 3, **members)


def _bound(exchange: DecisionExchange, spec: "documents.JobSpec") -> float | None:
    """Until when a job may be overtaken, as its explanation says."""
    mine: Mapping[str, Any] = next(
        (decision for decision in exchange.decision["decisions"] if decision["job"] == spec["id"]), {}
    )
    return seconds_of(mine.get("explanation", {}).get("overtaken_until"))


def judge_overtaking(observation: tuple[WaitingJob, ...]) -> Iterable[Finding]:
    """Claims about bounds, and whether they are kept."""
    for entry in observation:
        first, second = entry.bounds
        latest = max(WEEK, LENGTHS * entry.length)
        expected = f"a large job waits: until when it may be overtaken, within {latest:.0f} s after it was submitted"
        bound = "nothing" if first is None else f"{first - entry.submitted:.0f} s"
        fine = first is not None and first - entry.submitted <= latest
        yield holds(OVERTAKEN, fine, expected, bound, entry.answers[0])
        if first is None or not fine:
            continue
        stays = second is not None and abs(second - first) <= SLACK
        moved = "nothing" if second is None else f"{second - first:.0f} s later"
        yield holds(OVERTAKEN, stays, "an hour later: the same instant", moved, entry.answers[1])
        for what, itself, newcomer, faults, answer in entry.after:
            yield holds(OVERTAKEN, not faults, f"{what}: what the state can carry", list(faults), answer)
            claim = f"{what}, after that instant: no newcomer starts that keeps it waiting"
            yield holds(OVERTAKEN, itself or not newcomer, claim, "one does" if newcomer else "none does", answer)
            if what.startswith("all"):
                yield holds(OVERTAKEN, itself, f"{what}, after that instant: it starts", "it does not", answer)


OVERTAKING_CHECK = Check(
    "sch_overtaking",
    (OVERTAKEN,),
    observe_overtaking,
    judge_overtaking,
    summary="A job that waits is not overtaken without end: the service says until when, and keeps to it (SCH-024).",
)
