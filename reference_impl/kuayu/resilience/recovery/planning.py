"""Which job goes on in which way, one after the other, so that each knows what those before it take."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kuayu.resilience.recovery.options import REPLACE, RESTORE, WAIT, Option, best, judged
from kuayu.resilience.recovery.roads import Roads
from kuayu.resilience.recovery.scene import Broken


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a job goes on.

    Attributes:
        way: In which way.
        count: How many replicas get nodes.
        alone: The way it would have taken without free nodes.
    """

    way: Option
    count: int
    alone: Option


def plan(jobs: Sequence[Broken], free: Mapping[str, int], over: Roads) -> list[Chosen]:
    """Plan for all jobs; what is chosen is in the order of ``jobs``.

    Jobs of a higher priority choose before others. Of one priority, those that stand still first get as many nodes as
    they need to make any step, and only then does anybody get more; those go first that gain most for each node.
    """
    left = Counter(dict(free))
    numbers = {job.name: number for number, job in enumerate(jobs)}
    made: dict[int, Chosen] = {}
    ordered = sorted(jobs, key=lambda job: -job.priority)
    for _, group in groupby(ordered, key=lambda job: job.priority):
        peers = _by_gain(list(group), left, over)
        for job, alone in peers:
            if job.stands:
                made[numbers[job.name]] = _take(job, alone, left, over)
        for job, alone in peers:
            number = numbers[job.name]
            made[number] = _more(job, made[number], left) if job.stands else _take(job, alone, left, over)
    return [_again(job, made[number], over) for number, job in enumerate(jobs)]


def _by_gain(jobs: list[Broken], left: Counter[str], over: Roads) -> list[tuple[Broken, Option]]:
    """Jobs with what they would do without free nodes, those first that save most with each that they get."""
    found = []
    for job in jobs:
        alone, way = best(job, {}, over), best(job, left, over)
        gain = (alone.cost_s - way.cost_s) / max(1, way.spares(job, way.most))
        found.append((gain, job, alone))
    found.sort(key=lambda each: -each[0])
    return [(job, alone) for _, job, alone in found]


def _take(job: Broken, alone: Option, left: Counter[str], over: Roads) -> Chosen:
    """The best way with what is left: as few nodes as it needs where the job stands still, else as many as it uses."""
    way = best(job, left, over)
    count = way.fewest if job.stands else way.most
    left[way.domain] -= way.spares(job, count)
    if way.road is not None:
        over.plan(way.road, job.state_bytes)
    return Chosen(way, count, alone)


def _more(job: Broken, chosen: Chosen, left: Counter[str]) -> Chosen:
    """The same with as many replicas as there are nodes left for."""
    way = chosen.way
    if way.strategy == WAIT:
        return chosen
    held = way.spares(job, chosen.count)
    count = min(way.most, (way.own + held + left[way.domain]) // job.nodes_each)
    count = max(count, chosen.count)
    left[way.domain] -= way.spares(job, count) - held
    return Chosen(way, count, chosen.alone)


def _again(job: Broken, chosen: Chosen, over: Roads) -> Chosen:
    """What is chosen, judged beside all that is planned."""
    way = chosen.way
    if way.road is None:
        return Chosen(judged(job, way, chosen.count, over), chosen.count, chosen.alone)
    over.plan(way.road, job.state_bytes, -1)
    way = judged(job, way, chosen.count, over)
    over.plan(way.road or ("", ""), job.state_bytes)
    return Chosen(way, chosen.count, chosen.alone)


def placed(job: Broken, chosen: Chosen, free: Mapping[str, list[str]]) -> list[tuple[int, list[str]]]:
    """Replicas that get nodes, and which; free nodes that are given are taken out of ``free``."""
    way, count, each = chosen.way, chosen.count, job.nodes_each
    if way.strategy == REPLACE:
        return _replaced(job, count, free.get(way.domain, []))
    if way.strategy != RESTORE:
        return []
    own = [node for nodes in (*job.whole.values(), *job.broken.values()) for node in nodes]
    nodes = (own if way.own else [])[: count * each]
    missing = count * each - len(nodes)
    if missing:
        nodes += free[way.domain][:missing]
        del free[way.domain][:missing]
    return [(number, nodes[number * each : (number + 1) * each]) for number in range(count)]


def _replaced(job: Broken, count: int, free: list[str]) -> list[tuple[int, list[str]]]:
    """Those first that have most nodes left; what others of them have left goes before free nodes."""
    numbers = sorted(job.broken, key=lambda number: (-len(job.broken[number]), number))[:count]
    bare = (number for number in range(job.replicas) if number not in job.whole and number not in job.broken)
    numbers += [number for number, _ in zip(bare, range(count - len(numbers)), strict=False)]
    chosen = set(numbers)
    spare = [node for number, nodes in job.broken.items() if number not in chosen for node in nodes]
    made = []
    for number in sorted(numbers):
        nodes = list(job.broken.get(number, ()))
        for pool in (spare, free):
            missing = job.nodes_each - len(nodes)
            nodes += pool[:missing]
            del pool[:missing]
        made.append((number, nodes))
    return made
