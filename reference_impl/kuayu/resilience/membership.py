"""Nodes, domains, jobs and ranks that are watched: their names and rows, their clocks, and what arrives of them.

1. By how much the clocks of nodes are off: nothing is required of them, and yet they tell when a step was not done
   yet.

   Steps are compared to parts of a second, and the way of a beat takes as long: an aggregator gives it on in turns, a
   path holds it up. The quickest beat of a node shows its clock and its way together. Where those of nearly all nodes
   of a domain are alike, their clocks are set, and the differences are those of ways; where they are not, nobody's is
   believed.
2. Who is watched: nodes, domains, jobs and ranks by name, and the row of each in the detector.

   Names come and go at once. Rows follow all together at ``settle``, since rearranging a detector takes milliseconds.
3. Nodes that had beaten before the watch began, and have not been heard since.

   They count as heard when the watch began; but how long a silence is too long for them is not known before others of
   their domain have shown how often they beat.
4. Heartbeats as they arrive: columns of what HTTP brings, kept until the next look.
"""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu.resilience.detection import Beats, Origins, Population
from kuayu.resilience.detection.records import Flags, Instants, Places

if TYPE_CHECKING:
    from kuayu_schemas import documents

LEAK_SHARE = 0.01
"""Share by which a node's quickest beat follows a slower one: that was late, or the clock was set."""

ALIKE_S, ALIKE_SHARE = 0.2, 0.75
"""Seconds from the median of their domain within which clocks are alike, and share of nodes that are so where clocks
are set."""

COMPARE_BATCHES = 16
"""Batches of beats between two looks at whether clocks are set."""


class Clocks:
    """Clocks of the nodes of a members."""

    def __init__(self) -> None:
        self._quickest: Instants = np.zeros(0)
        self._offset: Instants = np.zeros(0)
        self._batches = 0

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._quickest = np.append(self._quickest, np.nan)[origin]
        self._offset = np.append(self._offset, np.nan)[origin]
        self._batches = 0

    def compare(self, beats: Beats, watched: Population) -> None:
        """Learn from beats."""
        least = np.full(len(self._quickest), np.nan)
        np.fmin.at(least, beats.node, beats.received - beats.sent)
        longer = np.nan_to_num(least - self._quickest, nan=0.0)
        self._quickest = np.fmin(least, self._quickest + LEAK_SHARE * longer)
        if self._batches % COMPARE_BATCHES == 0:
            self._offset = self._agreed(watched)
        self._batches += 1

    def ours(self, node: Places, sent: Instants) -> Instants:
        """When beats were sent, by our clock and as if they had taken the quickest way."""
        offset = self._offset[node]
        instants: Instants = sent + np.where(np.isnan(offset), self._quickest[node], offset)
        return instants

    def _agreed(self, watched: Population) -> Instants:
        """Offset of each clock: its own, or that of its domain where clocks are set."""
        offsets = self._quickest.copy()
        for domain in range(watched.domains):
            nodes = np.flatnonzero((watched.domain == domain) & ~np.isnan(offsets))
            if len(nodes):
                middle = float(np.median(offsets[nodes]))
                alike = nodes[np.abs(offsets[nodes] - middle) <= ALIKE_S]
                if len(alike) >= ALIKE_SHARE * len(nodes):
                    offsets[alike] = middle
        return offsets


Name = TypeVar("Name", bound=Hashable)

RankName = tuple[str, int]
"""Job and number of a rank."""


