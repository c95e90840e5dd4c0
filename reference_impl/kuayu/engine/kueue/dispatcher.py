"""A pass: workloads that wait for a cluster, where the service would send them, and what is nominated of that.

1. The first cluster that is nominated is the one of the service's decision. Its *round* ends when it has had time to
   admit the workload: :data:`ROUND_SECONDS`, or until its devices should be free where the workload has to wait for
   them. Then the next best is nominated as well, as Kueue's incremental dispatcher does.
2. A cluster that is nominated stays so as long as it is there: taking it back would throw away the workload's place in
   that cluster's queue. One that is away, or unknown to the service, is taken back where another can be named.
3. Who was sent to where it waits is looked at again in each pass: a cluster in which it could start at once is added.
4. A workload without accelerators is offered to all clusters that are there; nothing of where they run is decided here.
5. A nomination is written only where nobody has changed the workload meanwhile. So a pass can be made at any time, by
   any number of dispatchers, and be broken off anywhere; who was faster is seen by the next pass.
6. Kueue clears nominations when it assigns a cluster, and can do so only if it may clear what others have written: with
   its admission policy ``clear-nominated-cluster-names`` (Helm: ``enableMutatingAdmissionPolicy``), or its feature gate
   WorkloadRequestUseMergePatch, which Kueue 0.14 was the first to have
   (https://kueue.sigs.k8s.io/docs/concepts/multikueue/, *External*). To write as its own field manager, the third way
   of that page, would take every field of that manager in each patch.
"""

import functools
import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kuayu.engine.kueue.adviser import Adviser, Federation, PredictedOutcome, Question, Situation, rank
from kuayu.engine.kueue.manager import ManagerState
from kuayu.engine.kueue.objects import GROUP, MAX_CLUSTERS, Version
from kuayu.engine.kueue.workloads import (
    RESOURCES,
    Describe,
    DeviceKind,
    Offer,
    cluster_of,
    device_need,
    offers,
    priorities,
    priority_of,
    record_of,
    request_of,
)
from kuayu.engine.runs.kubernetes_connection import (
    CONFLICT,
    FORBIDDEN,
    UNAUTHORIZED,
    ApiError,
    Connection,
    MissingError,
)
from kuayu.engine.runs.protocol import EngineError

if TYPE_CHECKING:
    from kuayu_schemas import documents

FIELD_MANAGER = "kuayu-dispatcher"
ROUND_SECONDS = 300.0
"""Seconds after which the next cluster is nominated, as in Kueue's incremental dispatcher, unless a longer wait was
predicted for those that are."""

HOUR_PRICE = 1.0
"""Money that an hour until the first step counts, where nobody says; its ratio to the federation's prices matters."""

TAKEN_BACK = "a cluster is away or unknown to the service, and is taken back"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """How clusters are nominated.

    Attributes:
        hour_price: Money that an hour until a workload's first step counts, where it has to wait anywhere.
        step: How many clusters are nominated at once.
        round_seconds: Seconds until the next ones are nominated, at least.
        resources: What resources of pods stand for.
    """

    hour_price: float = HOUR_PRICE
    step: int = 1
    round_seconds: float = ROUND_SECONDS
    resources: Mapping[str, DeviceKind] = field(default_factory=lambda: RESOURCES)


@dataclass(frozen=True, slots=True)
class Nomination:
    """What was written of a workload.

    Attributes:
        namespace: Its namespace.
        workload: Its name.
        clusters: Clusters that it is offered to now, in the order in which they were named.
        reason: Why, in words.
    """

    namespace: str
    workload: str
    clusters: Sequence[str]
    reason: str


@dataclass(frozen=True, slots=True)
class PassResult:
    """What came of a pass.

    Attributes:
        waiting: How many workloads wait for a cluster.
        next_seconds: Seconds until a round ends; None where none runs.
        again: Whether somebody was faster, so that the pass has to be made again.
    """

    waiting: int
    next_seconds: float | None
    again: bool


@dataclass(frozen=True, slots=True)
class Round:
    """The time that nominated clusters have.

    Attributes:
        end: When it is over, by the clock.
        waits: Whether the workload has to wait for devices wherever it was sent.
    """

    end: float
    waits: bool = False


