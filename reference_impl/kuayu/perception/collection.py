"""Series of an exporter's page → samples, by the collection map of the indicator register.

Rules (clause on expositions):

1. Gauge: field × factor; present: one where the field is not zero; state: what the map gives for the value, unknown
   where it gives nothing.
2. Increase and rate compare a series with its own previous value (:mod:`kuayu.perception.counters`). A series seen for
   the first time, or not later than before, gives nothing, and no rate is taken over less than half a second.
3. Terms of the same subject are summed over series and over the fields of a row; states give the worst. A row whose
   fields do not all give something gives nothing: a sum with a missing term is not the sum. Of several rows for one
   measure the first that gives something counts.
4. NaN is an absent value. A value that cannot be (:mod:`kuayu.perception.plausibility`), such as a counter below zero,
   is refused with the measure that it would have been part of, and with nothing else; nothing is ever compared with it.
5. A line that stands twice with the same value is one. Series that differ in nothing but who uses the device (the
   register's ``sharing_labels``) repeat one sample. Where they differ in who uses it, other labels may be the user's as
   well (labels of a pod), so that of these only the ones that name parts of the device tell samples apart. Labels that
   name the piece of hardware (``identity_labels``) or the host (``host_labels``) tell none apart: a device is one
   piece, and a node one host.
6. Repetitions whose values differ contradict each other, and nothing is taken of them; a difference that is smaller
   than the accuracy asked for is none, as where the value moved while the page was made. One that stands for no value
   contradicts none.
7. A metric that a page shows of one device, or of the node, under the names of two hosts is of two nodes: nothing is
   taken of it. Pages of a federation, or of a store that many are scraped into, are such.
8. Where a page shows the parts of a device and not the whole, the parts are put together as the row says.
9. A device is known by the labels that name its piece of hardware. Series of parts are asked only where the page does
   not show the whole, and each part by itself: parts may have names of their own. Where no hardware is named, a device
   is known by the host that its series name. One host may have two names, such as a short and a long one: what stands
   behind the first dot of a name and the port count for nothing. Counters tell better than names whether two pages are
   of one host, so that names count only where there are none.
10. One name in place of another is a piece that was replaced or a host that was renamed. A name that comes back after
    another one, both ways within ten minutes, or two names for one device on one page are two sources
    (:func:`kuayu.perception.counters.sighting`).
11. Where nothing of a page is used, its names tell why, looked for in this order: the names are right and the labels
    are not; the names are those of another exporter of the register; they are those of one with other words before
    them, or without the prefix that the map has, or in another case; they are recording rules over those of one, or
    have other words behind them; they are of a program that the register does not know; they begin as those of one do,
    whose map takes others.

Sources:

- Repetitions: NVIDIA/dcgm-exporter#582, #587 and pull request 432 (``KUBERNETES_VIRTUAL_GPUS``);
  NVIDIA/k8s-device-plugin, "Shared access to GPUs" (time slicing); Prometheus, "Exposition formats" (each line has its
  own name and labels).
- Names of hardware and hosts: NVIDIA/dcgm-exporter README.md (``UUID``, ``Hostname``); Prometheus, "Jobs and instances"
  (``instance`` is the host and port that was scraped).
- Names of other programs: ROCm/device-metrics-exporter docs/configuration/configmap.md (``MetricsFieldPrefix``);
  Cambricon/mlu-exporter README.md (``--metrics-prefix``); open-telemetry/opentelemetry-collector-contrib
  receiver/dcgmreceiver/documentation.md (``gpu.dcgm.*``); utkuozdemir/nvidia_gpu_exporter README.md (``nvidia_smi_*``);
  google/cadvisor docs/storage/prometheus.md (``container_*``); intel/xpumanager rest/prometheus_exporter.py
  (``xpum_*``); amd/amd_smi_exporter README.md (``amd_gpu_*``); ROCm/omnistat docs (``rocm_*``); Prometheus, "Recording
  rules" (level, metric and operations with colons between).
"""

import ipaddress
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final
from zlib import crc32

from kuayu.perception import counters as counting
from kuayu.perception import plausibility
from kuayu.perception.aggregation import worst
from kuayu.perception.counters import SMALL_COUNT, Counters, Step
from kuayu.perception.exposition import Series
from kuayu.perception.plausibility import UNLIMITED, DeviceLimits
from kuayu_schemas.models import (
    CollectionEntry,
    Exporter,
    HealthState,
    IndicatorRegister,
    Measure,
    PartRule,
    SubjectKind,
    Transform,
)

