"""The service's own metrics, in the Prometheus text format under /metrics."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TICK_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0)
"""Seconds of one look at all nodes; much more than a period of these is too long."""

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters, gauges and histograms of one service; each service has a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kuayu_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "kuayu_request_seconds",
            "Time from a request's head to the end of its answer.",
            ["route"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.rate_limited = Counter(
            "kuayu_rate_limited",
            "Requests turned away for coming too fast, by the limit: sender, urgent, address or guess.",
            ["limit"],
            registry=self.registry,
        )
        self.samples = Counter(
            "kuayu_samples", "Samples by what became of them.", ["way", "outcome"], registry=self.registry
        )
        self.queue = Gauge("kuayu_queue_samples", "Samples that wait for the writer.", registry=self.registry)
        self.commit_seconds = Histogram(
            "kuayu_commit_seconds", "Time of a commit.", buckets=LATENCY_BUCKETS, registry=self.registry
        )
        self.commit_commands = Histogram(
            "kuayu_commit_commands",
            "Commands that shared a commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self.registry,
        )
        self.scrapes = Counter("kuayu_scrapes", "Scrapes by outcome.", ["outcome"], registry=self.registry)
        self.decisions_waiting = Gauge(
            "kuayu_decisions_waiting", "Requests that wait for a decision to be computed.", registry=self.registry
        )
        self.decision_seconds = Histogram(
            "kuayu_decision_seconds",
            "Time of computing a decision, from the bytes of the request to those of the answer.",
            ["operation"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.indices = Counter(
            "kuayu_indices",
            "Compute indices by what they rest on and what became of them.",
            ["basis", "outcome"],
            registry=self.registry,
        )
        self.placements = Counter("kuayu_placements", "Placement decisions by verb.", ["verb"], registry=self.registry)
        self.placement_fallbacks = Counter(
            "kuayu_placement_fallbacks",
            "Placement reports for which a simpler method had to answer.",
            registry=self.registry,
        )
        self.training_demands = Counter(
            "kuayu_training_demands",
            "Demands of trainings by whether they can run.",
            ["outcome"],
            registry=self.registry,
        )
        self.sized_tasks = Counter(
            "kuayu_sized_tasks",
            "Tasks sized by whether they need less than they ask for.",
            ["outcome"],
            registry=self.registry,
        )
        self.training_phases = Counter(
            "kuayu_training_phases", "Phases of trainings recognised.", ["phase"], registry=self.registry
        )
        self.collective_choices = Counter(
            "kuayu_collective_choices",
            "Collectives chosen, and whether each was another one than that in use.",
            ["collective", "switched"],
            registry=self.registry,
        )
        self.recoveries = Counter(
            "kuayu_recoveries",
            "Recoveries planned, by how jobs are to go on.",
            ["strategy"],
            registry=self.registry,
        )
        self.adjustments = Counter(
            "kuayu_adjustments",
            "Changes of load and latency that running jobs were adjusted to, by what has changed.",
            ["kind"],
            registry=self.registry,
        )
        self.allocations = Counter(
            "kuayu_allocations", "Allocations by the phases that they came into.", ["phase"], registry=self.registry
        )
        self.allocation_seconds = Histogram(
            "kuayu_allocation_seconds",
            "Time from writing an allocation until all of it is held.",
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.action_results = Counter(
            "kuayu_action_results", "Results of actions taken.", ["phase", "outcome"], registry=self.registry
        )
        self.action_readers = Gauge("kuayu_action_readers", "Domains that wait for actions.", registry=self.registry)
        self.jobs = Counter("kuayu_jobs", "Jobs by the states that they came into.", ["state"], registry=self.registry)
        self.run_reports = Counter(
            "kuayu_run_reports", "Reports of runs taken, by what they say.", ["state"], registry=self.registry
        )
        self.run_log_lines = Counter(
            "kuayu_run_log_lines",
            "Lines of runs' logs by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self.job_log_readers = Gauge(
            "kuayu_job_log_readers", "Readers that wait for lines of jobs' logs.", registry=self.registry
        )
        self.job_passes = Counter(
            "kuayu_job_passes", "Passes of the control loop of jobs by outcome.", ["outcome"], registry=self.registry
        )
        self.job_pass_seconds = Histogram(
            "kuayu_job_pass_seconds",
            "Time of the parts of a pass: gathering what is known, deciding, carrying out.",
            ["part"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.job_steps = Counter(
            "kuayu_job_steps",
            "Steps that passes lead to, by what they do with a job.",
            ["verb"],
            registry=self.registry,
        )
        self.jobs_waiting = Gauge("kuayu_jobs_waiting", "Jobs that are queued.", registry=self.registry)
        self.job_subscribers = Gauge("kuayu_job_subscribers", "Readers that follow jobs.", registry=self.registry)
        self.graph_tick_seconds = Histogram(
            "kuayu_graph_tick_seconds",
            "Time from taking in what arrived until the resource graph shows it.",
            buckets=TICK_BUCKETS,
            registry=self.registry,
        )
        self.graph_recognition_seconds = Histogram(
            "kuayu_graph_recognition_seconds",
            "Time of recognising the states of one tenant's nodes.",
            buckets=TICK_BUCKETS,
            registry=self.registry,
        )
        self.graph_changes = Counter(
            "kuayu_graph_changes", "Changes of resource graphs published.", registry=self.registry
        )
        self.graph_subscribers = Gauge(
            "kuayu_graph_subscribers", "Readers that follow a resource graph.", registry=self.registry
        )

        self.intake = Counter(
            "kuayu_intake",
            "Heartbeats and log lines by what became of them.",
            ["item", "outcome"],
            registry=self.registry,
        )
        self.faults = Counter("kuayu_faults", "Faults told.", ["kind"], registry=self.registry)
        self.open_faults = Gauge("kuayu_open_faults", "Faults that are open.", ["kind"], registry=self.registry)
        self.fault_look_seconds = Histogram(
            "kuayu_fault_look_seconds",
            "Time from taking in what arrived until what it tells about faults is durable.",
            buckets=TICK_BUCKETS,
            registry=self.registry,
        )
        self.fault_telling_seconds = Histogram(
            "kuayu_fault_telling_seconds",
            "Time from finding that a fault has come or gone until that is durable.",
            buckets=TICK_BUCKETS,
            registry=self.registry,
        )
        self.fault_subscribers = Gauge("kuayu_fault_subscribers", "Readers that follow faults.", registry=self.registry)

    def committed(self, seconds: float, commands: int) -> None:
        """A group was committed."""
        self.commit_seconds.observe(seconds)
        self.commit_commands.observe(commands)

    def queued(self, weight: int) -> None:
        """So many samples wait."""
        self.queue.set(weight)

    def took(self, method: str, accepted: int, rejected: int) -> None:
        """A bulk request was answered."""
        self.samples.labels(method, "accepted").inc(accepted)
        self.samples.labels(method, "rejected").inc(rejected)

    def took_in(self, item: str, accepted: int, rejected: int) -> None:
        """A batch of heartbeats or log lines was answered."""
        self.intake.labels(item, "accepted").inc(accepted)
        self.intake.labels(item, "rejected").inc(rejected)

    def page(self) -> bytes:
        """All of it as a page in the text format."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts and times requests by the route that answered them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and watch its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.requests.labels(scope["method"], route, status).inc()
            self.metrics.latency.labels(route).observe(time.perf_counter() - began)