@dataclass(slots=True)
class _Case:
    """A workload in a pass.

    Attributes:
        offer: The workload.
        possible: Clusters that it can be sent to, as its check names them.
        nominated: Those of them that are nominated.
        targets: Those that are asked about.
        due: Whether something may be nominated now.
        waits: Whether only a cluster where it can start at once may be.
    """

    offer: Offer
    possible: Sequence[str]
    nominated: Sequence[str]
    targets: Sequence[str]
    due: bool
    waits: bool = False


class Dispatcher:
    """Nominates clusters for the workloads of a manager cluster.

    Args:
        connection: To the manager cluster.
        adviser: Has a service decide.
        describe: Reads annotations of workloads.
        report: Told of each nomination as soon as it is written.
        policy: How clusters are nominated.
        version: Of Kueue's API.
        may_write: Whether this dispatcher is the one that writes.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        connection: Connection,
        adviser: Adviser,
        describe: Describe,
        report: Callable[[Nomination], None],
        *,
        policy: Policy | None = None,
        version: Version = "v1beta2",
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._adviser = adviser
        self._describe = describe
        self._report = report
        self._policy = policy or Policy()
        self._api = f"/apis/{GROUP}/{version}"
        self._may_write = may_write
        self._clock = clock
        self._rounds: dict[str, Round] = {}
        self._remarks: dict[str, str] = {}
        self._written: dict[str, tuple[str, Sequence[str]]] = {}
        self._fruitless: dict[str, Hashable] = {}

    def dispatch(self, manager: ManagerState) -> PassResult:
        """Make one pass over all workloads.

        Raises:
            EngineError: The manager cluster does not answer, or refuses everything.
            ClientError: The service does not answer, or refuses.
        """
        checks = manager.clusters_of_checks()
        pending = [self._as_written(offer) for offer in offers(manager.workloads, checks, self._policy.resources)]
        uids = {offer.uid for offer in pending}
        for known in (self._rounds, self._written, self._fruitless):
            for uid in known.keys() - uids:
                del known[uid]
        self._remarks = {key: text for key, text in self._remarks.items() if key in uids or key.startswith("cluster ")}
        if not pending:
            return PassResult(0, None, again=False)
        federation = self._adviser.federation()
        domains = self._open(manager, federation, {name for offer in pending for name in offer.clusters})
        now = self._clock()
        fits = functools.cache(federation.offers)  # all nodes of a domain are looked at for it
        cases = [self._case(offer, domains, fits, now) for offer in pending]
        chosen = self._chosen(manager, federation, domains, [case for case in cases if case.possible])
        again = False
        for case in cases:
            clusters, reason, entry = chosen.get(case.offer.uid, (case.nominated, TAKEN_BACK, None))
            if list(clusters) == list(case.offer.nominated) or not clusters:
                continue
            if not self._may_write():
                break
            if not self._write(case.offer, clusters):
                again = True
                continue
            self._rounds[case.offer.uid] = entry or Round(now + self._policy.round_seconds)
            self._written[case.offer.uid] = (case.offer.version, tuple(clusters))
            self._remarks.pop(case.offer.uid, None)
            metadata = case.offer.body["metadata"]
            self._report(Nomination(metadata["namespace"], metadata["name"], tuple(clusters), reason))
        return PassResult(len(pending), self._next_seconds(cases, now), again)

    def _next_seconds(self, cases: Sequence[_Case], now: float) -> float | None:
        """Seconds until the first round ends of those after which something is left to nominate."""
        ends = []
        for case in cases:
            entry = self._rounds.get(case.offer.uid)
            _, clusters = self._written.get(case.offer.uid, ("", case.nominated))
            if entry is not None and entry.end > now and set(case.possible) - set(clusters):
                ends.append(entry.end - now)
        return min(ends, default=None)

    def _as_written(self, offer: Offer) -> Offer:
        """A workload with what was written of it, where the watch still shows it as it was before."""
        version, clusters = self._written.get(offer.uid, ("", ()))
        return replace(offer, nominated=clusters) if version == offer.version else offer

    def _open(self, manager: ManagerState, federation: Federation, clusters: Collection[str]) -> dict[str, str]:
        """Domains of the clusters that workloads can be sent to."""
        away, domains = manager.away(), manager.domains()
        result: dict[str, str] = {}
        for cluster in sorted(clusters):
            missing = away.get(cluster) or (
                federation.missing(domains[cluster])
                if cluster in domains
                else "there is no MultiKueueCluster of its name"
            )
            self._remark(f"cluster {cluster}", f"nothing is sent there: {missing}" if missing else "")
            if missing is None:
                result[cluster] = domains[cluster]
        return result

    def _case(
        self, offer: Offer, domains: Mapping[str, str], fits: Callable[[str, DeviceKind], bool], now: float
    ) -> _Case:
        """What may be done with a workload in this pass."""
        kind = offer.need.kind
        possible = [name for name in offer.clusters if name in domains and (kind is None or fits(domains[name], kind))]
        if not possible:
            lacking = f", or they have no {kind.kind} that fits" if kind else ""
            self._remark(offer.uid, f"{offer.name}: the clusters of its check are not there{lacking}")
        nominated = [name for name in offer.nominated if name in possible]
        if not nominated:
            self._rounds.pop(offer.uid, None)
            return _Case(offer, possible, nominated, possible, due=bool(possible))
        # Whoever finds nominations at its own start gives them the time of a whole round.
        entry = self._rounds.setdefault(offer.uid, Round(now + self._policy.round_seconds))
        others = [name for name in possible if name not in nominated]
        if others and (now >= entry.end or entry.waits):
            over = now >= entry.end
            return _Case(offer, possible, nominated, others if over else possible, due=True, waits=not over)
        return _Case(offer, possible, nominated, nominated, due=False)

    def _chosen(
        self, manager: ManagerState, federation: Federation, domains: Mapping[str, str], cases: Sequence[_Case]
    ) -> dict[str, tuple[Sequence[str], str, Round | None]]:
        """Clusters of workloads that are due, with why and how long they have, by workload."""
        plain = [case for case in cases if case.offer.need.kind is None]
        chosen: dict[str, tuple[Sequence[str], str, Round | None]] = {
            case.offer.uid: (case.possible[:MAX_CLUSTERS], "it asks for no accelerator; the first to admit it", None)
            for case in plain
            if case.due
        }
        weights = priorities(manager.workloads)
        situation = Situation(federation, set(domains.values()), self._running(manager, federation, weights))
        node_sizes = functools.cache(federation.node_sizes)
        questions = {}
        for case in cases:
            if case.offer.need.kind is not None and (question := self._question(case, domains, node_sizes, weights)):
                questions[case.offer.uid] = question
        # Who got nothing gets nothing again before something has changed.
        shape = _shape(situation, domains, questions)
        due = {
            case.offer.uid: case
            for case in cases
            if case.due and case.offer.uid in questions and self._fruitless.get(case.offer.uid) != shape
        }
        if not due:
            return chosen
        advice = self._adviser.decide(situation, list(questions.values()))
        starts = {uid: advice[uid].starts if uid in advice else () for uid in questions}
        short = {uid for uid, case in due.items() if not case.waits and len(starts[uid]) < self._policy.step}
        settled = [
            entry._replace(domains=starts[uid][:1]) if starts[uid] and uid not in short else entry
            for uid, entry in questions.items()
        ]
        compared = self._adviser.compare(situation, settled, short) if short else {}
        for uid, case in due.items():
            outcomes = [entry for entry in compared.get(uid, ()) if entry.domain not in starts[uid]]
            choice = self._choice(
                case,
                [name for domain in starts[uid] for name in case.possible if domains[name] == domain],
                [
                    (name, entry)
                    for entry in rank(outcomes, self._policy.hour_price)
                    for name in case.possible
                    if domains[name] == entry.domain
                ],
                advice[uid].reason if uid in advice else "the service says nothing of it",
            )
            if choice is None:
                self._fruitless[uid] = shape
            else:
                chosen[uid] = choice
        return chosen

    def _choice(
        self,
        case: _Case,
        starts: Sequence[str],
        waits: Sequence[tuple[str, PredictedOutcome]],
        reason: str,
    ) -> tuple[Sequence[str], str, Round] | None:
        """What a workload that is due is nominated to: what it is, and the next best."""
        now = self._clock()
        if case.waits:
            if not starts or starts[0] in case.nominated:
                return None
            clusters = [*case.nominated, starts[0]][:MAX_CLUSTERS]
            return clusters, reason, Round(now + self._policy.round_seconds)
        ranking = [*starts, *(cluster for cluster, _ in waits)]
        added = [name for name in dict.fromkeys(ranking) if name not in case.nominated][: self._policy.step]
        if not added:
            self._remark(case.offer.uid, f"{case.offer.name}: no further cluster is nominated. {reason}")
            return None
        outcomes = dict(waits)
        delays = [outcomes[name].delay_seconds for name in added if name in outcomes]
        begins_now = any(name not in outcomes for name in added)
        if not begins_now:
            figures = ", ".join(f"{name} {entry.delay_seconds:.0f} s, {entry.cost:.2f}" for name, entry in waits)
            reason = f"it has to wait; time until its first step, and cost: {figures}"
        length = max([self._policy.round_seconds, *delays])
        return [*case.nominated, *added][:MAX_CLUSTERS], reason, Round(now + length, waits=not begins_now)

    def _question(
        self,
        case: _Case,
        domains: Mapping[str, str],
        node_sizes: Callable[[frozenset[str]], Collection[int]],
        weights: Mapping[int, int],
    ) -> Question | None:
        """A workload as the service is asked about it; None where its annotation cannot be read."""
        offer = case.offer
        names = [domains[name] for name in case.targets]
        try:
            request = request_of(offer.body, offer.need, node_sizes(frozenset(names)), self._describe)
        except ValueError as error:
            self._remark(offer.uid, f"{offer.name} is not dispatched: {error}")
            return None
        if allowed := request.get("domains"):
            names = [name for name in names if name in allowed]
        if not names:
            self._remark(offer.uid, f"{offer.name}: no cluster that is there is a domain that it may run in")
            return None
        return Question(record_of(offer.body, request, weights[priority_of(offer.body)]), names)

    def _running(
        self, manager: ManagerState, federation: Federation, weights: Mapping[int, int]
    ) -> "Sequence[documents.JobRecord]":
        """Workloads that hold devices of a domain that the service knows, as jobs."""
        domains = manager.domains()
        records = []
        for body in manager.workloads:
            cluster, need = cluster_of(body), device_need(body, self._policy.resources)
            if cluster is None or need.kind is None:
                continue
            placement = federation.placement(domains.get(cluster, cluster), need.total, need.kind)
            if placement is None:
                continue
            try:
                request = request_of(body, need, (), self._describe)
            except ValueError:  # it holds devices all the same, for nobody knows how long
                request = request_of(body, need, (), lambda *_: {})
            records.append(record_of(body, request, weights[priority_of(body)], placement))
        return records

    def _remark(self, key: str, text: str) -> None:
        """Say what keeps something back, once as long as it is so."""
        if text and self._remarks.get(key) != text:
            log.warning("%s", f"{key}: {text}" if key.startswith("cluster ") else text)
        if text:
            self._remarks[key] = text
        elif self._remarks.pop(key, None) is not None:
            log.info("%s can be sent to again", key)

    def _write(self, offer: Offer, clusters: Sequence[str]) -> bool:
        """Write nominations; whether nobody was faster.

        Raises:
            EngineError: The manager cluster does not answer, or lets this dispatcher write nothing at all.
        """
        metadata = offer.body["metadata"]
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": {"nominatedClusterNames": list(clusters)},
        }
        path = f"{self._api}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"
        try:
            written = self._connection.patch(path, body, fieldManager=FIELD_MANAGER)
        except MissingError:
            return False
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            if error.transient or error.status in {UNAUTHORIZED, FORBIDDEN}:
                raise
            self._remark(offer.uid, f"{offer.name} cannot be nominated: {error.cause}")
            return False
        if "nominatedClusterNames" not in (written.get("status") or {}):
            raise EngineError(
                "this Kueue drops status.nominatedClusterNames, so that nobody can dispatch for it",
                "install Kueue 0.14 or newer, with its definitions of resources",
            )
        return True


def _shape(situation: Situation, domains: Mapping[str, str], questions: Mapping[str, Question]) -> Hashable:
    """What a decision depends on, but for the time; what the service knows is another one whenever it is read."""
    places = frozenset((record["id"], record["placement"]["shares"][0]["domain"]) for record in situation.running)
    waiting = frozenset((uid, tuple(question.domains)) for uid, question in questions.items())
    return situation.federation.reading, frozenset(domains.items()), places, waiting
