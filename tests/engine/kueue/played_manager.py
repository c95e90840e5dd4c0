"""The API server of a Kueue manager cluster, played over HTTP.

It does what a dispatcher meets of a real one (kubernetes.io/docs/reference/using-api/api-concepts): lists with pages
and a version, watches with bookmarks that go on from a version, end after a while, break, or find what they ask for
gone; patches that are refused where somebody else was faster; and permissions, for which it takes the very roles that
``kuayu kueue manifests`` prints. Of Kueue it plays what its controllers and webhooks do with nominations
(kubernetes-sigs/kueue v0.19.2: validation in apis/kueue/v1beta2/workload_types.go, pkg/webhooks/workload_webhook.go).
"""

import contextlib
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from engine.runs.kubernetes_fields import complaints
from engine.runs.played_cluster import TOKEN

from kuayu.engine.kueue.objects import GROUP, Version, multikueue_objects, permission_objects

JsonObject = dict[str, Any]

NAMESPACE = "team-a"
LEASES = "kuayu"
"""Namespace of the lease."""

PAGE = 2
"""Objects on a page of a list, so that there are pages."""

PLURALS = {
    "Workload": "workloads",
    "AdmissionCheck": "admissionchecks",
    "MultiKueueConfig": "multikueueconfigs",
    "MultiKueueCluster": "multikueueclusters",
}
_PATH = re.compile(r"/apis/([^/]+)/[^/]+(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?")


