"""What a run is in Kubernetes: objects that follow from it alone, without any I/O.

=========  ==============================================  ===================================================
kind       objects                                         who starts all or none
=========  ==============================================  ===================================================
job        Service, Job (batch/v1)                         nobody; a scheduler that knows Kueue's queues can
jobset     Service, JobSet (jobset.x-k8s.io/v1alpha2)      as above
volcano    Service, Job (batch.volcano.sh/v1alpha1)        Volcano: ``minAvailable`` is all of it
hyperjob   Service, HyperJob (training.volcano.sh)         Volcano in each cluster, through Karmada's control plane
=========  ==============================================  ===================================================

1. There is one pod for each node of the run. It holds all that the run may use there, so that its processes see the
   same devices and LOCAL_RANK says which is whose. :data:`LAUNCHER` starts them.
2. Nothing is restarted: whoever controls the jobs decides where an attempt is made again. One pod that fails fails the
   workload, and its controller ends the others.
3. A Job has one template for all its pods: its nodes have the same number of devices, and which of them gets which
   index is up to the scheduler. Where the order of nodes matters, or they differ, take a kind with a template for each.
4. The Service is made when a run is prepared and stays until it is forgotten. It gives pods their names in DNS, and
   holds in annotations what must outlive the workload: how the run was ended.
5. Names of objects are lower case, at most 41 characters, and end in a digest, so that different runs never share one.

Fields are those of kubernetes/api v0.36.3 (batch/v1, core/v1), kubernetes-sigs/jobset v0.12.0
(api/jobset/v1alpha2/jobset_types.go), volcano-sh/apis v1.15.0 (pkg/apis/batch/v1alpha1/job.go and
pkg/apis/training/v1alpha1/hyperjob.go). JOB_COMPLETION_INDEX is described in
https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode, the names of pods in DNS in
https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/.
"""

import hashlib
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kuayu.engine.runs.protocol import EngineError, Placement, Rendezvous, Run, environment
from kuayu.engine.runs.store import digest

JsonObject = dict[str, Any]
"""An object of the Kubernetes API, as YAML or JSON; its kind says what is in it, and the cluster what it takes."""

RUN_LABEL = "kuayu.dev/run"
JOB_LABEL = "kuayu.dev/job"
MANAGED_BY = {"app.kubernetes.io/managed-by": "kuayu"}
NAME_ANNOTATION = "kuayu.dev/run-name"
DIGEST_ANNOTATION = "kuayu.dev/run-digest"
STARTED_ANNOTATION = "kuayu.dev/started"
ENDED_ANNOTATION = "kuayu.dev/ended"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's label (kubernetes-sigs/kueue v0.19.2, pkg/controller/constants/constants.go)."""

CONTAINER = "run"
CODE_CONTAINER = "code"
SCRATCH = "/run/kuayu"
TERMINATION_LOG = "/dev/termination-log"
CODE_DIRECTORY = "/workspace"
DEFAULT_PORT = 29500
"""What torchrun takes where nobody names a port."""

_STEM_CHARACTERS = 30
_DIGEST_CHARACTERS = 10

