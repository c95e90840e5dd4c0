"""A connection to a Kubernetes API server, with what a kubeconfig or a pod's own account says.

It takes the same ways as kubectl: the file that is named, else those of $KUBECONFIG (the first that says something
prevails), else ``~/.kube/config``, else the service account of the pod that it runs in. Client certificates, tokens,
files of tokens, passwords and exec plugins are understood
(https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/,
https://kubernetes.io/docs/reference/config-api/client-authentication.v1/). Secrets go into no message.
"""

import base64
import contextlib
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import yaml

from kuayu.engine.runs.protocol import EngineError

JsonObject = dict[str, Any]
"""An object of the Kubernetes API, as YAML or JSON; its kind says what is in it, and the cluster what it takes."""

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its account."""

TIMEOUT_SECONDS = 30.0
PLUGIN_SECONDS = 60.0
"""How long an exec plugin may take to come by a token: some ask a person's browser."""

EXPIRY_MARGIN_SECONDS = 60.0
MERGE_PATCH = "application/merge-patch+json"
NOT_FOUND = 404
CONFLICT = 409
UNAUTHORIZED = 401
FORBIDDEN = 403
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class ApiError(EngineError):
    """An API server refuses something.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: int, cause: str, hint: str = "") -> None:
        super().__init__(cause, hint, transient=status in _TRANSIENT)
        self.status = status


@dataclass(frozen=True)
class Access:
    """How an API server is reached.

    Attributes:
        server: Its URL.
        namespace: Namespace that is meant where nobody names one.
        tls: Whom to trust, and the client's certificate.
        user: What a kubeconfig says of the user: token, tokenFile, username, password, exec.
        directory: Where relative paths begin.
        proxy: Proxy on the way, or None.
        server_name: Name in the server's certificate where it is not that of the URL.
    """

    server: str
    namespace: str
    tls: ssl.SSLContext | bool
    user: Mapping[str, Any]
    directory: Path
    proxy: str | None = None
    server_name: str | None = None


def find_access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """How to reach the API server that is meant.

    Args:
        kubeconfig: File that says so; where None, the usual places.
        context: Context in it; the current one where None.

    Raises:
        EngineError: None is named, or what is named cannot be used.
    """
    listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    files = [kubeconfig] if kubeconfig is not None else listed or [Path.home() / ".kube" / "config"]
    present = [file for file in files if file.is_file()]
    if present:
        return _from_files(present, context)
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _from_account()
    raise EngineError(
        f"there is no kubeconfig at {files[0]}", "name one by the option kubeconfig, or in KUBECONFIG as for kubectl"
    )


def _from_account() -> Access:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        namespace = (ACCOUNT / "namespace").read_text("utf-8").strip()
    except OSError as error:
        raise EngineError(
            f"this pod has no service account: {error}", "give it one (automountServiceAccountToken), or a kubeconfig"
        ) from error
    host = f"[{host}]" if ":" in host else host
    return Access(f"https://{host}:{port}", namespace, tls, {"tokenFile": str(ACCOUNT / "token")}, ACCOUNT)


def _from_files(files: list[Path], context: str | None) -> Access:
    named: dict[str, dict[str, tuple[JsonObject, Path]]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = context
    for file in files:
        content = _read(file)
        current = current or content.get("current-context") or None
        for section, entries in named.items():
            for named_entry in content.get(section) or []:
                entries.setdefault(named_entry["name"], (named_entry.get(section[:-1]) or {}, file.parent))

    def entry(section: str, name: str | None) -> tuple[JsonObject, Path]:
        if name is None or name not in named[section]:
            known = ", ".join(sorted(named[section])) or "none"
            raise EngineError(f"{files[0]} has no {section[:-1]} {name or '(none is current)'}", f"it has: {known}")
        return named[section][name]

    chosen, _ = entry("contexts", current)
    cluster, beside_cluster = entry("clusters", chosen.get("cluster"))
    user, beside_user = entry("users", chosen["user"]) if chosen.get("user") else ({}, files[0].parent)
    if "server" not in cluster:
        raise EngineError(f"cluster {chosen['cluster']} of {files[0]} has no server", "add it: server: https://…")
    return Access(
        server=cluster["server"].rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        tls=_tls(cluster, beside_cluster, user, beside_user),
        user=user,
        directory=beside_user,
        proxy=cluster.get("proxy-url"),
        server_name=cluster.get("tls-server-name"),
    )


def _read(file: Path) -> JsonObject:
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise EngineError(f"{file} cannot be read as a kubeconfig", "check it with: kubectl config view") from error
    if not isinstance(content, dict):
        raise EngineError(f"{file} is no kubeconfig", "check it with: kubectl config view")
    return content


def _tls(cluster: JsonObject, beside: Path, user: JsonObject, beside_user: Path) -> ssl.SSLContext | bool:
    """Whom to trust, and the client's certificate."""
    if not cluster["server"].startswith("https:"):
        return False
    try:
        authority = _data(cluster, "certificate-authority", beside)
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        add_certificate(context, _data(user, "client-certificate", beside_user), _data(user, "client-key", beside_user))
    except (OSError, ValueError) as error:
        raise EngineError(
            f"a certificate of the kubeconfig cannot be used: {error}", "check it with: kubectl config view --raw"
        ) from error
    return context


