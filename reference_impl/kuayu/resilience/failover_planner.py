"""The failover planner: how jobs with broken replicas go on, on which nodes, and why.

1. A job goes on with what is whole, has replicas replaced from a whole one, is restored from a copy, or waits.
2. Each option costs what it is expected to cost in seconds of the whole job's work: a second in which a part of the
   replicas makes no step costs that part, and work that is done again costs what it took.
3. Jobs of a higher priority choose before others. Of one priority, those that stand still first get as many nodes as
   they need to make any step; then those go first that gain most for each node.
4. Who chooses later knows what those before take of free nodes, stores and links; at last each is judged beside all.
5. Nothing is restored before all unreachable nodes are known to have stopped (fencing).
6. Links carry what a cautious quantile of their forecast says (``kuayu.resilience.network``).
7. Bytes, seconds and bytes a second; instants are seconds after the plan is asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kuayu.resilience.network import BITS_PER_BYTE, HORIZONS, Link, forecast
from kuayu.resilience.recovery_validation import MAX_FIGURE, MIN_FIGURE, bounded, check_failover, check_options

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True, slots=True)
class BrokenJob:
    """A job with at least one broken replica.

    Attributes:
        name: Of the job.
        place: In the request, counted from zero.
        priority: Higher goes first.
        domain: Where it runs or ran last.
        replicas: How many it has when it is whole.
        least: With how few it can go on.
        nodes_each: Nodes of a replica.
        state_bytes: Of a replica's state, and of a checkpoint.
        node_rate: Bytes a second at which one replica gives its state to another.
        start_s: Until a replica that has its state can make a step.
        regroup_s: In which no step is made when replicas leave or join.
        copies: Domain and age in seconds of each copy.
        whole: Fit nodes of whole replicas, by number of replica.
        broken: Fit nodes of broken replicas that have nodes, by number of replica; maybe none are fit.
        unheard: How many of its nodes nothing is heard of.
        fenced_s: When all unreachable nodes are known to have stopped; None where that is not known.
    """

    name: str
    place: int
    priority: int
    domain: str
    replicas: int
    least: int
    nodes_each: int
    state_bytes: float
    node_rate: float
    start_s: float
    regroup_s: float
    copies: tuple[tuple[str, float], ...]
    whole: Mapping[int, Sequence[str]]
    broken: Mapping[int, Sequence[str]]
    unheard: int
    fenced_s: float | None

    @property
    def lacking(self) -> int:
        """Replicas that are broken."""
        return self.replicas - len(self.whole)

    @property
    def stands(self) -> bool:
        """Whether too few replicas are whole to make a step."""
        return len(self.whole) < self.least

    @property
    def left_over(self) -> int:
        """Fit nodes of broken replicas."""
        return sum(len(nodes) for nodes in self.broken.values())

    @property
    def fit(self) -> int:
        """Fit nodes that it holds."""
        return self.left_over + len(self.whole) * self.nodes_each


def broken_jobs(request: "documents.FailoverRequest") -> list[BrokenJob]:
    """Jobs of a checked request that have a broken replica, in its order."""
    jobs = {job["id"]: place for place, job in enumerate(request["jobs"])}
    nodes_by_replica: list[dict[int, list[documents.StandingNode]]] = [{} for _ in jobs]
    for node in request["nodes"]:
        place = jobs.get(node.get("job", ""))
        if place is not None:
            nodes_by_replica[place].setdefault(node["replica"], []).append(node)
    broken = []
    for place, job in enumerate(request["jobs"]):
        state = _job_state(job, place, nodes_by_replica[place])
        if state.lacking:
            broken.append(state)
    return broken


def free_nodes(request: "documents.FailoverRequest") -> dict[str, list[str]]:
    """Nodes that are fit and that no job holds, by domain."""
    by_domain: dict[str, list[str]] = {}
    for node in request["nodes"]:
        if node["condition"] == "fit" and node.get("job") is None:
            by_domain.setdefault(node["domain"], []).append(node["id"])
    return by_domain


def _job_state(
    job: "documents.ProtectedJob", place: int, nodes_by_replica: "Mapping[int, Sequence[documents.StandingNode]]"
) -> BrokenJob:
    fit = {
        number: [node["id"] for node in nodes if node["condition"] == "fit"]
        for number, nodes in nodes_by_replica.items()
    }
    whole = {number: nodes for number, nodes in fit.items() if len(nodes) == job["nodes_each"]}
    unheard = [
        node for nodes in nodes_by_replica.values() for node in nodes if node["condition"] not in {"fit", "failed"}
    ]
    fences = [node.get("fenced_in") for node in unheard]
    known = [fence for fence in fences if fence is not None]
    return BrokenJob(
        name=job["id"],
        place=place,
        priority=job["priority"],
        domain=job["domain"],
        replicas=int(job["replicas"]),  # JSON also writes an integer as 3.0
        least=int(job["least_replicas"]),
        nodes_each=int(job["nodes_each"]),
        state_bytes=bounded(job["state_size"]),
        node_rate=bounded(job["node_bandwidth"] / BITS_PER_BYTE),
        start_s=min(job["start_time"], MAX_FIGURE),
        regroup_s=min(job["regroup_time"], MAX_FIGURE),
        copies=tuple((copy["domain"], min(copy["age"], MAX_FIGURE)) for copy in job["copies"]),
        whole=whole,
        broken={number: nodes for number, nodes in fit.items() if number not in whole},
        unheard=len(unheard),
        fenced_s=max(known, default=0.0) if len(known) == len(fences) else None,
    )


Path = tuple[str, str]
"""Domain of a store and domain that reads; the store alone where both are the same."""

MAX_PER_LINK = 256
"""Measurements of a link that are looked at; a recovery is over long before older ones matter."""

MAX_MEASUREMENTS = 1_000_000
"""Most of them over all links."""

QUANTILE = 2
"""Place of the quantile of links that is reckoned with, a quarter: a recovery that is late costs more than one that is
early gains."""


@dataclass(frozen=True, slots=True)
class UpLink:
    """A link that is up.

    Attributes:
        latency_s: Seconds that it takes beside the bytes.
        rates: Bytes a second that it carries by a cautious forecast, over each horizon.
    """

    latency_s: float
    rates: tuple[float, ...]


@dataclass(slots=True)
class Load:
    """Transfers that are planned over one store or link.

    Attributes:
        count: How many.
        bytes: Of all.
    """

    count: int = 0
    bytes: float = 0.0

    def beside(self, size: float) -> float:
        """Most bytes of theirs that go while a transfer of so many goes, where all share evenly."""
        return min(self.bytes, self.count * size)


@dataclass(slots=True)
class Paths:
    """Stores and links, and what is planned over them.

    Attributes:
        stores: Bytes a second of each.
        links: By source, then by target; only those that are up.
        interval_s: Seconds between measurements.
        read: Load of each store.
        carried: Load of each link.
    """

    stores: Mapping[str, float]
    links: Mapping[str, Mapping[str, UpLink]]
    interval_s: float
    read: defaultdict[str, Load] = field(default_factory=lambda: defaultdict(Load))
    carried: defaultdict[Path, Load] = field(default_factory=lambda: defaultdict(Load))

    def seconds(self, road: Path, size: float) -> tuple[float, float]:
        """How long so many bytes take beside what is planned, and how much longer that takes on the whole for them."""
        source, target = road
        store, beside = self.stores[source], self.read[source].beside(size)
        own_s, others_s = (size + beside) / store, beside / store
        if source == target:
            return own_s, others_s
        link, beside = self.links[source][target], self.carried[road].beside(size)
        rate = self._rate(link, size)
        return link.latency_s + max(own_s, (size + beside) / rate), max(others_s, beside / rate)

    def plan(self, road: Path, size: float, sign: int = 1) -> None:
        """Reckon with a transfer, or no more with it where the sign is negative."""
        source, target = road
        for load in (self.read[source], *([self.carried[road]] if source != target else [])):
            load.count += sign
            load.bytes = load.bytes + sign * size if load.count else 0.0

    def _rate(self, link: UpLink, size: float) -> float:
        """Mean over the shortest horizon in which so many bytes are through."""
        for rate, horizon in zip(link.rates, HORIZONS, strict=True):
            if size / rate <= horizon * self.interval_s:
                return rate
        return link.rates[-1]


def paths_of(request: "documents.FailoverRequest", sources: set[str]) -> Paths:
    """What a checked request says of stores, and of links that leave these domains."""
    leaving = [link for link in request["links"] if link["source"] in sources and link.get("up", True)]
    return Paths(
        {store["domain"]: bounded(store["bandwidth"] / BITS_PER_BYTE) for store in request["stores"]},
        _links(leaving, request["interval"]),
        min(request["interval"], MAX_FIGURE),
    )


def _links(leaving: "Sequence[documents.MeasuredLink]", interval_s: float) -> Mapping[str, Mapping[str, UpLink]]:
    by_source: dict[str, dict[str, UpLink]] = defaultdict(dict)
    if not leaving:
        return by_source
    newest = min(MAX_PER_LINK, max(1, MAX_MEASUREMENTS // len(leaving)))
    measured = tuple(
        Link(link["source"], link["target"], _measured(link["bandwidths"][-newest:]), link["latency"])
        for link in leaving
    )
    ahead = forecast(measured, bounded(interval_s))
    rates = np.clip(ahead.rates[:, :, QUANTILE], MIN_FIGURE, MAX_FIGURE).tolist()
    for link, rate in zip(leaving, rates, strict=True):
        by_source[link["source"]][link["target"]] = UpLink(min(link["latency"], MAX_FIGURE), tuple(rate))
    return by_source


def _measured(bandwidths: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Bytes a second; out is out, and what carries anything at all carries a little."""
    rates = np.array(bandwidths, dtype=np.float64) / BITS_PER_BYTE
    return np.where(rates > 0.0, np.clip(rates, MIN_FIGURE, MAX_FIGURE), 0.0)


