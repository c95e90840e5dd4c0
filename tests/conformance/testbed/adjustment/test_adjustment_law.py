"""How fast jobs are by a policy: by hand, against the law of collectives, and against all policies that there are."""

from itertools import permutations, product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed import collectives
from kuayu_conformance.testbed.adjustment.world import Floats, Job, Policy, best, rate
from kuayu_conformance.testbed.collectives import HIERARCHICAL, LOW, METHODS, RING, Method, Setting

GIGABIT = 1e9
SEEDS = st.integers(0, 2**32 - 1)


def job(domains: int = 4, nodes: int = 2, part_time: float = 0.02) -> Job:
    """4 GB over 8 Gbit/s between domains and 80 Gbit/s inside; 50 ms for a part that moves, 0.5 s for a switch."""
    bandwidth = np.full((domains, domains), 8 * GIGABIT)
    return Job(np.full(domains, part_time), nodes, 80 * GIGABIT, 1e-5, 4e9, bandwidth, 0.05, 0.5)


def apart(domains: int, seconds: float = 0.01) -> Floats:
    """All links alike."""
    return np.full((1, domains, domains), seconds)


def evenly(domains: int, parts: int, method: Method) -> Policy:
    """As many parts in each domain, in the order of the numbers."""
    return Policy((parts,) * domains, method, tuple(range(domains)))


def test_the_slowest_domain_makes_the_step_and_exchanges_hide_behind_two_thirds_of_it() -> None:
    """100 parts of 20 ms at half of the compute take 4 s; then as the exchange of four domains by hand."""
    loads = np.array([[0.5, 0.1, 0.2, 0.3]])
    made = rate(job(), loads, apart(4), evenly(4, 100, Method(HIERARCHICAL)))
    assert made[0] == pytest.approx(1 / (4.0 + 2 * (1e-5 + 0.2) + 6 * (0.01 + 1.0) - 8 / 3))
    ring = rate(job(), loads, apart(4), evenly(4, 100, Method(RING)))
    assert ring[0] == pytest.approx(1 / (4.0 + 14 * 0.51 - 8 / 3))


def test_rare_exchanges_are_charged_by_the_steps_that_they_cost() -> None:
    loads = np.full((1, 4), 0.5)
    made = rate(job(), loads, apart(4), evenly(4, 100, Method(LOW, 50)))
    lasts = 50 * 4.0 + 6 * 1.01 - (8 / 3 - 2 * (1e-5 + 0.2))
    charged = (1 + 0.0240 * 3**0.818 * log(1 + 50 / 18.4)) ** (1 / 0.3658)
    assert made[0] == pytest.approx(50 / lasts / charged)


def test_a_domain_alone_makes_steps_as_it_computes_them() -> None:
    made = rate(job(1), np.array([[0.5]]), apart(1), evenly(1, 100, Method(HIERARCHICAL)))
    assert made[0] == pytest.approx(1 / 4.0)


def test_where_others_take_all_no_policy_makes_a_step_and_parts_are_all_there() -> None:
    loads = np.array([[1.0, 0.2], [1.0, 1.0], [0.2, 0.2]])
    found = best(job(2), loads, apart(2), 10)
    assert found.rates[:2].tolist() == [0.0, 0.0]
    assert found.rates[2] > 0.0
    assert found.parts.sum(axis=1).tolist() == [10, 10, 10]
    assert found.parts.min() == 1
    assert rate(job(2), loads, apart(2), found.policy(0))[0] == 0.0


def drawn(chance: np.random.Generator, domains: int) -> tuple[Job, Floats, Floats]:
    """A job, loads and latencies at three instants."""
    its = Job(
        chance.uniform(0.005, 0.05, domains), int(chance.integers(1, 9)), GIGABIT * float(chance.uniform(10, 200)),
        1e-5, float(chance.uniform(0.2e9, 20e9)), GIGABIT * chance.uniform(1, 40, (domains, domains)), 0.05, 0.5,
    )  # fmt: skip
    return its, chance.uniform(0.0, 0.95, (3, domains)), chance.uniform(0.002, 0.5, (3, domains, domains))


