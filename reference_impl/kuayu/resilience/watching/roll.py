"""Who is watched: nodes, domains, jobs and ranks by name, and the row of each in the detector.

Names come and go at once. Rows follow all together at ``settle``, since rearranging a detector takes milliseconds.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu.resilience.detection import Origins, Watched
from kuayu.resilience.detection.values import Instants, Places
from kuayu.resilience.watching.clocks import Clocks

Name = TypeVar("Name", bound=Hashable)

RankName = tuple[str, int]
"""Job and number of a rank."""


class Roll:
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
        self.watched = Watched(np.zeros(0, np.intp), 0)
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
        self.watched = Watched(
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
