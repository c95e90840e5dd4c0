"""The exporters that the suite plays: captured form, known truth."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kuayu_conformance.checks.met_accuracy import correct
from kuayu_conformance.exporters.captures import capture_of
from kuayu_conformance.exporters.playing import Cell, PlayedExporter, played_exporters
from kuayu_schemas.models import Transform

EXPORTERS = played_exporters()


@pytest.mark.parametrize("name", EXPORTERS)
def test_a_played_page_is_in_the_exposition_format_and_keeps_every_captured_series(name: str) -> None:
    played = PlayedExporter(name, random.Random(1))
    page = played.advance(1000.0)
    found = {
        (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items())))  # the parser adds it to counters
        for family in text_string_to_metric_families(page.untimed)
        for sample in family.samples
    }
    for series in capture_of(name).series:
        assert (series.field.removesuffix("_total"), tuple(sorted(series.labels.items()))) in found


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_row_of_the_collection_map_is_played(name: str) -> None:
    played = PlayedExporter(name, random.Random(1))
    assert played.mapped
    assert all(row.series and all(row.series.values()) for row in played.mapped)


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
