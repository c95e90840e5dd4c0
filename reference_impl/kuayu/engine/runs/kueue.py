"""Kueue's MultiKueue: its objects for a federation's clusters, and a dispatcher that names clusters by prediction.

MultiKueue copies a workload to the clusters that a *dispatcher* nominates, and the first that admits it gets it. Its
own dispatchers nominate all at once, or three more every five minutes. The one here is *external*
(``multiKueue.dispatcherName`` of Kueue's configuration): it nominates the cluster where a workload is predicted to cost
least, all in all, and the next best when that has not admitted it in the time in which it should have.

1. A workload is ours to dispatch where it has quota, has not finished, has no cluster yet, and its MultiKueue admission
   check is pending: what Kueue's own dispatcher looks at (pkg/controller/workloaddispatcher/incrementaldispatcher.go).
2. A cluster that is nominated stays so as long as it can take the workload at all: taking it back would throw away its
   place in that cluster's queue.
3. A nomination is written only where nobody has changed the workload meanwhile. So a pass can be made at any time, by
   any number of dispatchers, and be broken off anywhere.
4. Kueue clears nominations when it assigns a cluster, and can do so only if it may clear what others have written: with
   its admission policy ``clear-nominated-cluster-names`` (Helm: ``enableMutatingAdmissionPolicy``), or its feature gate
   WorkloadRequestUseMergePatch (https://kueue.sigs.k8s.io/docs/concepts/multikueue/, *External*).

Fields, names and limits are those of kubernetes-sigs/kueue v0.19.2 (apis/kueue/v1beta2/multikueue_types.go,
workload_types.go, admissioncheck_types.go; apis/config/v1beta2/configuration_types.go; v1beta1 beside them).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kuayu.engine.runs.kubernetes_connection import CONFLICT, ApiError, Connection, JsonObject, MissingError
from kuayu.engine.runs.protocol import EngineError

Version = Literal["v1beta1", "v1beta2"]

GROUP = "kueue.x-k8s.io"
CONTROLLER = f"{GROUP}/multikueue"
DISPATCHER = "kuayu.dev/dispatcher"
FIELD_MANAGER = "kuayu-dispatcher"
MAX_CLUSTERS = 20
ROUND_SECONDS = 300.0
"""Seconds after which the next cluster is nominated, as in Kueue's incremental dispatcher, unless a longer wait was
predicted for those that are."""

SECONDS_PER_HOUR = 3600.0


def manager_configuration() -> JsonObject:
    """What has to stand in Kueue's configuration on the manager cluster."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "multiKueue": {"dispatcherName": DISPATCHER},
    }


def multikueue_objects(name: str, kubeconfigs: Mapping[str, str], version: Version = "v1beta2") -> list[JsonObject]:
    """Objects that make clusters workers of a manager: cluster-wide, in the order in which they may be made.

    Args:
        name: Of admission check and configuration.
        kubeconfigs: For each cluster the Secret in Kueue's namespace that holds its kubeconfig, under ``kubeconfig``.
        version: Of Kueue's API.

    Raises:
        EngineError: There are more clusters than MultiKueue takes, or none.
    """
    if not 1 <= len(kubeconfigs) <= MAX_CLUSTERS:
        raise EngineError(
            f"MultiKueue takes 1 to {MAX_CLUSTERS} clusters, not {len(kubeconfigs)}",
            "leave some out, or make two checks",
        )
    objects = []
    for cluster, secret in kubeconfigs.items():
        kubeconfig = {"kubeConfig": {"locationType": "Secret", "location": secret}}
        spec = {"clusterSource": kubeconfig} if version == "v1beta2" else kubeconfig
        objects.append(_object("MultiKueueCluster", cluster, spec, version))
    objects.append(_object("MultiKueueConfig", name, {"clusters": list(kubeconfigs)}, version))
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": name}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    objects.append(_object("AdmissionCheck", name, check, version))
    return objects


def local_queue(name: str, namespace: str, cluster_queue: str, version: Version = "v1beta2") -> JsonObject:
    """The queue that runs of a namespace name, in the label ``kueue.x-k8s.io/queue-name``."""
    queue = _object("LocalQueue", name, {"clusterQueue": cluster_queue}, version)
    queue["metadata"]["namespace"] = namespace
    return queue


def _object(kind: str, name: str, spec: JsonObject, version: Version) -> JsonObject:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class PredictedOutcome:
    """What is expected of a workload in a cluster.

    Attributes:
        cluster: The cluster, by the name of its MultiKueueCluster.
        wait_seconds: Until it is admitted there.
        transfer_seconds: Until its data is there; zero where it lies.
        cost: What running it there costs, transfer included, in the federation's currency.
    """

    cluster: str
    wait_seconds: float
    transfer_seconds: float
    cost: float


def rank(outcomes: Sequence[PredictedOutcome], price_per_hour: float) -> list[PredictedOutcome]:
    """Clusters, best first: by what a workload costs there, and what it costs that it begins later.

    Waiting and transfer go on beside each other, so that the longer of both counts. Where two come to the same, the one
    that has the data goes first.

    Args:
        outcomes: What is expected of each.
        price_per_hour: What an hour until its beginning costs, in the same currency.
    """

    def total(outcome: PredictedOutcome) -> tuple[float, float, str]:
        delay = max(outcome.wait_seconds, outcome.transfer_seconds)
        return outcome.cost + price_per_hour * delay / SECONDS_PER_HOUR, outcome.transfer_seconds, outcome.cluster

    return sorted(outcomes, key=total)