LAUNCHER = r"""# Kuayu: one process for each rank of this pod. One that fails ends the others; SIGTERM goes to all.
first=$((KUAYU_FIRST_RANK + ${JOB_COMPLETION_INDEX:-0} * LOCAL_WORLD_SIZE))
pipes=$(mktemp -d "$KUAYU_SCRATCH/ranks.XXXXXX") || exit 125
mkfifo "$pipes/ends" || exit 125
exec 3<>"$pipes/ends"
pids= readers= code=0 result=0

# Waits for a process, also where a signal comes between: that ends wait, but not the process.
settle() {
  wait "$1" 2>/dev/null; code=$?
  while kill -0 "$1" 2>/dev/null; do wait "$1" 2>/dev/null; code=$?; done
  [ "$code" -le 128 ] || { wait "$1" 2>/dev/null; again=$?; [ "$again" -eq 127 ] || code=$again; }
}
end_all() { for pid in $pids; do kill -TERM "$pid" 2>/dev/null; done; }
give_up_after() { ( sleep "$1"; kill -USR1 $$ ) >/dev/null 2>&1 3>&- & timer=$!; }
trap end_all TERM INT
trap 'exit "$result"' USR1

local=0
while [ "$local" -lt "$LOCAL_WORLD_SIZE" ]; do
  rank=$((first + local))
  mkfifo "$pipes/$local" || exit 125
  while IFS= read -r line || [ -n "$line" ]; do printf '[%s] %s\n' "$rank" "$line"; done <"$pipes/$local" 3>&- &
  readers="$readers $!"
  (
    trap 'kill -TERM "$child" 2>/dev/null' TERM
    RANK=$rank LOCAL_RANK=$local "$@" >"$pipes/$local" 2>&1 3>&- &
    child=$!
    settle "$child"
    echo "$rank $code" >&3
  ) &
  pids="$pids $!"
  local=$((local + 1))
done

# The first that fails is what the pod fails with.
(
  left=$LOCAL_WORLD_SIZE
  while [ "$left" -gt 0 ]; do
    read -r rank code <&3 || exit 125
    left=$((left - 1))
    [ "$code" -eq 0 ] || { echo "rank $rank ended with exit code $code" >"$KUAYU_TERMINATION_LOG"; exit "$code"; }
  done
) &
settle $!
result=$code
end_all
give_up_after "$KUAYU_GRACE_SECONDS"
for pid in $pids; do settle "$pid"; done
kill "$timer" 2>/dev/null
# What a process has left behind may hold its output open; the end of the pod ends it.
give_up_after 5
for pid in $readers; do settle "$pid"; done
kill "$timer" 2>/dev/null
exit "$result"
"""
"""First process of a pod, for any POSIX shell: starts the ranks, marks their lines with ``[RANK]``, passes SIGTERM on.

A program that is the first process of a container ignores SIGTERM unless it handles it; ranks are none."""

FETCHER = r"""set -e
cd "$2"
case "$1" in
git+*)
  url=${1#git+}; ref=HEAD; rest=${url#*://*/}
  case "$rest" in *@*) ref=${rest##*@}; url=${url%@*};; esac
  git init --quiet . && git fetch --quiet --depth=1 -- "$url" "$ref" && git checkout --quiet FETCH_HEAD;;
*)
  url=${1%%#*}
  { curl -fsSL "$url" || wget -qO- "$url"; } >.bundle
  case "$1" in *#sha256=*) echo "${1##*#sha256=}  .bundle" | sha256sum -c - >/dev/null;; esac
  case "$url" in *.zip) unzip -q .bundle;; *) tar -xf .bundle;; esac
  rm .bundle;;
esac
"""
"""Fetches a bundle of code into a folder, in an init container; what it needs of the image says the guide."""


class Kind(StrEnum):
    """What a run becomes."""

    JOB = "job"
    JOBSET = "jobset"
    VOLCANO = "volcano"
    HYPERJOB = "hyperjob"


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of object that an API server keeps.

    Attributes:
        api_version: Group and version.
        kind: Its name in objects.
        plural: Its name in paths.
        hint: What to do where the cluster does not have it.
    """

    api_version: str
    kind: str
    plural: str
    hint: str


WORKLOADS: Mapping[Kind, Workload] = {
    Kind.JOB: Workload("batch/v1", "Job", "jobs", "Kubernetes 1.31 or newer has it"),
    Kind.JOBSET: Workload("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", "install JobSet (jobset.sigs.k8s.io)"),
    Kind.VOLCANO: Workload("batch.volcano.sh/v1alpha1", "Job", "jobs", "install Volcano (volcano.sh)"),
    Kind.HYPERJOB: Workload(
        "training.volcano.sh/v1alpha1", "HyperJob", "hyperjobs", "install volcano-global on Karmada's control plane"
    ),
}


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What a domain says of all its runs.

    Attributes:
        kind: What a run becomes.
        namespace: Where.
        resource: What devices are called in requests: ``nvidia.com/gpu``, ``huawei.com/Ascend910``, ``amd.com/gpu``,
            ``cambricon.com/mlu``, ….
        image: Container image where a run names none.
        fetch_image: Image whose shell fetches code, with git, or curl or wget and tar; the run's own where None.
        queue: Queue: a LocalQueue of Kueue for job and jobset, a Queue of Volcano for volcano and hyperjob.
        node_label: Label by which nodes are called.
        requests: What each pod asks for beside devices: ``cpu``, ``memory``.
        lost_node_seconds: Seconds after which the pods of a node that does not answer are given up (Kubernetes: 300).
        service_account: Account of pods; None for the namespace's own.
        priority_class: PriorityClass of pods.
        pull_secrets: Secrets to pull images with.
        tolerations: More tolerations of pods, as Kubernetes writes them.
    """

    kind: Kind = Kind.JOB
    namespace: str = "default"
    resource: str = "nvidia.com/gpu"
    image: str | None = None
    fetch_image: str | None = None
    queue: str | None = None
    node_label: str = "kubernetes.io/hostname"
    requests: Mapping[str, str] = field(default_factory=dict)
    lost_node_seconds: int = 30
    service_account: str | None = None
    priority_class: str | None = None
    pull_secrets: Sequence[str] = ()
    tolerations: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """What of a run lies on one node.

    Attributes:
        number: Which of the run's nodes, from zero.
        placement: Node and devices.
        first_rank: First of its ranks within this domain.
        processes: How many it has.
    """

    number: int
    placement: Placement
    first_rank: int
    processes: int


