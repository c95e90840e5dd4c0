"""The aggregator's own metrics, in the Prometheus text format."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, generate_latest

from kuayu.engine.agent.spool import Level


class Metrics:
    """Counters and gauges of one aggregator, with a registry of their own."""

    def __init__(self, domain: str, version: str) -> None:
        self.registry = CollectorRegistry()
        Info("kuayu_agent", "What runs.", registry=self.registry).info({"domain": domain, "version": version})
        self.received = self._counter("received_samples", "Samples that senders brought.", ["outcome"])
        self.turned_away = self._counter("turned_away_requests", "Requests answered with overloaded.", ["reason"])
        self.forwarded = self._counter("forwarded_samples", "Samples that the service has acknowledged.")
        self.rejected = self._counter("rejected_samples", "Samples that the service refused for good.", ["problem"])
        self.dropped = self._counter("dropped_samples", "Acknowledged samples that were not sent on.", ["reason"])
        self.attempts = self._counter("attempts", "Attempts to send a parcel.", ["outcome"])
        self.batches = self._counter("parcels", "Parcels that met their fate.")
        self.spooled = self._gauge("spooled_samples", "Samples in the spool.")
        self.held = self._gauge("held_samples", "Samples in the spool whose subject the service did not know.")
        self.octets = self._gauge(
            "spooled_bytes",
            "Bytes of the samples in the spool.",
        )
        self.oldest = self._gauge(
            "oldest_seconds", "Age of the oldest sample in the spool, nought where there is none."
        )
        self.up = self._gauge("up", "Whether the service answered when it was last asked.")

    def watch(self, level: Callable[[], Level], oldest: Callable[[], float], *, up: Callable[[], bool]) -> None:
        """Notify where the gauges get their values from."""
        self.spooled.set_function(lambda: level().samples)
        self.held.set_function(lambda: level().held)
        self.octets.set_function(lambda: level().octets)
        self.oldest.set_function(oldest)
        self.up.set_function(up)

    def refused(self) -> int:
        """How many samples the service has refused for good since the start."""
        values = (sample for metric in self.rejected.collect() for sample in metric.samples)
        return round(sum(sample.value for sample in values if sample.name.endswith("_total")))

    def page(self) -> bytes:
        """All of it as a page."""
        return generate_latest(self.registry)

    def _counter(self, name: str, purpose: str, labels: list[str] | None = None) -> Counter:
        return Counter(f"kuayu_agent_{name}", purpose, labels or (), registry=self.registry)

    def _gauge(self, name: str, purpose: str) -> Gauge:
        return Gauge(f"kuayu_agent_{name}", purpose, registry=self.registry)
