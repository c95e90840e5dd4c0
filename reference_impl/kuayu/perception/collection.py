"""Series of an exporter's page → samples, by the collection map of the indicator register.

Rules (clause on expositions):

* gauge: field × factor; present: one where the field is not nought; state: what the map gives for the value, unknown
  where it gives nothing.
* increase and rate compare a series with its own previous value. A counter that fell was reset, so its increase is its
  value. A series seen for the first time, or not later than before, gives nothing.
* Terms of the same subject are summed over series and over the fields of a row; states give the worst. A row whose
  fields do not all give something gives nothing: a sum with a missing term is not the sum. Of several rows for one
  measure the first that gives something counts.
* NaN is an absent value. An infinite one is out of range, and nothing is ever compared with it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kuayu.perception.exposition import Series
from kuayu.perception.states import worst
from kuayu_schemas.models import (
    CollectionEntry,
    Exporter,
    HealthState,
    IndicatorRegister,
    Measure,
    SubjectKind,
    Transform,
)

Counters = Mapping[str, tuple[int, float]]
"""Last known instant (milliseconds) and value of each counter, by the series that it stands in."""


class UnknownExporterError(LookupError):
    """The register has no exporter of this name."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says of one subject at one instant.

    Attributes:
        device: Device of the node, None for the node itself.
        observed: Instant in milliseconds.
        measures: Numbers in the register's units, states by name.
        out_of_range: Measures whose value lies outside what the register allows.
    """

    device: str | None
    observed: int
    measures: Mapping[str, float | str]
    out_of_range: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """Readings of a page, in order of instant and device, and the counters to be kept for the next page."""

    readings: list[Reading]
    counters: Counters


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the map with the measure that it yields and its place among the rows."""

    position: int
    measure: Measure
    entry: CollectionEntry

    def applies(self, series: Series) -> bool:
        """Whether the labels are as asked for; as in Prometheus a label that is absent is empty."""
        return all(series.labels.get(match.label, "") == match.value for match in self.entry.match or ())

    def state(self, value: float) -> HealthState:
        return next((match.state for match in self.entry.states or () if match.value == value), HealthState.unknown)


@dataclass(slots=True)
class _Cell:
    """Terms of one row for one subject and instant, field by field."""

    row: _Row
    numbers: dict[str, float] = field(default_factory=dict)
    states: list[HealthState] = field(default_factory=list)

    def value(self) -> float | str | None:
        if self.row.entry.transform is Transform.state:
            return worst(self.states).value if self.states else None
        if self.numbers.keys() != set(self.row.entry.fields):
            return None
        return _sum(self.numbers.values()) if len(self.numbers) > 1 else next(iter(self.numbers.values()))