def object_name(name: str) -> str:
    """Name of a run's objects: a label of DNS (RFC 1035) that begins with a letter, and is nobody else's."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_STEM_CHARACTERS].strip("-")
    if not stem or not stem[0].isalpha():
        stem = f"r{stem}"[:_STEM_CHARACTERS]
    return f"{stem}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]}"


def shares(run: Run) -> list[Share]:
    """What of a run lies on which node, in rank order."""
    counts = [run.processes_per_node or placement.devices for placement in run.placements]
    firsts = itertools.accumulate(counts[:-1], initial=0)
    return [
        Share(number, placement, first, count)
        for number, (placement, first, count) in enumerate(zip(run.placements, firsts, counts, strict=True))
    ]


def clusters(run: Run) -> dict[str, list[Share]]:
    """Shares of a HyperJob by cluster; its nodes are called ``CLUSTER/NODE``.

    Raises:
        EngineError: A node names no cluster, or ranks of one cluster lie between those of another.
    """
    by_cluster: dict[str, list[Share]] = {}
    last = None
    for share in shares(run):
        cluster, slash, node = share.placement.node.partition("/")
        if not slash or not cluster or not node:
            raise EngineError(
                f"node {share.placement.node!r} names no cluster", "a HyperJob's nodes are called CLUSTER/NODE"
            )
        if cluster in by_cluster and cluster != last:
            raise EngineError(
                f"the ranks of cluster {cluster} are apart", "name the nodes of a cluster one after another"
            )
        last = cluster
        own = replace(share, placement=replace(share.placement, node=node))
        by_cluster.setdefault(cluster, []).append(own)
    return by_cluster


def validate_for(run: Run, options: PodOptions) -> None:
    """Refuse what cannot be rendered as it says.

    Raises:
        EngineError: Why.
    """
    if run.image is None and options.image is None:
        raise EngineError(
            f"run {run.name} names no container image", "name one in the job, or a default with the domain's engine"
        )
    if run.code is not None and not run.code.startswith(("https://", "http://", "git+https://")):
        raise EngineError(
            f"pods cannot read the code at {run.code}", "put it where they can fetch it (https: or git+https:)"
        )
    if run.code is not None and run.code.startswith("http://") and "#sha256=" not in run.code:
        raise EngineError(f"{run.code} may be altered on its way", "take https:, or add #sha256=DIGEST")
    if options.kind is Kind.JOB and len({placement.devices for placement in run.placements}) > 1:
        raise EngineError(
            "a Job has as many devices on each of its nodes, and this run has not",
            "take the kind jobset or volcano, which have a template for each node",
        )
    if options.kind is Kind.HYPERJOB:
        clusters(run)
        if run.rendezvous.port == 0:
            raise EngineError(
                "processes in several clusters cannot find each other by themselves",
                "name address and port of rank zero in the rendezvous",
            )
    if any(quantity in run.environment for quantity in ("KUAYU_FIRST_RANK", "KUAYU_SCRATCH", "KUAYU_TERMINATION_LOG")):
        raise EngineError("the environment holds a variable of the engine's own", "leave out KUAYU_*")


def render(run: Run, options: PodOptions) -> tuple[JsonObject, JsonObject]:
    """The Service and the workload of a run.

    Raises:
        EngineError: It cannot be rendered as it says.
    """
    validate_for(run, options)
    return service(run, options), workload(run, options)


def service(run: Run, options: PodOptions) -> JsonObject:
    """The headless Service that names the pods of a run in DNS, and is its record."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(run, options, {NAME_ANNOTATION: run.name, DIGEST_ANNOTATION: digest(run)}),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,  # ranks look for each other before they are ready
            "selector": {RUN_LABEL: object_name(run.name)},
        },
    }


