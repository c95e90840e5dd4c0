"""Worlds of sparse telemetry: they follow from their seed, hold what they say, and decide what can be decided."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.sparse import IN_TURNS, INJECTED_FAULTS, LASTING, MEASURES, Scale, World, any_measures
from kuayu_schemas import schema

SMALL = Scale(healthy=120, faulty=60, warm_up=48, seconds=62)


@pytest.fixture(scope="module")
def world() -> World:
    return World(SMALL, "a seed", str)


def samples(world: World) -> dict[str, list[dict[str, object]]]:
    """Samples of each node, with their instants."""
    found: dict[str, list[dict[str, object]]] = {}
    for second in range(world.scale.total + 1):
        for delivery in world.deliveries(second):
            for at, body in delivery.samples:
                assert second - 1 <= at < second
                found.setdefault(str(body["subject"]), []).append({"at": at, **body})
    return found


def test_a_world_follows_from_its_seed(world: World) -> None:
    again, other = World(SMALL, "a seed", str), World(SMALL, "another seed", str)
    assert [world.deliveries(second) for second in (1, 60)] == [again.deliveries(second) for second in (1, 60)]
    assert world.deliveries(60) != other.deliveries(60)


def test_all_that_is_registered_and_sent_is_valid(world: World) -> None:
    for name, bodies in (("Domain", world.domains), ("Node", world.nodes), ("ComputeIdentifier", world.families)):
        for body in bodies:
            assert not schema.errors(name, body)
    for delivery in world.deliveries(70):
        for _, body in delivery.samples:
            assert not schema.errors("Sample", {**body, "observed_at": "2026-01-01T00:00:00.000Z"})


def test_a_node_sends_its_measures_and_no_other(world: World) -> None:
    sent = samples(world)
    for unit in world.units:
        for node in unit.nodes:
            heads = {"at", "subject", "subject_kind", "device"}
            assert all(body.keys() - heads == set(unit.measures) for body in sent[node])
    assert {len(unit.measures) for unit in world.units if unit.onset is None} >= {1, 2, 3}


def test_the_first_rest_with_memory_held_is_judged_as_every_other_is(world: World) -> None:
    for unit in world.units:
        if unit.pattern in {"notebook", "server"}:
            assert unit.works[: world.scale.warm_up].all(), "no rest before anything is judged"
            assert not unit.works.all(), "and one while it is"
    assert {"notebook", "server"} <= {unit.pattern for unit in world.units} & IN_TURNS


def test_what_stops_sends_what_suffices_and_soon_enough_to_be_seen(world: World) -> None:
    stops = [unit for unit in world.units if unit.onset is not None]
    for unit in stops:
        assert set(INJECTED_FAULTS[unit.pattern].least) <= set(unit.measures)
        assert unit.onset is not None
        assert unit.onset >= world.scale.warm_up
        assert unit.onset + unit.patience + LASTING < world.scale.total
    assert set(Counter(unit.pattern for unit in stops)) == set(INJECTED_FAULTS)


def test_a_fault_that_is_counted_once_is_not_missed_where_samples_come_seldom() -> None:
    world = World(Scale(healthy=0, faulty=120, warm_up=48, seconds=62), "faults", str)
    sent = samples(world)
    for unit in world.units:
        if unit.pattern == "stops with a fault":
            assert any(body["faults"] for body in sent[unit.nodes[0]])
            assert not any(body["faults"] for body in sent[unit.nodes[0]] if float(str(body["at"])) < unit.onset - 1)  # type: ignore[operator]


@given(st.text(max_size=8), st.sets(st.sampled_from(MEASURES), max_size=4))
@settings(max_examples=60, deadline=None)
def test_a_subset_holds_what_it_must_and_is_in_order(seed: str, least: set[str]) -> None:
    found = any_measures(Chance(seed, "subset"), tuple(least))
    assert least <= set(found)
    assert list(found) == [name for name in MEASURES if name in found]
    assert found