class Membership:
    """Names and rows.

    Attributes:
        node_row: Row of each node; one that has just come has none before the next ``settle``. So for the others.
        domain_row: Row of each domain.
        job_row: Row of each job.
        rank_row: Row of each rank.
        node_names: Names of the rows of nodes, as of the last ``settle``. So for the others.
        domain_names: Those of domains.
        job_names: Those of jobs.
        rank_names: Those of ranks.
        watched: What the detector watches, as of the last ``settle``.
        mentioned: When each rank was reported of last, s, shape (ranks,).
        clocks: Those of the nodes.
        step: The step that was reported then, shape (ranks,); −1 where there was none.
    """

    def __init__(self) -> None:
        self.node_row: dict[str, int] = {}
        self.domain_row: dict[str, int] = {}
        self.job_row: dict[str, int] = {}
        self.rank_row: dict[RankName, int] = {}
        self.node_names: list[str] = []
        self.domain_names: list[str] = []
        self.job_names: list[str] = []
        self.rank_names: list[RankName] = []
        self.watched = Population(np.zeros(0, np.intp), 0)
        self.mentioned: Instants = np.zeros(0)
        self.step: NDArray[np.int64] = np.zeros(0, np.int64)
        self.clocks = Clocks()
        self._domain_of: dict[str, str] = {}
        self._node_of: dict[RankName, str] = {}
        self._ranks_of: Counter[str] = Counter()
        self._ranks_on: dict[str, set[RankName]] = {}
        self._settled = True

    @property
    def domain_of(self) -> Mapping[str, str]:
        """Domain of each node."""
        return self._domain_of

    @property
    def node_of(self) -> Mapping[RankName, str]:
        """Node of each rank."""
        return self._node_of

    def add_node(self, node: str, domain: str) -> None:
        """A node is watched from now on; where it was of another domain, nothing that was known of it holds."""
        self.drop_node(node)
        self._domain_of[node] = domain
        self._settled = False

    def drop_node(self, node: str) -> None:
        """A node and its ranks are no longer watched."""
        if self._domain_of.pop(node, None) is None:
            return
        self.node_row.pop(node, None)
        for rank in self._ranks_on.pop(node, ()):
            self._forget(rank)
        self._settled = False

    def put_rank(self, rank: RankName, node: str) -> None:
        """A rank is watched from now on, or has moved to a node; either way the node is watched."""
        former = self._node_of.get(rank)
        if former is None:
            self._ranks_of[rank[0]] += 1
        else:
            self._ranks_on[former].discard(rank)
        self._node_of[rank] = node
        self._ranks_on.setdefault(node, set()).add(rank)
        self._settled = False

    def drop_rank(self, rank: RankName) -> None:
        """A rank is no longer watched."""
        node = self._node_of.get(rank)
        if node is not None:
            self._ranks_on[node].discard(rank)
            self._forget(rank)
            self._settled = False

    def settle(self) -> Origins | None:
        """Give rows to all; returns where each row was before, or None where nothing has come or gone."""
        if self._settled:
            return None
        self._settled = True
        nodes, domains = _origins(self._domain_of, self.node_row), dict.fromkeys(self._domain_of.values())
        ranks, jobs = _origins(self._node_of, self.rank_row), self._ranks_of
        origins = Origins(nodes, _origins(domains, self.domain_row), ranks, _origins(jobs, self.job_row))
        self.clocks.rearrange(nodes)
        self.mentioned, self.step = np.append(self.mentioned, np.nan)[ranks], np.append(self.step, -1)[ranks]
        self.node_names, self.domain_names = list(self._domain_of), list(domains)
        self.rank_names, self.job_names = list(self._node_of), list(jobs)
        self.node_row, self.domain_row = _rows(self.node_names), _rows(self.domain_names)
        self.rank_row, self.job_row = _rows(self.rank_names), _rows(self.job_names)
        self.watched = Population(
            domain=_places(map(self.domain_row.__getitem__, self._domain_of.values())),
            domains=len(domains),
            rank_job=_places(self.job_row[job] for job, _ in self._node_of),
            rank_node=_places(map(self.node_row.__getitem__, self._node_of.values())),
            jobs=len(jobs),
        )
        return origins

    def _forget(self, rank: RankName) -> None:
        """Take a rank away; a job without ranks is gone, and what is called so later is another one."""
        del self._node_of[rank]
        self.rank_row.pop(rank, None)
        job = rank[0]
        self._ranks_of[job] -= 1
        if not self._ranks_of[job]:
            del self._ranks_of[job]
            self.job_row.pop(job, None)


def _places(rows: Iterable[int]) -> Places:
    return np.fromiter(rows, np.intp)


def _rows(names: Iterable[Name]) -> dict[Name, int]:
    return {name: row for row, name in enumerate(names)}


def _origins(names: Iterable[Name], rows: Mapping[Name, int]) -> Places:
    return _places(rows.get(name, -1) for name in names)


KNOWN_SHARE, PATIENCE_S = 0.5, 15.0
"""Share of a domain's living nodes whose periods have to be known before the silence of others is judged, and seconds
after which it is judged by what is usual."""


@dataclass(frozen=True, slots=True)
class PendingNode:
    """A node that is judged from now on as if it had been heard.

    Attributes:
        node: Its name.
        domain: Its domain.
        last_beat: When it counts as heard, s.
        period: Seconds between its beats that are taken for usual.
        dead: Whether it was dead.
    """

    node: str
    domain: str
    last_beat: float
    period: float
    dead: bool


