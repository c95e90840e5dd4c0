"""The service: which path leads to which promise, and the journal that outlives the process."""

import base64
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from minimal_server.adjusting import Adjusting
from minimal_server.core import LIMITS, Answer, Refusal, Request, Tenant, instant, wrong_parameter
from minimal_server.otlp import Otlp
from minimal_server.recovering import Recovering
from minimal_server.resources import KINDS
from minimal_server.series import Stepped
from minimal_server.serving import Serving
from minimal_server.streams import Streams

Operation = Callable[..., Answer]

KEPT_HEADERS = ("content-type", "content-encoding", "if-match", "idempotency-key")
"""Headers that a request needs to be carried out again."""

KNOWN_PATHS = 4096
"""Paths of which it is known at most what is under them."""


@dataclass(frozen=True, slots=True)
class Route:
    """Method, pattern of the path with what it names, operation, and the query parameters that it knows.

    What is ``pure`` touches no state: it is neither written down nor waited for.
    """

    method: str
    path: re.Pattern[str]
    operation: Operation
    parameters: tuple[str, ...]
    pure: bool = False


class MinimalServer(Otlp, Stepped, Streams, Serving, Recovering, Adjusting):
    """The whole service; safe to be called from many threads."""

    def __init__(
        self, schemas: Path, tokens: Mapping[str, str], allowed: tuple[str, ...] = (), journal: Path | None = None
    ) -> None:
        """Replay the journal if there is one, then be ready; nothing is scraped before :meth:`begin`."""
        super().__init__(schemas, tokens, allowed)
        self.routes = tuple(self._routes())
        self.known_paths: dict[str, list[tuple[Route, re.Match[str]]]] = {}
        self.journal = -1
        if journal is not None:
            with self.lock:
                self.open_journal(journal)

    def _routes(self) -> list[Route]:
        routes: list[Route] = []

        def add(method: str, path: str, operation: Operation, *parameters: str) -> None:
            routes.append(Route(method, re.compile(path.replace("{}", "([^/]+)")), operation, parameters))

        def of_kind(operation: Callable[[Request, str, str], Answer], kind: str) -> Operation:
            return lambda request, name: operation(request, kind, name)

        add("GET", "/metrics", self.metrics)
        add("GET", "/v1/health", lambda _: Answer(200, {"status": "ok"}))
        add("GET", "/v1/conformance", self.declaration)
        add("GET", "/v1/problems", lambda _: Answer(200, self.problem_register))
        add("GET", "/v1/indicators", lambda _: Answer(200, self.indicators))
        for kind in KINDS:
            add("PUT", f"/v1/{kind}/{{}}", of_kind(self.put, kind))
            add("GET", f"/v1/{kind}/{{}}", of_kind(self.get, kind))
            add("DELETE", f"/v1/{kind}/{{}}", of_kind(self.delete, kind))
        for kind in ("domains", "nodes", "links"):
            add("GET", f"/v1/{kind}/{{}}/indicators", of_kind(self.report, kind), "at")
        for kind in ("domains", "nodes", "links", "scrape-targets"):
            own = ("domain",) if kind == "nodes" else ()
            add("GET", f"/v1/{kind}", lambda request, kind=kind: self.list_page(request, kind), "limit", "cursor", *own)
        add("GET", "/v1/compute-identifiers/{}/resolution", self.resolve)
        about = ("subject", "subject_kind", "device", "from", "to")
        add("GET", "/v1/samples", self.get_samples, "limit", "cursor", *about)
        part = ("detail", "domain")
        add("GET", "/v1/graph", self.get_graph, *part)
        add("GET", "/v1/graph/patch", self.get_patch, "base", *part)
        add("GET", "/v1/graph/events", self.get_events, *part)
        add("POST", "/v1/samples", lambda request: self.once(request, self.post_samples))
        add("GET", "/v1/series", self.get_series, *about, "measure", "step")
        page = ("node", "exporter", "observed_at", "sent_at")
        add("POST", "/v1/expositions", lambda request: self.once(request, self.post_exposition), *page)
        add("POST", "/v1/metrics", lambda request: self.once(request, self.post_metrics))
        add("PUT", "/v1/allocations/{}", self.put_allocation)
        add("GET", "/v1/allocations/{}", self.get_allocation)
        add("DELETE", "/v1/allocations/{}", self.delete_allocation)
        add("GET", "/v1/allocations", self.list_allocations, "limit", "cursor")
        add("GET", "/v1/actions", self.get_actions, "domain", "wait")
        add("POST", "/v1/action-results", self.post_result_of_any)
        add("PUT", "/v1/jobs/{}", self.put_job)
        add("GET", "/v1/jobs/events", self.get_job_events)
        add("GET", "/v1/jobs/{}", self.get_job)
        add("DELETE", "/v1/jobs/{}", self.delete_job)
        add("GET", "/v1/accounts", self.get_accounts)
        add("GET", "/v1/jobs", self.list_jobs, "limit", "cursor")
        add("GET", "/v1/jobs/{}/decision", self.get_decision)
        add("GET", "/v1/jobs/{}/logs", self.get_logs, "after", "limit", "wait")
        add("POST", "/v1/job-loads", self.post_job_load)
        add("POST", "/v1/run-reports", self.post_run_report)
        add("POST", "/v1/run-logs", self.post_run_logs)
        add("POST", "/v1/heartbeats", self.post_heartbeats)
        add("POST", "/v1/log-lines", self.post_log_lines)
        add("GET", "/v1/faults", self.get_faults, "limit", "cursor", *("domain", "state"))
        add("GET", "/v1/faults/events", self.get_fault_events)
        decisions = (
            ("/v1/compute-indices", self.compute_indices),
            ("/v1/probe-plans", self.plan_probes),
            ("/v1/placements", self.place),
            ("/v1/pareto-fronts", self.front),
            ("/v1/allocation-plans", self.plan_allocation),
            ("/v1/routes", self.plan_routes),
            ("/v1/training-demands", self.training_demands),
            ("/v1/layouts", self.rank_layouts),
            ("/v1/task-sizes", self.size_tasks),
            ("/v1/forecasts", self.forecast),
            ("/v1/training-phases", self.recognise_phases),
            ("/v1/waveforms", self.waveform),
            ("/v1/peak-plans", self.plan_peaks),
            ("/v1/reservations", self.reserve),
            ("/v1/shard-plans", self.plan_shards),
            ("/v1/collectives", self.choose_collective),
            ("/v1/backup-plans", self.plan_backups),
            ("/v1/failover-plans", self.plan_failover),
            ("/v1/adjustments", self.plan_adjustments),
        )
        routes += [Route("POST", re.compile(path), decision, (), pure=True) for path, decision in decisions]
        return routes

    def declaration(self, request: Request) -> Answer:
        """What the service conforms to."""
        declaration = {
            "spec_version": "0.1.0",
            "implementation": {"name": "minimal-server", "version": "0.1.0"},
            "profiles": ["COM", "MET", "IDX", "DEM", "FCT", "SCH", "RES", "JOB"],
            "features": [
                *(["scrape"] if self.allowed else []),
                *("otlp", "accounts", "elastic", "serving"),
                *(["tenancy"] if self.tokens else []),
            ],
            "limits": LIMITS,
            "durability": "process",
            "revision": self.revision(request.tenant),
            "now": instant(self.moment),
        }
        return Answer(200, declaration)

    def metrics(self, _request: Request) -> Answer:
        """How much is held."""
        held = sum(len(series.records) for tenant in self.tenants.values() for series in tenant.series.values())
        return Answer(200, f"# TYPE minimal_server_samples gauge\nminimal_server_samples {held}\n")

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer a request; never raises."""
        try:
            with self.lock:
                self.moment = self.read_clock()
                is_open = target in {"/v1/health", "/metrics"}
                tenant = self.tenant("") if is_open else self.authorise(headers)
                if not self.is_pure(method, target):
                    return self.acknowledge(tenant, method, target, headers, body)
            return self.carry_out(tenant, method, target, headers, body)
        except Refusal as refusal:
            return self.refuse(refusal)
        except Exception:  # noqa: BLE001 - the last resort
            traceback.print_exc(file=sys.stderr)
            return self.refuse(Refusal("internal", "the service failed"))

    def is_pure(self, method: str, target: str) -> bool:
        """Whether a request leads to an operation that touches no state."""
        return any(route.pure and route.method == method for route, _ in self.routes_of(target.partition("?")[0]))

    def routes_of(self, path: str) -> "list[tuple[Route, re.Match[str]]]":
        """Operations under a path, with the names in it; most paths are asked for again and again."""
        known = self.known_paths.get(path)
        if known is None:
            if len(self.known_paths) >= KNOWN_PATHS:
                self.known_paths.clear()
            known = [(route, found) for route in self.routes if (found := route.path.fullmatch(path))]
            self.known_paths[path] = known
        return known

    def push(self, tenant: Tenant, target: str, page: bytes) -> None:
        """Take a page that was fetched."""
        with self.lock:
            self.moment = self.read_clock()
            self.acknowledge(tenant, "POST", target, {"content-type": "text/plain"}, page)

    def acknowledge(self, tenant: Tenant, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Carry a request out and write it down before anybody is told."""
        answer = self.carry_out(tenant, method, target, headers, body)
        if method != "GET" and answer.kept and self.journal >= 0:
            kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
            encoded = base64.b64encode(body).decode()
            self.write_down([self.moment, tenant.name, method, target, kept, encoded])
        return answer

    def deed(self, tenant: Tenant, name: str, *arguments: Any) -> None:
        """Write down what nobody has asked for, and do it."""
        if self.journal >= 0:
            self.write_down({"deed": [self.moment, tenant.name, name, *arguments]})
        super().deed(tenant, name, *arguments)

    def carry_out(self, tenant: Tenant, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Find the operation and let it answer. What it does follows from the arguments, the state and ``moment``."""
        try:
            parts = urlsplit(target)
        except ValueError as error:
            raise wrong_parameter("path", f"the target is no path: {error}") from error
        there = self.routes_of(parts.path)
        if not there:
            raise Refusal("not-found", "there is nothing under this path")
        for route, found in there:
            if route.method == method:
                if not route.pure:
                    self.pass_time(tenant)
                query = self.query(parts.query, route.parameters)
                request = Request(tenant, method, parts.path, query, headers, body)
                return route.operation(request, *map(unquote, found.groups()))
        allow = ", ".join(sorted(route.method for route, _ in there))
        raise Refusal("method-not-allowed", f"this path takes {allow}", headers={"Allow": allow})

    def query(self, text: str, known: tuple[str, ...]) -> dict[str, str]:
        """Query parameters, each known and given once."""
        query: dict[str, str] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            if name not in known or name in query:
                raise wrong_parameter(name[:200].replace("\x00", ""), "the parameter is not known, or is given twice")
            query[name] = value
        return query

    def open_journal(self, path: Path) -> None:
        """Carry out again what was acknowledged; a last line that was not written whole was not acknowledged."""
        written = path.read_bytes() if path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]
        self.replaying = True
        for line in whole.splitlines():
            entry = json.loads(line)
            if isinstance(entry, dict) and "deed" in entry:
                self.moment, name, deed, *arguments = entry["deed"]
                getattr(self, deed)(self.tenant(name), *arguments)
            elif isinstance(entry, dict):
                self.epoch = entry["epoch"]
                self.moment = entry.get("resumed", self.moment)
                self.resume()
            else:
                self.moment, name, method, target, headers, body = entry
                self.carry_out(self.tenant(name), method, target, headers, base64.b64decode(body))
        self.replaying = False
        self.journal = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.truncate(self.journal, len(whole))
        os.lseek(self.journal, 0, os.SEEK_END)
        self.moment = self.read_clock()
        self.resume()
        self.write_down({"epoch": self.epoch, "resumed": self.moment})

    def write_down(self, entry: Any) -> None:
        """Hand a line to the kernel, which keeps it whatever becomes of this process."""
        line = json.dumps(entry).encode() + b"\n"
        while line:
            line = line[os.write(self.journal, line) :]
