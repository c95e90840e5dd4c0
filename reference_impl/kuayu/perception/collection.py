"""Series of an exporter's page → samples, by the collection map of the indicator register.

Rules (clause on expositions):

* gauge: field × factor; present: one where the field is not zero; state: what the map gives for the value, unknown
  where it gives nothing.
* increase and rate compare a series with its own previous value (:mod:`kuayu.perception.counters`). A series seen for
  the first time, or not later than before, gives nothing, and no rate is taken over less than half a second.
* Terms of the same subject are summed over series and over the fields of a row; states give the worst. A row whose
  fields do not all give something gives nothing: a sum with a missing term is not the sum. Of several rows for one
  measure the first that gives something counts.
* A series that repeats another one counts once (:mod:`kuayu.perception.repetition`). Where a page shows the parts of a
  device and not the whole, the parts are put together as the row says.
* NaN is an absent value. A value that cannot be (:mod:`kuayu.perception.plausibility`) is refused with the measure that
  it would have been part of, and with nothing else; nothing is ever compared with it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from zlib import crc32

from kuayu.perception import counters as counting
from kuayu.perception import plausibility, repetition, sources
from kuayu.perception.aggregation import worst
from kuayu.perception.counters import Counters, Step
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

SHORTEST = 0.5
"""Seconds below which no rate is taken: instants are known to some 10 ms, and a rate has to be right to 2 %."""

_COUNTED = frozenset({Transform.rate, Transform.increase})


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
        elif not math.isclose(terms[0], term, rel_tol=repetition.NEAR):
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
            for distinct in repetition.distinct(together, self.exporter, self._steps, self._telling):
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

    def see(self, page: Iterable[Series], instant: int, counts: Callable[[Series], bool]) -> None:
        """Look at which pieces of hardware the devices of one instant are, and of which host."""
        for who in sources.sources_of(page, self._exporter, counts):
            first = who.names[0]
            known = counting.sighting(self._previous.get(who.key), instant, float(crc32(first.encode())))
            self.counters[who.key] = known
            if len(who.names) > 1:
                self.alternating[f"{who.subject} (both {first!r} and {who.names[1]!r})"] = instant
            elif known.alternates:
                self.alternating[f"{who.subject} (now {first!r})"] = known.returned

    def take(self, distinct: repetition.Distinct, instant: int, wholes: Sequence[_Row], parts: Sequence[_Row]) -> None:
        """Take a series for the rows that it is a term of."""
        series = distinct.series
        blank = plausibility.is_blank(self._exporter, series.value)
        step: Step | None = None
        if not blank and not distinct.contradicts and math.isfinite(series.value):
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

    def _step(self, distinct: repetition.Distinct, instant: int, rows: Sequence[_Row]) -> Step | None:
        transforms = {row.entry.transform for row in rows}
        if transforms.isdisjoint(_COUNTED):
            return None
        series, key = distinct.series, distinct.key
        shortest = SHORTEST if Transform.rate in transforms else 0.0
        # As for pages: what stands twice on one is compared with the page before, and the newest is remembered.
        step = counting.step(self._previous.get(key), instant, series.value, series.began, shortest)
        self.counters[key] = step.known
        if step.known.alternates:
            self.alternating[series.name] = max(step.known.returned, self.alternating.get(series.name, 0))
        elif step.returned:
            self.returned.add(series.name)
        return step

    def _add(
        self, row: _Row, distinct: repetition.Distinct, instant: int, step: Step | None, *, blank: bool, part: bool
    ) -> None:
        series, entry = distinct.series, row.entry
        device = None
        if entry.subject is SubjectKind.device:
            device = series.labels[self._exporter.device_label or ""]
        same = part and entry.parts is PartRule.same and entry.transform is not Transform.present
        cells = self._cells.setdefault((instant, device), {})
        cell = cells.setdefault((row.position, part), _Cell(row, same=same))
        if entry.transform is Transform.state:
            cell.states += map(row.state, distinct.values)
        elif blank:
            cell.refuse(series.name, f"{series.name} is {series.value:.17g}, which stands for no value")
        elif not math.isfinite(series.value):
            cell.refuse(series.name, f"{series.name} is not finite")
        elif entry.transform is Transform.present:
            cell.add(series.name, float(any(distinct.values)))
        elif distinct.contradicts:
            shown = ", ".join(f"{value:.17g}" for value in distinct.values[:3])
            cell.contradict(series.name, f"{series.name} stands several times, with the values {shown}")
        else:
            term = _term(entry, series.value, step)
            if term is None:
                return
            why = plausibility.above_ceiling(row.measure, term)
            if why is None:
                cell.add(series.name, term)
            else:
                cell.refuse(series.name, f"{series.name} gives {term:.6g} {row.measure.unit}, which {why}")


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
