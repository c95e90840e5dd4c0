"""What is held back stays back, what is disguised keeps its meaning, and what is summed up is right."""

import json
import random
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance import corpora
from kuayu_conformance.corpora import Table
from kuayu_conformance.holdout import (
    Cell,
    Disguise,
    Pair,
    Simple,
    Summary,
    arrivals,
    by_device,
    device_folds,
    family_folds,
    folds,
    measured_alone,
    rank_correlations,
)
from kuayu_schemas import schema

TABLES = corpora.shipped()


@pytest.fixture(params=TABLES, ids=lambda table: table.name)
def table(request: pytest.FixtureRequest) -> Table:
    chosen: Table = request.param
    return chosen


def pair(value: float, measured: float = 1.0, device: str = "d", task: str = "t", unit: float = 1.0) -> Pair:
    simple = Simple(None, None, None)
    return Pair(
        "table", True, "device", 4, True, device, task, measured, unit, value, value * 0.9, value * 1.1, False, simple
    )


def test_a_device_that_is_left_out_leaves_no_measurement_behind_and_takes_its_twins_along(table: Table) -> None:
    for fold in device_folds(table):
        left_out = {cell.device for cell in fold.cells}
        assert len(left_out) == 1
        twins = next((twins for twins in table.alike if left_out <= twins), left_out)
        seen = {row["device"] for row in fold.corpus["measurements"]}
        assert not seen & twins
        assert not set(fold.references) & twins


@given(table=st.sampled_from(TABLES), seed=st.integers(0, 1000))
def test_no_device_that_arrives_was_told_of_before_and_none_is_told_of_twice(table: Table, seed: int) -> None:
    told: set[str] = set()
    for fold in arrivals(table, random.Random(seed)):
        (device,) = {cell.device for cell in fold.cells}
        twins = next((twins for twins in table.alike if device in twins), frozenset({device}))
        seen = {row["device"] for row in fold.corpus["measurements"]}
        assert not seen & twins
        assert told <= seen
        assert set(fold.references) <= seen
        told |= twins & {cell.device for cell in fold.truth}


def test_a_family_that_is_left_out_is_known_on_one_device_only(table: Table) -> None:
    families = {task["id"]: task.get("family", task["id"]) for task in table.corpus["tasks"]}
    for fold in family_folds(table, random.Random(1)):
        family = {families[cell.task] for cell in fold.cells}
        assert len(family) == 1
        left = {row["device"] for row in fold.corpus["measurements"] if families[row["task"]] in family}
        assert left == set(fold.references)


def test_devices_that_are_the_same_silicon_count_once(table: Table) -> None:
    for make in (device_folds(table), family_folds(table, random.Random(3))):
        told = {cell.device for fold in make for cell in fold.cells}
        assert all(len(told & twins) <= 1 for twins in table.alike)


def test_probes_come_from_what_is_held_back_and_leave_something_to_infer(table: Table) -> None:
    for fold in folds(table, random.Random(2)):
        probes = fold.max_probes
        assert probes > 0
        assert len(fold.cells) - probes == 2
        with_probes = measured_alone(fold.with_probes(fold.cells[:probes]))
        assert {cell: with_probes[cell] for cell in fold.cells[:probes]} == {
            cell: fold.truth[cell] for cell in fold.cells[:probes]
        }
        assert not set(fold.cells[probes:]) & set(with_probes)


def test_every_target_that_can_be_referred_to_is_told_of_once(table: Table) -> None:
    for fold in folds(table, random.Random(3)):
        told = [cell for _, cells in fold.referred(fold.cells, random.Random(4)) for cell in cells]
        assert len(told) == len(set(told))
        assert set(told) == {
            cell for cell in fold.cells if any(Cell(device, cell.task) in fold.truth for device in fold.references)
        }


def test_a_disguised_corpus_is_valid_and_names_nothing_real(table: Table) -> None:
    disguised = Disguise(random.Random(5), table.corpus).corpus(table.corpus)
    assert schema.is_valid("Corpus", disguised)
    text = json.dumps(disguised)
    names = [row["id"] for row in (*table.corpus["devices"], *table.corpus["tasks"])]
    assert [name for name in names if f'"{name}"' in text] == []


