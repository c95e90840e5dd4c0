"""Orders of domains in a ring."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.resilience.collectives import best_ring, round_s

GIGABIT = 1e9 / 8


def test_a_ring_goes_around_a_link_that_is_out() -> None:
    rates = np.full((4, 4), GIGABIT)
    rates[0, 1] = rates[1, 0] = 0.0
    order = best_ring(rates, np.full((4, 4), 0.01), 1e6)
    assert np.isfinite(round_s(order, rates, np.full((4, 4), 0.01), 1e6))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 12))
def test_rings_of_many_domains_visit_each_once_and_are_no_slower_than_going_to_the_nearest(
    seed: int, count: int
) -> None:
    chance = np.random.default_rng(seed)
    rates, latency = chance.uniform(0.1, 10.0, (count, count)) * GIGABIT, chance.uniform(0.001, 0.1, (count, count))
    order = best_ring(rates, latency, 1e8)
    assert sorted(order) == list(range(count))
    nearest = [0]
    while len(nearest) < count:
        left = [each for each in range(count) if each not in nearest]
        nearest.append(min(left, key=lambda each: latency[nearest[-1], each] + 1e8 / rates[nearest[-1], each]))
    assert round_s(order, rates, latency, 1e8) <= round_s(tuple(nearest), rates, latency, 1e8)