NEAR = 0.02
"""Relative difference up to which repetitions agree: the accuracy that the register asks for."""

MAX_HOSTS_SHOWN = 3
"""Hosts that a message names."""

RENAMED = "exported_"
"""What Prometheus puts before a label of a page that is one of its own as well."""

MIN_RATE_SECONDS = 0.5
"""Seconds below which no rate is taken: instants are known to some 10 ms, and a rate has to be right to 2 %."""

_COUNTED = frozenset({Transform.rate, Transform.increase})

STRANGERS: Final = {
    "gpu_dcgm_": "the OpenTelemetry Collector's dcgmreceiver",
    "dcgm_gpu_": "the OpenTelemetry Collector's dcgmreceiver",
    "container_npu_": "npu-exporter's containers",
    "vnpu_pod_": "npu-exporter's virtual NPUs",
    "xpum_": "Intel XPU Manager",
    "amd_gpu_": "amd_smi_exporter",
    "rocm_": "Omnistat",
    "kepler_": "Kepler",
    "nvidia_smi_": "nvidia_gpu_exporter",
    "nvidia_gpu_": "a plain NVML exporter",
    "container_": "cAdvisor",
    "kube_": "kube-state-metrics",
    "windows_": "windows_exporter",
}
"""Programs that the register has no map for, by how their names begin."""

TOO_COMMON: Final = frozenset({"gpu", "accelerator", "container"})
"""First words of names that say nothing of whose they are."""

MIN_TAIL_CHARACTERS: Final = 6
"""Characters that a field has to have for a name that ends in it to tell anything."""


@dataclass(slots=True)
class DistinctSeries:
    """A series that repeats no other one.

    Attributes:
        series: The first of those that say the same.
        key: What it is told from others by, page after page.
        values: Its value and those of its repetitions, each once.
        contradicts: Whether these are further apart than the accuracy and the step of the field allow.
        hosts: Names of hosts under which the page shows its metric of its device; more than one if it is of several.
    """

    series: Series
    key: str
    values: list[float]
    contradicts: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def contradiction(self) -> str | None:
        """Why no number can be taken of it, for people; None where one can."""
        if len(self.hosts) > 1:
            return f"{self.series.name} is shown of several hosts: {', '.join(self.hosts[:MAX_HOSTS_SHOWN])}"
        if self.contradicts:
            shown = ", ".join(f"{value:.17g}" for value in self.values[:3])
            return f"{self.series.name} stands several times, with the values {shown}"
        return None


def distinct_series(
    page: Iterable[Series], exporter: Exporter, steps: Mapping[str, float], telling: Collection[str]
) -> list[DistinctSeries]:
    """Series of one instant, each once, in order.

    Args:
        page: Series, all of them with a value.
        exporter: Whose page it is.
        steps: Least step of each field, in its own unit.
        telling: Labels that the map asks about.
    """
    series = list(page)
    sharing = frozenset(exporter.sharing_labels or ())
    ignored = sharing.union(exporter.identity_labels or (), _host_labels(exporter))
    label = exporter.device_label or ""
    shared = {(entry.name, entry.labels.get(label)) for entry in series if any(map(entry.labels.get, sharing))}
    parts = frozenset(exporter.part_labels or ()).union(telling, [label])
    by_key: dict[str, DistinctSeries] = {}
    hosts = _hosts(series, exporter)
    for entry in series:
        in_part = bool(label) and (entry.name, entry.labels.get(label)) in shared
        key = _series_key(entry, parts if in_part else entry.labels.keys() - ignored)
        of_hosts = hosts.get((entry.name, entry.labels.get(label)), ())
        first = by_key.setdefault(key, DistinctSeries(entry, key, [entry.value], hosts=of_hosts))
        if plausibility.is_blank(exporter, first.series.value):
            first.series, first.values = entry, [entry.value]
        elif entry.value not in first.values and not plausibility.is_blank(exporter, entry.value):
            first.values.append(entry.value)
            step = steps.get(entry.name, 0.0)
            first.contradicts |= not math.isclose(first.series.value, entry.value, rel_tol=NEAR, abs_tol=step)
    return list(by_key.values())


