"""Windows under schedules that do not look at the network, worked out by hand; and one who knows what links carry."""

import dataclasses

import numpy as np
import pytest
from conformance.testbed.transfers.shard_windows import plain
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.shards import (
    FAMILIES,
    LEAD_S,
    NEAREST,
    ON_DEMAND,
    ONE_AHEAD,
    PULL,
    STEP_S,
    Outcome,
    Run,
    Schedule,
    Static,
    Window,
    best,
    clairvoyant,
    draw,
    grid,
    local_slots,
)

SEED = "stories"

STEP_BYTES = [5200060069.0, 4890285652.0]
RATES = [413154929.0, 736039963.0, 949647198.0]
MEASURED = [3704000000.0, 0.0, 6807000000.0]
"""Of a window, as they were first drawn."""


def played(window: Window, schedule: Schedule) -> Outcome:
    """What comes of a window under a schedule."""
    return Run(window, Static(window, schedule)).play()


def test_on_demand_a_step_waits_for_its_transfer_and_every_transfer_is_blocked() -> None:
    """Both jobs ask at once; one transfer after the other takes 2.5 s at 2 MB/s."""
    outcome = played(plain(np.full(400, 2.0), steps=1), ON_DEMAND)
    assert (outcome.blocked, outcome.blocked_bytes, outcome.transfers) == (1.0, 1.0, 2)
    assert outcome.waiting == pytest.approx((2.5 / 7.5 + 5.0 / 10.0) / 2)


def test_a_request_takes_its_latency_before_any_byte_comes() -> None:
    outcome = played(plain(np.full(400, 2.0), steps=1, latency=0.5), ON_DEMAND)
    assert outcome.waiting == pytest.approx((3.0 / 8.0 + 6.0 / 11.0) / 2)


def test_with_twice_the_bandwidth_one_step_ahead_waits_for_nothing() -> None:
    outcome = played(plain(np.full(4000, 4.5)), ONE_AHEAD)
    assert (outcome.waiting, outcome.blocked, outcome.finished) == (0.0, 0.0, True)


def test_an_outage_longer_than_the_buffer_is_waited_for_to_the_second() -> None:
    rates = np.full(4000, 4.0)
    rates[200:260] = 0.0
    window = plain(rates, room=4)
    outcome = played(window, Schedule(1.0, 4, PULL, "evenly"))
    waited = outcome.waiting / (1 - outcome.waiting) * window.steps * STEP_S
    assert 35.0 <= waited <= 60.0  # a minute, less the four steps that were here and the one that ran


def test_a_window_in_which_nothing_comes_any_more_ends_at_its_limit_and_counts_what_never_came() -> None:
    """Links carry two minutes, so 12 steps of each job but for the buffer's first, and then nothing."""
    rates = np.zeros(400)
    rates[: LEAD_S + 60] = 2.0
    outcome = played(plain(rates, steps=20), ON_DEMAND)
    assert not outcome.finished
    assert 0.8 < outcome.waiting < 0.9  # 340 s from the first slot, in each of which a job runs for 60 s at most
    assert outcome.blocked == outcome.blocked_bytes == 1.0
    assert outcome.transfers == 40


def test_on_demand_the_link_that_carried_most_before_the_window_is_asked_whatever_it_carries_now() -> None:
    rates = np.stack([np.full(400, 9.0), np.full(400, 1.0)])
    window = plain(rates, steps=2)
    before = window.measured.copy()
    before[1] *= 1.5
    misled = dataclasses.replace(window, measured=before)
    assert played(misled, ON_DEMAND).waiting > played(window, ON_DEMAND).waiting


def test_local_steps_are_spread_evenly_or_stand_at_an_end() -> None:
    window = plain(np.full(400, 2.0), steps=8, local=2)
    shown = {
        place: "".join("Lr"[not each] for each in local_slots(window, place)) for place in ("evenly", "first", "last")
    }
    assert shown == {"evenly": "rrrLrrrL", "first": "LLrrrrrr", "last": "rrrrrrLL"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_window_follows_from_its_seed_and_its_names_tell_nothing(family: str) -> None:
    one, other, again = draw(family, SEED, 300), draw(family, "another", 300), draw(family, SEED, 300)
    assert np.array_equal(one.rates, again.rates)
    assert np.array_equal(one.measured, again.measured)
    assert one.names == again.names
    assert not set(one.names.sources) & set(other.names.sources)
    assert not np.array_equal(one.step_bytes, other.step_bytes)
    assert one.limit_s == LEAD_S + 900
    assert one.capacity == np.round(one.capacity)


def test_a_window_is_the_same_on_every_machine() -> None:
    """Requests are made of these figures, and whoever judges a report again makes them anew."""
    window = draw("outages", "fixed", 300)
    assert window.step_bytes.tolist() == STEP_BYTES
    assert window.rates[:, 100].tolist() == RATES
    assert window.measured[:, 3].tolist() == MEASURED


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 3.0), st.sampled_from(FAMILIES))
def test_more_bandwidth_never_makes_one_who_knows_it_wait_more(seed: int, times: float, family: str) -> None:
    window = dataclasses.replace(draw(family, f"{seed}", 200), local=4)
    slow = dataclasses.replace(window, rates=0.5 * window.rates)
    fast = dataclasses.replace(slow, rates=times * slow.rates)
    assert clairvoyant(fast).waiting <= clairvoyant(slow).waiting + 1e-6


def test_the_best_schedule_is_the_one_that_did_best_over_all_windows() -> None:
    windows = [draw("±30 %", f"{SEED}{each}", 150) for each in range(2)]
    schedules = [Schedule(1.0, depth, source_choice, "evenly") for depth in (1, 8) for source_choice in (NEAREST, PULL)]
    found = {each: [played(window, each) for window in windows] for each in schedules}
    chosen = best(found, "waiting", pulling=False)
    assert chosen.source_choice == NEAREST
    sums = {each: sum(its.waiting for its in found[each]) for each in schedules if each.source_choice == NEAREST}
    assert sums[chosen] == min(sums.values())
    assert len(list(grid())) == 81
