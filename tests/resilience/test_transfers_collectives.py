from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.resilience.transfers.collectives import HIERARCHICAL, LOW, RING, Candidate, Fabric, Work, predict
from kuayu.resilience.transfers.rings import hop_seconds, ring
from kuayu.resilience.transfers.switching import Standing, choose

GIGABIT = 1e9 / 8
WORK = Work(4e9, 4.0)


def fabric(domains: int, nodes: int, gigabits: float, latency_s: float = 0.02, inside: float = 200.0) -> Fabric:
    """All domains alike."""
    rates = np.full((domains, domains), gigabits * GIGABIT)
    return Fabric(rates, np.full((domains, domains), latency_s), nodes, inside * GIGABIT, 1e-5)


def best(its: Fabric) -> Candidate:
    """The quickest by prediction."""
    return max(predict(its, WORK), key=lambda each: each.throughput).candidate


def test_near_domains_form_one_ring_far_ones_reduce_inside_first_and_thin_links_are_used_rarely() -> None:
    assert best(fabric(2, 8, 400.0, latency_s=1e-4, inside=25.0)).kind == RING
    assert best(fabric(3, 8, 20.0)).kind == HIERARCHICAL
    assert best(fabric(3, 8, 2.0)).kind == LOW
    thin, thinner = best(fabric(3, 8, 2.0)), best(fabric(3, 8, 0.1))
    assert thinner.period > thin.period


def test_times_are_those_of_the_formulas() -> None:
    found = {each.candidate: each for each in predict(fabric(4, 2, 8.0, latency_s=0.01), WORK)}
    across = 2 * 3 * (0.01 + 4e9 / 4 / 1e9)
    inside = 2 * 1 * (1e-5 + 4e9 / 2 / (200 * GIGABIT))
    flat = 2 * 7 * (0.01 + 4e9 / 8 / 1e9)
    assert found[Candidate(HIERARCHICAL)].across_s == pytest.approx(across)
    assert found[Candidate(HIERARCHICAL)].throughput == pytest.approx(1 / (4.0 + inside + across - 8 / 3))
    assert found[Candidate(RING)].across_s == pytest.approx(flat)
    rarely = found[Candidate(LOW, 50)]
    assert rarely.charged > 1.0
    assert rarely.throughput == pytest.approx(50 / (50 * 4.0 + across - (8 / 3 - inside)) / rarely.charged)


def test_a_domain_alone_exchanges_nothing_and_is_charged_nothing() -> None:
    for each in predict(fabric(1, 1, 1.0), WORK):
        assert each.throughput == pytest.approx(1 / 4.0)


def test_a_ring_goes_around_a_link_that_is_out() -> None:
    rates = np.full((4, 4), GIGABIT)
    rates[0, 1] = rates[1, 0] = 0.0
    order = ring(rates, np.full((4, 4), 0.01), 1e6)
    assert np.isfinite(hop_seconds(order, rates, np.full((4, 4), 0.01), 1e6))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 12))
def test_rings_of_many_domains_visit_each_once_and_are_no_slower_than_the_order_given(seed: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    rates, latency = chance.uniform(0.1, 10.0, (count, count)) * GIGABIT, chance.uniform(0.001, 0.1, (count, count))
    order = ring(rates, latency, 1e8)
    assert sorted(order) == list(range(count))
    start = [0]
    while len(start) < count:
        left = [each for each in range(count) if each not in start]
        start.append(min(left, key=lambda each: latency[start[-1], each] + 1e8 / rates[start[-1], each]))
    assert hop_seconds(order, rates, latency, 1e8) <= hop_seconds(tuple(start), rates, latency, 1e8)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(1.0, 5.0), st.integers(1, 5), st.integers(1, 16))
def test_more_bandwidth_makes_nothing_slower(gigabits: float, times: float, domains: int, nodes: int) -> None:
    before, after = (
        predict(fabric(domains, nodes, gigabits), WORK),
        predict(fabric(domains, nodes, gigabits * times), WORK),
    )
    for one, other in zip(before, after, strict=True):
        assert other.throughput >= one.throughput * (1 - 1e-12)


def follow(rates: list[float], cost_s: float = 10.0) -> tuple[list[Candidate], int]:
    """Choices over links that carry so many Gbit/s, asked every half a minute; and how many switches."""
    standing: Standing | None = None
    made, switches = [], 0
    for rate in rates:
        choice = choose(fabric(3, 8, rate), WORK, standing, 30.0, cost_s)
        standing = choice.standing
        switches += choice.switched
        made.append(standing.candidate)
    return made, switches


def test_noise_around_a_tie_does_not_flap() -> None:
    gigabits = 5.0 * np.exp(0.1 * np.random.default_rng(3).standard_normal(400))
    wished = [best(fabric(3, 8, rate)) for rate in gigabits]
    restless = sum(one != other for one, other in pairwise(wished))
    _, switches = follow(gigabits.tolist())
    assert restless > 20
    assert switches <= restless / 10


def test_a_lasting_collapse_is_followed_within_minutes_and_back() -> None:
    made, switches = follow([20.0] * 20 + [1.0] * 40 + [20.0] * 60)
    assert made[19].kind == HIERARCHICAL
    assert made[24].kind == LOW
    assert made[-1].kind == HIERARCHICAL
    assert switches <= 4


def test_a_cheap_switch_is_made_sooner_than_a_dear_one() -> None:
    course = [100.0] * 5 + [6.0] * 100
    cheap, dear = (follow(course, cost_s)[0] for cost_s in (5.0, 300.0))
    assert next(i for i, each in enumerate(cheap) if each.kind == LOW) < next(
        i for i, each in enumerate(dear) if each.kind == LOW
    )


def test_a_choice_names_all_candidates_and_its_reason() -> None:
    choice = choose(fabric(3, 8, 5.0), WORK)
    assert len(choice.predicted) == 7
    assert "quickest" in choice.reason
    again = choose(fabric(3, 8, 5.0), WORK, choice.standing, 30.0)
    assert not again.switched
    assert "a switch takes 10 s" in again.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="square"):
        Fabric(np.ones((2, 3)), np.ones((2, 2)), 1, 1.0, 0.0)
