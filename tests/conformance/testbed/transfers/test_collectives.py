"""How long collectives take, by hand, and the windows in which they are carried out."""

from math import log

import numpy as np
import pytest
from conformance.conforming_collectives import choose

from kuayu_conformance.testbed.collectives import (
    FAMILIES,
    HIERARCHICAL,
    INTERVAL,
    LOW,
    METHODS,
    PAST,
    RING,
    SWITCH,
    Course,
    Floats,
    Method,
    Setting,
    baselines,
    best,
    draw,
    follow,
    rate,
    turned,
)

GIGABIT = 1e9


def setting(domains: int = 4, nodes: int = 2, latency: float = 0.01) -> Setting:
    """4 GB, steps of 4 s, 80 Gbit/s inside."""
    return Setting(np.full((domains, domains), latency), nodes, 80 * GIGABIT, 1e-5, 4e9, 4.0)


def links(its: Setting, gigabits: float = 8.0) -> Floats:
    """All alike, one instant."""
    return np.full((1, its.domains, its.domains), gigabits * GIGABIT)


def made(its: Setting, bandwidth: Floats, method: Method) -> float:
    """Steps a second in the order of the numbers."""
    return float(rate(its, bandwidth, method, tuple(range(its.domains)))[0])


def test_a_hierarchical_exchange_by_hand() -> None:
    """Inside 2 rounds of 16 Gbit over 80 Gbit/s, over domains 6 of 8 Gbit over 8 Gbit/s; two thirds of 4 s hide."""
    its = setting()
    lasts = 4.0 + 2 * (1e-5 + 0.2) + 6 * (0.01 + 1.0) - 8 / 3
    assert made(its, links(its), Method(HIERARCHICAL)) == pytest.approx(1 / lasts)


def test_a_ring_by_hand() -> None:
    """14 rounds of 4 Gbit: 0.51 s over domains, less inside; a slow fabric inside is what counts then."""
    its = setting()
    assert made(its, links(its), Method(RING)) == pytest.approx(1 / (4.0 + 14 * 0.51 - 8 / 3))
    slow = Setting(its.latency, 2, 4 * GIGABIT, 1e-5, 4e9, 4.0)
    assert made(slow, links(slow), Method(RING)) == pytest.approx(1 / (4.0 + 14 * (1e-5 + 1.0) - 8 / 3))
    alone = Setting(its.latency, 1, 1.0, 1e-5, 4e9, 4.0)
    assert made(alone, links(alone), Method(RING)) == pytest.approx(1 / (4.0 + 6 * 1.01 - 8 / 3))


def test_low_communication_by_hand() -> None:
    """Fifty steps of 4 s, one exchange of 6.06 s of which all but what is taken inside hides; 1.08 times the steps."""
    its = setting()
    lasts = 50 * 4.0 + 6 * 1.01 - (8 / 3 - 2 * (1e-5 + 0.2))
    charged = (1 + 0.0240 * 3**0.818 * log(1 + 50 / 18.4)) ** (1 / 0.3658)
    assert made(its, links(its), Method(LOW, 50)) == pytest.approx(50 / lasts / charged)


def test_a_domain_alone_exchanges_nothing_over_domains_and_pays_for_no_period() -> None:
    its = setting(domains=1)
    inside = Method(HIERARCHICAL)
    assert {made(its, links(its), method) for method in METHODS if method.collective == LOW} == {
        made(its, links(its), inside)
    }
    assert made(its, links(its), inside) == pytest.approx(1 / 4.0)


def test_a_link_that_is_out_stops_whoever_needs_it_and_the_best_order_goes_around_it() -> None:
    its = setting()
    bandwidth = links(its)
    bandwidth[0, 1, 2] = 0.0
    for method in METHODS:
        assert made(its, bandwidth, method) == 0.0
        rates, orders = best(its, bandwidth, method)
        assert rates[0] == pytest.approx(made(its, links(its), method))
        assert (1, 2) not in zip(orders[0], np.roll(orders[0], -1), strict=True)