def test_a_disguise_keeps_the_ratios_of_throughputs_within_a_task_and_of_capabilities_within_a_corpus(
    table: Table,
) -> None:
    disguise = Disguise(random.Random(6), table.corpus)
    hidden = {
        disguise.revealed({"device": cell.device, "task": cell.task}): value
        for cell, value in measured_alone(disguise.corpus(table.corpus)).items()
    }
    real = measured_alone(table.corpus)
    factors: dict[str, list[float]] = {}
    for cell, throughput in real.items():
        factors.setdefault(cell.task, []).append(hidden[cell] / throughput)
    for values in factors.values():
        assert values == pytest.approx([values[0]] * len(values))
    assert len({round(values[0], 9) for values in factors.values()}) == len(factors)


def test_two_disguises_of_one_corpus_have_nothing_in_common(table: Table) -> None:
    first, second = (Disguise(random.Random(seed), table.corpus).corpus(table.corpus) for seed in (7, 8))
    throughputs = [{row["throughput"] for row in disguised["measurements"]} for disguised in (first, second)]
    assert not throughputs[0] & throughputs[1]


def test_the_simple_indices_by_hand() -> None:
    corpus = {
        "devices": [
            {"id": "a", "peak_matrix_throughput": {"fp16": 100.0}, "accelerator_memory_bandwidth": 10.0},
            {"id": "b", "peak_matrix_throughput": {"fp16": 300.0, "fp8": 600.0}, "accelerator_memory_bandwidth": 20.0},
        ],
        "tasks": [{"id": "t", "precisions": ["fp16"]}, {"id": "u", "precisions": ["fp16"]}],
    }
    measured = {Cell("a", "t"): 1.0, Cell("a", "u"): 2.0, Cell("b", "u"): 5.0}
    simple = Simple.of(corpus, measured, Cell("b", "t"), "a")
    assert (simple.peak, simple.roofline) == (3.0, 2.0)
    assert simple.scalar == pytest.approx(2.5)
    assert Simple.of(corpus, {}, Cell("b", "t"), "a").scalar is None


def test_errors_are_relative_to_what_was_measured() -> None:
    assert pair(1.2, measured=1.5).error == pytest.approx(0.2)
    assert pair(3.0, measured=1.5).error == pytest.approx(1.0)


def test_a_summary_by_hand() -> None:
    summary = Summary.of([pair(1.0), pair(1.05), pair(1.3), pair(0.8)])
    assert (summary.pairs, summary.near, summary.covered) == (4, 0.5, 0.5)
    assert summary.mean == pytest.approx(fmean([0, 0.05, 0.3, 0.2]))
    assert summary.median == pytest.approx(0.125)
    assert summary.ninetieth == pytest.approx(0.3)


def test_order_is_compared_in_the_unit_of_throughput_not_in_that_of_the_reference() -> None:
    """Three devices against one reference, the fourth against another that is ten times as fast."""
    in_order = [pair(value, value, device=f"d{value}") for value in (1.0, 2.0, 3.0)]
    other = pair(0.4, 0.4, device="d4", unit=10.0)
    assert rank_correlations([*in_order, other]) == [1.0]
    assert rank_correlations([*in_order, replace(other, value=0.25)]) == [pytest.approx(2 / 3)]


def test_tasks_that_few_devices_were_told_of_have_no_order() -> None:
    assert rank_correlations([pair(1.0, device="a"), pair(2.0, device="b"), pair(3.0, device="c")]) == []


@given(st.lists(st.sampled_from("abc"), min_size=1))
def test_clusters_hold_every_pair_once(devices: list[str]) -> None:
    clusters = by_device([pair(1.0, device=device) for device in devices], lambda each: each.value)
    assert sorted(map(len, clusters)) == sorted(devices.count(device) for device in set(devices))
