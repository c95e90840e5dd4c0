"""Runs in Kubernetes: hands them to an API server, and tells how they stand by what it says.

Objects are those of :mod:`~kuayu.engine.runs.kubernetes_objects`.

1. The Service of a run is its record: there from ``prepare`` to ``forget``, whoever asks and from which host. That a
   run was stopped or has failed is written there first, and then carried out, so that nothing starts it again.
2. Names make every step idempotent: an object that is there already with the same run's label has been made.
3. Before a run is prepared, the API server is asked to make its workload without keeping it (``dryRun=All``): schemas,
   quotas and admission of the cluster speak at once.
4. Nodes that do not answer: their pods cannot be seen to end. Such a run *fails* when Kubernetes gives the node up, and
   the others are ended; but ``stop`` of a run that still has pods there raises.
5. Lines are kept in a :class:`~kuayu.engine.runs.line_archive.LineArchive`. Kubernetes keeps those of a pod as long as
   there is the pod: of pods that the cluster itself ends, what was read until then is all that there is. ``stop`` reads
   on until the pods are gone.
6. Variables of a run stand in its workload, for whoever may read Jobs there.

Conditions and reasons are those of https://kubernetes.io/docs/concepts/workloads/controllers/job/ and
https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
"""

import contextlib
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kuayu.engine.runs.kubernetes_connection import CONFLICT, FORBIDDEN, ApiError, Connection, MissingError, find_access
from kuayu.engine.runs.kubernetes_objects import (
    CONTAINER,
    DIGEST_ANNOTATION,
    ENDED_ANNOTATION,
    MANAGED_BY,
    NAME_ANNOTATION,
    RUN_LABEL,
    STARTED_ANNOTATION,
    WORKLOADS,
    JsonObject,
    Kind,
    PodOptions,
    clusters,
    object_name,
    render,
    workload,
)
from kuayu.engine.runs.line_archive import Entry, LineArchive
from kuayu.engine.runs.protocol import (
    ENDED,
    IDENTIFIER,
    EngineError,
    Finding,
    LogLine,
    NodeUnavailableError,
    Run,
    RunState,
    RunStatus,
    validate,
)
from kuayu.engine.runs.store import RunStore, another, digest

CLUSTERS_ANNOTATION = "kuayu.dev/clusters"
GRACE_ANNOTATION = "kuayu.dev/grace-seconds"

STOP_MARGIN_SECONDS = 60.0
"""Seconds beyond the grace period within which pods are gone where all is well: the kubelet's and the controller's."""

POLL_SECONDS = 0.25
BATCH_LINES = 1000
NANOSECONDS = 1_000_000_000
SIGNAL_BASE = 128
MAX_SIGNAL = 64

HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
"""Reasons for which a container waits, and will for ever."""

_MARKED = re.compile(r"\[(\d+)\] (.*)", re.DOTALL)