def test_no_order_is_quicker_than_the_best() -> None:
    world = draw("national", "orders", 4)
    chance = np.random.default_rng(1)
    for method in METHODS:
        quickest, _ = best(world.setting, world.window, method)
        for _ in range(20):
            order = tuple(chance.permutation(len(world.domains)).tolist())
            assert (rate(world.setting, world.window, method, order) <= quickest).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_windows_follow_from_their_seed_and_are_told_as_they_are_but_for_noise(family: str) -> None:
    world, again, other = (draw(family, seed, 40) for seed in ("a", "a", "b"))
    assert np.array_equal(world.measured, again.measured)
    assert not np.array_equal(world.measured[:3, :2, :2], other.measured[:3, :2, :2])
    apart = ~np.eye(len(world.domains), dtype=bool)
    assert (world.carried[:, apart] > 0.0).all()
    errors = np.log(world.measured[:, apart] / world.carried[:, apart])
    assert np.std(errors) == pytest.approx(0.05, rel=0.3)
    assert world.count == len(world.window) == 40


def test_links_of_families_carry_what_families_promise() -> None:
    spread = {family: [draw(family, f"{seed}").carried for seed in range(6)] for family in FAMILIES}
    least = {family: min(each[each > 0.0].min() for each in its) / GIGABIT for family, its in spread.items()}
    most = {family: max(each.max() for each in its) / GIGABIT for family, its in spread.items()}
    assert least["metro"] >= 70.0
    assert most["metro"] <= 520.0
    assert 1.4 <= least["national"] <= most["national"] <= 13.0
    assert 0.35 <= least["busy"] <= 2.0
    assert 0.42 <= least["×0.3"] <= 1.4
    slow = np.mean([(each[:, 0, 1] < 0.5 * np.median(each[:, 0, 1])).mean() for each in spread["×0.3"]])
    assert 0.02 <= slow <= 0.3


def test_a_course_tells_what_was_measured_and_what_is_in_use() -> None:
    course = Course(draw("metro", "told", 5))
    before = course.request({"epoch": "e", "number": 1})
    assert "in_use" not in before
    order = tuple(range(len(course.world.domains)))
    course.go_on(Method(LOW, 15), order)
    after = course.request({"epoch": "e", "number": 2})
    assert after["in_use"] == {
        "collective": LOW, "period": 15, "order": list(course.world.domains), "since": INTERVAL,
    }  # fmt: skip
    for link in after["links"]:
        one, other = (course.world.domains.index(link[end]) for end in ("source", "target"))
        assert link["bandwidths"] == course.world.measured[1 : PAST + 1, one, other].tolist()
    assert len(after["links"]) == len(order) * (len(order) - 1)


def test_switches_cost_their_seconds_and_a_ring_begun_elsewhere_is_none() -> None:
    course = Course(draw("metro", "paid", 5))
    order = tuple(range(len(course.world.domains)))
    course.go_on(Method(LOW, 15), order)
    course.go_on(Method(LOW, 15), (*order[1:], order[0]))
    assert course.switches == 0
    course.go_on(Method(LOW, 5), order)
    course.go_on(None)
    assert course.paused == [0.0, 0.0, SWITCH / INTERVAL, 0.0]
    assert (course.switches, course.changes) == (1, 1)
    paid = INTERVAL * sum(course.rates) - SWITCH * course.rates[2]
    assert course.steps == pytest.approx(paid)


def test_another_order_is_a_switch_but_no_other_collective() -> None:
    world = next(each for each in (draw("metro", f"{seed}", 3) for seed in range(20)) if len(each.domains) > 2)
    course = Course(world)
    order = tuple(range(len(world.domains)))
    course.go_on(Method(RING), order)
    course.go_on(Method(RING), order[::-1])
    assert (course.switches, course.changes) == (1, 0)
    assert turned((2, 0, 1)) == (0, 1, 2)


def test_nothing_chosen_makes_no_step() -> None:
    course = Course(draw("metro", "idle", 2))
    course.go_on(None)
    assert course.steps == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_makes_more_steps_than_who_always_has_the_quickest(family: str) -> None:
    world = draw(family, "most", 60)
    others = baselines(world)
    assert (others.fixed <= others.quickest[:, None]).all()
    assert follow(world, choose).steps <= others.most
    assert others.fixed[0].max() > 0.0