def workload(run: Run, options: PodOptions) -> JsonObject:
    """What starts the pods of a run."""
    of_kind = WORKLOADS[options.kind]
    spec = {Kind.JOB: _job, Kind.JOBSET: _jobset, Kind.VOLCANO: _volcano, Kind.HYPERJOB: _hyperjob}[options.kind]
    metadata = _metadata(run, options, {NAME_ANNOTATION: run.name})
    if options.queue is not None and options.kind in {Kind.JOB, Kind.JOBSET}:
        metadata["labels"][QUEUE_LABEL] = options.queue
    return {
        "apiVersion": of_kind.api_version,
        "kind": of_kind.kind,
        "metadata": metadata,
        "spec": spec(run, options),
    }


def meeting_place(run: Run, kind: Kind) -> Rendezvous:
    """Where the processes of a run meet: as it says, or at the pod of rank zero where it leaves that open."""
    if run.rendezvous.port:
        return run.rendezvous
    name = object_name(run.name)
    host = {Kind.JOB: f"{name}-0", Kind.JOBSET: f"{name}-n0-0-0", Kind.VOLCANO: f"{name}-n0"}[kind]
    return replace(run.rendezvous, address=f"{host}.{name}", port=DEFAULT_PORT)


def _metadata(run: Run, options: PodOptions, annotations: Mapping[str, str]) -> JsonObject:
    return {
        "name": object_name(run.name),
        "namespace": options.namespace,
        "labels": _labels(run),
        "annotations": dict(annotations),
    }


def _labels(run: Run) -> dict[str, str]:
    return {**MANAGED_BY, RUN_LABEL: object_name(run.name), JOB_LABEL: object_name(run.job)}


def _job(run: Run, options: PodOptions) -> JsonObject:
    """One Job with a pod on each node, each of them on another."""
    every = shares(run)
    together = replace(every[0], first_rank=run.rendezvous.rank_offset)
    template = _template(run, options, together, [share.placement.node for share in every])
    template["spec"]["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {RUN_LABEL: object_name(run.name)}},
                "topologyKey": options.node_label,
            }
        ]
    }
    return _job_spec(template, len(every))


def _job_spec(template: JsonObject, pods: int) -> JsonObject:
    """A Job of so many pods that fails with the first that does."""
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": CONTAINER, "operator": "NotIn", "values": [0]},
                },
            ]
        },
        "template": template,
    }


def _jobset(run: Run, options: PodOptions) -> JsonObject:
    """A JobSet with a Job of one pod for each node."""
    jobs = []
    for share in shares(run):
        template = _template(run, options, _offset(run, share), [share.placement.node])
        jobs.append(
            {
                "name": f"n{share.number}",
                "replicas": 1,
                "template": {"metadata": {"labels": _labels(run)}, "spec": _job_spec(template, 1)},
            }
        )
    return {
        "replicatedJobs": jobs,
        "network": {"enableDNSHostnames": True, "subdomain": object_name(run.name), "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
    }


def _volcano(run: Run, options: PodOptions) -> JsonObject:
    """A Job of Volcano with a task of one pod for each node, in DNS by a name of its own."""
    name = object_name(run.name)
    spec = _volcano_spec(run, options, shares(run))
    for task in spec["tasks"]:
        task["template"]["spec"] |= {"hostname": f"{name}-{task['name']}", "subdomain": name}
    return spec


def _volcano_spec(run: Run, options: PodOptions, own: Sequence[Share]) -> JsonObject:
    tasks = [
        {
            "name": f"n{share.number}",
            "replicas": 1,
            "template": _template(run, options, _offset(run, share), [share.placement.node]),
        }
        for share in own
    ]
    return {
        "schedulerName": "volcano",
        "minAvailable": len(tasks),
        "queue": options.queue or "default",
        "maxRetry": 0,
        "policies": [
            {"event": "PodFailed", "action": "TerminateJob"},
            {"event": "PodEvicted", "action": "TerminateJob"},
        ],
        "tasks": tasks,
    }


def _hyperjob(run: Run, options: PodOptions) -> JsonObject:
    """A HyperJob with a Job of Volcano for each cluster; it runs only where all of them do."""
    jobs = [
        {
            "name": f"c{number}",
            "replicas": 1,
            "clusterNames": [cluster],
            "templateSpec": _volcano_spec(run, options, own),
        }
        for number, (cluster, own) in enumerate(clusters(run).items())
    ]
    return {"replicatedJobs": jobs, "minAvailable": len(jobs), "maxDomains": len(jobs)}


def _offset(run: Run, share: Share) -> Share:
    """A share with its first rank counted over all domains."""
    return replace(share, first_rank=run.rendezvous.rank_offset + share.first_rank)


def _template(run: Run, options: PodOptions, share: Share, nodes: Sequence[str]) -> JsonObject:
    """A pod that holds what a run may use on one of some nodes."""
    spec: JsonObject = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(1, math.ceil(run.grace_seconds)),
        "affinity": {"nodeAffinity": _pin(options.node_label, nodes)},
        "tolerations": [*_tolerations(options), *options.tolerations],
        "containers": [_container(run, options, share)],
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }
    if options.kind is Kind.JOB:
        spec["subdomain"] = object_name(run.name)
    if run.code is not None:
        spec["initContainers"] = [_fetcher(run, options)]
        spec["volumes"].append({"name": "code", "emptyDir": {}})
    if options.service_account is not None:
        spec["serviceAccountName"] = options.service_account
    if options.priority_class is not None:
        spec["priorityClassName"] = options.priority_class
    if options.pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in options.pull_secrets]
    return {
        "metadata": {"labels": _labels(run), "annotations": {NAME_ANNOTATION: run.name}},
        "spec": spec,
    }