def _data(entry: JsonObject, key: str, beside: Path) -> bytes | None:
    """What a kubeconfig holds itself, or in a file that it names."""
    if entry.get(f"{key}-data"):
        return base64.b64decode(entry[f"{key}-data"], validate=True)
    return (beside / entry[key]).read_bytes() if entry.get(key) else None


def add_certificate(context: ssl.SSLContext, certificate: bytes | None, key: bytes | None) -> None:
    """Have a client show a certificate. OpenSSL reads one from a file only: it is there for a moment, and private."""
    if certificate is None or key is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "client.pem"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(certificate + b"\n" + key)
        context.load_cert_chain(file)


class Credentials(httpx.Auth):
    """Says who asks: fetches a token when there is need, and again when it is refused.

    Args:
        access: What is known of the user.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = float("-inf")

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request, and once more where its token is over."""
        user = self._access.user
        if user.get("username"):
            plain = f"{user['username']}:{user.get('password', '')}".encode()
            request.headers["Authorization"] = "Basic " + base64.b64encode(plain).decode()
            yield request
            return
        token = self.token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == UNAUTHORIZED and "exec" in user:
            self._until = float("-inf")
            request.headers["Authorization"] = f"Bearer {self.token()}"
            yield request

    def token(self) -> str | None:
        """The token that is to be shown; None where there is none.

        Raises:
            EngineError: It cannot be had.
        """
        user = self._access.user
        with self._lock:
            if "exec" in user:
                if time.time() >= self._until - EXPIRY_MARGIN_SECONDS:
                    self._ask(user["exec"])
                return self._token
            if user.get("token"):
                return str(user["token"])
            if user.get("tokenFile"):  # it is replaced from time to time
                file = self._access.directory / str(user["tokenFile"])
                try:
                    return file.read_text("utf-8").strip()
                except OSError as error:
                    raise EngineError(
                        f"the token at {file} cannot be read", "check the kubeconfig's tokenFile"
                    ) from error
            return None

    def _ask(self, plugin: JsonObject) -> None:
        """Have a program of the kubeconfig come by a token (client.authentication.k8s.io)."""
        name = plugin["command"]
        info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
        own = {entry["name"]: entry["value"] for entry in plugin.get("env") or []}
        try:
            done = subprocess.run(  # noqa: S603 - a kubeconfig names the program, as for kubectl
                [name, *(plugin.get("args") or [])],
                env={**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=PLUGIN_SECONDS,
            )
            status = json.loads(done.stdout)["status"]
            until = status.get("expirationTimestamp")
            self._until = datetime.fromisoformat(until).astimezone(UTC).timestamp() if until else float("inf")
            self._token = status.get("token")
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            if isinstance(self._access.tls, ssl.SSLContext) and certificate and key:
                add_certificate(self._access.tls, certificate.encode(), key.encode())
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, AttributeError) as error:
            hint = plugin.get("installHint") or f"run {name} as the kubeconfig has it, and see what it says"
            raise EngineError(f"{name} of the kubeconfig gives no credentials", hint.strip()) from error


