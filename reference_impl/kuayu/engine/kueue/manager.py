"""What a manager cluster has, as far as a dispatcher looks at it: listed once, and then followed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kuayu.engine.kueue.objects import CONTROLLER, DOMAIN_ANNOTATION, GROUP, Version
from kuayu.engine.kueue.watch import ObjectWatch
from kuayu.engine.runs.kubernetes_connection import NOT_FOUND, ApiError, Connection, JsonObject
from kuayu.engine.runs.protocol import EngineError

VERSIONS: tuple[Version, ...] = ("v1beta2", "v1beta1")
"""Of Kueue's API, the one that is taken first before others."""


def served_version(connection: Connection) -> Version:
    """The newest version of Kueue's API that a cluster has.

    Raises:
        EngineError: It has none, or does not answer.
    """
    try:
        group = connection.get(f"/apis/{GROUP}")
    except ApiError as error:
        if error.status == NOT_FOUND:
            raise EngineError(
                f"there is no Kueue in the cluster {connection.access.server}",
                "install Kueue 0.14 or newer there, or name the manager cluster with --kubeconfig and --context",
            ) from error
        raise
    served = [entry.get("version") for entry in group.get("versions") or []]
    for version in VERSIONS:
        if version in served:
            return version
    raise EngineError(
        f"Kueue's API there has the versions {', '.join(map(str, served)) or 'none'}, not {' or '.join(VERSIONS)}",
        "install Kueue 0.14 or newer",
    )


@dataclass(frozen=True, slots=True)
class ManagerState:
    """What a manager cluster has, as far as a dispatcher looks at it.

    Attributes:
        workloads: All workloads.
        checks: All admission checks.
        configs: All of kind MultiKueueConfig.
        clusters: All of kind MultiKueueCluster.
    """

    workloads: Sequence[JsonObject]
    checks: Sequence[JsonObject]
    configs: Sequence[JsonObject]
    clusters: Sequence[JsonObject]

    def clusters_of_checks(self) -> dict[str, list[str]]:
        """Clusters of each admission check that is MultiKueue's; none where it names no configuration that there is."""
        listed = {config["metadata"]["name"]: list(config["spec"].get("clusters") or []) for config in self.configs}
        return {
            check["metadata"]["name"]: listed.get((check["spec"].get("parameters") or {}).get("name", ""), [])
            for check in self.checks
            if check["spec"].get("controllerName") == CONTROLLER
        }

    def away(self) -> dict[str, str]:
        """Clusters that Kueue does not reach, each with why."""
        reasons = {}
        for cluster in self.clusters:
            conditions = {entry["type"]: entry for entry in (cluster.get("status") or {}).get("conditions") or []}
            active = conditions.get("Active", {})
            if active.get("status") != "True":
                reasons[cluster["metadata"]["name"]] = active.get("message") or "Kueue has not connected to it yet"
        return reasons

    def domains(self) -> dict[str, str]:
        """Domain of the service that each cluster is."""
        return {
            cluster["metadata"]["name"]: (cluster["metadata"].get("annotations") or {}).get(DOMAIN_ANNOTATION)
            or cluster["metadata"]["name"]
            for cluster in self.clusters
        }


@dataclass(slots=True)
class Manager:
    """The objects of a manager cluster, followed.

    Attributes:
        connection: To the manager cluster.
        version: Of Kueue's API.
    """

    connection: Connection
    version: Version
    _watches: dict[str, ObjectWatch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for plural in ("workloads", "admissionchecks", "multikueueconfigs", "multikueueclusters"):
            path = f"/apis/{GROUP}/{self.version}/{plural}"
            self._watches[plural] = ObjectWatch(self.connection, path)

    def read(self) -> None:
        """List all of them.

        Raises:
            EngineError: They cannot be had.
        """
        for plural, watch in self._watches.items():
            try:
                watch.read()
            except ApiError as error:
                if error.status == NOT_FOUND:
                    raise EngineError(
                        f"this Kueue has no {plural}", "install Kueue 0.14 or newer, with MultiKueue enabled"
                    ) from error
                raise

    def follow(self, changed: Callable[[], None]) -> None:
        """Follow them, each in a thread of its own that ends with the process, and tell when something has changed."""
        for plural, watch in self._watches.items():
            threading.Thread(target=watch.follow, args=(changed,), name=f"watch {plural}", daemon=True).start()

    def state(self) -> ManagerState:
        """The objects as they are known."""
        return ManagerState(*(watch.objects() for watch in self._watches.values()))