def _hosts(page: Iterable[Series], exporter: Exporter) -> dict[tuple[str, str | None], tuple[str, ...]]:
    """Names of hosts under which a page shows a metric, sorted; by metric and device."""
    label, host_labels = exporter.device_label or "", _host_labels(exporter)
    hosts: dict[tuple[str, str | None], set[str]] = {}
    for entry in page:
        if host := _first_label(entry, host_labels):
            hosts.setdefault((entry.name, entry.labels.get(label)), set()).add(_short_host(host))
    return {subject: tuple(sorted(names)) for subject, names in hosts.items()}


def _host_labels(exporter: Exporter) -> list[str]:
    """Labels that name the host of a series, those first that tell most."""
    return [label for name in exporter.host_labels or () for label in (RENAMED + name, name)]


def _series_key(series: Series, labels_kept: Iterable[str]) -> str:
    """Name of a series: metric and labels, in an order that does not depend on the page."""
    labels = sorted((label, series.labels[label]) for label in labels_kept if label in series.labels)
    return series.name + "".join(f"\x1f{label}\x1f{value}" for label, value in labels)


@dataclass(frozen=True, slots=True)
class Source:
    """What a page says of who stands behind a device.

    Attributes:
        key: What it is remembered under.
        subject: Whom it is about, for people.
        names: Names that the page has for it, sorted; more than one where it contradicts itself.
    """

    key: str
    subject: str
    names: tuple[str, ...]


def sources_of(page: Iterable[Series], exporter: Exporter, counts: Callable[[Series], bool]) -> list[Source]:
    """Who stands behind each device that a page of one instant is about.

    Args:
        page: Series, all of them with a value.
        exporter: Whose page it is.
        counts: Whether a series is a counter that the map takes.
    """
    series = list(page)
    label = exporter.device_label or ""
    hardware = _hardware_names(series, exporter, label)
    result = [
        Source(f"\x1eidentity\x1f{key}", f"the hardware behind device {device}", tuple(sorted(names)))
        for (device, key), names in hardware.items()
    ]
    known = {device for device, _ in hardware}
    counting = {entry.labels.get(label) for entry in series if counts(entry) and entry.value >= SMALL_COUNT}
    hosts: dict[str | None, set[str]] = {}
    host_labels = _host_labels(exporter)
    for entry in series:
        device = entry.labels.get(label)
        host = _first_label(entry, host_labels)
        if host and device not in known and device not in counting:
            hosts.setdefault(device, set()).add(_short_host(host))
    for device, names in hosts.items():
        result.append(Source(f"\x1ehost\x1f{device or ''}", _host_of(device), tuple(sorted(names))))
    return result


def _host_of(device: str | None) -> str:
    return "the host" if device is None else f"the host behind device {device}"


def _hardware_names(series: Collection[Series], exporter: Exporter, label: str) -> dict[tuple[str, str], set[str]]:
    """Names of the pieces behind each device, of wholes where there are any; by device and key."""
    wholes: dict[tuple[str, str], set[str]] = {}
    parts: dict[tuple[str, str], set[str]] = {}
    for entry in series:
        identity = "\x1f".join(filter(None, map(entry.labels.get, exporter.identity_labels or ())))
        if not identity or label not in entry.labels:
            continue
        device = entry.labels[label]
        part = "\x1f".join(filter(None, map(entry.labels.get, exporter.part_labels or ())))
        if part:
            parts.setdefault((device, f"{device}\x1f{part}"), set()).add(identity)
        else:
            wholes.setdefault((device, device), set()).add(identity)
    shown = {device for device, _ in wholes}
    return wholes | {key: names for key, names in parts.items() if key[0] not in shown}


def _first_label(series: Series, labels: Iterable[str]) -> str:
    return next((series.labels[label] for label in labels if series.labels.get(label)), "")


def _short_host(host: str) -> str:
    """A host's name without port and domain; an address without its port."""
    bare = host.casefold()
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ipaddress.ip_address(bare.strip("[]")))
    except ValueError:
        return bare.partition(".")[0]