class Connection:
    """Asks an API server.

    Args:
        access: How it is reached.
        timeout: Seconds that it may take to answer.

    Attributes:
        close: Ends it; it also ends when nobody holds it any more.
    """

    def __init__(self, access: Access, timeout: float = TIMEOUT_SECONDS) -> None:
        self.access = access
        self._client = httpx.Client(
            base_url=access.server,
            verify=access.tls,
            auth=Credentials(access),
            proxy=access.proxy,
            timeout=timeout,
            trust_env=access.proxy is None,
            headers={"Accept": "application/json", "User-Agent": "kuayu"},
        )
        self.close = weakref.finalize(self, self._client.close)

    def get(self, path: str, **query: str) -> JsonObject:
        """An object or a list.

        Raises:
            ApiError: It is refused, or there is none.
            EngineError: The server does not answer.
        """
        return self._json(self._send("GET", path, query))

    def find(self, path: str) -> JsonObject | None:
        """An object; None where there is none.

        Raises:
            EngineError: That cannot be told.
        """
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def items(self, path: str, **query: str) -> list[JsonObject]:
        """All objects of a list, page by page.

        Raises:
            EngineError: It cannot be had.
        """
        objects: list[JsonObject] = []
        onward = {**query, "limit": "500"}
        while True:
            page = self.get(path, **onward)
            objects += page.get("items") or []
            if not (token := (page.get("metadata") or {}).get("continue")):
                return objects
            onward["continue"] = token

    def create(self, path: str, body: JsonObject, **query: str) -> JsonObject:
        """Make an object.

        Raises:
            ApiError: It is refused; with :data:`CONFLICT` where there is one of that name.
            EngineError: The server does not answer; whether it was made cannot be told.
        """
        return self._json(self._send("POST", path, query, body))

    def patch(self, path: str, body: JsonObject, **query: str) -> JsonObject:
        """Change members of an object (RFC 7386); with ``resourceVersion`` only where nobody else has.

        Raises:
            EngineError: As of :meth:`create`.
        """
        return self._json(self._send("PATCH", path, query, body, MERGE_PATCH))

    def delete(self, path: str, **options: Any) -> None:
        """Have an object deleted; what is not there is deleted.

        Args:
            path: Of the object.
            options: ``propagationPolicy``, ``gracePeriodSeconds``, ….

        Raises:
            EngineError: It is refused, or the server does not answer.
        """
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        with contextlib.suppress(MissingError):
            self._send("DELETE", path, {}, body)

    def denied(
        self, group: str, resource: str, verbs: Iterable[str], *, namespace: str = "", subresource: str = ""
    ) -> list[str]:
        """Which of some verbs whoever asks may not use (SelfSubjectAccessReview).

        Args:
            group: API group.
            resource: Resource in it.
            verbs: The verbs.
            namespace: Where; in all of the cluster where it is empty.
            subresource: Of the resource; itself where it is empty.

        Raises:
            EngineError: That cannot be told.
        """
        denied = []
        for verb in verbs:
            attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
            if subresource:
                attributes["subresource"] = subresource
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            answer = self.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
            if not (answer.get("status") or {}).get("allowed"):
                denied.append(verb)
        return denied

    @contextlib.contextmanager
    def lines(self, path: str, query: Mapping[str, str]) -> Iterator[Iterator[str]]:
        """Lines of text, as they come.

        Args:
            path: Where they are.
            query: Parameters.

        Raises:
            EngineError: There are none, or they end before their end.
        """
        try:
            with self._client.stream("GET", path, params=dict(query)) as response:
                if response.is_error:
                    response.read()
                    raise _refusal(response)
                yield response.iter_lines()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: JsonObject | None = None,
        content_type: str = "application/json",
    ) -> httpx.Response:
        extensions: dict[str, Any] = {}
        if self.access.server_name is not None:
            extensions["sni_hostname"] = self.access.server_name
        try:
            response = self._client.request(
                method,
                path,
                params=dict(query),
                content=None if body is None else json.dumps(body),
                headers=MappingProxyType({"Content-Type": content_type}),
                extensions=extensions,
            )
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise _refusal(response)
        return response

    def _unreachable(self, error: httpx.HTTPError) -> EngineError:
        return EngineError(
            f"the API server {self.access.server} does not answer: {error or type(error).__name__}",
            "see whether kubectl get --raw /version does, with the same kubeconfig",
            transient=True,
        )

    def _json(self, response: httpx.Response) -> JsonObject:
        try:
            content = response.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise EngineError(
                f"{self.access.server} does not answer as an API server does", "check the kubeconfig's server"
            )
        return content


class MissingError(ApiError):
    """There is no such object."""


def _refusal(response: httpx.Response) -> ApiError:
    """What an API server says when it refuses (a Status of meta/v1)."""
    status = response.status_code
    try:
        content = response.json()
        message = content["message"] if isinstance(content, dict) else ""
    except (ValueError, KeyError):
        message = ""
    cause = str(message or f"HTTP {status} to {response.request.method} {response.request.url.path}")
    hints = {
        UNAUTHORIZED: "the kubeconfig's credentials are not accepted; log in anew",
        FORBIDDEN: "have the account allowed it: kuayu engine check lists what it needs",
    }
    kind = MissingError if status == NOT_FOUND else ApiError
    return kind(status, cause, hints.get(status, ""))