class PlayedManager:
    """A manager cluster, with its API at ``url``.

    Args:
        folder: Where its kubeconfig is.
        version: Of Kueue's API; none where there is no Kueue.

    Attributes:
        url: Where it answers.
        requests: What it was asked, in order: verb and resource.
        watching: How many watches are open.
        prunes: Members of a status that its definitions of resources do not have.
        allowed: Rules of roles, each with its namespace; empty for all of the cluster.
        refuses: Verbs and resources that are refused, and how often, by status.
        before_patch: Called before a patch is looked at, as somebody else's doing.
        away: Whether it answers nothing.
    """

    def __init__(self, folder: Path, version: Version | None = "v1beta2") -> None:
        self.version = version
        self.requests: list[str] = []
        self.prunes: set[str] = set()
        self.refuses: dict[str, tuple[int, int]] = {}
        self.before_patch: Callable[[], None] = lambda: None
        self.watching = 0
        self.away = False
        self.allowed = list(_rules(permission_objects(LEASES)))
        self._folder = folder
        self._objects: dict[str, JsonObject] = {}
        self._changes: list[tuple[int, str, str, JsonObject]] = []
        self._gone_before = 0
        self._numbers = itertools.count(1)
        self._last = 0
        self._breaks = 0
        self._changed = threading.Condition(threading.RLock())
        self.closed = False
        handler = type("Handler", (_Handler,), {"manager": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self) -> Path:
        """A file by which kubectl would reach it."""
        file = self._folder / "manager.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "manager",
            "contexts": [{"name": "manager", "context": {"cluster": "it", "user": "me", "namespace": LEASES}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
        }
        file.write_text(yaml.safe_dump(content))
        return file

    # --- what others do with it ---

    def set_up(self, clusters: Mapping[str, str], check: str = "kuayu") -> None:
        """Make clusters workers, as ``kuayu kueue objects`` prints it, and have Kueue connect to them."""
        assert self.version is not None
        for body in multikueue_objects(check, clusters, self.version, {}):
            assert complaints(body) == []
            self.put(body)
        for name in clusters:
            self.connect(name)

    def connect(self, cluster: str, *, active: bool = True, message: str = "Connected") -> None:
        """Have Kueue say whether it reaches a cluster."""
        condition = {"type": "Active", "status": "True" if active else "False", "message": message}
        self.change(self._path({"kind": "MultiKueueCluster", "metadata": {"name": cluster}}), conditions=[condition])

    def submit(self, name: str, devices: int = 8, pods: int = 1, *, annotation: str = "", **more: Any) -> str:
        """A workload that has quota and waits for a cluster; its path."""
        limits = {"nvidia.com/gpu": str(devices)} if devices else {}
        template: JsonObject = {
            "metadata": {},
            "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
        }
        if annotation:
            template["metadata"]["annotations"] = {"kuayu.dev/job": annotation}
        body = {
            "kind": "Workload",
            "metadata": {"name": name, "namespace": NAMESPACE, **more.pop("metadata", {})},
            "spec": {"podSets": [{"name": "main", "count": pods, "template": template}], **more.pop("spec", {})},
            "status": {
                "conditions": [{"type": "QuotaReserved", "status": "True"}],
                "admissionChecks": [{"name": "kuayu", "state": "Pending"}],
                **more,
            },
        }
        return self.put(body)

    def admit(self, path: str, cluster: str) -> None:
        """Have a cluster admit a workload: Kueue assigns it, and clears its nominations."""
        assert cluster in self.nominated(path)
        admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": now()}
        conditions = [*self.get(path)["status"]["conditions"], admitted]
        checks = [{"name": "kuayu", "state": "Ready"}]
        self.change(
            path, clusterName=cluster, nominatedClusterNames=None, conditions=conditions, admissionChecks=checks
        )

    def put(self, body: JsonObject) -> str:
        """Keep an object that somebody has made; its path."""
        path = self._path(body)
        with self._changed:
            body["apiVersion"] = f"{GROUP}/{self.version}"
            body["metadata"] |= {"uid": f"uid-{body['metadata']['name']}", "creationTimestamp": now()} | body[
                "metadata"
            ]
            self._keep("ADDED", path, body)
        return path

    def configure(self, **settings: Any) -> None:
        """Have Kueue run with a configuration."""
        with self._changed:
            self._objects["/configmaps/kueue-manager-config"] = {
                "data": {"controller_manager_config.yaml": yaml.safe_dump(settings)}
            }

    def change(self, path: str, **status: Any) -> None:
        """Change the status of an object."""
        with self._changed:
            body = json.loads(json.dumps(self._objects[path]))
            _merge(body.setdefault("status", {}), status)
            self._keep("MODIFIED", path, body)

    def remove(self, path: str) -> None:
        """Delete an object."""
        with self._changed:
            body = self._objects.pop(path)
            self._note("DELETED", path, body)

    def get(self, path: str) -> JsonObject:
        """An object as it stands."""
        with self._changed:
            return self._objects[path]

    def nominated(self, path: str) -> list[str]:
        """Clusters that a workload is offered to."""
        return list(self.get(path).get("status", {}).get("nominatedClusterNames") or [])

    def lease(self) -> JsonObject | None:
        """The lease, where there is one."""
        leases = [body for path, body in self._objects.items() if "/leases/" in path]
        return leases[0]["spec"] if leases else None

    def break_watches(self) -> None:
        """End all open watches in the middle of a line."""
        with self._changed:
            self._breaks += 1
            self._changed.notify_all()

    def forget(self) -> None:
        """Let go of all changes so far, as a server does after some minutes, and break the watches."""
        with self._changed:
            self._last = next(self._numbers)
            self._gone_before = self._last
            self._changes.clear()
            self.break_watches()

    def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait until something holds of it."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                assert left > 0, "it does not come to hold"
                self._changed.wait(min(left, 0.1))

    # --- the API ---

    def answer(self, method: str, target: str, body: JsonObject) -> tuple[int, JsonObject]:
        """Carry out a request that is no watch."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/version":
            return 200, {"gitVersion": "v1.36.0-played"}
        if parts.path == f"/apis/{GROUP}":
            versions = [{"version": self.version}] if self.version else []
            return (200, {"versions": versions}) if versions else _failure(404, "the server could not find it")
        if parts.path.endswith("/selfsubjectaccessreviews"):
            attributes = body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (attributes["resource"], attributes.get("subresource"))))
            allowed = self._may(attributes["verb"], attributes["group"], resource, attributes["namespace"])
            return 201, {"status": {"allowed": allowed}}
        if matched := re.fullmatch(r"/api/v1/namespaces/([^/]+)/configmaps/([^/]+)", parts.path):
            if not self._may("get", "", "configmaps", matched[1]):
                return _failure(403, "configmaps is forbidden: User cannot get resource configmaps")
            return self._find(f"/configmaps/{matched[2]}")
        return self._answer(method, parts.path, query, body)

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: JsonObject) -> tuple[int, JsonObject]:
        matched = _PATH.fullmatch(path)
        assert matched is not None, path
        group, namespace, plural, name, subresource = matched.groups()
        verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch"}[method]
        verb = "watch" if query.get("watch") else verb
        resource = f"{plural}/{subresource}" if subresource else plural
        if verb == "patch":
            self.before_patch()
        with self._changed:
            self.requests.append(f"{verb} {resource}")
            if not self._may(verb, group, resource, namespace or ""):
                return _failure(403, f"{resource} is forbidden: User cannot {verb} resource {resource}")
            status, left = self.refuses.get(f"{verb} {resource}", (0, 0))
            if left:
                self.refuses[f"{verb} {resource}"] = (status, left - 1)
                return _failure(status, "the server is not able to do that now")
            if verb == "watch":
                return 200, {}
            if verb == "list":
                return 200, self._page(path, query)
            if verb == "create":
                return self._create(f"{path}/{body['metadata']['name']}", body)
            if verb == "patch":
                return self._patch(path.removesuffix(f"/{subresource}"), body)
            return self._find(path)

    def _find(self, path: str) -> tuple[int, JsonObject]:
        with self._changed:
            return (200, self._objects[path]) if path in self._objects else _failure(404, f"{path} not found")

    def _may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        return any(
            verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"]
            for place, rule in self.allowed
            if not place or place == namespace
        )

    def _page(self, path: str, query: Mapping[str, str]) -> JsonObject:
        plural = path.rpartition("/")[2]
        bodies = [body for key, body in sorted(self._objects.items()) if f"/{plural}/" in key]
        begin, size = int(query.get("continue", "0")), min(PAGE, int(query.get("limit", PAGE)))
        metadata = {"resourceVersion": str(self._last)}
        if begin + size < len(bodies):
            metadata["continue"] = str(begin + size)
        return {"kind": "List", "metadata": metadata, "items": bodies[begin : begin + size]}

    def _create(self, path: str, body: JsonObject) -> tuple[int, JsonObject]:
        if path in self._objects:
            return _failure(409, "it exists already")
        if wrong := complaints(body):
            return _failure(422, wrong[0])
        self._keep("ADDED", path, body)
        return 201, body

    def _patch(self, path: str, change: JsonObject) -> tuple[int, JsonObject]:
        if path not in self._objects:
            return _failure(404, f"{path} not found")
        body = json.loads(json.dumps(self._objects[path]))
        version = (change.get("metadata") or {}).pop("resourceVersion", None)
        if version is not None and version != body["metadata"]["resourceVersion"]:
            return _failure(409, "the object has been modified; please apply your changes to the latest version")
        _merge(body, change)
        for member in self.prunes:
            body.get("status", {}).pop(member, None)
        status = body.get("status", {})
        if status.get("clusterName") and status.get("nominatedClusterNames"):
            return _failure(422, "clusterName and nominatedClusterNames are mutually exclusive")
        self._keep("MODIFIED", path, body)
        return 200, body

    def _keep(self, kind: str, path: str, body: JsonObject) -> None:
        self._objects[path] = body
        self._note(kind, path, body)

    def _note(self, kind: str, path: str, body: JsonObject) -> None:
        self._last = next(self._numbers)
        body["metadata"]["resourceVersion"] = str(self._last)
        plural = path.split("/")[-2]
        self._changes.append((self._last, plural, kind, json.loads(json.dumps(body))))
        self._changed.notify_all()

    def _path(self, body: JsonObject) -> str:
        namespace = body["metadata"].get("namespace")
        place = f"/namespaces/{namespace}" if namespace else ""
        return f"/apis/{GROUP}/{self.version}{place}/{PLURALS[body['kind']]}/{body['metadata']['name']}"

    def watch(self, target: str) -> Iterator[bytes]:
        """Lines of a watch, until its time is over or it breaks."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        plural, last = parts.path.rpartition("/")[2], int(query["resourceVersion"])
        end = time.monotonic() + float(query["timeoutSeconds"])
        with self._changed:
            breaks = self._breaks
            self.watching += 1
        try:
            while time.monotonic() < end:
                with self._changed:
                    if last < self._gone_before:
                        yield _line("ERROR", _failure(410, f"too old resource version: {last}")[1])
                        return
                    fresh = [entry for entry in self._changes if entry[0] > last]
                    if not fresh and not self.closed and breaks == self._breaks:
                        self._changed.wait(0.2)
                        continue
                    if self.closed or breaks != self._breaks:
                        yield b'{"type": "MODIF'
                        return
                for last, kind_of, kind, body in fresh:
                    if kind_of == plural:
                        yield _line(kind, body)
                    else:
                        yield _line("BOOKMARK", {"metadata": {"resourceVersion": str(last)}})
        finally:
            with self._changed:
                self.watching -= 1


def now() -> str:
    """Now, as the API writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _rules(objects: list[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    for body in objects:
        for rule in body.get("rules", ()):
            yield body["metadata"].get("namespace", ""), rule


def _line(kind: str, body: JsonObject) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def _merge(body: JsonObject, change: JsonObject) -> None:
    """RFC 7386."""
    for key, value in change.items():
        if value is None:
            body.pop(key, None)
        elif isinstance(value, dict):
            _merge(body.setdefault(key, {}), value)
        else:
            body[key] = value


def _failure(code: int, message: str) -> tuple[int, JsonObject]:
    return code, {"kind": "Status", "status": "Failure", "message": message, "code": code}


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP for a manager cluster."""

    protocol_version = "HTTP/1.1"
    manager: PlayedManager

    def handle(self) -> None:
        """Serve a connection; one whose other end was killed is over."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.manager.closed or self.manager.away:
            self.close_connection = True
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._write(*_failure(401, "Unauthorized"))
            return
        status, content = self.manager.answer(self.command, self.path, body)
        if status == 200 and "watch=true" in self.path:
            self._follow()
        else:
            self._write(status, content)

    def _write(self, status: int, body: JsonObject) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def _follow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            for line in self.manager.watch(self.path):
                self.wfile.write(line)
        self.close_connection = True
