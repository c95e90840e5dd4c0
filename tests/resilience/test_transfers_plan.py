import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from resilience.transfer_scenes import STEP_BYTES, link, most_held, scene, scenes, stream

from kuayu.resilience.network import Link, TransferSnapshot, UnderWay
from kuayu.resilience.shard_planner import plan, reasons


def test_a_link_that_slumps_is_covered_deeper_than_one_that_does_not() -> None:
    steady = link("far", 1.4)
    slumps = np.where(np.arange(120) % 20 < 6, 0.3, 1.0)
    slumping = dataclasses.replace(steady, measured=steady.measured * slumps)
    calm, rough = (
        plan(dataclasses.replace(scene([each], [stream("far")], 200), saving=1e-3)) for each in (steady, slumping)
    )
    assert rough.depths.steps[0] > calm.depths.steps[0] >= 2


def test_outages_that_were_seen_deepen_the_buffer() -> None:
    steady = link("far", 2.0)
    outages = steady.measured.copy()
    outages[20:30] = outages[70:85] = 0.0
    broken = dataclasses.replace(steady, measured=outages)
    assert (
        plan(scene([broken], [stream("far")], 90)).depths.steps
        > plan(scene([steady], [stream("far")], 90)).depths.steps
    )


def test_one_step_less_would_have_cost_what_the_plan_says_and_more_than_it_asks_for() -> None:
    asked = scene([link("far", 1.5, noise=0.3)], [stream("far")], room=100)
    made = plan(asked)
    depth, waiting = int(made.depths.steps[0]), made.depths.waiting[0]
    assert 2 < depth < 100
    assert waiting[depth - 1] - waiting[depth] >= asked.saving > waiting[depth] - waiting[depth + 1]


def size(latency_s: float, noise: float) -> float:
    """Of a shard over a link of such requests and such noise."""
    made = plan(scene([dataclasses.replace(link("far", 1.5, noise=noise), latency_s=latency_s)], [stream("far")]))
    return float(made.sizes.bytes[0])


def test_long_requests_make_large_shards_and_unsteady_links_small_ones() -> None:
    assert size(0.3, noise=0.8) > size(0.001, noise=0.8)
    assert size(0.001, noise=0.02) > size(0.001, noise=0.8)


def test_the_quicker_of_two_copies_is_taken_until_it_is_busy() -> None:
    made = plan(scene([link("near", 1.2), link("far", 0.6)], [stream("near", "far")], room=40))
    by_link = np.bincount(made.order.link, minlength=2)
    assert made.order.link[0] == 0
    assert by_link[0] > by_link[1] > 0


def test_data_that_would_be_late_leave_their_slot_to_local_data() -> None:
    made = plan(scene([link("far", 0.4)], [stream("far", local=10)]))
    assert made.tables[0].local[0] == 0
    late = made.order.finish_s > made.shards.due_s
    without = plan(scene([link("far", 0.4)], [stream("far")]))
    assert late.mean() < (without.order.finish_s > without.shards.due_s).mean()


def test_local_data_are_kept_while_the_network_keeps_up() -> None:
    made = plan(scene([link("far", 3.0)], [stream("far", local=10, held=4)]))
    assert made.tables[0].local == ()


def test_a_transfer_that_hangs_on_a_dead_link_is_fetched_elsewhere() -> None:
    stuck = UnderWay(0, 0.0, STEP_BYTES, 0.5 * STEP_BYTES)
    waits = dataclasses.replace(stream("dead", "alive", held=1), under_way=(stuck,))
    made = plan(scene([link("dead", 2.0, up=False), link("alive", 2.0)], [waits]))
    assert made.given_up == ((stuck,),)
    again = made.shards.begin < STEP_BYTES
    assert (made.shards.end - made.shards.begin)[again].sum() == pytest.approx(STEP_BYTES)
    assert (made.order.link == 1).all()


def test_a_transfer_that_hangs_is_kept_where_no_other_source_is_up() -> None:
    stuck = UnderWay(0, 0.0, STEP_BYTES, 0.5 * STEP_BYTES)
    waits = dataclasses.replace(stream("dead", held=1), under_way=(stuck,))
    made = plan(scene([link("dead", 2.0, up=False)], [waits]))
    assert made.given_up == ((),)
    assert (made.order.link == -1).all()