class PendingNodes:
    """Nodes of which the detector has not been told yet.

    Args:
        period: Seconds between beats that are usual.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._domain_of: dict[str, str] = {}
        self._dead: set[str] = set()
        self._since = 0.0

    @property
    def domain_of(self) -> Mapping[str, str]:
        """Domain of each that is still awaited."""
        return self._domain_of

    def add(self, nodes: Mapping[str, str], dead: Container[str | None], now: float) -> None:
        """Await nodes from an instant on; some were dead."""
        self._domain_of.update(nodes)
        self._dead.update(node for node in nodes if node in dead)
        self._since = now

    def drop(self, node: str) -> None:
        """A node was heard, or is not watched any more."""
        self._domain_of.pop(node, None)
        self._dead.discard(node)

    def due(self, members: Membership, period: Instants, now: float) -> list[PendingNode]:
        """Those that are to be judged by now.

        Args:
            members: Nodes that the detector knows.
            period: Usual seconds between beats of each of them, shape (nodes,); NaN where that is not known yet.
            now: The instant.
        """
        if not self._domain_of:
            return []
        periods = self._periods(members, period, now)
        return [
            PendingNode(node, domain, self._since, periods.get(domain, self._period), node in self._dead)
            for node, domain in self._domain_of.items()
            if domain in periods or node in self._dead
        ]

    def _periods(self, members: Membership, period: Instants, now: float) -> dict[str, float]:
        """Usual period of the slower nodes of each domain of which enough is known."""
        missing = Counter(domain for node, domain in self._domain_of.items() if node not in self._dead)
        periods = {}
        for domain, count in missing.items():
            row = members.domain_row.get(domain)
            of_it = period[members.watched.domain == row] if row is not None else period[:0]
            known = of_it[~np.isnan(of_it)]
            if len(known) >= KNOWN_SHARE * (count + len(of_it)):
                periods[domain] = float(np.quantile(known, 0.9))
            elif now > self._since + PATIENCE_S:
                periods[domain] = self._period
        return periods


@dataclass(frozen=True, slots=True)
class StepReports:
    """How far ranks are, in the order in which it was told; items of lists and arrays belong together.

    Attributes:
        rank: Jobs and numbers of the ranks.
        step: The last step that each has done.
        ended: Whether no further step is to come.
        beat: Place of the beat that tells it.
    """

    rank: list[RankName]
    step: list[int]
    ended: list[bool]
    beat: Places


@dataclass(slots=True)
class ReceivedBeats:
    """Beats in the order in which they arrived, a column for each member of class Heartbeat.

    Attributes:
        node: Names of the senders.
        domain: Their domains at that time.
        number: Numbers of the beats.
        sent: By the senders' clocks, Unix seconds.
        received: When they were heard, Unix seconds.
        steps: What they tell of ranks, by their places; places of beats that tell nothing are absent.
    """

    node: list[str] = field(default_factory=list)
    domain: list[str] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    steps: "dict[int, Sequence[documents.RankStep]]" = field(default_factory=dict)

    def add(self, beats: "Sequence[documents.Heartbeat]", domains: Mapping[str, str], received: float) -> None:
        """Add a batch; beats of nodes that have no domain are passed over."""
        if any(beat["node"] not in domains for beat in beats):
            beats = [beat for beat in beats if beat["node"] in domains]
        first, read = len(self.node), datetime.fromisoformat
        nodes = [beat["node"] for beat in beats]
        self.node += nodes
        self.domain += map(domains.__getitem__, nodes)
        self.number += [beat["number"] for beat in beats]
        self.sent += [read(beat["sent_at"]).timestamp() for beat in beats]
        self.received += [received] * len(beats)
        self.steps.update((first + place, beat["steps"]) for place, beat in enumerate(beats) if beat.get("steps"))

    def beats(self, rows: Mapping[str, int]) -> Beats:
        """The beats for the detector; ``rows`` are those of the nodes."""
        node = np.fromiter(map(rows.__getitem__, self.node), np.intp, len(self.node))
        return Beats(node, np.array(self.number, np.int64), np.array(self.sent), np.array(self.received))

    def reports(self, places: Sequence[int]) -> StepReports:
        """What the beats in some places tell of ranks."""
        reported = [self.steps[place] for place in places]
        return StepReports(
            [(step["job"], step["rank"]) for steps in reported for step in steps],
            [step["step"] for steps in reported for step in steps],
            ["ended" in step and step["ended"] for steps in reported for step in steps],
            np.repeat(np.array(places, np.intp), [len(steps) for steps in reported]),
        )

    def telling(self, beats: Beats, news: Flags) -> list[int]:
        """Places of beats that are news and tell of ranks, by reception and number: a batch has them in any order."""
        places = np.fromiter(self.steps, np.intp, len(self.steps))
        places = places[news[places]]
        ordered: list[int] = places[np.lexsort((beats.sequence[places], beats.received[places]))].tolist()
        return ordered
