"""Domains of any size, and faults of many nodes: what is told is neither held back nor told of the living."""

import numpy as np
import pytest
from resilience.hearts import Hearts, job_states, steps
from resilience.hearts import nodes as states
from resilience.watched_nodes import Nodes

SOON = 10.0
"""Seconds in which a fault is told."""


@pytest.mark.parametrize("most", [7, 9, 11])
def test_most_of_a_domain_may_die_while_it_is_heard(most: int) -> None:
    nodes = Nodes(north=12)
    nodes.go(20)
    gone = [f"north-{number}" for number in range(most)]
    nodes.go(SOON, mute=gone)
    assert nodes.open() == {("node_dead", node) for node in gone}
    nodes.go(32)
    assert nodes.open() == set()


def test_a_domain_of_which_most_are_heard_by_turns_only_has_no_dead() -> None:
    hearts, chance = Hearts(60), np.random.default_rng(4)
    hearts.go(60)
    for _ in range(40):
        mute = np.flatnonzero(chance.random(60) < 0.7).tolist()
        assert "dead" not in states(hearts.go(0.5, mute)), "the path loses seven beats of ten"
    assert states(hearts.go(9, mute=range(45))).count("dead") == 45, "and these are gone for good"


@pytest.mark.parametrize("size", [2, 3])
def test_a_node_of_a_small_domain_dies_as_any_other(size: int) -> None:
    nodes = Nodes(north=size)
    nodes.go(20)
    nodes.go(4, mute=["north-0"])
    assert nodes.open() == {("node_dead", "north-0")}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_small_domain_is_granted_the_silence_of_a_node_before_it_is_unreachable(size: int) -> None:
    nodes = Nodes(north=size)
    everyone = list(nodes.domains)
    nodes.go(20)
    nodes.go(1.8, mute=everyone)
    nodes.go(10)
    assert nodes.told() == []
    nodes.go(4, mute=everyone)
    assert nodes.open() == {("domain_unreachable", "north")}
    nodes.go(10)
    assert nodes.open() == set()


def test_the_last_that_lives_falls_silent_and_the_domain_is_unreachable() -> None:
    nodes = Nodes(north=2)
    nodes.go(20)
    nodes.go(10, mute=["north-0"])
    nodes.go(5, mute=["north-0", "north-1"])
    assert nodes.open() == {("node_dead", "north-0"), ("domain_unreachable", "north")}


def test_a_node_that_has_died_often_is_told_as_soon_when_it_dies_again() -> None:
    nodes = Nodes(north=8)
    nodes.go(20)
    for turn in range(6):
        died = nodes.now
        nodes.go(20, mute=["north-3"])
        assert [died < at <= died + 4 for at, change in nodes.changes if change.open and at > died] == [True], turn
        nodes.numbers["north-3"] = 0
        nodes.go(42)
        assert nodes.open() == set()


def test_beats_that_come_late_one_after_the_other_at_the_pace_of_beats_raise_nobody() -> None:
    nodes = Nodes(north=8)
    nodes.go(40)
    first = nodes.numbers["north-2"] + 1
    nodes.numbers["north-2"] += 20
    overtaken = [(first + number, nodes.now - 0.5 * (20 - number)) for number in range(20)]
    nodes.beat("north-2")
    for number, sent in overtaken:
        nodes.go(0.5, mute=["north-2"])
        nodes.hear("north-2", number, sent)
    assert nodes.open() == {("node_dead", "north-2")}


@pytest.mark.parametrize("clock", [-3600.0, 0.0])
def test_low_numbers_that_go_on_raise_the_dead_whatever_the_clock_says(clock: float) -> None:
    nodes = Nodes(north=8)
    nodes.go(40)
    nodes.go(5, mute=["north-2"])
    for number in range(60):
        nodes.go(0.5, mute=["north-2"])
        nodes.hear("north-2", number, nodes.now + clock)
    assert nodes.told() == [("node_dead", "north-2", True), ("node_dead", "north-2", False)]


def test_of_a_job_on_many_nodes_one_is_always_late_and_is_not_why_it_stands() -> None:
    count, chance = 200, np.random.default_rng(2)
    hearts = Hearts(count, rank_job=np.zeros(count, int), rank_node=np.arange(count), jobs=1)
    for step in range(120):
        hearts.detector.follow(steps(range(count), step, [hearts.now] * count))
        hearts.go(1, lossy=0.02)
    found, late = [], 0
    for _ in range(100):
        report = hearts.go(0.5, mute=chance.choice(count, 4, replace=False).tolist(), lossy=0.02)
        found.append(job_states(report)[0])
        late += int((report.silence > 0.9).sum())
        assert "dead" not in states(report)
    assert "blocked" not in found[5:], "each was heard since the job stopped, so none of them is why"
    assert late > 100, "and there is one at nearly every look"
    assert job_states(hearts.go(6, mute=[7])) == ["blocked"], "but who is dead may be"