class UnknownExporterError(LookupError):
    """The register has no exporter of this name."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A measure that a page shows and that cannot be taken.

    Attributes:
        measure: Name of the measure.
        fields: Fields of the page that would have given it.
        reason: Why, for people.
        contradictory: Whether the page says two things of it, so that no value is out of range.
    """

    measure: str
    fields: tuple[str, ...]
    reason: str
    contradictory: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says of one subject at one instant.

    Attributes:
        device: Device of the node, None for the node itself.
        observed: Instant in milliseconds.
        measures: Numbers in the register's units, states by name.
        refused: What it shows and cannot be taken.
    """

    device: str | None
    observed: int
    measures: Mapping[str, float | str]
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of a page.

    Attributes:
        readings: In order of instant and device.
        counters: What to remember for the next page.
        used: How many series the map takes, whatever they gave.
        returned: Counters that went back to where they had been before they fell or leapt, by metric.
        alternating: What two sources report under one identity: counters by metric, and who stands behind devices.
        conflicted: When the last sign of that was seen, in milliseconds; None where there is none.
    """

    readings: list[Reading]
    counters: Counters
    used: int = 0
    returned: tuple[str, ...] = ()
    alternating: tuple[str, ...] = ()
    conflicted: int | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the map with the measure that it yields and its place among the rows."""

    position: int
    measure: Measure
    entry: CollectionEntry

    def applies(self, series: Series) -> bool:
        """Whether the labels are as asked for; as in Prometheus a label that is absent is empty."""
        return all(series.labels.get(match.label, "") == match.value for match in self.entry.match or ())

    def applies_to_part(self, series: Series, part_labels: Sequence[str]) -> bool:
        """Whether the labels are as asked for but that they name a part where the whole is asked for."""
        if self.entry.parts is None:
            return False
        others = (match for match in self.entry.match or () if match.value or match.label not in part_labels)
        return all(series.labels.get(match.label, "") == match.value for match in others)

    def state(self, value: float) -> HealthState:
        return next((match.state for match in self.entry.states or () if match.value == value), HealthState.unknown)


@dataclass(slots=True)
class _Cell:
    """Terms of one row for one subject and instant, field by field."""

    row: _Row
    same: bool = False
    numbers: dict[str, list[float]] = field(default_factory=dict)
    states: list[HealthState] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    contradictory: bool = False

    def add(self, name: str, term: float) -> None:
        """Add a term of a field; of parts that all show the whole, the one that is held stays."""
        terms = self.numbers.setdefault(name, [])
        if not self.same or not terms:
            terms.append(term)
        elif not math.isclose(terms[0], term, rel_tol=NEAR):
            self.contradict(name, f"{name} of the parts should be that of the whole, and differs between them")

    def refuse(self, name: str, reason: str) -> None:
        """Note a term of a field that cannot be."""
        self.refused.setdefault(name, []).append(reason)

    def contradict(self, name: str, reason: str) -> None:
        """Note that the page says two things of a field."""
        self.contradictory = True
        self.refuse(name, reason)

    @property
    def is_refused(self) -> bool:
        """Whether the row would give something if no term were refused."""
        return bool(self.refused) and self.refused.keys() | self.numbers.keys() == set(self.row.entry.fields)

    def refusal(self, reason: str | None = None) -> Refusal:
        """The refusal of the measure."""
        reasons = [*chain.from_iterable(self.refused.values()), *([] if reason is None else [reason])]
        words = [*dict.fromkeys(reasons)]
        shown = "; ".join(words[:3]) + (f" (and {len(words) - 3} more)" if len(words) > 3 else "")  # noqa: PLR2004
        return Refusal(self.row.measure.name, tuple(self.row.entry.fields), shown, self.contradictory)

    def value(self) -> float | str | None:
        if self.row.entry.transform is Transform.state:
            return worst(self.states).value if self.states else None
        if self.refused or self.numbers.keys() != set(self.row.entry.fields):
            return None
        return _sum([*chain.from_iterable(self.numbers.values())])


class CollectionMap:
    """Collection map of one exporter, ready to be applied to its pages."""

    def __init__(self, exporter: Exporter, rows: Iterable[_Row]) -> None:
        self.exporter = exporter
        self._rows: dict[str, list[_Row]] = {}
        self._steps: dict[str, float] = {}
        self._telling: set[str] = set()
        for row in rows:
            self._telling.update(match.label for match in row.entry.match or ())
            for name in row.entry.fields:
                self._rows.setdefault(name, []).append(row)
                self._steps[name] = max(row.entry.resolution, self._steps.get(name, 0.0))

    @property
    def fields(self) -> Collection[str]:
        """Names of the fields that the map takes."""
        return self._rows.keys()

    def wanted(self, field: str) -> list[list[tuple[str, str]]]:
        """Labels and values that the rows of a field ask for."""
        return [[(match.label, match.value) for match in row.entry.match or ()] for row in self._rows.get(field, ())]

    @classmethod
    def of(cls, register: IndicatorRegister, exporter: str) -> "CollectionMap":
        """Take the map of an exporter out of the register.

        Raises:
            UnknownExporterError: The register has no such exporter.
        """
        entry_of_exporter = next((candidate for candidate in register.exporters if candidate.id == exporter), None)
        if entry_of_exporter is None:
            raise UnknownExporterError(exporter)
        entries = (
            (measure, entry)
            for indicator in register.indicators
            for measure in indicator.measures
            for entry in measure.collection or ()
            if entry.exporter == exporter and entry.subject in {SubjectKind.device, SubjectKind.node}
        )
        return cls(
            entry_of_exporter, (_Row(position, measure, entry) for position, (measure, entry) in enumerate(entries))
        )

    def convert(
        self,
        page: Sequence[Series],
        instant_of: Callable[[Series], int],
        previous: Counters,
        limits: DeviceLimits | None = None,
    ) -> Conversion:
        """Turn a page into readings.

        Args:
            page: Series of the page.
            instant_of: When a series was observed, in milliseconds.
            previous: Counters that the previous conversion left behind; empty for the first page.
            limits: What the devices were registered with.
        """
        work = _Work(self.exporter, previous, limits or {})
        instants: dict[int, list[Series]] = {}
        for series in page:
            if series.name in self._rows and not math.isnan(series.value):
                instants.setdefault(instant_of(series), []).append(series)
        used = sum(any(self._takers(series)) for series in page if series.name in self._rows)
        for instant, together in sorted(instants.items()):
            work.see(together, instant, self._is_counted)
            for distinct in distinct_series(together, self.exporter, self._steps, self._telling):
                wholes, parts = self._takers(distinct.series)
                if wholes or parts:
                    work.take(distinct, instant, wholes, parts)
        returned, alternating = work.returned, work.alternating
        conflicted = max(alternating.values(), default=None)
        return Conversion(
            work.readings(), work.counters, used, tuple(sorted(returned)), tuple(sorted(alternating)), conflicted
        )

    def _is_counted(self, series: Series) -> bool:
        return any(row.entry.transform in _COUNTED for row in self._rows[series.name])

    def _takers(self, series: Series) -> tuple[list[_Row], list[_Row]]:
        """Rows that take a series, and rows that take it as a part where the page does not show the whole."""
        rows = self._rows[series.name]
        wholes = [row for row in rows if row.applies(series)]
        labels = self.exporter.part_labels or ()
        parts = [row for row in rows if row not in wholes and row.applies_to_part(series, labels)]
        return [row for row in wholes if self._has_subject(row, series)], [
            row for row in parts if self._has_subject(row, series)
        ]

    def _has_subject(self, row: _Row, series: Series) -> bool:
        return row.entry.subject is SubjectKind.node or (self.exporter.device_label or "") in series.labels


class _Work:
    """A page on its way to readings.

    Attributes:
        counters: What to remember for the next page.
        returned: Metrics whose counters went back to where they had been.
        alternating: What two sources report, with when the last sign of that was seen, in milliseconds.
    """

    def __init__(self, exporter: Exporter, previous: Counters, limits: DeviceLimits) -> None:
        self.counters = dict(previous)
        self.returned: set[str] = set()
        self.alternating: dict[str, int] = {}
        self._exporter = exporter
        self._previous = previous
        self._limits = limits
        self._cells: dict[tuple[int, str | None], dict[tuple[int, bool], _Cell]] = {}

    def see(self, page: Collection[Series], instant: int, counts: Callable[[Series], bool]) -> None:
        """Look at which pieces of hardware the devices of one instant are, and of which host."""
        for (_, device), hosts in _hosts(page, self._exporter).items():
            if len(hosts) > 1:
                self.alternating[f"{_host_of(device)} (both {hosts[0]!r} and {hosts[1]!r})"] = instant
        for who in sources_of(page, self._exporter, counts):
            first = who.names[0]
            known = counting.sighting(self._previous.get(who.key), instant, float(crc32(first.encode())))
            self.counters[who.key] = known
            if len(who.names) > 1:
                self.alternating[f"{who.subject} (both {first!r} and {who.names[1]!r})"] = instant
            elif known.alternates:
                self.alternating[f"{who.subject} (now {first!r})"] = known.returned

    def take(self, distinct: DistinctSeries, instant: int, wholes: Sequence[_Row], parts: Sequence[_Row]) -> None:
        """Take a series for the rows that it is a term of."""
        series = distinct.series
        blank = plausibility.is_blank(self._exporter, series.value)
        step: Step | None = None
        if not blank and distinct.contradiction is None and math.isfinite(series.value):
            step = self._step(distinct, instant, [*wholes, *parts])
        for row in wholes:
            self._add(row, distinct, instant, step, blank=blank, part=False)
        for row in parts:
            self._add(row, distinct, instant, step, blank=blank, part=True)

    def readings(self) -> list[Reading]:
        """What follows, in order of instant and device."""
        by_instant = [
            _reading(device, instant, cells, self._limits.get(device or "", UNLIMITED))
            for (instant, device), cells in sorted(self._cells.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        ]
        return [reading for reading in by_instant if reading.measures or reading.refused]

    def _step(self, distinct: DistinctSeries, instant: int, rows: Sequence[_Row]) -> Step | None:
        transforms = {row.entry.transform for row in rows}
        if transforms.isdisjoint(_COUNTED) or distinct.series.value < 0:
            return None
        series, key = distinct.series, distinct.key
        shortest = MIN_RATE_SECONDS if Transform.rate in transforms else 0.0
        # As for pages: what stands twice on one is compared with the page before, and the newest is remembered.
        step = counting.step(self._previous.get(key), instant, series.value, series.began, shortest)
        self.counters[key] = step.known
        if step.known.alternates:
            self.alternating[series.name] = max(step.known.returned, self.alternating.get(series.name, 0))
        elif step.returned:
            self.returned.add(series.name)
        return step

    def _add(
        self, row: _Row, distinct: DistinctSeries, instant: int, step: Step | None, *, blank: bool, part: bool
    ) -> None:
        series, entry = distinct.series, row.entry
        device = None
        if entry.subject is SubjectKind.device:
            device = series.labels[self._exporter.device_label or ""]
        same = part and entry.parts is PartRule.same and entry.transform is not Transform.present
        cells = self._cells.setdefault((instant, device), {})
        cell = cells.setdefault((row.position, part), _Cell(row, same=same))
        several = len(distinct.hosts) > 1
        why = None if several else _no_value(entry, series, blank=blank)
        if entry.transform is Transform.state and not several:
            cell.states += map(row.state, distinct.values)
        elif why is not None:
            cell.refuse(series.name, why)
        elif entry.transform is Transform.present and not several:
            cell.add(series.name, float(any(distinct.values)))
        elif distinct.contradiction is not None:
            cell.contradict(series.name, distinct.contradiction)
        elif (term := _term(entry, series.value, step)) is not None:
            why = plausibility.above_ceiling(row.measure, term)
            if why is None:
                cell.add(series.name, term)
            else:
                cell.refuse(series.name, f"{series.name} gives {term:.6g} {row.measure.unit}, which {why}")


def _no_value(entry: CollectionEntry, series: Series, *, blank: bool) -> str | None:
    """Why a series shows no value, for people; None where it does."""
    if blank:
        return f"{series.name} is {series.value:.17g}, which stands for no value"
    if not math.isfinite(series.value):
        return f"{series.name} is not finite"
    if entry.transform in _COUNTED and series.value < 0:
        return f"{series.name} is {series.value:.17g}, and no counter is below zero"
    return None


def _term(entry: CollectionEntry, value: float, step: Step | None) -> float | None:
    """What a series is for a row, in the unit of the measure; None where it gives nothing."""
    if entry.transform is Transform.gauge:
        return value * entry.factor
    if step is None or step.amount is None:
        return None
    return step.amount * entry.factor / (step.seconds if entry.transform is Transform.rate else 1.0)


def _sum(terms: Collection[float]) -> float:
    """The exact sum, rounded; what is not finite where it or a term of it is not."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return sum(terms)


