"""Faults of nodes and domains, from the first silence until they are over."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.watched_nodes import BEGIN, XID, Nodes

from kuayu.resilience.faults import IdentityConflict, Subject, Watch


def test_a_node_that_dies_is_told_within_three_seconds_and_cleared_once_it_has_been_back_for_a_while() -> None:
    nodes = Nodes(north=8, south=8)
    nodes.go(30)
    assert nodes.told() == []
    nodes.go(3, mute=["north-3"])
    [(at, told)] = nodes.changes
    assert (told.subject, told.open) == (Subject("node_dead", "north", "north-3"), True)
    assert BEGIN + 29.4 <= told.since <= BEGIN + 30.1, "the last sign of life"
    assert "s ago" in told.because
    nodes.go(10, mute=["north-3"])
    back = nodes.now
    nodes.go(30)
    [_, (at, over)] = nodes.changes
    assert (over.subject, over.open) == (told.subject, False)
    assert 5 <= at - back <= 30, "not at its first beat, and in time"
    assert BEGIN + back - 0.1 <= over.since <= BEGIN + back + 0.6, "over since it beats"


def test_a_node_that_comes_and_goes_has_one_fault() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    for _ in range(5):
        nodes.go(4, mute=["north-1"])
        nodes.go(3)
    assert nodes.told() == [("node_dead", "north-1", True)]
    back = nodes.now - 3
    nodes.go(28)
    assert nodes.told() == [("node_dead", "north-1", True), ("node_dead", "north-1", False)]
    assert nodes.changes[-1][0] - back <= 30


def test_a_domain_that_falls_silent_is_one_fault_and_who_died_amid_it_is_told_when_it_is_heard_again() -> None:
    nodes = Nodes(north=6, south=6)
    nodes.go(20)
    nodes.go(5, mute=["north-5"])
    assert nodes.open() == {("node_dead", "north-5")}
    north = [node for node in nodes.domains if node.startswith("north")]
    nodes.go(15, mute=north)
    assert nodes.open() == {("node_dead", "north-5"), ("domain_unreachable", "north")}, "what was told stays told"
    heard = nodes.now
    nodes.go(10, mute=["north-4", "north-5"])
    assert nodes.open() == {("node_dead", "north-5"), ("node_dead", "north-4")}
    assert nodes.told(heard)[0] == ("domain_unreachable", "north", False)


def test_a_partition_does_not_make_a_node_wait_anew_that_has_come_back() -> None:
    nodes = Nodes(north=6, south=6)
    nodes.go(20)
    nodes.go(5, mute=["north-5"])
    nodes.go(9)
    nodes.go(15, mute=[node for node in nodes.domains if node.startswith("north")])
    assert ("node_dead", "north-5") in nodes.open()
    heard = nodes.now
    nodes.go(6)
    assert ("node_dead", "north-5", False) in nodes.told(heard), "three seconds were left of twelve"


def test_a_domain_of_one_node_cannot_be_told_from_it() -> None:
    nodes = Nodes(lonely=1, south=4)
    nodes.go(20)
    nodes.go(10, mute=["lonely-0"])
    assert nodes.open() == {("domain_unreachable", "lonely")}
    nodes.go(10)
    assert nodes.open() == set()


def test_beats_that_were_heard_before_or_overtaken_raise_nobody() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    last, died = nodes.numbers["north-2"], nodes.now
    for turn in range(100):
        nodes.go(0.1, mute=["north-2"])
        if turn % 5 == 0:
            number = last - turn // 5 % 10
            nodes.hear("north-2", number, died - 0.5 * (last - number))
    assert nodes.told() == [("node_dead", "north-2", True)]


def test_numbers_that_begin_anew_are_those_of_a_node_that_was_started_anew() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    nodes.numbers["north-2"] = 0
    nodes.go(20)
    assert nodes.told() == []


def test_a_node_fails_when_its_log_says_so_until_it_is_started_anew() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    nodes.log("north-2", "systemd[1]: Started Daily apt download activities.")
    nodes.log("north-2", XID)
    nodes.log("north-2", XID)
    nodes.go(60)
    assert nodes.told() == [("node_failing", "north-2", True)], "once, and beats do not clear it"
    assert nodes.changes[0][1].code == "xid.79"
    nodes.numbers["north-2"] = 0
    nodes.go(2)
    assert nodes.told()[1:] == [("node_failing", "north-2", False)]


def note(watch: Watch, node: str, now: float, domain: str = "north", ago: float = 0.0) -> None:
    """Telemetry tells of two sources."""
    watch.note_conflict(IdentityConflict(node, "a counter goes to and fro", now - ago), domain, now)


def test_two_sources_are_told_once_and_are_over_ten_minutes_after_the_last_sign_of_them() -> None:
    watch = Watch()
    found = []
    for now in range(0, 1000, 5):
        if now in {0, 15, 300}:
            note(watch, "north-2", now)
        found += watch.look(now)
    begins, over = found
    assert (begins.subject, begins.open, begins.since) == (Subject("identity_conflict", "north", "north-2"), True, 0)
    assert begins.because == "two sources report as it: a counter goes to and fro"
    assert (over.subject, over.open, over.since) == (begins.subject, False, 900)


def test_two_sources_that_were_there_long_ago_are_not_told_and_a_node_that_moves_is_told_of_anew() -> None:
    watch = Watch()
    note(watch, "old", 1000.0, ago=601.0)
    note(watch, "moves", 1000.0)
    assert [change.subject.node for change in watch.look(1001.0)] == ["moves"]
    watch.move("moves")
    note(watch, "moves", 1002.0, "south")
    found = watch.look(1003.0)
    assert [(change.subject.domain, change.open) for change in found] == [("north", False), ("south", True)]
    watch.drop("moves")
    assert [change.open for change in watch.look(1004.0)] == [False]


def test_two_sources_that_were_told_before_a_restart_are_over_in_time() -> None:
    watch = Watch()
    watch.resume({}, [Subject("identity_conflict", "north", "north-0")], 100.0)
    assert watch.look(101.0) == []
    (over,) = watch.look(701.0)
    assert (over.open, over.subject.node) == (False, "north-0")


def test_what_is_no_longer_registered_is_not_at_fault() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    nodes.log("north-1", XID)
    nodes.go(4, mute=["north-2"])
    assert nodes.open() == {("node_failing", "north-1"), ("node_dead", "north-2")}
    for node in ("north-1", "north-2", "north-3"):
        nodes.delete(node)
    nodes.go(15)
    assert nodes.open() == set()
    assert "north-3" not in nodes.watch.nodes
    assert not any(about == "north-3" for _, about, _ in nodes.told())


def test_a_node_that_moves_to_another_domain_begins_anew_there() -> None:
    nodes = Nodes(north=8, south=8)
    nodes.go(20)
    nodes.go(4, mute=["north-2"])
    nodes.domains["north-2"] = "south"
    nodes.go(3)
    assert nodes.open() == set()
    assert nodes.watch.nodes["north-2"] == "south"
    nodes.go(20)
    nodes.go(4, mute=["north-2"])
    assert nodes.changes[-1][1].subject == Subject("node_dead", "south", "north-2")


def test_weather_is_no_fault() -> None:
    """A stall of up to a second here and there, and one beat of a hundred lost, for ten minutes."""
    chance = np.random.default_rng(7)
    nodes = Nodes(north=20, south=20)
    names = list(nodes.domains)
    stalled: list[str] = []
    for _ in range(600):
        drawn = [names[row] for row in np.flatnonzero(chance.random(len(names)) < 0.02)]
        stalled = [node for node in drawn if node not in stalled]
        nodes.go(1.0, mute=stalled)
    assert nodes.told() == []


def test_a_watch_that_goes_on_for_another_keeps_what_was_told_and_tells_who_does_not_come_back() -> None:
    before = Nodes(north=8)
    before.go(20)
    before.go(4, mute=["north-2"])
    nodes = Nodes(north=8)
    nodes.now, nodes.numbers = before.now + 5, before.numbers
    faults = [change.subject for _, change in before.changes]
    nodes.watch.resume(nodes.domains, faults, nodes.at)
    nodes.go(12, mute=["north-2", "north-4"])
    assert nodes.told() == [("node_dead", "north-4", True)], "the other one stays as it was"
    nodes.go(30)
    assert {about for _, about, begins in nodes.told() if not begins} == {"north-2", "north-4"}


def test_time_does_not_go_back() -> None:
    watch = Watch()
    watch.look(2.0)
    with pytest.raises(ValueError, match="after"):
        watch.look(1.0)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 40), st.floats(-30, 5), st.floats(0, 3)), min_size=1, max_size=60
    )
)
def test_whatever_is_heard_faults_begin_and_end_in_turn_and_never_in_the_future(
    heard: list[tuple[int, int, float, float]],
) -> None:
    nodes = Nodes(north=3, south=3)
    names = list(nodes.domains)
    open_ones: set[Subject] = set()
    for row, number, sent, passes in heard:
        nodes.hear(names[row], number, nodes.now + sent)
        if number % 13 == 0:
            nodes.log(names[row], XID)
        nodes.now += passes
        nodes.look()
    nodes.now += 40
    nodes.look()
    for at, change in nodes.changes:
        assert (change.subject in open_ones) is not change.open
        (open_ones.add if change.open else open_ones.remove)(change.subject)
        assert change.since <= BEGIN + at + 0.021
        assert math.isfinite(change.since)