def test_the_job_that_runs_out_first_is_served_first() -> None:
    urgent = stream("far", name="urgent", begins_s=0.0)
    easy = stream("far", name="easy", begins_s=30.0)
    made = plan(scene([link("far", 2.5)], [easy, urgent]))
    first = int(np.argmin(made.order.start_s))
    assert made.shards.stream[first] == 1


def test_reasons_name_figures_for_depth_size_local_data_and_sources() -> None:
    asked = scene([link("near", 0.5), link("far", 0.3)], [stream("near", "far", local=5)])
    told = " ".join(reasons(asked, plan(asked), 0))
    for word in ("one less would cost", "of half the size", "take local data", "come from near", "come from far"):
        assert word in told


def test_a_room_that_holds_no_step_gets_nothing_and_says_so() -> None:
    asked = scene([link("far", 2.0)], [stream("far")], room=0.5)
    made = plan(asked)
    assert len(made.shards.stream) == 0
    assert "does not hold a step" in next(reasons(asked, made, 0))


def test_no_streams_and_no_links_are_plans_as_well() -> None:
    assert len(plan(scene([link("far", 1.0)], [])).shards.stream) == 0
    assert (plan(scene([], [stream("far")])).order.link == -1).all()


def test_a_link_of_which_nothing_was_measured_is_taken_last() -> None:
    unknown = Link("unknown", "here", np.full(10, np.nan), 0.05)
    made = plan(scene([unknown, link("far", 2.0)], [stream("unknown", "far")]))
    assert (made.order.link == 1).all()


@pytest.mark.parametrize("interval_s", [0.0, -1.0])
def test_an_interval_that_cannot_be_is_refused(interval_s: float) -> None:
    with pytest.raises(ValueError, match="interval_s"):
        TransferSnapshot((), (), {}, interval_s)


def test_what_is_there_for_another_stream_leaves_no_room() -> None:
    """Nothing is late, and yet the other's only step, which is there already, takes all the room until it begins."""
    there = dataclasses.replace(stream(name="there"), remote_steps=1, gaps=())
    asked = dataclasses.replace(stream("far", name="asked"), remote_steps=1, gaps=((0.0, STEP_BYTES),))
    tight = scene([link("far", 6.0)], [asked, there], room=1.0)
    assert most_held(tight, plan(tight)) <= STEP_BYTES * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_never_more_than_there_is_room_for_is_planned(asked: TransferSnapshot) -> None:
    made = plan(asked)
    start = sum(each.remote_steps * each.step_bytes - sum(b - a for a, b in each.gaps) for each in asked.streams)
    room = asked.free_bytes["here"]
    assert most_held(asked, made) <= max(room, start) * (1 + 1e-9) + 1.0


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_nothing_is_planned_over_a_link_that_is_known_to_be_out_or_from_where_no_copy_lies(
    asked: TransferSnapshot,
) -> None:
    made = plan(asked)
    for number, row in zip(made.order.link.tolist(), made.shards.stream.tolist(), strict=True):
        if number >= 0:
            assert asked.links[number].up
            assert asked.links[number].source in asked.streams[row].sources


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_a_plan_follows_from_what_is_asked_and_from_nothing_else(asked: TransferSnapshot) -> None:
    one, other = plan(asked), plan(dataclasses.replace(asked))
    for name in ("stream", "begin", "end", "due_s", "release_s"):
        assert np.array_equal(getattr(one.shards, name), getattr(other.shards, name))
    for name in ("link", "start_s", "finish_s", "other_s"):
        assert np.array_equal(getattr(one.order, name), getattr(other.order, name))
    assert one.given_up == other.given_up


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_what_is_planned_of_a_link_follows_one_after_the_other_and_covers_no_byte_twice(
    asked: TransferSnapshot,
) -> None:
    made = plan(asked)
    for number in range(len(asked.links)):
        mine = made.order.link == number
        order = np.argsort(made.order.start_s[mine], kind="stable")
        starts, ends = made.order.start_s[mine][order], made.order.finish_s[mine][order]
        assert (starts[1:] >= ends[:-1] - 1e-6 * np.maximum(ends[:-1], 1.0)).all()
    for row in range(len(asked.streams)):
        mine = made.shards.stream == row
        order = np.argsort(made.shards.begin[mine])
        begins, ends = made.shards.begin[mine][order], made.shards.end[mine][order]
        assert (begins[1:] >= ends[:-1] - 1.0).all()