class KubernetesEngine:
    """Runs jobs in a Kubernetes cluster, or in several behind Karmada.

    Args:
        directory: Where lines are kept.
        kubeconfig: File that says how the cluster is reached; None for the usual places.
        context: Context in it; the current one where None.
        namespace: Namespace of all runs; the context's own where None.
        kind: What a run becomes: job, jobset, volcano or hyperjob.
        resource: What devices are called in requests, such as ``nvidia.com/gpu``.
        image: Container image where a run names none.
        fetch_image: Image whose shell fetches code; the run's own where None.
        queue: Queue of Kueue (job, jobset) or Volcano (volcano, hyperjob).
        node_label: Label by which nodes are called.
        requests: What each pod asks for beside devices: ``cpu``, ``memory``.
        lost_node_seconds: Seconds after which the pods of a node that does not answer are given up.
        service_account: Account of pods; None for the namespace's own.
        priority_class: PriorityClass of pods.
        pull_secrets: Secrets to pull images with.
        tolerations: More tolerations of pods, as Kubernetes writes them.

    Raises:
        EngineError: No cluster is named, or what is named cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path | str | None = None,
        context: str | None = None,
        namespace: str | None = None,
        kind: str = "job",
        resource: str = "nvidia.com/gpu",
        image: str | None = None,
        fetch_image: str | None = None,
        queue: str | None = None,
        node_label: str = "kubernetes.io/hostname",
        requests: Mapping[str, str] | None = None,
        lost_node_seconds: int = 30,
        service_account: str | None = None,
        priority_class: str | None = None,
        pull_secrets: Sequence[str] = (),
        tolerations: Sequence[JsonObject] = (),
    ) -> None:
        self.name = "kubernetes"
        self._connection = Connection(find_access(None if kubeconfig is None else Path(kubeconfig), context))
        space = namespace or self._connection.access.namespace
        self.options = PodOptions(
            kind=_kind(kind),
            namespace=space,
            resource=resource,
            image=image,
            fetch_image=fetch_image,
            queue=queue,
            node_label=node_label,
            requests=requests or {},
            lost_node_seconds=lost_node_seconds,
            service_account=service_account,
            priority_class=priority_class,
            pull_secrets=pull_secrets,
            tolerations=tolerations,
        )
        self._store = RunStore(directory)
        self._archives: dict[str, LineArchive] = {}
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._guard = threading.Lock()
        of_kind = WORKLOADS[self.options.kind]
        self._workloads = f"/apis/{of_kind.api_version}/namespaces/{space}/{of_kind.plural}"
        self._services = f"/api/v1/namespaces/{space}/services"

    def close(self) -> None:
        """End the connection; runs go on."""
        self._connection.close()

    def check(self) -> list[Finding]:
        """What the engine needs and whether it is there, without starting anything."""
        server = self._connection.access.server
        try:
            version = self._connection.get("/version").get("gitVersion", "")
        except EngineError as error:
            return [Finding(f"API server {server}", present=False, detail=error.cause, hint=error.hint)]
        findings = [Finding(f"API server {server}", present=True, detail=str(version))]
        of_kind = WORKLOADS[self.options.kind]
        try:
            known = self._connection.get(f"/apis/{of_kind.api_version}").get("resources") or []
        except EngineError:
            known = []
        served = any(resource.get("name") == of_kind.plural for resource in known)
        findings.append(
            Finding(f"{of_kind.kind} ({of_kind.api_version})", present=served, hint="" if served else of_kind.hint)
        )
        findings += self._permissions()
        if self.options.kind is not Kind.HYPERJOB:
            findings.append(self._devices())
        return findings

    def _permissions(self) -> Iterator[Finding]:
        """Whether the account may do what the engine does (SelfSubjectAccessReview)."""
        of_kind = WORKLOADS[self.options.kind]
        group = of_kind.api_version.partition("/")[0]
        needed = [
            (group, of_kind.plural, "", ("create", "get", "delete")),
            ("", "services", "", ("create", "get", "list", "patch", "delete")),
            ("", "pods", "", ("list", "delete")),
            ("", "pods", "log", ("get",)),
        ]
        for api_group, resource, subresource, verbs in needed:
            namespace = self.options.namespace
            denied = self._connection.denied(api_group, resource, verbs, namespace=namespace, subresource=subresource)
            subject = f"{resource}/{subresource}" if subresource else resource
            hint = f"have a Role allow {', '.join(denied)} of {subject} in {namespace}" if denied else ""
            yield Finding(
                f"permission for {subject}",
                present=not denied,
                detail=", ".join(verb for verb in verbs if verb not in denied),
                hint=hint,
            )

    def _devices(self) -> Finding:
        """How many devices the nodes offer."""
        resource = self.options.resource
        try:
            nodes = self._connection.items("/api/v1/nodes")
        except EngineError as error:
            hint = "it matters to nobody but this check; a ClusterRole may allow list of nodes"
            return Finding(f"devices {resource}", present=False, detail=error.cause, hint=hint)
        offered = sum(int(node["status"].get("allocatable", {}).get(resource, "0")) for node in nodes)
        hint = "" if offered else "install the device plugin of their vendor, or name their resource (option resource)"
        return Finding(f"devices {resource}", present=offered > 0, detail=f"{offered} on {len(nodes)} nodes", hint=hint)

    def unavailable_nodes(self, nodes: Sequence[str], /) -> dict[str, str]:
        """Nodes that the cluster does not have, that are not ready, or that are cordoned, where it lets us see them.

        Raises:
            EngineError: The API server does not answer.
        """
        if self.options.kind is Kind.HYPERJOB:  # nodes of clusters that this API server does not show
            return {}
        label = self.options.node_label
        try:
            listed = self._connection.items("/api/v1/nodes", labelSelector=label)
        except ApiError as error:
            if error.status == FORBIDDEN:
                return {}
            raise
        known = {node["metadata"]["labels"][label]: node for node in listed}
        reasons = {name: _unavailable(known.get(name)) for name in nodes}
        return {name: reason for name, reason in reasons.items() if reason}

    def prepare(self, run: Run) -> None:
        """Make sure that a run can be started: its nodes are there, and the cluster would take its objects.

        Raises:
            EngineError: It can not, and why; or another run has this name.
        """
        validate(run)
        service, body = render(run, self.options)
        service["metadata"]["annotations"][GRACE_ANNOTATION] = str(run.grace_seconds)
        if self.options.kind is Kind.HYPERJOB:
            service["metadata"]["annotations"][CLUSTERS_ANNOTATION] = ",".join(clusters(run))
        with self._lock(run.name):
            if (known := self._record(run.name)) is not None:
                self._same(known, run)
                return
            self._nodes_there(run)
            self._try_out(body)
            try:
                self._connection.create(self._services, service)
            except ApiError as error:
                if error.status != CONFLICT or (known := self._record(run.name)) is None:
                    raise
                self._same(known, run)

    def _try_out(self, body: JsonObject) -> None:
        """Ask whether the cluster would make a workload; where its admission cannot be asked, starting will show it."""
        try:
            self._connection.create(self._workloads, body, dryRun="All")
        except MissingError as error:
            of_kind = WORKLOADS[self.options.kind]
            raise EngineError(f"the cluster has no {of_kind.kind} ({of_kind.api_version})", of_kind.hint) from error
        except ApiError as error:
            if error.status != CONFLICT and "not support dry run" not in error.cause:
                raise

    def _nodes_there(self, run: Run) -> None:
        """Refuse nodes that the cluster does not have, or gives no pods, where it lets us see them."""
        label = self.options.node_label
        for node, reason in self.unavailable_nodes([placement.node for placement in run.placements]).items():
            hint = f"a node is called by its label {label}: kubectl get nodes -L {label}"
            raise NodeUnavailableError(f"node {node} takes no pods: {reason}", hint)

    @staticmethod
    def _same(service: JsonObject, run: Run) -> None:
        annotations = service["metadata"].get("annotations") or {}
        if annotations.get(DIGEST_ANNOTATION) != digest(run):
            raise another(run.name)

    def start(self, run: Run) -> None:
        """Start a run that was prepared; it may still be starting when this returns. Started again, it stays as it is.

        Raises:
            EngineError: It was not started, or never prepared.
        """
        with self._lock(run.name):
            service = self._record(run.name)
            if service is None:
                raise EngineError(f"run {run.name} was not prepared", "prepare it first")
            self._same(service, run)
            if _note(service) is not None or STARTED_ANNOTATION in service["metadata"]["annotations"]:
                return
            self._create_workload(run)
            service = self._annotate(service, {STARTED_ANNOTATION: datetime.now(UTC).isoformat()}, anyway=True)
            if _note(service) is not None:  # somebody else has stopped it meanwhile
                self._connection.delete(self._workload_path(run.name), propagationPolicy="Foreground")

    def _create_workload(self, run: Run) -> None:
        try:
            self._connection.create(self._workloads, workload(run, self.options))
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            known = self._connection.find(self._workload_path(run.name))
            if known is None or known["metadata"].get("labels", {}).get(RUN_LABEL) != object_name(run.name):
                raise EngineError(
                    f"the cluster has something else by the name {object_name(run.name)}", "delete it, or try again"
                ) from error
        except EngineError:
            if self._connection.find(self._workload_path(run.name)) is None:
                raise

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """End a run; when this returns nothing of it is alive. One that is unknown or has ended stays as it is.

        Args:
            name: Of the run.
            grace_seconds: Between being asked to end and being ended; the run's own where None.

        Raises:
            EngineError: Whether something of it is alive cannot be told.
        """
        service = self._record(name)
        if service is None:
            return
        if (note := _note(service)) is None:
            self._status(name)  # where it has ended by itself, that is how it ended
            service = self._end(name, RunStatus(RunState.STOPPED, "it was stopped"))
            if service is None:
                return
        pods = [(root, pod) for root, pod in self._pods(name, service) if _alive(pod)]
        if note is not None and note.state is not RunState.STOPPED and all(_lost(pod) for _, pod in pods):
            return
        own = float(service["metadata"]["annotations"].get(GRACE_ANNOTATION, "0"))
        grace = own if grace_seconds is None else grace_seconds
        with self._reading(name, pods):
            self._connection.delete(self._workload_path(name), propagationPolicy="Foreground")
            if grace != own:
                for root, pod in pods:
                    path = f"{self._pods_path(root)}/{pod['metadata']['name']}"
                    self._connection.delete(path, gracePeriodSeconds=max(0, round(grace)))
            self._wait_until_gone(name, service, grace + STOP_MARGIN_SECONDS)

    def _wait_until_gone(self, name: str, service: JsonObject, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            left = [pod for _, pod in self._pods(name, service) if _alive(pod)]
            if not left and self._connection.find(self._workload_path(name)) is None:
                return
            if left and all(_lost(pod) for pod in left):
                nodes = ", ".join(sorted({_node(pod) for pod in left}))
                raise EngineError(
                    f"whether run {name} still runs on {nodes} cannot be told: the node does not answer",
                    "make sure that it is off, then: kubectl delete pod --force",
                )
            if time.monotonic() >= deadline:
                raise EngineError(
                    f"run {name} has not ended within {seconds:.0f} s",
                    f"look at: kubectl -n {self.options.namespace} get pods -l {RUN_LABEL}={object_name(name)}",
                    transient=True,
                )
            time.sleep(POLL_SECONDS)

    def status(self, name: str) -> RunStatus:
        """How a run stands; unknown, with a reason, where there is none of that name."""
        try:
            return self._status(name)
        except EngineError as error:
            return RunStatus(RunState.UNKNOWN, error.cause)

    def _status(self, name: str) -> RunStatus:
        service = self._record(name)
        if service is None:
            return RunStatus(RunState.UNKNOWN, f"there is no run {name}")
        pods = [pod for _, pod in self._pods(name, service)]
        if (note := _note(service)) is not None:
            return _still_ending(note, pods)
        body = self._connection.find(self._workload_path(name))
        if body is None:
            if STARTED_ANNOTATION not in service["metadata"]["annotations"]:
                return RunStatus(RunState.PREPARED)
            return self._ended(name, RunStatus(RunState.FAILED, "somebody has deleted its workload"), pods)
        outcome = _outcome(self.options.kind, body)
        if outcome is not None:
            state, reason = outcome
            if state is RunState.SUCCEEDED:
                return self._ended(name, RunStatus(state, "", 0), pods)
            culprit = _culprit(pods) or RunStatus(RunState.FAILED, reason)
            return self._ended(name, culprit, pods)
        failure = _failure_of(pods)
        if failure is not None:
            self._end(name, failure)
            self._collect(name, service)
            self._connection.delete(self._workload_path(name), propagationPolicy="Foreground")
            return _still_ending(failure, pods)
        return _progress(self.options, body, pods, _expected(self.options.kind, body))

    def _ended(self, name: str, outcome: RunStatus, pods: Sequence[JsonObject]) -> RunStatus:
        """Write down how a run has ended as soon as nothing of it is left, with its last lines."""
        if any(_alive(pod) and not _lost(pod) for pod in pods):
            return _still_ending(outcome, pods)
        service = self._end(name, outcome)
        if service is None:
            return outcome
        self._collect(name, service)
        return _note(service) or outcome

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Lines of a run in order, those after a number; empty where there are none yet."""
        if not IDENTIFIER.fullmatch(name):
            return []
        archive = self._archive(name)
        service = self._record(name)
        # What a run that has ended has printed was read when its end was written down.
        if service is not None and STARTED_ANNOTATION in service["metadata"]["annotations"]:
            if _note(service) is None:
                self._collect(name, service, wait=False)
            elif archive.count() == 0:  # that was another engine's, and its lines are not here
                self._collect(name, service)
        return archive.read(after, limit)

    def runs(self) -> list[str]:
        """Names of all runs that the cluster still knows, also of those that an earlier process started."""
        selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
        services = self._connection.items(self._services, labelSelector=f"{selector},{RUN_LABEL}")
        names = [(service["metadata"].get("annotations") or {}).get(NAME_ANNOTATION) for service in services]
        return sorted(name for name in names if name)

    def forget(self, name: str) -> None:
        """Remove the objects and the lines of a run that has ended. One that has not is an EngineError."""
        service = self._record(name)
        if service is not None:
            status = self._status(name)
            if status.state not in ENDED:
                raise EngineError(f"run {name} has not ended", "stop it first")
            self._connection.delete(self._workload_path(name), propagationPolicy="Background")
            self._connection.delete(f"{self._services}/{object_name(name)}")
        if not IDENTIFIER.fullmatch(name):
            return
        self._archive(name).remove()
        with self._guard:
            self._archives.pop(name, None)

    # --- objects ---

    def _record(self, name: str) -> JsonObject | None:
        service = self._connection.find(f"{self._services}/{object_name(name)}")
        if service is not None:
            service["metadata"].setdefault("annotations", {})
        return service

    def _workload_path(self, name: str) -> str:
        return f"{self._workloads}/{object_name(name)}"

    def _pods_path(self, root: str) -> str:
        return f"{root}/api/v1/namespaces/{self.options.namespace}/pods"

    def _pods(self, name: str, service: JsonObject) -> list[tuple[str, JsonObject]]:
        """Pods of a run, and where the API that has them begins: behind Karmada, with each cluster.

        Karmada passes on to its clusters at /apis/cluster.karmada.io/v1alpha1/clusters/NAME/proxy
        (https://karmada.io/docs/userguide/globalview/aggregated-api-endpoint).
        """
        named = service["metadata"]["annotations"].get(CLUSTERS_ANNOTATION)
        roots = [""]
        if named:
            roots = [f"/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy" for cluster in named.split(",")]
        selector = f"{RUN_LABEL}={object_name(name)}"
        return [
            (root, pod)
            for root in roots
            for pod in self._connection.items(self._pods_path(root), labelSelector=selector)
        ]

    def _annotate(self, service: JsonObject, annotations: Mapping[str, str], *, anyway: bool = False) -> JsonObject:
        """Write on a run's record, where nobody else has since it was read; or in any case."""
        metadata: JsonObject = {"annotations": dict(annotations)}
        if not anyway:
            metadata["resourceVersion"] = service["metadata"]["resourceVersion"]
        path = f"{self._services}/{service['metadata']['name']}"
        return self._connection.patch(path, {"metadata": metadata})

    def _end(self, name: str, status: RunStatus) -> JsonObject | None:
        """Write down how a run has ended, or is to, unless somebody has; its record, or None where it is forgotten."""
        with self._lock(name):
            while True:
                service = self._record(name)
                if service is None or _note(service) is not None:
                    return service
                note = {"state": status.state.value, "reason": status.reason, "exit_code": status.exit_code}
                try:
                    return self._annotate(service, {ENDED_ANNOTATION: json.dumps(note)})
                except MissingError:
                    return None
                except ApiError as error:
                    if error.status != CONFLICT:
                        raise

    @contextlib.contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks[name]
        with lock:
            yield

    # --- lines ---

    def _archive(self, name: str) -> LineArchive:
        with self._guard:
            if name not in self._archives:
                self._archives[name] = LineArchive(self._store, name)
            return self._archives[name]

    def _collect(self, name: str, service: JsonObject, *, wait: bool = True) -> None:
        """Read on what pods have printed; without waiting, what another reader is at is left to it."""
        archive = self._archive(name)
        with archive.lock(wait=wait) as ours:
            if ours:
                marks = archive.marks()
                for root, pod in self._pods(name, service):
                    self._read_pod(archive, root, pod, marks, follow=False)

    @contextlib.contextmanager
    def _reading(self, name: str, pods: Sequence[tuple[str, JsonObject]]) -> Iterator[None]:
        """Read on what pods print until they are gone."""
        archive = self._archive(name)
        with archive.lock(), ThreadPoolExecutor(max_workers=max(1, len(pods))) as readers:
            marks = archive.marks()
            for root, pod in pods:
                if _lost(pod):
                    continue  # its node does not answer
                readers.submit(self._read_pod, archive, root, pod, marks, follow=True)
            yield

    def _read_pod(
        self, archive: LineArchive, root: str, pod: JsonObject, marks: Mapping[str, Any], *, follow: bool
    ) -> None:
        """Add the lines of a pod from where its reading ended: behind the last line of the last moment."""
        source = pod["metadata"]["uid"]
        moment, seen = marks.get(source, (0, 0))
        query = {"container": CONTAINER, "timestamps": "true", "follow": "true" if follow else "false"}
        if moment:
            query["sinceTime"] = datetime.fromtimestamp(moment // NANOSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"{self._pods_path(root)}/{pod['metadata']['name']}/log"
        first, repeated = _first_rank(pod), seen
        entries: list[Entry] = []
        # A pod that has not begun has no lines, one that is gone has none any more.
        with contextlib.suppress(EngineError), self._connection.lines(path, query) as lines:
            try:
                for line in lines:
                    stamp, _, text = line.partition(" ")
                    instant = _nanoseconds(stamp)
                    if instant < moment or (instant == moment and repeated):
                        repeated -= instant == moment
                        continue
                    moment, seen = instant, seen + 1 if instant == moment else 1
                    entries.append(_entry(instant / NANOSECONDS, text, first))
                    if len(entries) >= BATCH_LINES:
                        archive.append(entries, {source: [moment, seen]})
                        entries = []
            finally:
                if entries:
                    archive.append(entries, {source: [moment, seen]})


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError:
        raise EngineError(f"{name!r} is no kind of workload", f"take one of {', '.join(Kind)}") from None


def _note(service: JsonObject) -> RunStatus | None:
    """How a run has ended, or is to, by its record."""
    text = (service["metadata"].get("annotations") or {}).get(ENDED_ANNOTATION)
    if not text:
        return None
    note = json.loads(text)
    return RunStatus(RunState(note["state"]), note["reason"], note["exit_code"])


def _still_ending(outcome: RunStatus, pods: Sequence[JsonObject]) -> RunStatus:
    """How a run has ended, or that it is about to."""
    if any(_alive(pod) and not _lost(pod) for pod in pods):
        return RunStatus(RunState.RUNNING, f"{outcome.reason or outcome.state}; what is left of it is being ended")
    return outcome


def _outcome(kind: Kind, body: JsonObject) -> tuple[RunState, str] | None:
    """What the controller of a workload says of its end, and why; None before it."""
    status = body.get("status") or {}
    if kind is Kind.VOLCANO:
        state = status.get("state") or {}
        reason = ": ".join(part for part in (state.get("reason"), state.get("message")) if part)
        if state.get("phase") == "Completed":
            return RunState.SUCCEEDED, ""
        if state.get("phase") in {"Failed", "Terminated", "Aborted"}:
            return RunState.FAILED, reason or f"Volcano says {state['phase']}"
        return None
    for condition in status.get("conditions") or []:
        if condition.get("status") != "True":
            continue
        reason = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
        if condition["type"] in {"Complete", "Completed"}:
            return RunState.SUCCEEDED, ""
        if condition["type"] == "Failed":
            return RunState.FAILED, reason
    return None


def _expected(kind: Kind, body: JsonObject) -> int:
    """How many pods a workload has when all are there."""
    spec = body["spec"]
    if kind is Kind.JOB:
        return int(spec["completions"])
    if kind is Kind.JOBSET:
        return len(spec["replicatedJobs"])
    if kind is Kind.VOLCANO:
        return len(spec["tasks"])
    return sum(len(job["templateSpec"]["tasks"]) for job in spec["replicatedJobs"])


def _progress(options: PodOptions, body: JsonObject, pods: Sequence[JsonObject], expected: int) -> RunStatus:
    """Whether all processes run, and what it waits for where they do not."""
    running = [pod for pod in pods if _phase(pod) in {"Running", "Succeeded"}]
    if len(running) >= expected:
        return RunStatus(RunState.RUNNING)
    for pod in pods:
        if reason := _waits_for(pod):
            return RunStatus(RunState.STARTING, reason)
    conditions = (body.get("status") or {}).get("conditions") or []
    if any(condition["type"] == "Suspended" and condition.get("status") == "True" for condition in conditions):
        queue = f" in queue {options.queue}" if options.queue else ""
        return RunStatus(RunState.STARTING, f"it waits to be admitted{queue}")
    return RunStatus(RunState.STARTING, f"{len(running)} of {expected} pods run")


def _waits_for(pod: JsonObject) -> str:
    """Why a pod does not run yet, for people; empty where nothing is to be said."""
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in {None, "ContainerCreating", "PodInitializing"}:
            image = f" ({container['image']})" if container.get("image") else ""
            return f"{waiting['reason']} on {_node(pod)}{image}: {waiting.get('message', '')}".rstrip(": ")
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}".rstrip(": ")
    return ""


