"""How tasks wait for what they lack, what is scarce, and what follows for sizes, in a world whose law is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.demand.sizing import (
    GB,
    MACHINES,
    Records,
    Waits,
    cut,
    headroom,
    learn_waits,
    needs,
    records_of,
    resource_values,
)
from kuayu.demand.strategy import Floats

USUAL = 0.9
EVEN = np.full(3, 1 / 3)


def law(over: Floats, share: Floats) -> Floats:
    """Slow-down of a task that has 1/over of its peak, of which it uses nine tenths on average."""
    return np.asarray(np.maximum(np.maximum(USUAL * over - 1, share * (over - 1)), 0.0))


def tasks(seed: int, count: int, share: Floats, *, noise: float = 0.0, over: float = 1.4) -> tuple[Records, Floats]:
    """Records of a kind of which every tenth or so asks for too little of accelerators or cores, and their needs.

    Args:
        seed: Of chance.
        count: How many.
        share: Of the time that passes at the peak, of accelerators and cores, 2.
        noise: Of the mean use over the peak, as a standard deviation of logarithms.
        over: Asked for over needed, median of those that ask for enough.
    """
    random = np.random.default_rng(seed)
    needed = np.array([0.3, 6.0, 10 * GB]) * random.lognormal(0, 0.5, (count, 3))
    generous = np.maximum(random.normal(over, 0.1 * (over - 1), (count, 3)), 1.0)
    generous[:, :2] = np.where(random.random((count, 2)) < 0.1, random.uniform(0.6, 1.0, (count, 2)), generous[:, :2])
    asked = needed * generous
    slow = 1 + law(1 / generous[:, :2], share).sum(axis=1)
    used = needed * np.array([USUAL, USUAL, 0.7]) * np.exp(noise * random.standard_normal((count, 3)))
    used[:, :2] /= slow[:, None]
    used, peak = np.minimum(used, asked), np.minimum(needed, asked)
    seconds = 600 * needed[:, 1] * slow * random.lognormal(0, 0.1, count)
    table = np.column_stack([asked, used, np.fmax(peak, used), np.ones((count, 2)), seconds])
    # Records have an order of their own; so have needs then.
    order = np.lexsort(table.T)
    return records_of(table), needed[order]


def learnt(records: Records) -> Waits:
    return learn_waits(records, headroom([records]))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.1, 0.4, 0.8]), st.sampled_from([0.1, 0.5]))
def test_tasks_that_asked_for_too_little_tell_how_they_wait(seed: int, first: float, second: float) -> None:
    records, _ = tasks(seed, 1500, np.array([first, second]))
    waits = learnt(records)
    assert waits.usual == pytest.approx([USUAL, USUAL], rel=0.01)
    assert waits.share == pytest.approx([first, second], abs=0.06)


def test_and_what_they_would_have_used() -> None:
    records, needed = tasks(1, 1500, np.array([0.3, 0.6]))
    found = learnt(records).needed
    lacking = (records.given[:, :2] < needed[:, :2] * 0.999).sum(axis=1)
    single = lacking == 1
    assert single.sum() > 100
    assert found[lacking == 0] == pytest.approx(needed[lacking == 0])
    assert np.abs(np.log(found / needed))[single].max() < 0.02


def test_the_worst_is_believed_where_little_is_told() -> None:
    few, _ = tasks(2, 60, np.array([0.1, 0.1]))
    assert learnt(few).share == pytest.approx([USUAL, USUAL], rel=0.01)
    hazy, _ = tasks(2, 1500, np.array([0.1, 0.1]), noise=0.3)
    assert learnt(hazy).share == pytest.approx(learnt(hazy).usual)


def test_waiting_is_worked_by_hand() -> None:
    # Half of what is needed: nine tenths of the work on one half takes 1.8 times as long.
    waits = Waits(np.empty((0, 3)), np.array([0.9, 0.9]), np.array([0.9, 0.1]), 1.0)
    assert waits.slower(1, np.array([0.5, 1.0, 2.0])) == pytest.approx([0.0, 0.0, 0.8])
    # A tenth less: 1/9 more at the peak, of which a tenth or nine tenths of the time passes.
    assert waits.slower(1, np.array([1 / 0.9])) == pytest.approx([0.1 / 9])
    assert waits.slower(0, np.array([1 / 0.9])) == pytest.approx([0.1])


def test_slow_downs_that_weigh_more_in_durations_than_use_tells_count_more() -> None:
    records, _ = tasks(3, 1500, np.array([0.5, 0.5]))
    assert learnt(records).factor == pytest.approx(1, abs=0.15)
    plain = learnt(records)
    late = sum(plain.slower(each, (plain.needed / records.given)[:, each]) for each in range(2))
    doubled = np.column_stack(
        [records.given, records.used, records.peak, records.beside, records.duration * (1 + np.asarray(late))]
    )
    assert learnt(records_of(doubled)).factor == pytest.approx(2, abs=0.25)


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("allowed", [0.02, 0.05, 0.1])
def test_tasks_run_as_much_longer_as_told(seed: int, allowed: float) -> None:
    share = np.array([0.2, 0.6])
    past, _ = tasks(seed, 2000, share)
    coming, needed = tasks(seed + 100, 2000, share)
    waits = learnt(past)
    cuts = cut(coming.given, needs(past.given, waits.needed), waits, EVEN, allowed, whole=False)
    assert (cuts.given <= coming.given).all()
    assert (cuts.slower <= allowed + 1e-9).all()
    before, after = (1 + law(needed[:, :2] / size[:, :2], share).sum(axis=1) for size in (coming.given, cuts.given))
    dead = (cuts.given[:, 2] < needed[:, 2] * (1 - 1e-9)).mean()
    assert dead < 0.01
    assert (after / before - 1).mean() + dead / 2 == pytest.approx(cuts.slower.mean(), abs=0.2 * allowed)
    assert cuts.slower.mean() > 0.85 * allowed


def test_who_asks_for_less_than_is_likely_needed_keeps_it() -> None:
    # All need 6 cores. Who asks for 5 is short already; who asks for 12 is not.
    row = [0.3, 12.0, 20 * GB, 0.2, 5.0, 8 * GB, 0.3, 6.0, 10 * GB, 1.0, 1.0, 600.0]
    records = records_of(np.tile(row, (40, 1)))
    waits = learnt(records)
    asked = np.array([[0.3, 5.0, 20 * GB], [0.3, 12.0, 20 * GB]])
    cuts = cut(asked, needs(records.given, waits.needed), waits, EVEN, 0.05, whole=False)
    assert cuts.given[0, 1] == 5
    assert cuts.given[1, 1] < 6


def test_where_all_ask_for_what_they_need_nothing_is_to_be_had() -> None:
    records, _ = tasks(7, 600, np.array([0.5, 0.5]), over=1.0)
    waits = learnt(records)
    cuts = cut(records.given, needs(records.given, waits.needed), waits, EVEN, 0.0, whole=False)
    assert (cuts.slower == 0).all()
    assert cuts.given[:, :2].sum(axis=0) == pytest.approx(records.given[:, :2].sum(axis=0), rel=0.001)


def test_what_runs_out_first_is_worth_most() -> None:
    # For an hour, 100 cores beside one accelerator: no machine has as many; each resource counts a third besides.
    def held(devices: float, cores: float, memory: float) -> Records:
        return records_of(np.array([[devices, cores, memory, *([0.0] * 8), 3600.0]]))

    most, little = (len(MACHINES) + 1 / 3) / (len(MACHINES) + 1), 1 / 3 / (len(MACHINES) + 1)
    assert resource_values([held(1, 100, GB)]) == pytest.approx([little, most, little])
    assert resource_values([held(8, 8, GB)]) == pytest.approx([most, little, little])
    assert resource_values([held(1, 1, 500 * GB)]) == pytest.approx([little, little, most])
    assert resource_values([]) == pytest.approx(EVEN)
