"""An exporter played by the suite: it knows the truth behind every page that it publishes.

Truth is kept in the standard's units. For each page it is divided by the factor that the published collection map
gives, rounded to the resolution of the exporter's field, and written into the captured page. What a target makes of
the page is then held against the truth, within half a step of the field and a tenth of the measure's accuracy.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kuayu_conformance.exporters.captures import Capture, Series, capture_of
from kuayu_schemas import registers
from kuayu_schemas.models import CollectionEntry, Exporter, Measure, SubjectKind, Transform

NODE = ""
"""Name of the subject that is the node itself; devices have their own names."""

RANGES: Mapping[str, tuple[float, float]] = {
    "1": (0.02, 0.98),
    "By": (1e9, 7e10),
    "By/s": (1e6, 4e9),
    "W": (60.0, 680.0),
    "{fault}": (1.0, 6.0),
}
"""Range of true values for each unit: of the order that accelerators of 2020 to 2026 show."""

CONVERSION_SHARE = 0.1
"""Part of a measure's accuracy that may be lost between an exporter's page and the answer to a query; the rest belongs
to the exporter."""

TYPICAL_STEP = 15.0
"""Seconds for which counters grow between two pages, whatever the pages are apart."""

SERIES_PER_SUBJECT = 4
"""Series that one value is spread over at most; captured pages of storage have dozens."""


@dataclass(frozen=True)
class Cell:
    """What the target should hold: of which subject ("" is the node), which measure, at which instant.

    Attributes:
        subject: Device name, or "" for the node.
        measure: Name of the measure.
        instant: Unix time in seconds.
        truth: True value; None where there must be none; a state's name for states.
        tolerance: Largest difference that is still correct.
        counted: Whether it follows from two pages, not from one.
    """

    subject: str
    measure: str
    instant: float
    truth: float | str | None
    tolerance: float = 0.0
    counted: bool = False


@dataclass(frozen=True)
class MappedRow:
    """One row of the collection map, with the series of the captured page that it takes, by subject."""

    measure: Measure
    entry: CollectionEntry
    series: Mapping[str, tuple[Series, ...]]


@dataclass(frozen=True)
class Page:
    """A published page and what follows from it.

    Attributes:
        instant: Unix time in seconds at which it was true.
        capture: The form that it has.
        values: What is written into that.
        cells: What the target should hold of that instant once it has taken the page in order.
    """

    instant: float
    capture: Capture
    values: Mapping[Series, str]
    cells: tuple[Cell, ...]

    @cached_property
    def text(self) -> str:
        """The page, each line with its time."""
        return self.capture.render(self.values, round(self.instant * 1000))

    @cached_property
    def untimed(self) -> str:
        """The page without times."""
        return self.capture.render(self.values)

    @property
    def gauges(self) -> tuple[Cell, ...]:
        """What follows from the page alone, without an earlier one."""
        return tuple(cell for cell in self.cells if not cell.counted)


@dataclass
class PlayedExporter:
    """One exporter on one node.

    Attributes:
        name: Which exporter.
        random: Where true values come from.
        totals: Counters as they stand, in the exporter's unit.
    """

    name: str
    random: random.Random
    totals: dict[Series, float] = field(default_factory=dict)
    _taken: dict[Series, float] = field(default_factory=dict)
    _previous: float | None = None

    @cached_property
    def exporter(self) -> Exporter:
        """Its row in the register."""
        return next(row for row in registers.indicators().exporters if row.id == self.name)

    @cached_property
    def capture(self) -> Capture:
        """Its captured page."""
        return capture_of(self.name)

    @cached_property
    def entries(self) -> tuple[tuple[Measure, CollectionEntry], ...]:
        """Rows of the collection map for this exporter, each with its measure."""
        return tuple(
            (measure, entry)
            for indicator in registers.indicators().indicators
            for measure in indicator.measures
            for entry in measure.collection or ()
            if entry.exporter == self.name
        )

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices on the captured page: those that a row of the map takes as such."""
        label = self.exporter.device_label or ""
        rows = [entry for _, entry in self.entries if entry.subject is SubjectKind.device]
        names = (s.labels.get(label) for s in self.capture.series if any(takes(entry, s) for entry in rows))
        return tuple(dict.fromkeys(name for name in names if name))

    @cached_property
    def mapped(self) -> tuple[MappedRow, ...]:
        """Rows of the collection map with the series that they take."""
        return tuple(MappedRow(measure, entry, self._series_of(entry)) for measure, entry in self.entries)

    def _series_of(self, entry: CollectionEntry) -> Mapping[str, tuple[Series, ...]]:
        subjects = self.devices if entry.subject is SubjectKind.device else (NODE,)
        label = self.exporter.device_label
        by_subject: dict[str, tuple[Series, ...]] = {}
        for subject in subjects:
            series: list[Series] = []
            for name in entry.fields:
                matching = [
                    s
                    for s in self.capture.series
                    if s.field == name and (subject == NODE or s.labels.get(label or "") == subject) and takes(entry, s)
                ]
                series += matching[:SERIES_PER_SUBJECT] or [self._absent_series(name, subject, entry)]
            by_subject[subject] = tuple(series)
        return by_subject

    def _absent_series(self, name: str, subject: str, entry: CollectionEntry) -> Series:
        """A mapped series that the captured page lacks, with labels like those of its neighbours."""
        label = self.exporter.device_label or ""
        wanted = {m.label: m.value for m in entry.match or ()}
        neighbours = (s for s in self.capture.series if subject != NODE and s.labels.get(label) == subject)
        near = next((s for s in neighbours if all(s.labels.get(k, v) == v for k, v in wanted.items())), None)
        naming = near.labels if near else {label: subject} if subject != NODE else {}
        text = near.label_text if near else ",".join(f'{k}="{v}"' for k, v in naming.items())
        extra = [f'{k}="{v}"' for k, v in wanted.items() if v and k not in naming]
        return Series(name, ",".join([*([text] if text else []), *extra]))

    @cached_property
    def parts(self) -> Mapping[Series, Series]:
        """Series of a part of a device, such as a GPU instance, that the map leaves out, each with that of the whole.

        A captured page that has some of its own is given no more.
        """
        return {
            Series(whole.field, f'{whole.label_text},{match.label}="1"'): whole
            for row in self.mapped
            for match in row.entry.match or ()
            if not match.value and not any(match.label in s.labels for s in self.capture.series)
            for series in row.series.values()
            for whole in series
        }

    def advance(self, instant: float, *, reset: bool = False, blank: bool = False, overtaken: bool = False) -> Page:
        """Let time go on to ``instant``; return the page of that instant.

        Args:
            instant: Unix time in seconds, later than before.
            reset: Whether the exporter was restarted just after the previous page, so that its counters began anew.
            blank: Whether the exporter could read nothing and publishes NaN; what was counted shows on the next page.
            overtaken: Whether the page will arrive after the next one, so that nothing is counted from it.
        """
        elapsed = None if self._previous is None else instant - self._previous
        values: dict[Series, str] = {}
        physical: dict[Series, float] = {}
        cells: list[Cell] = []
        for row in self.mapped:
            for subject, series in row.series.items():
                if row.entry.transform in {Transform.rate, Transform.increase}:
                    cells.append(self._counted(row, subject, series, instant, elapsed, values, reset=reset))
                else:
                    cells.append(self._read_off(row, subject, series, instant, physical, values))
        # Further series of mapped fields are written as zero, so that sums over series stay what is known.
        written = {**dict.fromkeys(self._others, "0"), **values}
        written |= {part: written[whole] for part, whole in self.parts.items()}
        if blank:
            written = dict.fromkeys(written, "NaN")
        if blank or overtaken:
            cells = [
                Cell(c.subject, c.measure, instant, None, counted=c.counted) if blank or c.counted else c for c in cells
            ]
        else:
            self._previous = instant
            self._taken = dict(self.totals)
        return Page(instant, self.capture, written, tuple(cells))

    @cached_property
    def _others(self) -> tuple[Series, ...]:
        """Further series that rows of the map take."""
        return tuple(s for row in self.mapped for s in self.capture.series if takes(row.entry, s))

    def _read_off(
        self,
        row: MappedRow,
        subject: str,
        series: tuple[Series, ...],
        instant: float,
        physical: dict[Series, float],
        values: dict[Series, str],
    ) -> Cell:
        """Draw a value that one page shows by itself."""
        entry, measure = row.entry, row.measure
        if entry.transform is Transform.state:
            choice = self.random.choice(entry.states or [])
            values |= dict.fromkeys(series, f"{choice.value:g}")
            return Cell(subject, measure.name, instant, choice.state.value)
        if entry.transform is Transform.present:
            values |= {s: self.random.choice(("0", "0", "48")) for s in series}
            return Cell(subject, measure.name, instant, float(any(values[s] != "0" for s in series)))
        low, high = RANGES[measure.unit]
        for s in series:
            if s not in physical:
                physical[s] = self.random.uniform(low, high) / len(series)
                values[s] = _written(physical[s] / entry.factor, entry.resolution)
        truth = sum(physical[s] for s in series)
        step = entry.resolution * entry.factor * len(series) / 2
        return Cell(subject, measure.name, instant, truth, CONVERSION_SHARE * measure.accuracy * truth + step)

    def _counted(
        self,
        row: MappedRow,
        subject: str,
        series: tuple[Series, ...],
        instant: float,
        elapsed: float | None,
        values: dict[Series, str],
        *,
        reset: bool,
    ) -> Cell:
        """Let counters grow; what they show takes two pages."""
        entry, measure = row.entry, row.measure
        step, per_second = entry.resolution, entry.transform is Transform.rate
        low, high = RANGES[measure.unit]
        grown = 0.0
        for s in series:
            drawn = self.random.uniform(low, high) * (TYPICAL_STEP if per_second else 1) / len(series) / entry.factor
            # A counter that has already passed its old value cannot be seen to have been reset, by nobody.
            most = self._taken[s] / 2 if reset and s in self._taken else drawn
            growth = max(step, round(min(drawn, most) / step) * step)
            self.totals[s] = (0.0 if reset else self.totals.get(s, growth * 1000)) + growth
            values[s] = _written(self.totals[s], step)
            grown += (self.totals[s] - (0.0 if reset else self._taken.get(s, 0.0))) * entry.factor
        if elapsed is None:
            return Cell(subject, measure.name, instant, None, counted=True)
        truth = grown / elapsed if per_second else grown
        return Cell(subject, measure.name, instant, truth, CONVERSION_SHARE * measure.accuracy * truth, counted=True)


def takes(entry: CollectionEntry, series: Series) -> bool:
    """Whether a row of the map takes a series: one of its fields, with the labels that it asks for.

    A label that is absent is empty, as in Prometheus.
    """
    return series.field in entry.fields and all(series.labels.get(m.label, "") == m.value for m in entry.match or ())


def _written(value: float, resolution: float) -> str:
    """A value as the exporter writes it: rounded to its resolution, whole numbers without a fraction."""
    stepped = round(value / resolution) * resolution if resolution else value
    return str(round(stepped)) if resolution >= 1 else f"{stepped:.12g}"


def played_exporters() -> tuple[str, ...]:
    """Exporters of the register."""
    return tuple(row.id for row in registers.indicators().exporters)
