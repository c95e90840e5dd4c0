"""How wires are shared, and which of them traffic takes."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.engine.paths import fair_rates
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.values import Wire


def test_who_wants_little_gets_it_and_the_others_share_the_rest() -> None:
    assert fair_rates({0: 10.0}, [(0,), (0,), (0,)], [2.0, inf, inf]) == [2.0, 4.0, 4.0]


def test_who_is_held_up_elsewhere_leaves_more_to_others() -> None:
    """The example of textbooks: one flow over both wires, the first of which carries two others."""
    assert fair_rates({0: 3.0, 1: 5.0}, [(0, 1), (0,), (0,), (1,)], [inf] * 4) == [1.0, 1.0, 1.0, 4.0]


def test_a_wire_that_is_cut_stops_its_flows_alone() -> None:
    assert fair_rates({0: 0.0, 1: 5.0}, [(0, 1), (1,)], [inf, inf]) == [0.0, 5.0]


FLOWS = st.lists(
    st.tuples(st.sets(st.integers(0, 4), min_size=1, max_size=3), st.one_of(st.just(inf), st.floats(0.0, 50.0))),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(FLOWS, st.lists(st.floats(0.0, 100.0), min_size=5, max_size=5))
def test_rates_are_max_min_fair(flows: list[tuple[set[int], float]], offered: list[float]) -> None:
    """No wire is exceeded; who does not get its wish uses a full wire on which nobody gets more."""
    paths, wishes = [tuple(sorted(path)) for path, _ in flows], [wish for _, wish in flows]
    rates = fair_rates(dict(enumerate(offered)), paths, wishes)
    carried = [sum(rate for rate, path in zip(rates, paths, strict=True) if wire in path) for wire in range(5)]
    assert all(load <= offer + 1e-9 * (1 + offer) for load, offer in zip(carried, offered, strict=True))
    for rate, path, wish in zip(rates, paths, wishes, strict=True):
        assert rate <= wish
        held_up = [
            wire
            for wire in path
            if carried[wire] >= offered[wire] - 1e-6
            and all(rate >= other - 1e-6 for other, its in zip(rates, paths, strict=True) if wire in its)
        ]
        assert rate == wish or held_up


def test_traffic_takes_the_way_of_the_shortest_round_trip() -> None:
    """Between a and b is a wire of their own, but the way by the exchange is shorter; c has two exchanges."""
    ends = (("a", "b", 9.0), ("a", "x", 1.0), ("x", "b", 1.0), ("x", "c", 2.0), ("a", "y", 1.0), ("y", "c", 1.5))
    routes = Routes(["a", "b", "c"], [Wire(one, other, 1.0, seconds, 1.0) for one, other, seconds in ends])
    assert routes.paths == {(0, 1): (1, 2), (0, 2): (4, 5)}
    assert routes.round_trips[0].tolist() == [0.0, 2.0, 2.5]
    by_wire = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert routes.narrowest(by_wire).tolist() == [[inf, 2.0, 5.0], [0.0, inf, 0.0], [0.0, 0.0, inf]]
    assert routes.total(by_wire).tolist() == [[0.0, 5.0, 11.0], [inf, 0.0, inf], [inf, inf, 0.0]]


def test_without_wires_there_is_no_way() -> None:
    routes = Routes(["a", "b"], [])
    assert routes.paths == {}
    assert routes.narrowest(np.zeros(0)).tolist() == [[inf, 0.0], [0.0, inf]]
    assert routes.round_trips[0, 1] == pytest.approx(inf)


@settings(deadline=None)
@given(FLOWS, st.lists(st.integers(0, 100), min_size=5, max_size=5))
def test_the_order_in_which_flows_are_told_does_not_matter(
    flows: list[tuple[set[int], float]], offered: list[int]
) -> None:
    capacities = {wire: float(offer) for wire, offer in enumerate(offered)}
    paths, wishes = [tuple(sorted(path)) for path, _ in flows], [wish for _, wish in flows]
    there, back = (fair_rates(capacities, paths[::way], wishes[::way])[::way] for way in (1, -1))
    assert there == pytest.approx(back, abs=1e-9)
