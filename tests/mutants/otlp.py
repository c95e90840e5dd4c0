"""Wrong in how OpenTelemetry metrics are taken."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from minimal_server import protobuf
from minimal_server.conversion import Part
from minimal_server.core import Answer, Json, Refusal, Tenant
from minimal_server.exposition import Line
from minimal_server.otlp import CUMULATIVE, JSON, PROTOBUF, Timed
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-021")
class HostsComeBeforeNodes(MinimalServer):
    """The node is named by host.name although there is a kuayu.node."""

    @override
    def node_of(self, attributes: dict[str, str]) -> str:
        return attributes.get("host.name") or attributes.get("kuayu.node", "")


@breaks("MET-021")
class HostsNameNoNodes(MinimalServer):
    """The node is named by kuayu.node alone."""

    @override
    def node_of(self, attributes: dict[str, str]) -> str:
        return attributes.get("kuayu.node", "")


@breaks("MET-021")
class UnitsAreNotAppended(MinimalServer):
    """Names of metrics keep what they are without their unit."""

    @override
    def metric_name(self, metric: Json, *, gauge: bool, monotonic: bool) -> str:
        return super().metric_name({**metric, "unit": ""}, gauge=gauge, monotonic=monotonic)


@breaks("MET-021")
class RatiosHaveNoSuffix(MinimalServer):
    """A gauge of unit 1 gets no suffix, the other units do."""

    @override
    def metric_name(self, metric: Json, *, gauge: bool, monotonic: bool) -> str:
        unit = "" if metric.get("unit") == "1" else metric.get("unit")
        return super().metric_name({**metric, "unit": unit}, gauge=gauge, monotonic=monotonic)


@breaks("MET-021")
class EverySumIsATotal(MinimalServer):
    """Sums that go up and down end in _total as well."""

    @override
    def metric_name(self, metric: Json, *, gauge: bool, monotonic: bool) -> str:
        return super().metric_name(metric, gauge=gauge, monotonic=not gauge)


@breaks("MET-021")
class DeltaSumsAreTaken(MinimalServer):
    """Delta sums are taken as if they were cumulative."""

    @override
    def is_taken(self, data: Json, *, gauge: bool) -> bool:
        return True


@breaks("MET-021")
class OnlyCountersAreSums(MinimalServer):
    """Cumulative sums that go up and down are left out."""

    @override
    def is_taken(self, data: Json, *, gauge: bool) -> bool:
        return gauge or (data.get("aggregationTemporality") == CUMULATIVE and bool(data.get("isMonotonic")))


@breaks("MET-021")
class PointsWithoutAValueAreTaken(MinimalServer):
    """The flag that no value was recorded is not looked at."""

    @override
    def point_value(self, point: Json) -> float | None:
        return super().point_value({**point, "flags": 0})


@breaks("MET-021")
class WholeNumbersAreLeftOut(MinimalServer):
    """Values of points are read where they are doubles only."""

    @override
    def point_value(self, point: Json) -> float | None:
        return super().point_value({name: value for name, value in point.items() if name != "asInt"})


@breaks("MET-021")
class MetricsAreOfNow(MinimalServer):
    """The time of receipt is taken for that of observation."""

    @override
    def instant_of(self, point: Json) -> int | None:
        return None


@breaks("MET-021")
class MetricsAreOfAWholeMinute(MinimalServer):
    """Instants of observation are cut to the minute."""

    @override
    def instant_of(self, point: Json) -> int | None:
        instant = super().instant_of(point)
        return instant and instant // 60_000 * 60_000


@breaks("MET-021")
class OnlyTheNewestPointIsTaken(MinimalServer):
    """Of several points of a series in one request the newest is taken alone."""

    @override
    def take_points(self, tenant: Tenant, node: str, lines: list[Line]) -> Counter[str]:
        newest = {line.series: line for line in sorted(lines, key=lambda line: line.at or 0)}
        return super().take_points(tenant, node, list(newest.values()))


@breaks("MET-021")
class PointsAreTakenInTheirOrder(MinimalServer):
    """Each point of a request is counted from the one that stands before it, whatever their instants."""

    @override
    def in_order(self, moments: list[int]) -> list[int]:
        return list(dict.fromkeys(moments))


@breaks("MET-021")
class OnlyTheFirstResourceIsTaken(MinimalServer):
    """A request is taken to be of one node."""

    @override
    def message(self, form: str, body: bytes) -> Json:
        message = super().message(form, body)
        resources = message.get("resourceMetrics")
        return {"resourceMetrics": resources[:1]} if isinstance(resources, list) else message


@breaks("MET-021")
class RefusedPointsAreNotCounted(MinimalServer):
    """Points of what is not registered, or out of range, vanish without a word."""

    @override
    def metrics_answer(self, form: str, refused: Counter[str]) -> Answer:
        return super().metrics_answer(form, Counter())


@breaks("MET-021")
class UnmappedPointsAreRefused(MinimalServer):
    """Points that the map does not take are counted as refused."""

    unmapped = 0

    @override
    def lines_of(self, resource: Json) -> Iterator[Line]:
        lines = list(super().lines_of(resource))
        metrics = [metric for scope in resource["scopeMetrics"] for metric in scope["metrics"]]
        points = sum(len((metric.get("gauge") or metric["sum"])["dataPoints"]) for metric in metrics)
        self.unmapped = points - len(lines)
        yield from lines

    @override
    def metrics_answer(self, form: str, refused: Counter[str]) -> Answer:
        return super().metrics_answer(form, refused + Counter({"no map names them": self.unmapped}))


@breaks("MET-021")
class StrangeDevicesAreNotCounted(MinimalServer):
    """Points of unregistered nodes are counted; those of devices that a node has not are dropped."""

    @override
    def bad_parts(self, tenant: Tenant, node: str, timed: list[Timed]) -> dict[Part, str]:
        return {}


@breaks("MET-021")
class OneBadPointRefusesAll(MinimalServer):
    """Nothing of a node is taken where one of its points cannot be."""

    @override
    def take_points(self, tenant: Tenant, node: str, lines: list[Line]) -> Counter[str]:
        bad = self.bad_parts(tenant, node, [(line, line.at or self.moment) for line in lines])
        refused = [line for line in lines if any((device, line.at) in bad for *_, device in self.takers(line))]
        return super().take_points(tenant, node, refused if bad else lines)


@breaks("MET-021")
class AnswersAreAlwaysJson(MinimalServer):
    """Metrics in protobuf are answered in JSON."""

    @override
    def metrics_answer(self, form: str, refused: Counter[str]) -> Answer:
        return super().metrics_answer(JSON, refused)


@breaks("MET-021")
class AnswersAreMislabelled(MinimalServer):
    """Metrics in protobuf are answered in JSON that is called protobuf."""

    @override
    def metrics_answer(self, form: str, refused: Counter[str]) -> Answer:
        return replace(super().metrics_answer(JSON, refused), headers={"Content-Type": form})


@breaks("MET-021")
class ProtobufIsNotTaken(MinimalServer):
    """Metrics are taken in JSON alone."""

    @override
    def message(self, form: str, body: bytes) -> Json:
        if form == PROTOBUF:
            raise Refusal("unsupported-media-type", "the media type must be application/json")
        return super().message(form, body)


@breaks("MET-021")
class BrokenProtobufIsEmpty(MinimalServer):
    """A body that is no protobuf is taken for a request without metrics."""

    @override
    def message(self, form: str, body: bytes) -> Json:
        if form != PROTOBUF:
            return super().message(form, body)
        try:
            return protobuf.read("Request", body)
        except ValueError:
            return {}


@breaks("MET-021")
class WrongTypesAreEmpty(MinimalServer):
    """Members of the wrong type are taken as if they were not there."""

    @override
    def message(self, form: str, body: bytes) -> Json:
        message = super().message(form, body)
        return message if isinstance(message.get("resourceMetrics"), list) else {}


@breaks("MET-021")
class BombsAreUnpacked(MinimalServer):
    """A compressed body may be as large as it likes when it is unpacked."""

    @override
    def largest(self) -> int:
        return 1 << 40