GO_ON, REPLACE, RESTORE, WAIT = "go_on", "replace", "restore", "wait"

NODES_BACK_S = 1800.0
"""Seconds until nodes are there that are not there now. Nothing in a request tells; that is a guess."""

WHOLE_S, PAST_S = 300.0, 600.0
"""Seconds in which a job is to be whole, and to be past what it had done (RES-003, RES-004)."""

_WORST_S = 2 * NODES_BACK_S + WHOLE_S + PAST_S
"""What it costs to stand still: nodes may come back one by one, so for longer than until the first ones do."""

SPARE_S = 2.0
"""Seconds of a job's work that a spare node is worth to whom the next fault hits: a guess, so that of two ways that are
nearly as good the one that takes fewer is taken."""


@dataclass(frozen=True, slots=True)
class RecoveryOption:
    """A way to go on.

    Attributes:
        strategy: As the standard names it.
        fewest: Replicas that have to get nodes, else it is no way.
        most: Replicas that get nodes where nobody else takes them.
        domain: Where from.
        own: Fit nodes of the job's own that can be used for that.
        road: What the copy is read from and travels over; None where none is.
        age_s: Of the copy.
        cost_s: Expected, in seconds of the whole job's work.
        resumes_s: When it is expected to make a step that it had not made before; None where nobody knows.
    """

    strategy: str
    fewest: int = 0
    most: int = 0
    domain: str = ""
    own: int = 0
    road: Path | None = None
    age_s: float = 0.0
    cost_s: float = 0.0
    resumes_s: float | None = None

    def spares(self, job: BrokenJob, count: int) -> int:
        """Free nodes that it takes to give so many replicas theirs."""
        return max(0, count * job.nodes_each - self.own)