def policy(chance: np.random.Generator, domains: int) -> Policy:
    """Any policy."""
    method = METHODS[int(chance.integers(len(METHODS)))]
    return Policy(tuple(chance.integers(1, 40, domains).tolist()), method, tuple(chance.permutation(domains).tolist()))


@given(SEEDS)
def test_at_steps_that_stay_it_is_the_law_of_collectives(seed: int) -> None:
    chance = np.random.default_rng(seed)
    domains = int(chance.integers(1, 6))
    its, loads, latency = drawn(chance, domains)
    by = policy(chance, domains)
    found = rate(its, loads, latency, by)
    for row in range(3):
        step = float((np.array(by.parts) * its.part_times / (1.0 - loads[row])).max())
        setting = Setting(latency[row], its.nodes, its.node_bandwidth, its.node_latency, its.exchange, step)
        there = collectives.rate(setting, its.bandwidth[None], by.method, by.order)
        assert found[row] == pytest.approx(float(there[0]))


@given(SEEDS)
def test_the_best_is_one_of_the_policies_and_none_is_quicker(seed: int) -> None:
    chance = np.random.default_rng(seed)
    domains = int(chance.integers(1, 4))
    total = int(chance.integers(domains, domains + 6))
    its, loads, latency = drawn(chance, domains)
    found = best(its, loads, latency, total)
    divisions = [each for each in product(range(1, total + 1), repeat=domains) if sum(each) == total]
    rates = [
        rate(its, loads, latency, Policy(parts, method, order))
        for parts in divisions
        for method in METHODS
        for order in permutations(range(domains))
    ]
    assert found.rates == pytest.approx(np.max(rates, axis=0))
    for row in range(3):
        assert rate(its, loads, latency, found.policy(row))[row] == pytest.approx(found.rates[row])


@given(SEEDS)
def test_no_policy_over_many_domains_is_quicker_than_the_best_and_more_load_makes_none_faster(seed: int) -> None:
    chance = np.random.default_rng(seed)
    its, loads, latency = drawn(chance, 5)
    by = policy(chance, 5)
    found = best(its, loads, latency, sum(by.parts))
    assert (rate(its, loads, latency, by) <= found.rates * (1 + 1e-12)).all()
    more = best(its, 1.0 - 0.9 * (1.0 - loads), latency, sum(by.parts))
    assert (more.rates <= found.rates).all()


def test_of_more_domains_than_rings_can_be_tried_for_the_best_is_that_of_its_own_policy() -> None:
    its, loads, latency = drawn(np.random.default_rng(1), 9)
    found = best(its, loads, latency, 200)
    for row in range(3):
        assert sorted(found.policy(row).order) == list(range(9))
        assert rate(its, loads, latency, found.policy(row))[row] == pytest.approx(found.rates[row])


def test_a_change_costs_what_moves_and_what_switches_and_nothing_else() -> None:
    before = Policy((30, 20, 10), Method(RING), (0, 1, 2))
    moved = Policy((25, 20, 15), Method(RING), (0, 1, 2))
    turned = Policy((30, 20, 10), Method(RING), (1, 2, 0))
    reversed_ = Policy((30, 20, 10), Method(RING), (2, 1, 0))
    other = Policy((10, 20, 30), Method(LOW, 5), (0, 1, 2))
    its = job(3)
    assert [its.pause(before, after) for after in (before, turned)] == [0.0, 0.0]
    assert [its.pause(before, after) for after in (moved, reversed_)] == pytest.approx([0.25, 0.5])
    assert its.pause(before, other) == pytest.approx(20 * 0.05 + 0.5)
    assert its.pause(other, Policy(other.parts, Method(LOW, 15), other.order)) == pytest.approx(0.5)
    assert before.is_like(turned)
    assert not before.is_like(reversed_)
    assert not before.is_like(moved)


@given(SEEDS)
def test_to_change_back_costs_as_much(seed: int) -> None:
    chance = np.random.default_rng(seed)
    one = policy(chance, 4)
    other = Policy(tuple(chance.permutation(one.parts).tolist()), Method(HIERARCHICAL), (0, 1, 2, 3))
    its = job()
    assert its.pause(one, other) == its.pause(other, one)