def _reading(
    device: str | None, instant: int, cells: Mapping[tuple[int, bool], _Cell], limits: plausibility.Limits
) -> Reading:
    """Put the cells of one subject and instant together; those of parts stand after those of the whole."""
    measures: dict[str, float | str] = {}
    refused: dict[str, Refusal] = {}
    for _, cell in sorted(cells.items()):
        measure = cell.row.measure
        if measure.name in measures or measure.name in refused:
            continue
        if cell.is_refused:
            refused[measure.name] = cell.refusal()
            continue
        value = cell.value()
        if value is None:
            continue
        why = None if isinstance(value, str) else plausibility.excess(measure, value, limits)
        if why is None:
            measures[measure.name] = value
        else:
            fields = " + ".join(cell.row.entry.fields)
            refused[measure.name] = cell.refusal(f"{fields} gives {value:.6g} {measure.unit}, which {why}")
    return Reading(device, instant, measures, tuple(refused.values()))


def why_unused(page: Collection[Series], exporter: CollectionMap, register: IndicatorRegister) -> str:
    """Say why the map of an exporter takes none of the series of a page, and what may help."""
    mine = exporter.exporter.id
    if not page:
        return "the page has no series"
    named = [series for series in page if series.name in exporter.fields]
    if named:
        return f"no series has the labels that the map of {mine} asks for: {_labels_wanted(named[0], exporter)}"
    names = {series.name for series in page}
    summary = f"no series of the page is in the map of {mine} ({len(names)} names, such as {min(names)[:80]!r})"
    fields = {exporter.id: _fields_of(register, exporter.id) for exporter in register.exporters}
    guess = _guess_exporter(names, mine, fields)
    return f"{summary}; {guess}" if guess else summary