class CollectionMap:
    """Collection map of one exporter, ready to be applied to its pages."""

    def __init__(self, exporter: Exporter, rows: Iterable[_Row]) -> None:
        self.exporter = exporter
        self._rows: dict[str, list[_Row]] = {}
        for row in rows:
            for name in row.entry.fields:
                self._rows.setdefault(name, []).append(row)

    @classmethod
    def of(cls, register: IndicatorRegister, exporter: str) -> "CollectionMap":
        """Take the map of an exporter out of the register.

        Raises:
            UnknownExporterError: The register has no such exporter.
        """
        found = next((candidate for candidate in register.exporters if candidate.id == exporter), None)
        if found is None:
            raise UnknownExporterError(exporter)
        entries = (
            (measure, entry)
            for indicator in register.indicators
            for measure in indicator.measures
            for entry in measure.collection or ()
            if entry.exporter == exporter and entry.subject in {SubjectKind.device, SubjectKind.node}
        )
        return cls(found, (_Row(position, measure, entry) for position, (measure, entry) in enumerate(entries)))

    def convert(self, page: Iterable[Series], instant_of: Callable[[Series], int], previous: Counters) -> Conversion:
        """Turn a page into readings.

        Args:
            page: Series of the page.
            instant_of: When a series was observed, in milliseconds.
            previous: Counters that the previous conversion left behind; empty for the first page.
        """
        cells: dict[tuple[int, str | None], dict[int, _Cell]] = {}
        counters = dict(previous)
        for series in page:
            rows = [row for row in self._rows.get(series.name, ()) if row.applies(series)]
            if not rows or math.isnan(series.value):
                continue
            instant = instant_of(series)
            increase = _Increase.between(previous.get(_key(series)), instant, series.value)
            if increase.counts and math.isfinite(series.value):
                counters[_key(series)] = (instant, series.value)
            for row in rows:
                self._add(cells, row, series, instant, increase)
        readings = [
            reading
            for (instant, device), found in sorted(cells.items(), key=lambda item: (item[0][0], item[0][1] or ""))
            if (reading := _reading(device, instant, found.values())) is not None
        ]
        return Conversion(readings, counters)

    def _add(
        self,
        cells: dict[tuple[int, str | None], dict[int, _Cell]],
        row: _Row,
        series: Series,
        instant: int,
        increase: "_Increase",
    ) -> None:
        device: str | None = None
        if row.entry.subject is SubjectKind.device:
            device = series.labels.get(self.exporter.device_label or "")
            if device is None:
                return
        cell = cells.setdefault((instant, device), {}).setdefault(row.position, _Cell(row))
        match row.entry.transform:
            case Transform.state:
                cell.states.append(row.state(series.value))
                return
            case Transform.gauge:
                term: float | None = series.value * row.entry.factor
            case Transform.present:
                term = float(series.value != 0)
            case Transform.increase:
                term = None if increase.amount is None else increase.amount * row.entry.factor
            case Transform.rate:
                term = None if increase.amount is None else increase.amount * row.entry.factor / increase.seconds
        if term is not None and not math.isnan(term):
            cell.numbers[series.name] = cell.numbers.get(series.name, 0.0) + term


@dataclass(frozen=True, slots=True)
class _Increase:
    """What a counter gained since it was last seen.

    Attributes:
        counts: Whether the value is newer than the one that is known, so that it is the one to keep.
        amount: The gain; None where there is nothing to compare with.
        seconds: Time between the two values.
    """

    counts: bool
    amount: float | None
    seconds: float

    @classmethod
    def between(cls, known: tuple[int, float] | None, instant: int, value: float) -> "_Increase":
        if known is None:
            return cls(counts=True, amount=None, seconds=0.0)
        before, held = known
        if instant <= before:
            return cls(counts=False, amount=None, seconds=0.0)
        return cls(counts=True, amount=value - held if value >= held else value, seconds=(instant - before) / 1000)


def _sum(terms: Collection[float]) -> float:
    """The exact sum, rounded; what is not finite where it or a term of it is not."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return sum(terms)


def _key(series: Series) -> str:
    """Name of a series: metric and labels, in an order that does not depend on the page."""
    return series.name + "".join(f"\x1f{label}\x1f{value}" for label, value in sorted(series.labels.items()))


def _reading(device: str | None, instant: int, cells: Iterable[_Cell]) -> Reading | None:
    """Put the cells of one subject and instant together; None where none of them gives a value."""
    measures: dict[str, float | str] = {}
    outside: list[str] = []
    for cell in sorted(cells, key=lambda cell: cell.row.position):
        measure = cell.row.measure
        value = cell.value()
        if value is None or measure.name in measures:
            continue
        measures[measure.name] = value
        if isinstance(value, float) and not _in_range(measure, value):
            outside.append(measure.name)
    return Reading(device, instant, measures, tuple(outside)) if measures else None


def _in_range(measure: Measure, value: float) -> bool:
    low = -math.inf if measure.minimum is None else measure.minimum
    high = math.inf if measure.maximum is None else measure.maximum
    return math.isfinite(value) and low <= value <= high
