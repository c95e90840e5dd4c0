"""A cluster of ten cores, worked by hand."""

from typing import Any

import numpy as np
import pytest
from conformance.testbed.tasks.few_tasks import HOUR, ROOM, few

from kuayu_conformance.testbed.right_sizing import (
    CAPACITY,
    DRF,
    FIFO,
    IN_ORDER,
    MEMORY,
    POLICIES,
    SRTF,
    Outcome,
    Tasks,
    World,
    play,
    window,
)


def after(hours: float, tasks: Tasks, policy: str = FIFO, given: Any = None) -> Outcome:
    return play(tasks, tasks.requested if given is None else given, policy, ROOM, hours * HOUR)


def starts(outcome: Outcome) -> list[float]:
    return [float(at) / HOUR for at in outcome.started]


def test_who_comes_first_goes_first_and_small_ones_overtake() -> None:
    """Six cores run two hours; nine have to wait, two go past for five hours, though they came last."""
    tasks = few((6, 2), (9, 1), (2, 5))
    assert starts(after(12, tasks)) == [0.0, 5.0, 0.0]


def test_nobody_overtakes_where_that_is_the_rule() -> None:
    assert starts(after(12, few((6, 2), (9, 1), (2, 5)), IN_ORDER)) == [0.0, 2.0, 3.0]


def test_a_newcomer_may_not_pass_who_waits_where_nobody_overtakes() -> None:
    tasks = few((6, 2), (8, 1), (1, 1), arrivals=(0.0, 0.5 * HOUR, HOUR))
    assert starts(after(12, tasks, IN_ORDER)) == [0.0, 2.0, 2.0]
    assert starts(after(12, tasks, FIFO)) == [0.0, 2.0, 1.0]


def test_the_shortest_goes_first_by_what_is_believed() -> None:
    """All need the whole cluster; the second is believed to be the longest, and is the shortest."""
    tasks = few((10, 3), (10, 1), (10, 2), arrivals=(0.0, 1.0, 2.0), declared=(3.0, 9.0, 2.0))
    assert starts(after(12, tasks, SRTF)) == [0.0, 5.0, 3.0]
    assert starts(after(12, tasks, FIFO)) == [0.0, 3.0, 4.0]


def test_the_user_who_holds_least_goes_first() -> None:
    """User 0 holds six of ten cores when four become free: user 1, who came last, goes first."""
    tasks = few((6, 9), (4, 1), (4, 1), (4, 1), users=(0, 1, 0, 1))
    assert starts(after(12, tasks, DRF)) == [0.0, 0.0, 2.0, 1.0]
    assert starts(after(12, tasks, FIFO)) == [0.0, 0.0, 1.0, 2.0]


def test_the_dominant_share_counts() -> None:
    """User 0 holds half of the devices and hardly a core, user 1 four of ten cores: 0.5 against 0.4."""
    tasks = few((0.5, 9), (4, 9), (5.5, 1), (5, 1), (5, 1), users=(0, 1, 2, 0, 1))
    tasks.requested[0, 0] = 4.0
    assert starts(after(12, tasks, DRF))[3:] == [2.0, 1.0]


def test_shares_are_what_is_used_and_held_over_the_whole_window() -> None:
    """Five cores for two of four hours: a quarter of the cores is held; half of them is used, an eighth."""
    outcome = after(4, few((5, 2)))
    assert outcome.occupied == pytest.approx((2 / 8 / 4, 5 * 2 / 10 / 4, 10 * 2 / 100 / 4))
    assert outcome.used == pytest.approx((1 / 8 / 4, 0.125, 8 * 2 / 100 / 4))


def test_what_still_runs_at_the_end_counts_as_far_as_it_came() -> None:
    """The second starts after three hours and has one of its three."""
    outcome = after(4, few((10, 3), (10, 3)))
    assert (outcome.arrived, outcome.deployed, outcome.finished) == (2, 2, 1)
    assert outcome.completion == 0.5
    assert outcome.occupied[1] == pytest.approx(1.0)


def test_what_arrives_after_the_end_does_not_count() -> None:
    outcome = after(4, few((1, 1), (1, 1), arrivals=(0.0, 5 * HOUR)))
    assert (outcome.arrived, outcome.completion) == (1, 1.0)


def test_memory_that_runs_out_ends_a_run_and_the_next_has_what_was_asked_for() -> None:
    """Given nine of ten gigabytes, a task of two hours dies halfway and runs again: it ends after three."""
    tasks = few((10, 2), (10, 1))
    given = tasks.requested.copy()
    given[0, MEMORY] = 9.0
    outcome = after(12, tasks, given=given)
    assert starts(outcome) == [0.0, 3.0]
    assert (outcome.deployed, outcome.finished, outcome.died, outcome.lost) == (2, 2, 1, HOUR)
    assert outcome.used[1] == pytest.approx(5 * 3 / 10 / 12), "lost work is of no use"
    assert outcome.occupied[1] == pytest.approx(10 * 4 / 10 / 12), "but it held the cores"


def test_a_run_that_would_have_died_is_of_no_use_at_the_end_either() -> None:
    tasks = few((10, 8))
    given = tasks.requested * np.array([1.0, 1.0, 0.9])
    outcome = after(2, tasks, given=given)
    assert (outcome.died, outcome.finished, outcome.used[1]) == (0, 0, 0.0)


def test_half_the_cores_let_two_run_at_once_for_longer() -> None:
    """56 % of the time of such tasks waits for cores: with half of them it takes 1.56 times as long."""
    tasks = few((10, 1), (10, 1))
    given = tasks.requested * np.array([1.0, 0.5, 1.0])
    outcome = after(1.5, tasks, given=given)
    assert (starts(outcome), outcome.finished) == ([0.0, 0.0], 0)
    assert after(1.57, tasks, given=given).finished == 2
    assert outcome.used[1] == pytest.approx(2 * 5 / 1.56 / 10)


def test_cores_are_full_from_the_start_of_the_tenth() -> None:
    tasks = few(*[(1, 9)] * 10, arrivals=(*(HOUR * n for n in range(8)), 8.2 * HOUR, 8.5 * HOUR))
    tasks.requested[:, 0] = 0.1
    assert after(12, tasks).full == 8.5 * HOUR


def test_what_cannot_be_is_said() -> None:
    tasks = few((1, 1))
    with pytest.raises(ValueError, match="a policy of"):
        play(tasks, tasks.requested, "LIFO")
    with pytest.raises(ValueError, match="a row for each"):
        play(tasks, tasks.requested[:0], FIFO)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_nobody_holds_more_than_there_is_nor_uses_more_than_is_held(policy: str, seed: str) -> None:
    """Of drawn windows, with sizes that let some die: every share is in order, and work is there to be done."""
    tasks = window(seed, (40, 30, 20, 10), World())
    outcome = play(tasks, tasks.requested * np.array([0.9, 0.8, 0.8]), policy)
    assert all(0.0 <= used <= held <= 1.0 for used, held in zip(outcome.used, outcome.occupied, strict=True))
    assert 0 < outcome.finished <= outcome.deployed <= outcome.arrived == len(tasks)
    assert outcome.died > 0
    assert CAPACITY == (32.0, 384.0, 2000.0)
