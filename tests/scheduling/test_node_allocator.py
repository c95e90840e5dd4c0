"""Gangs on nodes: near, whole, in batches, and back again."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.scheduling.node_allocator import LIGHT, Gang, NodeAllocator, NodeAssignment
from kuayu.scheduling.state import NOWHERE, ONE_NODE, ONE_SWITCH, Nodes

HEAVY = 1e10


def allocator(free: Sequence[int], switch: Sequence[int] | None = None, devices: int = 8) -> NodeAllocator:
    """One pool whose nodes are called n0, n1 and so on."""
    names = tuple(f"n{number}" for number in range(len(free)))
    switches = np.array([NOWHERE] * len(free) if switch is None else switch, dtype=np.intp)
    return NodeAllocator([Nodes(names, np.full(len(free), devices), np.array(free), switches)])


def test_a_gang_sits_on_the_tightest_node_that_holds_it() -> None:
    assert allocator([8, 5, 4, 3]).pack([Gang(0, 4, HEAVY)]) == (((2, 4),),)


def test_of_nodes_alike_one_is_taken_on_the_fuller_switch_so_that_whole_switches_stay() -> None:
    assert allocator([8, 8, 8, 0], [0, 0, 1, 1]).pack([Gang(0, 8, HEAVY)]) == (((2, 8),),)


def test_a_gang_of_two_nodes_stays_on_one_switch_where_it_can() -> None:
    """Switch 0 has one whole node, switch 1 has two: nothing crosses."""
    place = allocator([8, 4, 8, 8], [0, 0, 1, 1])
    (assignment,) = place.pack([Gang(0, 16, HEAVY)])
    assert assignment == ((2, 8), (3, 8))
    assert place.distance(0, assignment or ()) == pytest.approx(128 / 240)


def test_of_switches_the_one_with_fewer_nodes_is_taken_though_another_fits_better() -> None:
    assert allocator([4, 4, 4, 8, 8], [0, 0, 0, 1, 1]).pack([Gang(0, 12, HEAVY)]) == (((3, 8), (4, 4)),)


def test_a_gang_larger_than_any_switch_takes_whole_ones_and_the_tightest_for_the_rest() -> None:
    place = allocator([8, 8, 8, 8, 4, 8], [0, 0, 1, 1, 2, 2])
    assert place.pack([Gang(0, 20, HEAVY)]) == (((0, 8), (1, 8), (4, 4)),)


def test_who_communicates_most_chooses_first_wherever_it_stands_in_the_batch() -> None:
    place = allocator([8, 4, 4], [0, 0, 1])
    little, much = place.pack([Gang(0, 8, 1e9), Gang(0, 8, 2e9)])
    assert much == ((0, 8),)
    assert little == ((1, 4), (2, 4))


def test_who_hardly_communicates_takes_the_pieces_and_leaves_the_whole_nodes() -> None:
    place = allocator([8, 3, 3, 4, 8], [0, 0, 1, 1, 2])
    assert place.pack([Gang(0, 10, LIGHT / 2)]) == (((1, 3), (2, 3), (3, 4)),)
    assert place.pack([Gang(0, 16, HEAVY)]) == (((0, 8), (4, 8)),)


def test_whoever_a_node_has_room_for_is_not_cut_whatever_it_sends() -> None:
    """What its devices send each other on a node is told nobody: tensor parallelism would cross the network."""
    place = allocator([2, 8, 6], [0, 1, 0])
    assert place.pack([Gang(0, 8)]) == (((1, 8),),)
    assert place.pack([Gang(0, 2)]) == (((0, 2),),)
    assert place.pack([Gang(0, 6, LIGHT / 2)]) == (((2, 6),),)


@pytest.mark.parametrize(
    ("gang", "seats"),
    [
        (Gang(0, 8, per_node=4), ((2, 4), (3, 4))),
        (Gang(0, 12, per_node=4), ((1, 4), (2, 4), (3, 4))),
        (Gang(0, 16, per_node=8), None),
        (Gang(0, 10, per_node=4), None),
        (Gang(0, 6, within=ONE_NODE), ((1, 6),)),
        (Gang(0, 8, within=ONE_NODE), None),
        (Gang(0, 4, per_node=2, within=ONE_NODE), None),
        (Gang(0, 9, within=ONE_SWITCH), ((0, 3), (1, 6))),
        (Gang(0, 10, within=ONE_SWITCH), None),
        (Gang(0, 6, per_node=3, within=ONE_SWITCH), ((0, 3), (1, 3))),
        (Gang(0, 12, per_node=4, within=ONE_SWITCH), None),
    ],
)
def test_what_a_gang_needs_of_nodes_is_kept_or_it_gets_none(gang: Gang, seats: NodeAssignment | None) -> None:
    place = allocator([3, 6, 4, 5], [0, 0, 1, 1])
    assert place.allows(gang) is (seats is not None)
    assert place.pack([gang]) == (seats,)


def test_whoever_needs_something_of_nodes_comes_before_those_who_may_lie_anywhere() -> None:
    anywhere, one_node = allocator([8, 4]).pack([Gang(0, 4, HEAVY), Gang(0, 4, per_node=4, within=ONE_NODE)])
    assert one_node == ((1, 4),)
    assert anywhere == ((0, 4),)


def test_a_gang_that_needs_so_many_on_each_node_grows_and_shrinks_by_whole_portions() -> None:
    place = allocator([4, 3, 8], [0, 0, 1])
    assert place.resize(Gang(0, 8, per_node=4), ((0, 4),)) == ((0, 4), (2, 4))
    assert place.resize(Gang(0, 12, per_node=4), ((0, 4), (2, 4))) is None
    assert place.resize(Gang(0, 4, per_node=4), ((0, 4), (2, 4))) == ((0, 4),)
    assert place.resize(Gang(0, 5, within=ONE_NODE), ((1, 2),)) == ((1, 5),)
    assert place.resize(Gang(0, 9, within=ONE_NODE), ((1, 5),)) is None


def test_room_goes_to_those_earlier_in_the_batch_and_whoever_does_not_fit_gets_none() -> None:
    place = allocator([4, 4])
    first, second, third = place.pack([Gang(0, 6, 1e9), Gang(0, 4, HEAVY), Gang(0, 2, HEAVY)])
    assert sum(devices for _, devices in first or ()) == 6
    assert second is None
    assert sum(devices for _, devices in third or ()) == 2
    assert place.free(0) == 0


def test_where_nodes_are_not_told_none_are_named() -> None:
    place = NodeAllocator([None])
    assert not place.knows_nodes(0)
    assert place.pack([Gang(0, 5)]) == ((),)
    with pytest.raises(ValueError, match="not told"):
        place.free(0)


def test_what_was_given_comes_back_and_is_named_as_the_request_names_it() -> None:
    place = allocator([8, 8])
    (assignment,) = place.pack([Gang(0, 12, HEAVY)])
    assert assignment is not None
    named = place.named(0, assignment)
    assert named == [{"node": "n0", "devices": 8}, {"node": "n1", "devices": 4}]
    assert place.assignment(0, named) == assignment
    place.give_back(0, assignment)
    assert place.free(0) == 16
    place.take(0, ((1, 8),))
    assert place.pack([Gang(0, 8, HEAVY)]) == (((0, 8),),)


def test_a_gang_that_grows_keeps_its_seats_and_takes_what_is_nearest() -> None:
    place = allocator([2, 4, 8], [0, 0, 1])
    held = ((0, 6),)
    assert place.resize(Gang(0, 12), held) == ((0, 8), (1, 4))
    assert place.resize(Gang(0, 100), ((0, 8), (1, 4))) is None
    assert place.free(0) == 8


def test_a_gang_that_shrinks_is_to_give_back_its_smallest_pieces() -> None:
    """They are not free before it has written its checkpoint."""
    place = allocator([0, 5], [0, 1])
    assert place.resize(Gang(0, 8), ((0, 8), (1, 3))) == ((0, 8),)
    assert place.free(0) == 5


def test_hops_between_devices() -> None:
    place = allocator([8] * 4, [0, 0, 1, NOWHERE])
    assert place.distance(0, ((0, 1),)) == 0.0
    assert place.distance(0, ((0, 4),)) == 0.0
    assert place.distance(0, ((0, 1), (1, 1))) == 1.0
    assert place.distance(0, ((0, 1), (2, 1))) == 2.0
    assert place.distance(0, ((2, 1), (3, 1))) == 2.0
    assert place.distance(0, ((0, 2), (1, 2))) == pytest.approx(8 / 12)


@st.composite
def crowded(draw: st.DrawFn) -> tuple[list[int], list[int], list[Gang]]:
    nodes = draw(st.integers(1, 12))
    free = draw(st.lists(st.integers(0, 8), min_size=nodes, max_size=nodes))
    switch = draw(st.lists(st.integers(-1, 3), min_size=nodes, max_size=nodes))
    gangs = st.builds(Gang, st.just(0), st.integers(1, 20), st.floats(0.0, 1e11))
    return free, switch, draw(st.lists(gangs, max_size=8))


@given(crowded())
def test_no_device_is_given_twice_and_every_gang_is_whole(case: tuple[list[int], list[int], list[Gang]]) -> None:
    free, switch, gangs = case
    given_out = np.zeros(len(free), dtype=int)
    place = allocator(free, switch)
    left = sum(free)
    for gang, assignment in zip(gangs, place.pack(gangs), strict=True):
        if gang.devices > left:
            assert assignment is None
            continue
        assert assignment is not None
        left -= gang.devices
        assert sum(devices for _, devices in assignment) == gang.devices
        for node, devices in assignment:
            assert devices > 0
            given_out[node] += devices
    assert (given_out <= np.array(free)).all()
    assert place.free(0) == left


@given(crowded(), st.integers(2, 10))
def test_of_gangs_alike_the_one_that_communicates_more_is_never_farther(
    case: tuple[list[int], list[int], list[Gang]], size: int
) -> None:
    free, switch, gangs = case
    alike = [Gang(0, size, gang.traffic) for gang in gangs]
    place = allocator(free, switch)
    placed = [
        (gang, assignment) for gang, assignment in zip(alike, place.pack(alike), strict=True) if assignment is not None
    ]
    ranked = sorted(placed, key=lambda each: -each[0].traffic)
    distances = [(gang.traffic, place.distance(0, assignment)) for gang, assignment in ranked]
    assert all(near <= far for (more, near), (less, far) in pairwise(distances) if more > less)


@given(crowded(), st.permutations(range(12)))
def test_names_of_nodes_do_not_matter(case: tuple[list[int], list[int], list[Gang]], order: list[int]) -> None:
    free, switch, gangs = case
    names = tuple(f"n{number}" for number in order[: len(free)])
    nodes = Nodes(names, np.full(len(free), 8), np.array(free), np.array(switch, dtype=np.intp))
    assert NodeAllocator([nodes]).pack(gangs) == allocator(free, switch).pack(gangs)