def _failure_of(pods: Sequence[JsonObject]) -> RunStatus | None:
    """Why a run can succeed no more though its controller has not said so; None where it can."""
    for pod in pods:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or []:
            if condition["type"] == "DisruptionTarget" and condition.get("status") == "True":
                return RunStatus(RunState.FAILED, _disruption(pod, condition))
        for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in HOPELESS:
                return RunStatus(RunState.FAILED, _waits_for(pod))
    return None


def _disruption(pod: JsonObject, condition: JsonObject) -> str:
    """Why a pod was taken away, for people."""
    if condition.get("reason") == "DeletionByTaintManager":
        return f"node {_node(pod)} was lost: {condition.get('message', '')}".rstrip(": ")
    return f"its pod on {_node(pod)} was taken away ({condition.get('reason')}): {condition.get('message', '')}".rstrip(
        ": "
    )


def _culprit(pods: Sequence[JsonObject]) -> RunStatus | None:
    """How the first process that failed has ended, by what the kubelet says."""
    failures = []
    for pod in pods:
        status = pod.get("status") or {}
        for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
            ended = (container.get("state") or {}).get("terminated") or {}
            if ended.get("exitCode"):
                failures.append((ended.get("finishedAt") or "", _failure(pod, ended)))
        if status.get("reason") == "Evicted":
            failures.append(("", RunStatus(RunState.FAILED, f"evicted from {_node(pod)}: {status.get('message', '')}")))
    return min(failures, key=lambda failure: failure[0])[1] if failures else None