def _labels_wanted(series: Series, exporter: CollectionMap) -> str:
    label = exporter.exporter.device_label
    if label is not None and label not in series.labels:
        return f"{series.name} has no label {label!r}, which names the device"
    wanted = exporter.wanted(series.name)
    return f"{series.name} is asked for with " + " or ".join(
        ", ".join(f"{match}={value!r}" for match, value in pairs) for pairs in wanted[:3]
    )


def _guess_exporter(names: Collection[str], mine: str, fields: Mapping[str, set[str]]) -> str:
    shared = {exporter: len(fields_of.intersection(names)) for exporter, fields_of in fields.items()}
    other = max(shared, key=shared.__getitem__)
    if shared[other]:
        return f"they look like those of {other}: name it in the parameter exporter"
    for form, tell in ((str.lower, _in_another_case), (str, _with_prefix), (str, _aggregated)):
        alike = {form(name) for name in names}
        for exporter in sorted(fields, key=lambda field: field != mine):
            word = tell(alike, fields[exporter])
            if word is not None:
                return f"they look like those of {exporter} {word}"
    for beginning, program in STRANGERS.items():
        if any(name.lower().startswith(beginning) for name in names):
            return f"they look like those of {program}, for which there is no map: send the page of another exporter"
    firsts = {name.partition("_")[0] for name in names} - TOO_COMMON
    for exporter in sorted(fields, key=lambda field: field != mine):
        if any(field.partition("_")[0] in firsts for field in fields[exporter]):
            others = ", ".join(sorted(fields[exporter])[:3])
            return f"they begin as those of {exporter}, of which the map takes others, such as {others}"
    return ""


