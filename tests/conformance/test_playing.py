"""The exporters that the suite plays: captured form, known truth."""

import random
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kuayu.perception.collection import CollectionMap, Counters
from kuayu.perception.exposition import parse
from kuayu_conformance.checks.metrics.sampling import correct
from kuayu_conformance.exporters.captures import capture_of
from kuayu_conformance.exporters.player import Cell, PlayedExporter, played_exporters
from kuayu_schemas import registers
from kuayu_schemas.models import Transform

EXPORTERS = played_exporters()


def samples(page: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


@pytest.mark.parametrize("name", EXPORTERS)
def test_a_played_page_is_in_the_exposition_format_and_keeps_every_captured_series(name: str) -> None:
    played = PlayedExporter(name, random.Random(1))
    page = played.advance(1000.0)
    found = {
        (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items())))  # the parser adds it to counters
        for sample in samples(page.untimed)
    }
    for series in capture_of(name).series:
        assert (series.field.removesuffix("_total"), tuple(sorted(series.labels.items()))) in found


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_row_of_the_collection_map_is_played(name: str) -> None:
    played = PlayedExporter(name, random.Random(1))
    assert played.mapped
    assert all(row.series and all(row.series.values()) for row in played.mapped)


@pytest.mark.parametrize("name", EXPORTERS)
def test_a_page_speaks_of_each_field_in_one_place(name: str) -> None:
    """The text format asks for it, and a strict reader may refuse a page that does not."""
    page = PlayedExporter(name, random.Random(1)).advance(1000.0).untimed
    fields = [line.split("{")[0].split(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    runs = [field for field, _ in groupby(fields)]
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize(("name", "label"), [("dcgm-exporter", "GPU_I_ID"), ("mlu-exporter", "vf")])
def test_parts_of_a_device_stand_on_the_page_beside_the_whole_and_are_no_part_of_the_truth(
    name: str, label: str
) -> None:
    """A reader that adds a part to the whole is caught: the part shows a value of its own or that of the whole."""
    played = PlayedExporter(name, random.Random(1))
    page = played.advance(1000.0)
    of_parts = [sample for sample in samples(page.untimed) if sample.labels.get(label)]
    mapped = {field for row in played.mapped for field in row.entry.fields}
    assert {sample.name for sample in of_parts} & mapped
    assert all(sample.value for sample in of_parts if sample.name.endswith(("POWER_USAGE", "power_usage")))
    taken = {series for row in played.mapped for group in row.series.values() for series in group}
    assert not any(series.labels.get(label) for series in taken)


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_reference_reads_the_truth_from_every_played_page(name: str) -> None:
    """Two readers of one map, written apart: what the suite divides by the factor, the collection multiplies."""
    played = PlayedExporter(name, random.Random(7))
    collection = CollectionMap.of(registers.indicators(), name)
    counters: Counters = {}
    for at in (1000.0, 1015.0):
        page = played.advance(at)
        conversion = collection.convert(parse(page.text), lambda series: series.instant or 0, counters)
        counters = conversion.counters
        found = {
            (reading.device or "", measure): value
            for reading in conversion.readings
            for measure, value in reading.measures.items()
        }
        for cell in page.cells:
            assert correct(cell, found.get((cell.subject, cell.measure))), cell


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(["plain", "reset", "blank", "overtaken"]), max_size=8))
def test_what_counters_show_adds_up_to_what_was_counted(seed: int, course: list[str]) -> None:
    """Rates times time are the growth of the counters, whatever pages are lost or late, as long as nothing is reset."""
    played = PlayedExporter("node-exporter", random.Random(seed))
    played.advance(0.0)
    row = next(row for row in played.mapped if row.entry.transform is Transform.rate)
    series = row.series[""]
    before = sum(played.totals[s] for s in series)
    shown, last = 0.0, 0.0
    for i, kind in enumerate([*(k for k in course if k != "reset"), "plain"], start=1):
        at = 15.0 * i
        page = played.advance(at, blank=kind == "blank", overtaken=kind == "overtaken")
        cell = next(c for c in page.cells if c.measure == row.measure.name)
        if kind == "plain":
            assert isinstance(cell.truth, float)
            shown += cell.truth * (at - last)
            last = at
        else:
            assert cell.truth is None
    grown = (sum(played.totals[s] for s in series) - before) * row.entry.factor
    assert shown == pytest.approx(grown)


def test_a_reset_shows_what_was_counted_since() -> None:
    played = PlayedExporter("node-exporter", random.Random(3))
    played.advance(0.0)
    page = played.advance(10.0, reset=True)
    row = next(row for row in played.mapped if row.entry.transform is Transform.rate)
    counted = sum(played.totals[s] for s in row.series[""]) * row.entry.factor
    cell = next(c for c in page.cells if c.measure == row.measure.name)
    assert cell.truth == pytest.approx(counted / 10)


@pytest.mark.parametrize(
    ("truth", "value", "right"),
    [
        (100.0, 100.4, True),
        (100.0, 100.6, False),
        (100.0, None, False),
        (100.0, True, False),
        (100.0, "100", False),
        (None, None, True),
        (None, 0.0, False),
        ("healthy", "healthy", True),
        ("healthy", "faulty", False),
    ],
)
def test_a_value_is_right_within_tolerance_and_an_absent_one_only_where_there_is_none(
    truth: float | str | None, value: object, right: bool
) -> None:
    assert correct(Cell("0", "power", 0.0, truth, tolerance=0.5), value) is right
