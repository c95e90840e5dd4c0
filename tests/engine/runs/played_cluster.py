"""A Kubernetes cluster, played over HTTP: an API server that keeps objects, with controllers, a scheduler and kubelets.

It does what an engine meets of a real one: objects are checked, kept, listed by label and page by page, patched with
their version and deleted in order; pods are placed by affinity and devices, and run as processes of this host, with
their variables expanded, their lines stamped, their grace, and the death of all that is left in them when the first
process ends. Controllers of batch/v1 Job, JobSet, Volcano and HyperJob make pods of their templates, and say in their
own words how that came out. What it leaves out is what no engine looks at.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from engine.runs.kubernetes_fields import complaints

JsonObject = dict[str, Any]

TOKEN = "a-token-that-is-in-no-message"  # noqa: S105 - of a cluster that ends with the test
POD_VARIABLE = "PLAYED_POD"
PAGE = 3
"""Objects on a page of a list, so that there are pages."""

HOSTNAME = "kubernetes.io/hostname"
INDEX = "batch.kubernetes.io/job-completion-index"
_PROXY = re.compile(r"/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)")
_PATH = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?")


def now() -> str:
    """Now, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp() -> str:
    """Now, as kubelets stamp lines."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09d}Z"


class Pod:
    """A pod and the process in it.

    Attributes:
        body: What the API says of it.
        owner: Path of the workload that it is of.
        cluster: Which of the clusters has it.
        lines: What it has printed, each with its stamp before it.
        ended: Whether nothing of it runs any more.
    """

    def __init__(self, body: JsonObject, owner: str, cluster: str) -> None:
        self.body = body
        self.owner = owner
        self.cluster = cluster
        self.lines: list[str] = []
        self.ended = False
        self.process: subprocess.Popen[bytes] | None = None
        self.kill_at = float("inf")

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def phase(self) -> str:
        return str(self.body["status"]["phase"])

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.body["metadata"].get("labels") or {})

    @property
    def devices(self) -> int:
        limits = self.body["spec"]["containers"][0].get("resources", {}).get("limits", {})
        return sum(int(count) for count in limits.values())

    @property
    def nodes(self) -> list[str]:
        required = self.body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [term] = required["nodeSelectorTerms"]
        [requirement] = term["matchExpressions"]
        assert (requirement["key"], requirement["operator"]) == (HOSTNAME, "In")
        return list(requirement["values"])


class PlayedCluster:
    """A cluster, with its API at ``url``.

    Args:
        folder: Where pods have their files.
        nodes: Devices of each node.
        clusters: Clusters behind it, as Karmada has them; their nodes are those too.
        lacks: Groups of APIs that are not installed.

    Attributes:
        url: Where it answers.
        admitted: Whether queues let workloads begin.
        tries_out: Whether its admission can be asked without anything being made.
        denied: Verbs and resources that are forbidden, as ``VERB RESOURCE``.
        requests: What it was asked, in order: method and path.
        closed: Whether it has ended.
        dropped: How many of the next requests that make something get no answer though they are carried out.
    """

    def __init__(
        self, folder: Path, nodes: Mapping[str, int], clusters: Sequence[str] = ("",), lacks: Sequence[str] = ()
    ) -> None:
        self.admitted = True
        self.tries_out = True
        self.denied: set[str] = set()
        self.requests: list[str] = []
        self.dropped = 0
        self._folder = folder
        self._devices = dict(nodes)
        self._clusters = clusters
        self._lacks = lacks
        self._objects: dict[str, JsonObject] = {}
        self._pods: dict[str, Pod] = {}
        self._lost: set[str] = set()
        self._cordoned: set[str] = set()
        self._numbers = itertools.count(1)
        self._changed = threading.Condition(threading.RLock())
        self.closed = False
        handler = type("Handler", (_Handler,), {"cluster": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            threading.Thread(target=self._play, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End it and all that runs in it."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            pods = list(self._pods.values())
        for pod in pods:
            _kill(pod)
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    def kubeconfig(self) -> Path:
        """A file by which kubectl would reach it."""
        file = self._folder / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "played",
            "contexts": [{"name": "played", "context": {"cluster": "it", "user": "me", "namespace": "team-a"}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
        }
        file.write_text(yaml.safe_dump(content))
        return file

    def workloads(self) -> list[JsonObject]:
        """Workloads that it keeps."""
        with self._changed:
            return [body for path, body in self._objects.items() if "/services/" not in path]

    def put(self, path: str, body: JsonObject) -> None:
        """Keep an object that somebody else has made."""
        with self._changed:
            self._keep(path, body)

    def take_out(self, fragment: str) -> None:
        """Delete objects whose path holds a text, and their pods, as somebody else would."""
        with self._changed:
            for path in [path for path in self._objects if fragment in path]:
                self._delete(path, {"propagationPolicy": "Background"})

    def cordon(self, node: str) -> None:
        """Have a node be given no more pods."""
        self._cordoned.add(node)

    def lose(self, node: str) -> None:
        """Have a node answer no more; what the taint manager does about it comes at once."""
        with self._changed:
            self._lost.add(node)
            for pod in self._pods.values():
                if pod.body["spec"].get("nodeName") == node:
                    pod.body["metadata"]["deletionTimestamp"] = now()
                    pod.body["status"].setdefault("conditions", []).append(
                        {
                            "type": "DisruptionTarget",
                            "status": "True",
                            "reason": "DeletionByTaintManager",
                            "message": "Taint manager: deleting due to NoExecute taint",
                        }
                    )
            self._changed.notify_all()

    # --- the API ---

    def answer(self, method: str, target: str, body: JsonObject) -> tuple[int, bytes]:
        """Carry out a request; the answer as it is now."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        path, cluster = parts.path, ""
        if proxied := _PROXY.fullmatch(path):
            cluster, path = proxied[1], proxied[2]
        with self._changed:
            self.requests.append(f"{method} {path}")
            status, content = self._answer_about_itself(path, body) or self._answer(method, path, query, body, cluster)
            return status, json.dumps(content).encode()

    def _answer_about_itself(self, path: str, body: JsonObject) -> tuple[int, JsonObject] | None:
        if path == "/version":
            return 200, {"gitVersion": "v1.36.0-played"}
        if path.endswith("/selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            return 201, {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}
        if path.split("/")[2] in self._lacks:
            return _status(404, "the server could not find the requested resource")
        if path in {f"/apis/{group}" for group in PLURALS}:
            return 200, {"resources": [{"name": PLURALS[path.removeprefix("/apis/")]}]}
        return None

    def _answer(
        self, method: str, path: str, query: Mapping[str, str], body: JsonObject, cluster: str
    ) -> tuple[int, JsonObject]:
        matched = _PATH.fullmatch(path)
        assert matched is not None, path
        _, namespace, plural, name, subresource = matched.groups()
        verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[method]
        if f"{verb} {plural}" in self.denied:
            return _status(403, f"{plural} is forbidden: User cannot {verb} resource {plural} in {namespace}")
        if plural == "pods":
            return self._answer_pods(method, name, query, body, cluster)
        if plural == "nodes":
            nodes = [
                _node(name, devices, lost=name in self._lost, cordoned=name in self._cordoned)
                for name, devices in self._devices.items()
            ]
            return 200, self._page(nodes, query)
        if name is None:
            if method == "POST":
                return self._create(f"{path}/{body['metadata']['name']}", body, query)
            return 200, self._page([kept for key, kept in self._objects.items() if _lists(path, key)], query)
        return self._answer_object(method, path.removesuffix(f"/{subresource}"), body)

    def _answer_object(self, method: str, path: str, body: JsonObject) -> tuple[int, JsonObject]:
        if path not in self._objects:
            return _status(404, f"{path.rpartition('/')[2]!r} not found")
        if method == "PATCH":
            return self._patch(path, body)
        if method == "DELETE":
            self._delete(path, body)
            return 200, {}
        return 200, self._objects[path]

    def _answer_pods(
        self, method: str, name: str | None, query: Mapping[str, str], body: JsonObject, cluster: str
    ) -> tuple[int, JsonObject]:
        own = [pod for pod in self._pods.values() if pod.cluster == cluster]
        if name is None:
            return 200, self._page([pod.body for pod in own], query)
        for pod in own:
            if pod.name == name:
                if method == "DELETE":
                    self._end_pod(pod, body.get("gracePeriodSeconds"))
                return 200, pod.body
        return _status(404, f"pods {name!r} not found")

    def _page(self, bodies: Sequence[JsonObject], query: Mapping[str, str]) -> JsonObject:
        chosen = [body for body in bodies if _selected(body, query.get("labelSelector", ""))]
        begin = int(query.get("continue", "0"))
        metadata = {"continue": str(begin + PAGE)} if begin + PAGE < len(chosen) else {}
        return {"kind": "List", "metadata": metadata, "items": chosen[begin : begin + PAGE]}

    def _create(self, path: str, body: JsonObject, query: Mapping[str, str]) -> tuple[int, JsonObject]:
        if wrong := complaints(body):
            return _status(422, f"{body.get('kind')} is invalid: {wrong[0]}")
        if path in self._objects:
            return _status(409, f"{path.rpartition('/')[2]!r} already exists", "AlreadyExists")
        if query.get("dryRun") == "All":
            return (201, body) if self.tries_out else _status(400, "admission webhook does not support dry run")
        self._keep(path, body)
        if "/services/" not in path:
            for cluster, template, name, labels, index in _templates(body, self._clusters):
                self._make_pod(path, cluster, template, name, labels, index)
        return 201, body

    def _keep(self, path: str, body: JsonObject) -> None:
        body["metadata"] |= {"uid": f"uid-{next(self._numbers)}", "resourceVersion": str(next(self._numbers))}
        self._objects[path] = body
        self._changed.notify_all()

    def _patch(self, path: str, body: JsonObject) -> tuple[int, JsonObject]:
        kept = self._objects[path]
        version = (body.get("metadata") or {}).pop("resourceVersion", None)
        if version is not None and version != kept["metadata"]["resourceVersion"]:
            return _status(409, "the object has been modified", "Conflict")
        _merge(kept, body)
        kept["metadata"]["resourceVersion"] = str(next(self._numbers))
        return 200, kept

    def _delete(self, path: str, options: Mapping[str, Any]) -> None:
        pods = [pod for pod in self._pods.values() if pod.owner == path]
        for pod in pods:
            self._end_pod(pod, None)
        if pods and options.get("propagationPolicy") == "Foreground":
            self._objects[path]["metadata"].setdefault("deletionTimestamp", now())
        else:
            del self._objects[path]
        self._changed.notify_all()

    def read_log(self, target: str) -> tuple[int, Iterator[str]]:
        """Lines of a pod, as they come where that is asked for."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        assert (query["container"], query["timestamps"]) == ("run", "true")
        path = proxied[2] if (proxied := _PROXY.fullmatch(parts.path)) else parts.path
        name = path.split("/")[-2]
        with self._changed:
            self.requests.append(f"GET {path}")
            found = [pod for pod in self._pods.values() if pod.name == name]
            if not found:
                return 404, iter(())
            if found[0].process is None:
                return 400, iter(())
        return 200, self._follow(found[0], query.get("sinceTime", ""), follow=query.get("follow") == "true")

    def _follow(self, pod: Pod, since: str, *, follow: bool) -> Iterator[str]:
        position = 0
        while True:
            with self._changed:
                while follow and position == len(pod.lines) and not pod.ended and not self.closed:
                    self._changed.wait(1.0)
                fresh = pod.lines[position:]
                position += len(fresh)
                over = pod.ended or self.closed
            yield from (line for line in fresh if line[:19] >= since[:19])
            if not follow or (over and position == len(pod.lines)):
                return

    # --- scheduler, controllers and kubelets ---

    def _make_pod(
        self, owner: str, cluster: str, template: JsonObject, name: str, labels: JsonObject, index: int | None
    ) -> None:
        uid = f"pod-{next(self._numbers)}-{os.urandom(4).hex()}"
        body = json.loads(json.dumps(template))
        metadata = body.setdefault("metadata", {})
        metadata |= {"name": name, "uid": uid}
        metadata.setdefault("labels", {}).update(labels)
        if index is not None:
            metadata.setdefault("annotations", {})[INDEX] = str(index)
            body["spec"]["containers"][0]["env"].append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
        body["status"] = {"phase": "Pending"}
        self._pods[uid] = Pod(body, owner, cluster)

    def _play(self) -> None:
        """Do what a cluster does by itself, whenever something has changed."""
        while True:
            with self._changed:
                if self.closed:
                    return
                self._place()
                self._reconcile()
                self._changed.wait(0.05)
                for pod in self._pods.values():
                    if time.monotonic() >= pod.kill_at and not self._on_lost(pod):
                        _kill(pod)

    def _on_lost(self, pod: Pod) -> bool:
        return pod.body["spec"].get("nodeName") in self._lost

    def _place(self) -> None:
        """Place pods that wait: each where it may be and devices are free; those of Volcano all or none."""
        groups: dict[str, list[Pod]] = {}
        for pod in self._pods.values():
            if pod.phase == "Pending" and "nodeName" not in pod.body["spec"] and not pod.ended:
                gang = pod.owner if "volcano" in pod.owner else pod.name
                groups.setdefault(gang, []).append(pod)
        for group in groups.values():
            if not self._admits(group[0].owner):
                continue
            chosen: list[tuple[Pod, str]] = []
            for pod in group:
                free = [node for node in pod.nodes if self._fits(pod, node, chosen)]
                if free:
                    chosen.append((pod, free[0]))
                else:
                    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                    condition["message"] = f"0/{len(self._devices)} nodes are available: insufficient devices"
                    pod.body["status"]["conditions"] = [condition]
            if len(chosen) == len(group):
                for pod, node in chosen:
                    pod.body["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
                    pod.body["spec"]["nodeName"] = node
                    self._begin(pod)

    def _admits(self, owner: str) -> bool:
        body = self._objects.get(owner)
        if body is None:
            return False
        queued = "kueue.x-k8s.io/queue-name" in body["metadata"]["labels"]
        waits = queued and not self.admitted
        body.setdefault("status", {})["conditions"] = [{"type": "Suspended", "status": "True"}] if waits else []
        return not waits

    def _fits(self, pod: Pod, node: str, chosen: Sequence[tuple[Pod, str]]) -> bool:
        if node not in self._devices or node in self._lost:
            return False
        there = [other for other, place in chosen if place == node and other.cluster == pod.cluster]
        there += [
            other
            for other in self._pods.values()
            if other.body["spec"].get("nodeName") == node and not other.ended and other.cluster == pod.cluster
        ]
        for term in (
            pod.body["spec"]["affinity"]
            .get("podAntiAffinity", {})
            .get("requiredDuringSchedulingIgnoredDuringExecution", [])
        ):
            wanted = term["labelSelector"]["matchLabels"].items()
            if any(wanted <= other.labels.items() for other in there):
                return False
        return sum(other.devices for other in there) + pod.devices <= self._devices[node]

    def _begin(self, pod: Pod) -> None:
        [container] = pod.body["spec"]["containers"]
        if container["image"].startswith("missing/"):
            waiting = {"reason": "ImagePullBackOff", "message": f"Back-off pulling image {container['image']}"}
            pod.body["status"]["containerStatuses"] = [{"image": container["image"], "state": {"waiting": waiting}}]
            return
        place = Path(tempfile.mkdtemp(dir=self._folder, prefix="pod-"))
        mounts = {mount["mountPath"]: str(place / mount["name"]) for mount in container["volumeMounts"]}
        for folder in mounts.values():
            Path(folder).mkdir()
        mounts[container["terminationMessagePath"]] = str(place / "termination-log")
        variables: dict[str, str] = {}
        for variable in container["env"]:
            value = _expand(variable["value"], variables)
            variables[variable["name"]] = mounts.get(value, value)
        arguments = [_expand(text, variables) for text in [*container["command"], *container["args"]]]
        pod.process = subprocess.Popen(
            arguments,
            cwd=container.get("workingDir") or place,
            env={"PATH": os.environ["PATH"], **variables, POD_VARIABLE: pod.body["metadata"]["uid"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        pod.body["status"] |= {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": now()}}}]}
        threading.Thread(target=self._watch, args=(pod, place / "termination-log"), daemon=True).start()

    def _watch(self, pod: Pod, message: Path) -> None:
        """Read what a pod prints, and see to its end, as the kubelet does."""
        process = pod.process
        assert process is not None
        assert process.stdout is not None
        reader = threading.Thread(target=self._read, args=(pod, process), daemon=True)
        reader.start()
        code = process.wait()
        _kill(pod)  # the first process of a container takes all others with it
        reader.join()
        process.stdout.close()
        exit_code = 128 - code if code < 0 else code
        ended = {"exitCode": exit_code, "reason": "Error" if code else "Completed", "finishedAt": stamp()}
        with contextlib.suppress(FileNotFoundError):
            ended["message"] = message.read_text()
        with self._changed:
            pod.ended = True
            if not self._on_lost(pod):
                pod.body["status"]["phase"] = "Failed" if code else "Succeeded"
                pod.body["status"]["containerStatuses"] = [{"state": {"terminated": ended}}]
            self._changed.notify_all()

    def _read(self, pod: Pod, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._changed:
                pod.lines.append(f"{stamp()} {line.decode('utf-8', 'replace').rstrip(chr(10))}")
                self._changed.notify_all()

    def _end_pod(self, pod: Pod, grace: float | None) -> None:
        """Ask a pod to end; a shorter grace than before counts."""
        seconds = float(pod.body["spec"]["terminationGracePeriodSeconds"] if grace is None else grace)
        first = "deletionTimestamp" not in pod.body["metadata"]
        pod.body["metadata"].setdefault("deletionTimestamp", now())
        pod.kill_at = min(pod.kill_at, time.monotonic() + seconds)
        if pod.process is None:
            pod.ended = True
        elif first and not pod.ended and not self._on_lost(pod):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pod.process.pid, signal.SIGTERM)
        self._changed.notify_all()

    def _reconcile(self) -> None:
        """Do what the controllers of workloads do: see how pods come out, end the others, let go of what is gone."""
        for uid, pod in list(self._pods.items()):
            if "deletionTimestamp" in pod.body["metadata"] and pod.ended and not self._on_lost(pod):
                if pod.phase == "Failed" and pod.owner in self._objects and not self._going(pod.owner):
                    continue  # a pod that failed by itself stays to be looked at
                del self._pods[uid]
        for path in list(self._objects):
            pods = [pod for pod in self._pods.values() if pod.owner == path]
            if self._going(path):
                if not pods:
                    del self._objects[path]
            elif pods:
                self._judge(path, pods)

    def _going(self, path: str) -> bool:
        return "deletionTimestamp" in self._objects[path]["metadata"]

    def _judge(self, path: str, pods: Sequence[Pod]) -> None:
        body = self._objects[path]
        if any(pod.phase == "Failed" for pod in pods):
            body["played-failed"] = True
        if body.get("played-failed"):
            for pod in pods:
                if not pod.ended:
                    self._end_pod(pod, None)
            if all(pod.ended for pod in pods):
                _say(body, "Failed", "PodFailurePolicy", "Container run failed")
        elif all(pod.phase == "Succeeded" for pod in pods):
            _say(body, "Completed", "", "")


PLURALS = {
    "batch/v1": "jobs",
    "jobset.x-k8s.io/v1alpha2": "jobsets",
    "batch.volcano.sh/v1alpha1": "jobs",
    "training.volcano.sh/v1alpha1": "hyperjobs",
}


def _templates(
    body: JsonObject, clusters: Sequence[str]
) -> Iterator[tuple[str, JsonObject, str, dict[str, str], int | None]]:
    """Pods of a workload: in which cluster, of which template, their names, labels and indices."""
    name, spec = body["metadata"]["name"], body["spec"]
    if body["kind"] == "JobSet":
        for job in spec["replicatedJobs"]:
            assert job["template"]["spec"]["completions"] == 1
            yield "", job["template"]["spec"]["template"], f"{name}-{job['name']}-0-0-x", {}, 0
    elif body["kind"] == "HyperJob":
        for job in spec["replicatedJobs"]:
            [cluster] = job["clusterNames"]
            assert cluster in clusters
            for task in job["templateSpec"]["tasks"]:
                yield cluster, task["template"], f"{name}-{job['name']}-0-{task['name']}-0", {}, None
    elif body["apiVersion"] == "batch/v1":
        assert spec["completionMode"] == "Indexed"
        for index in range(spec["completions"]):
            yield "", spec["template"], f"{name}-{index}-x", {}, index
    else:
        for task in spec["tasks"]:
            yield "", task["template"], f"{name}-{task['name']}-0", {}, None


def _say(body: JsonObject, end: str, reason: str, message: str) -> None:
    """Have a workload say how it has ended, in the words of its API."""
    if body["apiVersion"].startswith("batch.volcano.sh"):
        phase = "Terminated" if end == "Failed" else "Completed"
        body["status"] = {"state": {"phase": phase, "reason": reason, "message": message}}
        return
    kind = "Complete" if end == "Completed" and body["apiVersion"] == "batch/v1" else end
    body["status"] = {"conditions": [{"type": kind, "status": "True", "reason": reason, "message": message}]}


def _lists(path: str, key: str) -> bool:
    """Whether a list has an object; one without a namespace has those of all."""
    collection = key.rpartition("/")[0]
    return path in {collection, re.sub(r"/namespaces/[^/]+", "", collection)}


def _node(name: str, devices: int, *, lost: bool, cordoned: bool) -> JsonObject:
    message = "Kubelet stopped posting node status." if lost else "kubelet is posting ready status"
    ready = {"type": "Ready", "status": "Unknown" if lost else "True", "message": message}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"allocatable": {"nvidia.com/gpu": str(devices)}, "conditions": [ready]},
    }


def _kill(pod: Pod) -> None:
    """Kill all processes of a pod, wherever they have gone; its variable is in all of them."""
    if pod.process is None:
        return
    variable = f"{POD_VARIABLE}={pod.body['metadata']['uid']}".encode()
    again = True
    while again:
        again = False
        for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
            with contextlib.suppress(OSError):
                if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    again = True


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """What Kubernetes makes of ``$(NAME)`` and ``$$``."""

    def replacement(matched: "re.Match[str]") -> str:
        return "$" if matched[0] == "$$" else variables.get(matched[1], matched[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", replacement, text)


def _selected(body: JsonObject, selector: str) -> bool:
    """Whether an object has the labels of a selector: ``a``, ``a=b`` or ``a in (b,c)``, with commas between."""
    labels = body["metadata"].get("labels") or {}
    for term in filter(None, re.split(r",(?![^(]*\))", selector)):
        if matched := re.fullmatch(r"(\S+) in \((.*)\)", term):
            if labels.get(matched[1]) not in matched[2].split(","):
                return False
        else:
            key, equals, value = term.partition("=")
            if key not in labels or (equals and labels[key] != value):
                return False
    return True


def _merge(kept: JsonObject, change: JsonObject) -> None:
    """RFC 7386."""
    for key, value in change.items():
        if value is None:
            kept.pop(key, None)
        elif isinstance(value, dict):
            _merge(kept.setdefault(key, {}), value)
        else:
            kept[key] = value


def _status(code: int, message: str, reason: str = "") -> tuple[int, JsonObject]:
    return code, {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP for a cluster."""

    protocol_version = "HTTP/1.1"
    cluster: PlayedCluster

    def do_GET(self) -> None:
        if not self._known():
            return
        if urlsplit(self.path).path.endswith("/log"):
            self._send_log()
        else:
            self._write(*self.cluster.answer("GET", self.path, {}))

    def do_POST(self) -> None:
        self._change()

    def do_PATCH(self) -> None:
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        self._change()

    def do_DELETE(self) -> None:
        self._change()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _change(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        if not self._known():
            return
        status, answer = self.cluster.answer(self.command, self.path, body)
        if self.cluster.dropped:
            self.cluster.dropped -= 1
            self.close_connection = True
            return
        self._write(status, answer)

    def _known(self) -> bool:
        if self.cluster.closed:
            self.close_connection = True
            return False
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._send(*_status(401, "Unauthorized"))
        return False

    def _send(self, status: int, body: JsonObject) -> None:
        self._write(status, json.dumps(body).encode())

    def _write(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_log(self) -> None:
        status, lines = self.cluster.read_log(self.path)
        if status != 200:
            self._send(*_status(status, "container is waiting to start"))
            return
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            for line in lines:
                self.wfile.write(line.encode() + b"\n")
        self.close_connection = True
