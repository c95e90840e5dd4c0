"""Indicators of devices, nodes, domains and links: newest values, and wholes made of their parts."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from minimal_server.conversion import WORST, Conversion
from minimal_server.core import Answer, Json, Request, Tenant, instant, milliseconds

REGISTERED = {"peak_matrix_throughput": "peak_matrix_throughput", "accelerator_memory_capacity": "memory_capacity"}
"""Measures that a device's registration states, and the member that states them."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value: a number, a state, or a number for each precision; when it was observed; how it came about."""

    content: Any
    observed: int
    provenance: str = "measured"
    parts: int | None = None


class Aggregation(Conversion):
    """Indicator reports."""

    def report(self, request: Request, kind: str, name: str) -> Answer:
        """All values of a node, domain or link at an instant."""
        tenant, at = request.tenant, self.moment_of(request, "at", self.moment)
        record = self.find(tenant, kind, name)
        values = [
            self.value(indicator, measure, device, known)
            for indicator in self.indicators["indicators"]
            for measure in indicator["measures"]
            for device, known in self.known(tenant, kind, record, measure, at)
        ]
        report = {"subject": name, "subject_kind": kind.removesuffix("s"), "at": instant(at), "values": values}
        return Answer(200, {**report, "revision": self.revision(tenant)})

    def value(self, indicator: Json, measure: Json, device: str, known: Known) -> Json:
        """A value as it is answered."""
        return {
            "indicator": indicator["id"],
            "measure": measure["name"],
            **({"device": device} if device else {}),
            measure["kind"]: known.content,
            "unit": measure["unit"],
            "observed_at": instant(known.observed),
            "provenance": known.provenance,
            **({} if known.parts is None else {"parts": known.parts}),
        }

    def known(self, tenant: Tenant, kind: str, record: Json, measure: Json, at: int) -> Iterator[tuple[str, Known]]:
        """The subject's own value (device "") and, for a node, those of its devices."""
        match kind:
            case "nodes":
                whole = self.of_node(tenant, record, measure, at)
            case "domains":
                whole = self.of_domain(tenant, record["id"], measure, at)
            case _:
                whole = self.newest(tenant, ("link", record["id"], ""), measure, at)
        if whole is not None:
            yield "", whole
        for device in sorted(record.get("devices", ()), key=lambda one: str(one["id"])):
            known = self.of_device(tenant, record, device, measure, at)
            if known is not None:
                yield device["id"], known

    def of_device(self, tenant: Tenant, node: Json, device: Json, measure: Json, at: int) -> Known | None:
        """What was observed of a device, else what its registration states."""
        stated = device.get(REGISTERED.get(measure["name"], ""))
        known = self.newest(tenant, ("device", node["id"], device["id"]), measure, at)
        if known is None and stated is not None:
            return Known(stated, milliseconds(node["updated_at"]), "registered")
        return known

    def of_node(self, tenant: Tenant, node: Json, measure: Json, at: int) -> Known | None:
        """What was observed of the node itself, else what its devices make together."""

        def parts(each: Json) -> list[Known | None]:
            return [self.of_device(tenant, node, device, each, at) for device in node.get("devices", ())]

        return self.newest(tenant, ("node", node["id"], ""), measure, at) or self.aggregate(measure, parts)

    def of_domain(self, tenant: Tenant, domain: str, measure: Json, at: int) -> Known | None:
        """What was observed of the domain itself, else what its nodes make together."""
        nodes = [node for node in self.held(tenant, "nodes").values() if node["domain"] == domain]

        def parts(each: Json) -> list[Known | None]:
            return [self.of_node(tenant, node, each, at) for node in nodes]

        return self.newest(tenant, ("domain", domain, ""), measure, at) or self.aggregate(measure, parts)

    def newest(self, tenant: Tenant, key: tuple[str, str, str], measure: Json, at: int) -> Known | None:
        """The value last observed at ``at`` or before, unless it is stale."""
        series = tenant.series.get(key)
        instants = series.instants.get(measure["name"], []) if series else []
        place = bisect_right(instants, at)
        if series is None or place == 0 or self.stale(measure, instants[place - 1], at):
            return None
        return Known(series.records[instants[place - 1]][measure["name"]], instants[place - 1])

    def stale(self, measure: Json, observed: int, at: int) -> bool:
        """Whether a dynamic value is older than five of its periods."""
        return bool(measure["constancy"] == "dynamic" and at - observed > 5000 * measure["period"])

    def aggregate(self, measure: Json, parts: Callable[[Json], list[Known | None]]) -> Known | None:
        """The whole made of its parts by the measure's rule; as old as the oldest of them."""
        rule = measure["aggregation"]
        if rule == "ratio_of_sums":
            return self.ratio(parts(self.measure(measure["numerator"])), parts(self.measure(measure["denominator"])))
        known = [part for part in parts(measure) if part is not None]
        if not known or rule == "none":
            return None
        whole = self.whole(rule, [part.content for part in known])
        return Known(whole, min(part.observed for part in known), "aggregated", len(known))

    def measure(self, name: str) -> Json:
        """The measure of that name."""
        rows = (row for indicator in self.indicators["indicators"] for row in indicator["measures"])
        return next(row for row in rows if row["name"] == name)

    def ratio(self, numerators: list[Known | None], denominators: list[Known | None]) -> Known | None:
        """Quotient of sums over the parts that have both."""
        both = [(top, bottom) for top, bottom in zip(numerators, denominators, strict=True) if top and bottom]
        total = sum(bottom.content for _, bottom in both)
        if not total:
            return None
        oldest = min(part.observed for pair in both for part in pair)
        return Known(sum(top.content for top, _ in both) / total, oldest, "aggregated", len(both))

    def whole(self, rule: str, contents: list[Any]) -> Any:
        """Numbers, states, or numbers for each precision, made one."""
        if not isinstance(contents[0], dict):
            return self.combine(rule, contents)
        precisions = sorted({precision for content in contents for precision in content})
        return {p: self.combine(rule, [content[p] for content in contents if p in content]) for p in precisions}

    def combine(self, rule: str, values: list[Any]) -> Any:
        """Numbers or states made one."""
        match rule:
            case "sum":
                return sum(values)
            case "mean":
                return sum(values) / len(values)
            case "minimum":
                return min(values)
            case "maximum":
                return max(values)
            case _:
                return max(values, key=WORST.index)