def _pin(label: str, nodes: Sequence[str]) -> JsonObject:
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": list(nodes)}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _tolerations(options: PodOptions) -> list[JsonObject]:
    """How long pods of a node that does not answer are kept: Kubernetes waits five minutes where nobody says."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": options.lost_node_seconds,
        }
        for taint in ("not-ready", "unreachable")
    ]


def _container(run: Run, options: PodOptions, share: Share) -> JsonObject:
    devices = {options.resource: str(share.placement.devices)}
    shared = "/dev/shm"  # noqa: S108 - a mount of the container's own, not a folder that others write into
    mounts = [{"name": "scratch", "mountPath": SCRATCH}, {"name": "shm", "mountPath": shared}]
    if run.code is not None:
        mounts.append({"name": "code", "mountPath": CODE_DIRECTORY})
    container: JsonObject = {
        "name": CONTAINER,
        "image": run.image or options.image,
        "command": ["/bin/sh", "-c", _literal(LAUNCHER), "kuayu"],
        "args": [_literal(argument) for argument in run.command],
        "env": _variables(run, options, share),
        "resources": {"requests": {**options.requests, **devices}, "limits": devices},
        "terminationMessagePath": TERMINATION_LOG,
        "volumeMounts": mounts,
    }
    directory = run.working_directory or (CODE_DIRECTORY if run.code is not None else None)
    if directory is not None:
        container["workingDir"] = directory
    return container


def _variables(run: Run, options: PodOptions, share: Share) -> list[JsonObject]:
    """Variables of all processes of a pod; RANK and LOCAL_RANK come from the launcher."""
    met = replace(run, rendezvous=meeting_place(run, options.kind))
    values = environment(met, 0, 0, share.processes)
    del values["RANK"], values["LOCAL_RANK"]
    values.setdefault("PYTHONUNBUFFERED", "1")  # so that lines come when they are printed
    own = {
        "KUAYU_FIRST_RANK": str(share.first_rank),
        "KUAYU_GRACE_SECONDS": str(max(1, math.ceil(run.grace_seconds))),
        "KUAYU_SCRATCH": SCRATCH,
        "KUAYU_TERMINATION_LOG": TERMINATION_LOG,
    }
    return [{"name": name, "value": _literal(value)} for name, value in sorted({**values, **own}.items())]


def _fetcher(run: Run, options: PodOptions) -> JsonObject:
    assert run.code is not None
    return {
        "name": CODE_CONTAINER,
        "image": options.fetch_image or run.image or options.image,
        "command": ["/bin/sh", "-c", _literal(FETCHER), "kuayu"],
        "args": [_literal(run.code), CODE_DIRECTORY],
        "volumeMounts": [{"name": "code", "mountPath": CODE_DIRECTORY}],
    }


def _literal(text: str) -> str:
    """A text that Kubernetes hands on as it is: it replaces ``$(NAME)``, and ``$$`` by a dollar sign."""
    return text.replace("$", "$$")