def nominate(
    ranking: Sequence[PredictedOutcome], nominated: Sequence[str], *, round_over: bool, step: int = 1
) -> list[str]:
    """Clusters that are to be nominated: those that are and can take the workload, and the next best.

    Args:
        ranking: Clusters that can take it, best first.
        nominated: Those that are nominated.
        round_over: Whether they have had their time.
        step: How many more are nominated then.
    """
    possible = [outcome.cluster for outcome in ranking]
    kept = [cluster for cluster in nominated if cluster in possible]
    if kept and not round_over:
        return kept
    further = [cluster for cluster in possible if cluster not in kept]
    return [*kept, *further[:step]][:MAX_CLUSTERS]


@dataclass(frozen=True, slots=True)
class Nomination:
    """What was written of a workload.

    Attributes:
        namespace: Its namespace.
        workload: Its name.
        clusters: Clusters that it is offered now, in the order in which they were named.
    """

    namespace: str
    workload: str
    clusters: Sequence[str]


class Dispatcher:
    """Nominates clusters for the workloads of a manager cluster.

    Args:
        connection: To the manager cluster.
        predict: What is expected of a workload in each of some clusters; those that it leaves out cannot take it.
        price_per_hour: What an hour until a workload's beginning costs.
        step: How many clusters are nominated at once.
        round_seconds: Seconds until the next ones are nominated, at least.
        version: Of Kueue's API.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        connection: Connection,
        predict: Callable[[JsonObject, Sequence[str]], Sequence[PredictedOutcome]],
        *,
        price_per_hour: float,
        step: int = 1,
        round_seconds: float = ROUND_SECONDS,
        version: Version = "v1beta2",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._predict = predict
        self._price = price_per_hour
        self._step = step
        self._round = round_seconds
        self._api = f"/apis/{GROUP}/{version}"
        self._version = version
        self._clock = clock
        self._ends: dict[str, float] = {}

    def dispatch(self) -> list[Nomination]:
        """Make one pass over all workloads; what was written.

        Raises:
            EngineError: The manager cluster does not answer, or refuses.
        """
        checks = self._checks()
        written = []
        waiting = set()
        for workload in self._connection.items(f"{self._api}/workloads"):
            clusters = _offered(workload, checks)
            if clusters is None:
                continue
            waiting.add(workload["metadata"]["uid"])
            if (nomination := self._nominate(workload, clusters)) is not None:
                written.append(nomination)
        self._ends = {uid: end for uid, end in self._ends.items() if uid in waiting}
        return written

    def _checks(self) -> dict[str, list[str]]:
        """Clusters of each admission check that is MultiKueue's."""
        found = {}
        for check in self._connection.items(f"{self._api}/admissionchecks"):
            if check["spec"].get("controllerName") != CONTROLLER:
                continue
            parameters = check["spec"].get("parameters") or {}
            config = self._connection.find(f"{self._api}/multikueueconfigs/{parameters.get('name', '')}")
            found[check["metadata"]["name"]] = list(config["spec"]["clusters"]) if config else []
        return found

    def _nominate(self, workload: JsonObject, clusters: Sequence[str]) -> Nomination | None:
        uid, now = workload["metadata"]["uid"], self._clock()
        nominated = list((workload.get("status") or {}).get("nominatedClusterNames") or [])
        ranking = rank(
            [outcome for outcome in self._predict(workload, clusters) if outcome.cluster in clusters], self._price
        )
        # Whoever finds nominations at its own start gives them the time of a whole round.
        end = self._ends.setdefault(uid, now + self._length(ranking, nominated)) if nominated else now
        chosen = nominate(ranking, nominated, round_over=now >= end, step=self._step)
        if chosen == nominated:
            return None
        if not self._write(workload, chosen):
            return None
        self._ends[uid] = now + self._length(ranking, chosen)
        return Nomination(workload["metadata"]["namespace"], workload["metadata"]["name"], chosen)

    def _length(self, ranking: Sequence[PredictedOutcome], clusters: Sequence[str]) -> float:
        """Seconds within which a workload should have been admitted."""
        return max([self._round, *(outcome.wait_seconds for outcome in ranking if outcome.cluster in clusters)])

    def _write(self, workload: JsonObject, clusters: Sequence[str]) -> bool:
        """Write nominations; whether nobody was faster."""
        metadata = workload["metadata"]
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": {"nominatedClusterNames": list(clusters)},
        }
        path = f"{self._api}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"
        try:
            self._connection.patch(path, body, fieldManager=FIELD_MANAGER)
        except MissingError:
            return False
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True


def _offered(workload: JsonObject, checks: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
    """Clusters that a workload may be offered; None where it is not to be dispatched now."""
    status = workload.get("status") or {}
    conditions = {entry["type"]: entry.get("status") for entry in status.get("conditions") or []}
    if "deletionTimestamp" in workload["metadata"] or status.get("clusterName"):
        return None
    if conditions.get("Finished") == "True" or conditions.get("QuotaReserved") != "True":
        return None
    for check in status.get("admissionChecks") or []:
        if check["name"] in checks:
            return checks[check["name"]] if check.get("state") == "Pending" else None
    return None
