"""Drawn tasks are what the source prints, and what it cuts."""

import numpy as np
import pytest

from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.right_sizing import (
    CAPACITY,
    CORES,
    FIFO,
    KINDS,
    MEMORY,
    MIXES,
    OVER_REQUEST,
    World,
    history,
    play,
    window,
)
from kuayu_schemas import schema

REAL = MIXES["5:15:15:65"]
EVEN = MIXES["25:25:25:25"]
MANY = history("many", EVEN, World(), 40_000)
NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.name for kind in KINDS])
def test_means_are_those_of_table_1(kind: int) -> None:
    its = MANY.kind == kind
    assert MANY.use[its].mean(axis=0) == pytest.approx(KINDS[kind].use, rel=0.03)
    assert MANY.duration[its].mean() == pytest.approx(KINDS[kind].duration, rel=0.03)


def test_mixes_are_as_named() -> None:
    tasks = history("mix", REAL, World(), 40_000)
    assert np.bincount(tasks.kind) / 40_000 == pytest.approx(np.array(REAL) / 100, abs=0.01)


def test_seventy_tasks_an_hour_come_one_by_one() -> None:
    counts = [len(window(f"{seed}", REAL, World())) for seed in range(40)]
    assert np.mean(counts) == pytest.approx(840, rel=0.02)
    assert np.var(counts) == pytest.approx(840, rel=0.6)
    tasks = window("0", REAL, World())
    assert (np.diff(tasks.arrival) >= 0).all()
    assert tasks.arrival[-1] < 12 * 3600


def test_who_asks_for_enough_asks_for_the_stated_part_more() -> None:
    ratio = MANY.requested / MANY.need
    ample = ratio > 1.0
    assert ratio[ample].mean() == pytest.approx(OVER_REQUEST, abs=0.01)
    assert 1.0 - ample[:, CORES].mean() == pytest.approx(0.1, abs=0.01)
    assert ratio.min() >= 0.6


def test_who_knows_what_is_needed_cuts_what_the_source_cuts() -> None:
    """28.5 % of the cores; and so does one rate that slows tasks by 5 % on the mean, to two points."""
    tasks = history("cut", REAL, World(), 20_000)
    asked = tasks.requested[:, CORES].sum()
    assert 1.0 - right_sizing.ideal(tasks)[:, CORES].sum() / asked == pytest.approx(0.285, abs=0.005)
    assert 1.0 - right_sizing.at_one_rate(tasks, 0.05)[:, CORES].sum() / asked == pytest.approx(0.285, abs=0.02)


def test_a_task_of_the_real_mix_asks_for_nine_cores() -> None:
    assert history("cores", REAL, World(), 20_000).requested[:, CORES].mean() == pytest.approx(9.0, abs=0.4)


def test_sizes_that_know_do_what_they_say() -> None:
    tasks = history("sizes", EVEN, World(), 2000)
    before = tasks.slowed(tasks.requested)
    for given in (right_sizing.ideal(tasks), right_sizing.tolerant(tasks, 0.05), right_sizing.at_one_rate(tasks, 0.05)):
        assert (given <= tasks.requested).all()
        assert not tasks.dies(given).any()
    assert tasks.slowed(right_sizing.ideal(tasks)) == pytest.approx(before)
    assert tasks.slowed(right_sizing.tolerant(tasks, 0.05)) / before == pytest.approx(1.05, abs=1e-6)
    assert (tasks.slowed(right_sizing.at_one_rate(tasks, 0.05)) / before).mean() == pytest.approx(1.05, abs=1e-6)


def test_nothing_is_to_be_had_where_nothing_is_asked_for_in_excess() -> None:
    tasks = window("none", REAL, World().asking(1.0))
    assert right_sizing.ideal(tasks) == pytest.approx(tasks.requested, rel=2e-5)


def test_nobody_asks_for_less_memory_than_lets_a_task_live_nor_for_more_than_there_is() -> None:
    assert not MANY.dies(MANY.requested).any()
    assert (MANY.requested <= np.array(CAPACITY)).all()


def test_the_same_seed_draws_the_same() -> None:
    one, again, other = (window(seed, REAL, World()) for seed in ("s", "s", "t"))
    assert (one.requested == again.requested).all()
    assert len(one) != len(other) or (one.requested != other.requested).any()


def test_cores_are_the_bottleneck() -> None:
    outcome = play(window("full", REAL, World()), window("full", REAL, World()).requested, FIFO)
    assert outcome.occupied[CORES] == max(outcome.occupied) > 0.95


def test_records_say_what_was_and_are_valid() -> None:
    tasks = history("wire", EVEN, World(), 50)
    its = right_sizing.records(tasks, NAMES, "s")
    assert all(schema.is_valid("TaskRecord", record) for record in its)
    slow = tasks.slowed(tasks.requested)
    for row, record in enumerate(its):
        assert record["kind"] == NAMES[tasks.kind[row]]
        assert record["duration"] == pytest.approx(tasks.duration[row] * slow[row], rel=1e-5)
        assert record["peak"]["memory"] == pytest.approx(tasks.peak[row] * 1e9, rel=1e-5)
        assert record["used"]["cores"] == pytest.approx(tasks.use[row, CORES] / slow[row], rel=1e-5)
        assert record["used"]["cores"] <= record["peak"]["cores"] * 1.00001 <= record["requested"]["cores"] * 1.00002


def test_requests_go_out_and_sizes_come_back() -> None:
    tasks = window("back", REAL, World())
    asked = right_sizing.requests(tasks, NAMES, "t")
    assert all(schema.is_valid("TaskRequest", task) for task in asked)
    back = right_sizing.numbers([{"recommended": task["requested"]} for task in asked])
    assert back == pytest.approx(tasks.requested, rel=1e-12)
    assert asked[3]["requested"]["memory"] == tasks.requested[3, MEMORY] * right_sizing.GIGABYTE