def _aggregated(names: Collection[str], fields: Iterable[str]) -> str | None:
    """Whether names are recording rules over fields, or have other words behind them."""
    for name_in_map in fields:
        for name in names:
            if name_in_map in name.split(":")[1:-1] or (":" in name and name.partition(":")[0] == name_in_map):
                return f"after a recording rule ({name[:80]!r}): send the exporter's own page"
            if name.startswith(f"{name_in_map}_") and len(name_in_map) >= MIN_TAIL_CHARACTERS:
                return f"with {name.removeprefix(name_in_map)!r} behind them, which the map does not have"
    return None


def _in_another_case(lowered: Collection[str], fields: Iterable[str]) -> str | None:
    return "in another case" if any(field.lower() in lowered for field in fields) else None


def _with_prefix(names: Collection[str], fields: Iterable[str]) -> str | None:
    for name_in_map in fields:
        for name in names:
            if name.endswith(f"_{name_in_map}") and len(name_in_map) >= MIN_TAIL_CHARACTERS:
                prefix = name.removesuffix(name_in_map)
                return f"with the prefix {prefix!r}, which the map does not have: publish them without"
            if name_in_map.endswith(f"_{name}") and len(name) >= MIN_TAIL_CHARACTERS:
                return f"without the prefix {name_in_map.removesuffix(name)!r}, which the map has: publish them with it"
    return None


def _fields_of(register: IndicatorRegister, exporter: str) -> set[str]:
    return {
        name
        for indicator in register.indicators
        for measure in indicator.measures
        for entry in measure.collection or ()
        if entry.exporter == exporter
        for name in entry.fields
    }
