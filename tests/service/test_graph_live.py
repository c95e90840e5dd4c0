"""Newest values in arrays: what the database would say, told without asking it."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.service.graph_rows import COLUMNS, FIRST_GAP, NEVER, NODE_MEASURES, LiveTable, NodeTelemetry, lifetimes
from kuayu.service.storage.blocks import Block

POWER = COLUMNS.index("power")
NOW = 1_767_225_600_000

samples = st.tuples(
    st.integers(1, 5),
    st.integers(0, 6),
    st.dictionaries(st.sampled_from(["power", "faults", "jitter"]), st.floats(0, 1e6), min_size=1),
)


def block(measures: tuple[str, ...], *rows: tuple[Any, ...]) -> Block:
    return Block.of_rows(measures, rows)


@given(st.lists(st.lists(samples, max_size=8), max_size=6))
def test_the_newest_value_of_each_measure_is_held_and_of_equal_ones_the_first(parcels: list[Any]) -> None:
    table = LiveTable(capacity=2)
    rows = table.rows([1, 2, 3, 4])
    held: dict[tuple[int, str], tuple[int, float]] = {}
    for parcel in parcels:
        for number, instant, measures in parcel:
            names = tuple(sorted(measures))
            table.take([([block(names, (number, instant, *(measures[name] for name in names)))], NOW)])
            for name, value in measures.items():
                if name in COLUMNS and number < 5 and instant > held.get((number, name), (-1, 0.0))[0]:
                    held[number, name] = (instant, value)
    for number, row in zip((1, 2, 3, 4), rows, strict=True):
        for name in ("power", "faults"):
            column = COLUMNS.index(name)
            instant, value = held.get((number, name), (NEVER, math.nan))
            assert table.instants[row, column] == instant
            assert table.values[row, column] == pytest.approx(value, nan_ok=True, abs=0)


@given(st.lists(samples, max_size=30))
def test_samples_that_come_together_count_like_samples_one_by_one(taken: list[Any]) -> None:
    together, alone = LiveTable(), LiveTable()
    shapes: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for table in (together, alone):
        table.rows([1, 2, 3, 4])
    for number, instant, measures in taken:
        names = tuple(sorted(measures))
        shapes.setdefault(names, []).append((number, instant, *(measures[name] for name in names)))
    together.take([([Block.of_rows(names, rows)], NOW) for names, rows in shapes.items()])
    for names, rows in shapes.items():
        for row in rows:
            alone.take([([Block.of_rows(names, [row])], NOW)])
    for attribute in ("values", "instants", "observed", "arrived", "touched"):
        np.testing.assert_array_equal(getattr(together, attribute), getattr(alone, attribute))


def test_health_is_a_code_and_large_integers_are_numbers() -> None:
    table = LiveTable()
    row = table.rows([7])[0]
    table.take([([block(("faults", "health_state"), (7, NOW, 2**64 - 1, "faulty"))], NOW)])
    assert table.values[row, COLUMNS.index("health_state")] == 3
    assert table.values[row, COLUMNS.index("faults")] == 2.0**64


def test_rows_are_found_again_and_those_of_the_gone_are_empty_when_they_are_used_again() -> None:
    table = LiveTable(capacity=2)
    first = list(table.rows(range(100, 130)))
    assert sorted(first) == list(range(30))
    table.take([([block(("power",), *((number, NOW, 1.0) for number in range(100, 130)))], NOW)])
    table.drop([105, 105, 9999])
    assert list(table.rows([100, 104])) == [first[0], first[4]]
    assert table.rows([500])[0] == first[5]
    assert np.isnan(table.values[first[5]]).all()
    assert table.observed[first[5]] == NEVER
    table.take([([block(("power",), (105, NOW, 9.0), (10**6, NOW, 9.0))], NOW)])
    assert not (table.values[:, POWER] == 9.0).any()


def test_the_usual_gap_is_learnt_also_from_samples_that_come_in_bursts() -> None:
    table = LiveTable()
    row = table.rows([1])[0]
    chance, at = random.Random(3), NOW
    for _ in range(40):
        burst = chance.randint(1, 5)
        instants = [at + 1000 * step for step in range(1, burst + 1)]
        at = instants[-1]
        for name in ("power", "faults"):  # in two parts, the second of which brings no newer sample
            table.take([([block((name,), *((1, instant, 1.0) for instant in instants))], at)])
    assert table.gap[row] == pytest.approx(1000.0)


def node(table: LiveTable, devices: int) -> NodeTelemetry:
    """A node of number 0 with devices from number 1 on."""
    return NodeTelemetry(table, table.rows([0]), table.rows(range(1, devices + 1)), [devices])


def read(telemetry: NodeTelemetry, now: int) -> dict[str, float]:
    values, *_ = telemetry.read(now)
    return dict(zip((*NODE_MEASURES, "share"), values[0].tolist(), strict=True))


def test_a_node_is_put_together_from_its_devices_unless_it_reports_itself() -> None:
    table = LiveTable()
    telemetry = node(table, 2)
    assert all(math.isnan(value) for value in read(telemetry, NOW).values())
    table.take([([block(("accelerator_utilisation", "power"), (1, NOW, 0.2, 100.0), (2, NOW, 0.6, 200.0))], NOW)])
    table.take([([block(("faults", "health_state"), (1, NOW, 3.0, "faulty"))], NOW)])
    found = read(telemetry, NOW)
    assert found["accelerator_utilisation"] == pytest.approx(0.4)
    assert (found["power"], found["faults"]) == (300.0, 3.0)
    assert found["share"] == 1.0
    assert math.isnan(found["health_state"])
    table.take([([block(("power", "health_state"), (0, NOW, 777.0, "degraded"))], NOW)])
    found = read(telemetry, NOW)
    assert (found["power"], found["health_state"], found["faults"]) == (777.0, 1.0, 3.0)


def test_values_live_for_five_periods_whoever_reported_them() -> None:
    assert set(lifetimes()) == {300_000}
    table = LiveTable()
    telemetry = node(table, 2)
    table.take([([block(("power",), (1, NOW, 100.0), (2, NOW + 1000, 200.0))], NOW)])
    assert read(telemetry, NOW + 300_000)["power"] == 300.0
    assert read(telemetry, NOW + 305_000)["power"] == pytest.approx(math.nan, nan_ok=True)
    table.take([([block(("power",), (0, NOW + 305_000, 5.0))], NOW)])
    assert read(telemetry, NOW + 605_000)["power"] == 5.0
    assert math.isnan(read(telemetry, NOW + 605_001)["power"])


def test_a_device_that_falls_silent_is_missing_and_a_silent_node_misses_none() -> None:
    table = LiveTable()
    telemetry = node(table, 4)
    for second in range(10):
        devices = range(1, 5) if second < 5 else range(1, 4)
        at = NOW + 1000 * second
        table.take([([block(("power",), *((device, at, 1.0) for device in devices))], at)])
        found = read(telemetry, at)
        # what it did last is not added up with what the others do
        assert (found["share"], found["power"]) == ((1.0, 4.0) if second < 8 else (0.75, 3.0))
    assert read(telemetry, NOW + 60_000)["share"] == 0.75
    assert FIRST_GAP > 1000


def test_fresh_is_who_has_newer_samples_also_when_nodes_are_arranged_anew() -> None:
    table = LiveTable()
    rows = table.rows([10, 11, 12])
    telemetry = NodeTelemetry(table, rows, table.rows([]), [0, 0, 0])
    table.take([([block(("power",), (10, NOW, 1.0), (11, NOW, 1.0))], NOW)])
    assert telemetry.read(NOW)[3].tolist() == [True, True, False]
    table.take([([block(("power",), (10, NOW - 5, 1.0), (11, NOW + 5, 1.0))], NOW + 7)])
    values, observed, arrived, fresh = telemetry.read(NOW)
    assert fresh.tolist() == [False, True, False]
    assert observed[:2].tolist() == [NOW / 1000, (NOW + 5) / 1000]
    assert arrived[:2].tolist() == [(NOW + 7) / 1000] * 2
    assert np.isnan([observed[2], arrived[2]]).all()
    assert values.shape == (3, len(NODE_MEASURES) + 1)
    again = NodeTelemetry(table, rows[[2, 1, 0]], table.rows([]), [0, 0, 0])
    again.go_on_from(telemetry, np.array([-1, 1, 0]))
    assert again.read(NOW)[3].tolist() == [False, False, False]