def recovery_options(job: BrokenJob, free: Mapping[str, int], over: Paths) -> Iterator[RecoveryOption]:
    """All ways of a job, the least daring first.

    Args:
        job: That has broken replicas.
        free: Free nodes by domain, without its own.
        over: Stores and links, with what is planned over them.
    """
    if job.stands:
        yield RecoveryOption(WAIT, cost_s=_WORST_S + _given_up_s(job))
    else:
        yield _keep_whole_replicas(job, RecoveryOption(GO_ON), 0)
    if job.whole:
        most = min(job.lacking, (job.left_over + free.get(job.domain, 0)) // job.nodes_each)
        fewest = max(1, job.least - len(job.whole))
        if most >= fewest:
            yield _keep_whole_replicas(job, RecoveryOption(REPLACE, fewest, most, job.domain, job.left_over), most)
    if job.fenced_s is not None:
        fit = job.fit
        for source, age_s in job.copies:
            for target in (source, *over.links.get(source, ())):
                own = fit if target == job.domain else 0
                most = min(job.replicas, (own + free.get(target, 0)) // job.nodes_each)
                if most >= job.least:
                    yield _restored(job, (source, target), age_s, own, most, over)


def best_option(job: BrokenJob, free: Mapping[str, int], over: Paths) -> RecoveryOption:
    """The way that is expected to cost least; of equal ones the first."""
    return min(recovery_options(job, free, over), key=lambda option: option.cost_s)


def evaluate(job: BrokenJob, option: RecoveryOption, count: int, over: Paths) -> RecoveryOption:
    """A way with what it costs and when the job resumes, where so many replicas get nodes."""
    if option.strategy == WAIT:
        return option
    if option.road is None:
        return _keep_whole_replicas(job, option, count)
    again = _restored(job, option.road, option.age_s, option.own, count, over)
    return replace(option, cost_s=again.cost_s, resumes_s=again.resumes_s)


def _given_up_s(job: BrokenJob) -> float:
    """Work that is lost even if the job waits: all since its youngest copy, where no replica can have lived on."""
    if job.whole or job.unheard:
        return 0.0
    return min((age_s for _, age_s in job.copies), default=0.0)


def _keep_whole_replicas(job: BrokenJob, option: RecoveryOption, count: int) -> RecoveryOption:
    """A way that keeps the state of whole replicas: no work is done twice."""
    whole = len(job.whole)
    stop_s = job.regroup_s if job.broken else 0.0
    ready_s = count * job.state_bytes / job.node_rate + job.start_s + job.regroup_s if count else 0.0
    if job.stands:
        past_s = lost_s = ready_s
    else:
        past_s = stop_s
        lost_s = stop_s + (job.regroup_s if count else 0.0) + ready_s * (job.replicas - whole) / job.replicas
    cost_s = _cost_s(job, lost_s, ready_s, past_s, whole + count) + SPARE_S * option.spares(job, count)
    return replace(option, cost_s=cost_s, resumes_s=past_s)


def _restored(job: BrokenJob, road: Path, age_s: float, own: int, count: int, over: Paths) -> RecoveryOption:
    """A way back to what a copy holds; what it slows down beside it counts too."""
    travel_s, others_s = over.seconds(road, job.state_bytes)
    ready_s = (job.fenced_s or 0.0) + travel_s + job.start_s
    past_s = ready_s + age_s * job.replicas / count
    cost_s = _cost_s(job, ready_s + age_s + others_s, ready_s, past_s, count)
    cost_s += SPARE_S * max(0, count * job.nodes_each - own)
    return RecoveryOption(RESTORE, job.least, count, road[1], own, road, age_s, cost_s, past_s)


def _cost_s(job: BrokenJob, lost_s: float, ready_s: float, past_s: float, running: int) -> float:
    """What is lost until it is whole, and what it costs to be late."""
    missing = (job.replicas - running) / job.replicas
    late_s = WHOLE_S if missing or ready_s > WHOLE_S else 0.0
    return lost_s + NODES_BACK_S * missing + late_s + (PAST_S if past_s > PAST_S else 0.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a job goes on.

    Attributes:
        option: In which way.
        count: How many replicas get nodes.
        alone: The way it would have taken without free nodes.
    """

    option: RecoveryOption
    count: int
    alone: RecoveryOption


def plan_recoveries(jobs: Sequence[BrokenJob], free: Mapping[str, int], over: Paths) -> list[Choice]:
    """Plan for all jobs; what is chosen is in the order of ``jobs``.

    Jobs of a higher priority choose before others. Of one priority, those that stand still first get as many nodes as
    they need to make any step, and only then does anybody get more; those go first that gain most for each node.
    """
    left = Counter(dict(free))
    numbers = {job.name: number for number, job in enumerate(jobs)}
    choices: dict[int, Choice] = {}
    ordered = sorted(jobs, key=lambda job: -job.priority)
    for _, group in groupby(ordered, key=lambda job: job.priority):
        peers = _by_gain(list(group), left, over)
        for job, alone in peers:
            if job.stands:
                choices[numbers[job.name]] = _take(job, alone, left, over)
        for job, alone in peers:
            number = numbers[job.name]
            choices[number] = _more(job, choices[number], left) if job.stands else _take(job, alone, left, over)
    return [_reevaluate(job, choices[number], over) for number, job in enumerate(jobs)]


def _by_gain(jobs: list[BrokenJob], left: Counter[str], over: Paths) -> list[tuple[BrokenJob, RecoveryOption]]:
    """Jobs with what they would do without free nodes, those first that save most with each that they get."""
    gains = []
    for job in jobs:
        alone, option = best_option(job, {}, over), best_option(job, left, over)
        gain = (alone.cost_s - option.cost_s) / max(1, option.spares(job, option.most))
        gains.append((gain, job, alone))
    gains.sort(key=lambda entry: -entry[0])
    return [(job, alone) for _, job, alone in gains]


def _take(job: BrokenJob, alone: RecoveryOption, left: Counter[str], over: Paths) -> Choice:
    """The best way with what is left: as few nodes as it needs where the job stands still, else as many as it uses."""
    option = best_option(job, left, over)
    count = option.fewest if job.stands else option.most
    left[option.domain] -= option.spares(job, count)
    if option.road is not None:
        over.plan(option.road, job.state_bytes)
    return Choice(option, count, alone)


def _more(job: BrokenJob, chosen: Choice, left: Counter[str]) -> Choice:
    """The same with as many replicas as there are nodes left for."""
    option = chosen.option
    if option.strategy == WAIT:
        return chosen
    spares = option.spares(job, chosen.count)
    count = min(option.most, (option.own + spares + left[option.domain]) // job.nodes_each)
    count = max(count, chosen.count)
    left[option.domain] -= option.spares(job, count) - spares
    return Choice(option, count, chosen.alone)


def _reevaluate(job: BrokenJob, chosen: Choice, over: Paths) -> Choice:
    """What is chosen, judged beside all that is planned."""
    option = chosen.option
    if option.road is None:
        return Choice(evaluate(job, option, chosen.count, over), chosen.count, chosen.alone)
    over.plan(option.road, job.state_bytes, -1)
    option = evaluate(job, option, chosen.count, over)
    over.plan(option.road or ("", ""), job.state_bytes)
    return Choice(option, chosen.count, chosen.alone)


def assign_nodes(job: BrokenJob, chosen: Choice, free: Mapping[str, list[str]]) -> list[tuple[int, list[str]]]:
    """Replicas that get nodes, and which; free nodes that are given are taken out of ``free``."""
    option, count, size = chosen.option, chosen.count, job.nodes_each
    if option.strategy == REPLACE:
        return _replacements(job, count, free.get(option.domain, []))
    if option.strategy != RESTORE:
        return []
    own = [node for nodes in (*job.whole.values(), *job.broken.values()) for node in nodes]
    nodes = (own if option.own else [])[: count * size]
    missing = count * size - len(nodes)
    if missing:
        nodes += free[option.domain][:missing]
        del free[option.domain][:missing]
    return [(number, nodes[number * size : (number + 1) * size]) for number in range(count)]


def _replacements(job: BrokenJob, count: int, free: list[str]) -> list[tuple[int, list[str]]]:
    """Those first that have most nodes left; what others of them have left goes before free nodes."""
    numbers = sorted(job.broken, key=lambda number: (-len(job.broken[number]), number))[:count]
    bare = (number for number in range(job.replicas) if number not in job.whole and number not in job.broken)
    numbers += [number for number, _ in zip(bare, range(count - len(numbers)), strict=False)]
    chosen = set(numbers)
    spare = [node for number, nodes in job.broken.items() if number not in chosen for node in nodes]
    replacements = []
    for number in sorted(numbers):
        nodes = list(job.broken.get(number, ()))
        for pool in (spare, free):
            missing = job.nodes_each - len(nodes)
            nodes += pool[:missing]
            del pool[:missing]
        replacements.append((number, nodes))
    return replacements


_WOULD = {
    GO_ON: "go on with what is whole",
    REPLACE: "replace what its own nodes are enough for",
    RESTORE: "be restored on its own nodes",
    WAIT: "wait",
}


def reasons(job: BrokenJob, chosen: Choice) -> Iterator[str]:
    """Of one job: what it has, what it does, and what it would do without free nodes."""
    option, spares = chosen.option, chosen.option.spares(job, chosen.count)
    yield f"Whole replicas: {len(job.whole)} of {job.replicas}; it goes on with no fewer than {job.least}."
    if option.strategy == GO_ON:
        yield f"There are not enough nodes for another replica ({job.nodes_each}) in {job.domain}."
    elif option.strategy == REPLACE:
        yield f"Replicas that get nodes in {job.domain}, and their state from a whole one: {chosen.count}."
    elif option.strategy == RESTORE:
        yield from _restored_words(job, chosen)
    else:
        yield _waiting_words(job)
    if spares:
        nodes = "one free node" if spares == 1 else f"{spares} free nodes"
        yield f"That takes {nodes}; without them it would {_WOULD[chosen.alone.strategy]}."


def _restored_words(job: BrokenJob, chosen: Choice) -> Iterator[str]:
    option = chosen.option
    source, target = option.road or ("", "")
    over = f"over the link from {source}" if source != target else "of the same domain"
    count = f"{chosen.count} of {job.replicas}"
    yield f"Replicas that begin anew in {target} from the copy {over}, {option.age_s:.3g} s old: {count}."
    if job.fenced_s:
        yield f"Not before {job.fenced_s:.3g} s: until then what is unreachable may still make steps."


def _waiting_words(job: BrokenJob) -> str:
    if job.fenced_s is None:
        return "Nobody knows when its unreachable nodes have stopped, so it is not restored, and too few are whole."
    if not job.copies:
        return f"There is no copy of it, and there are not enough nodes in {job.domain}."
    return "Nowhere that a copy can get to are there enough nodes."


METHOD: "documents.RecoveryMethod" = {"name": "kuayu-least-lost-work", "version": "1.0.0"}


def failover_plan(request: "documents.FailoverRequest") -> "documents.FailoverPlan":
    """Plan how jobs go on.

    Returns:
        A plan that follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Nodes, jobs, stores, links or a job's copies share a name.
        kuayu.refusals.UnknownName: A copy is in a domain without a store.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    check_failover(request)
    jobs = broken_jobs(request)
    sources = [source for job in jobs for source, _ in job.copies]
    check_options(request["links"], sources)
    free, over = free_nodes(request), paths_of(request, set(sources))
    choices = plan_recoveries(jobs, {domain: len(nodes) for domain, nodes in free.items()}, over)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "recoveries": [
            _recovery(job, chosen, assign_nodes(job, chosen, free)) for job, chosen in zip(jobs, choices, strict=True)
        ],
    }


def _recovery(job: BrokenJob, chosen: Choice, replicas: list[tuple[int, list[str]]]) -> "documents.JobRecovery":
    option = chosen.option
    recovery: documents.JobRecovery = {
        "job": job.name,
        "strategy": cast("documents.RecoveryStrategy", option.strategy),
        "replicas": [{"replica": number, "nodes": nodes} for number, nodes in replicas],
        "after": job.fenced_s if option.strategy == RESTORE and job.fenced_s is not None else 0.0,
    }
    if option.road is not None:
        recovery["source"] = option.road[0]
    if option.resumes_s is not None:
        recovery["resumes"] = option.resumes_s
    recovery["reasons"] = list(reasons(job, chosen))
    return recovery