def _failure(pod: JsonObject, ended: JsonObject) -> RunStatus:
    code = int(ended["exitCode"])
    by_signal = SIGNAL_BASE < code <= SIGNAL_BASE + MAX_SIGNAL
    said = (ended.get("message") or "").strip()
    if ended.get("reason") == "OOMKilled":
        reason = f"out of memory on {_node(pod)} (OOMKilled)"
    elif said:
        reason = f"{said} on {_node(pod)}"
    else:
        reason = f"its pod on {_node(pod)} ended with exit code {code} ({ended.get('reason', 'Error')})"
    return RunStatus(RunState.FAILED, reason, SIGNAL_BASE - code if by_signal else code)


def _phase(pod: JsonObject) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _alive(pod: JsonObject) -> bool:
    """Whether something of a pod may run, or come to."""
    return _phase(pod) not in {"Succeeded", "Failed"}


def _lost(pod: JsonObject) -> bool:
    """Whether a pod is given up because its node does not answer; nobody can say whether it runs."""
    if "deletionTimestamp" not in pod["metadata"]:
        return False
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(
        condition["type"] == "DisruptionTarget" and condition.get("reason") == "DeletionByTaintManager"
        for condition in conditions
    )


def _node(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "no node")


def _unavailable(node: JsonObject | None) -> str:
    """Why a node is given no pods; empty where it is."""
    if node is None:
        return "the cluster has no such node"
    if node["spec"].get("unschedulable"):
        return "it is cordoned"
    ready = next((entry for entry in node["status"].get("conditions") or [] if entry["type"] == "Ready"), JsonObject())
    return "" if ready.get("status") == "True" else f"it is not ready: {ready.get('message', 'nothing is heard of it')}"


def _first_rank(pod: JsonObject) -> int:
    """First rank of a pod, for lines that no rank has printed."""
    [container] = [container for container in pod["spec"]["containers"] if container["name"] == CONTAINER]
    variables = {variable["name"]: variable.get("value", "0") for variable in container["env"]}
    index = (pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", "0")
    return int(variables["KUAYU_FIRST_RANK"]) + int(index) * int(variables["LOCAL_WORLD_SIZE"])


def _nanoseconds(stamp: str) -> int:
    """Nanoseconds since 1970 of a moment as the kubelet writes it (RFC 3339 with up to nine decimals)."""
    whole = datetime.fromisoformat(re.sub(r"\.\d+", "", stamp))
    decimals = re.search(r"\.(\d+)", stamp)
    return int(whole.timestamp()) * NANOSECONDS + (int(decimals[1][:9].ljust(9, "0")) if decimals else 0)


def _entry(instant: float, text: str, first: int) -> Entry:
    """A line of a pod: of which rank, when it came, and what it says."""
    marked = _MARKED.fullmatch(text)
    return (int(marked[1]), instant, marked[2]) if marked else (first, instant, text)
