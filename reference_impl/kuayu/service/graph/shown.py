"""What a tenant is shown: the graph at its revision, its last changes, and the snapshots that were given."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import orjson

from kuayu.perception.graph import DOMAIN, Change, ChangeLog, Document, Graph, Narrowing, Vertex, patch
from kuayu.perception.graph.changes import Name
from kuayu.service import instants
from kuayu.service.problems import ProblemException, not_found
from kuayu.service.storage.resources import Revision
from kuayu.service.streams import Joined

MOST_GIVEN = 64
"""Snapshots that are remembered as bases of patches."""

MOST_VERTICES = 400_000
"""Vertices that they have together at most; the last one is remembered in any case."""


class ShownGraph:
    """The graph of one tenant as it was published. Any thread may use it.

    Args:
        epoch: Epoch of its revisions.
        log: Where changes are kept.
        told: Is called with each change, in order, under a lock.
    """

    def __init__(self, epoch: str, log: ChangeLog, told: Callable[[Change], None]) -> None:
        self._epoch = epoch
        self._log = log
        self._told = told
        self._graph = Graph()
        self._lock = threading.Lock()
        self._taken: OrderedDict[Narrowing, tuple[int, Document]] = OrderedDict()
        self._given: OrderedDict[str, Document] = OrderedDict()

    def begin(self, come: Mapping[Name, Vertex]) -> None:
        """Put in what is there from the beginning; that is no change."""
        with self._lock:
            self._graph.apply(come)

    def publish(self, come: Mapping[Name, Vertex], gone: Iterable[Name], at: int) -> bool:
        """Publish what has changed, if anything has; ``at`` in milliseconds."""
        with self._lock:
            steps = self._graph.apply(come, gone)
            if not steps:
                return False
            change = Change(self._log.number + 1, instants.to_text(at), steps)
            self._log.append(change)
            self._told(change)
            return True

    def snapshot(self, narrowing: Narrowing) -> bytes:
        """The graph as it stands, class ResourceGraph. Blocking for milliseconds.

        Raises:
            ProblemException: not-found.
        """
        number, document = self._take(narrowing)
        head = {
            "digest": document.digest,
            "revision": Revision(self._epoch, number).to_wire(),
            "taken_at": instants.to_text(instants.now()),
        }
        return orjson.dumps(head)[:-1] + b"," + document.body()[1:]

    def patch(self, narrowing: Narrowing, base: str) -> bytes:
        """What leads from a snapshot that was given, named by its digest, to the graph as it stands, class Patch.

        Raises:
            ProblemException: not-found or unknown-base.
        """
        with self._lock:
            self._check(narrowing)
            former = self._given.get(base)
        if former is None:
            raise ProblemException("unknown-base", "no snapshot of this digest is held; take a whole one")
        return patch(former, self._take(narrowing)[1])

    def join(self, narrowing: Narrowing, last: Revision | None) -> Joined[Change]:
        """Begin to follow the graph.

        Args:
            narrowing: What of it.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: not-found or revision-expired.
        """
        with self._lock:
            if last is None:
                self._check(narrowing)
                return Joined(self._log.number, [])
            backlog = self._log.since(last.number) if last.epoch == self._epoch else None
            if backlog is None:
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; take a snapshot"
                )
            if not any(narrowing.domain in step.before for change in backlog for step in change.steps):
                self._check(narrowing)  # else the reader has yet to learn that the domain is gone
            return Joined(self._log.number, backlog)

    def _check(self, narrowing: Narrowing) -> None:
        if narrowing.domain is not None and not self._graph.holds(DOMAIN, narrowing.domain):
            raise not_found(f"no domain {narrowing.domain!r} is registered")

    def _take(self, narrowing: Narrowing) -> tuple[int, Document]:
        with self._lock:
            self._check(narrowing)
            number = self._log.number
            held = self._taken.get(narrowing)
            if held is None or held[0] != number:
                self._taken[narrowing] = held = (number, self._graph.view(narrowing))
                while len(self._taken) > MOST_GIVEN:
                    self._taken.popitem(last=False)
            self._taken.move_to_end(narrowing)
        digest = held[1].digest  # takes long, so not under the lock
        with self._lock:
            self._given[digest] = held[1]
            self._given.move_to_end(digest)
            while len(self._given) > 1 and (
                len(self._given) > MOST_GIVEN or sum(map(len, self._given.values())) > MOST_VERTICES
            ):
                self._given.popitem(last=False)
        return held
