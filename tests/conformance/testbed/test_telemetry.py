"""The judge's telemetry as a target gets it: who sends what when, and what is true meanwhile."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from conformance.testbed.looking import arrivals, by_node, named, played, spells
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.telemetry import FULL, QUICK, STATES, Scale, World
from kuayu_conformance.testbed.telemetry.fault_plan import MARGIN, Planner
from kuayu_conformance.testbed.telemetry.population import TICKS, populate
from kuayu_schemas.schema import errors

SMALL = Scale(domains=5, nodes=150, warm_up=20, seconds=60)
LEAST_KEPT = 12


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first = played(World(SMALL, "one", named))
    assert played(World(SMALL, "one", named)) == first
    assert played(World(SMALL, "two", named)) != first


@pytest.mark.parametrize("wrong", [{"domains": 1}, {"seconds": 59}])
def test_a_world_too_small_for_a_partition_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        replace(SMALL, **wrong)


def test_seconds_may_be_asked_for_in_any_order(world: World) -> None:
    late = world.deliveries(70)
    world.deliveries(3)
    assert world.deliveries(70) == late


@pytest.mark.parametrize("scale", [SMALL, replace(FULL, nodes=640)])
def test_everything_that_is_registered_follows_the_model(scale: Scale) -> None:
    world = World(scale, "bodies", named)
    late = [body for _, body in world.late_nodes]
    for name, bodies in {"Domain": world.domains, "Node": (*world.nodes, *late), "Link": world.links}.items():
        assert not [fault for body in bodies for fault in errors(name, body)], name
    assert not [fault for body in world.families for fault in errors("ComputeIdentifier", body)]
    assert len(world.domains) == scale.domains
    assert len(world.nodes) + len(late) == scale.nodes
    known = {body["compute_identifier"] for body in world.nodes}
    members = [urn for body in world.families for urn in body["members"]]
    assert len(members) == len(set(members))
    assert set(members) <= known
    assert all(2 <= len(body["members"]) <= 16 for body in world.families)


def test_every_sample_follows_the_model_and_none_tells_the_state(world: World) -> None:
    fields: dict[str, set[str]] = {}
    for arrival in arrivals(world):
        first = arrival.domain not in fields
        fields.setdefault(arrival.domain, set()).update(arrival.sample)
        if first or arrival.second % 20 == 0:
            assert not errors("Sample", {**arrival.sample, "observed_at": "2026-01-01T00:00:00.000Z"})
    assert not any("health_state" in names for names in fields.values())
    assert sum("matrix_pipe_activity" not in names for names in fields.values()) == 1
    assert sum("scale_out_transmit_flow" not in names for names in fields.values()) == 1
    assert {domain for domain, names in fields.items() if "device" in names} == set(world.by_device)
    assert len(world.by_device) == 1


def test_each_sample_is_delivered_once_but_the_lost_ones(world: World) -> None:
    """What could be sent: one sample a second of each subject, from its registration on, while it is not offline."""
    joins = {str(body["id"]): second for second, body in world.late_nodes}
    away = {
        node: [(begin, end) for begin, end, state, _ in its if state == "offline"]
        for node, its in spells(world).items()
    }
    lost_devices = {incident.node for incident in world.incidents if incident.cause == "device lost"}
    devices = {str(body["id"]): [device["id"] for device in body["devices"]] for body in world.nodes}
    by_device = {body["id"] for body in world.nodes if body["domain"] in world.by_device}
    got = Counter(arrival.key for arrival in arrivals(world))
    assert set(got.values()) == {1}
    assert not world.lost & got.keys()
    could = {
        (node, device, at)
        for node, its in away.items()
        for at in world.instants(node)[joins.get(node, 0) :].tolist()
        if not any(begin <= at and (at < end or end == world.scale.total) for begin, end in its)
        for device in (devices.get(node, ("0", "1")) if node in by_device else (None,))
    }
    missing = could - got.keys() - world.lost
    assert not got.keys() - could
    assert {node for node, _, _ in missing} <= lost_devices & by_device
    assert 0.003 < len(world.lost) / len(could) < 0.012


def test_a_sample_arrives_after_it_was_observed_and_seconds_late_at_most_unless_partitioned(world: World) -> None:
    partition = world.partitions[0]
    waits = [
        (arrival.second - arrival.observed, arrival.domain == partition.domain, arrival.observed)
        for arrival in arrivals(world)
    ]
    assert all(wait >= 0 for wait, _, _ in waits)
    assert all(wait < 9 for wait, cut, _ in waits if not cut)
    punctual = sum(wait < 1 for wait, cut, _ in waits if not cut) / sum(not cut for _, cut, _ in waits)
    assert 0.85 < punctual < 0.99
    whole_domains_late = [
        domain
        for domain in {body["id"] for body in world.domains}
        for second in range(world.scale.warm_up, world.scale.total)
        if domain != partition.domain and domain not in {delivery.domain for delivery in world.deliveries(second)}
    ]
    assert len(set(whole_domains_late)) == 1
    assert len(whole_domains_late) >= 6


def test_a_partitioned_domain_is_silent_and_hands_in_what_it_has_stored(world: World) -> None:
    partition = world.partitions[0]
    its = [arrival for arrival in arrivals(world) if arrival.domain == partition.domain]
    assert partition.until - partition.since >= 25
    assert world.scale.warm_up <= partition.since
    assert partition.until <= world.scale.total - 10
    assert not [arrival for arrival in its if partition.since <= arrival.second < partition.until]
    stored = [arrival for arrival in its if partition.since <= arrival.observed < partition.until - 1]
    assert {arrival.second for arrival in stored} <= set(range(partition.until, partition.until + 6))
    instants = [arrival.observed for arrival in stored]
    assert instants == sorted(instants), "the oldest come first"
    truth = world.truth(partition.since)
    bodies = [*world.nodes, *(body for _, body in world.late_nodes)]
    nodes = {str(body["id"]) for body in bodies if body["domain"] == partition.domain} & truth.keys()
    assert {truth[node] for node in nodes} == {"unknown"}
    assert "unknown" not in {truth[node] for node in truth.keys() - nodes}
    assert "unknown" not in world.truth(partition.until).values()
    near = (partition.since - MARGIN, partition.until + MARGIN)
    assert not [i for i in world.incidents if i.node in nodes and near[0] <= i.onset <= near[1]]


def test_who_is_offline_sends_nothing_while_others_of_the_domain_do(world: World) -> None:
    arrived = by_node(world)
    quiet = [(node, *spell) for node, its in spells(world).items() for spell in its if spell[2] == "offline"]
    assert quiet
    for node, begin, end, _, _ in quiet:
        assert not [arrival for arrival in arrived[node] if begin <= arrival.observed < end]
    back = [(node, end) for node, _, end, _, _ in quiet if end < world.scale.total]
    assert back
    for node, end in back:
        assert any(end < arrival.observed <= end + 4 for arrival in arrived[node])


def test_nodes_are_registered_while_it_runs_and_send_only_then(world: World) -> None:
    arrived = by_node(world)
    seconds = [second for second, _ in world.late_nodes]
    assert all(later - earlier <= 10 for earlier, later in pairwise(seconds))
    assert world.scale.warm_up <= seconds[0]
    for second, body in world.late_nodes:
        assert str(body["id"]) not in world.truth(second - 1)
        assert str(body["id"]) in world.truth(second)
        assert min(arrival.second for arrival in arrived[str(body["id"])]) > second


def test_truth_is_what_the_incidents_say(world: World) -> None:
    joins = {str(body["id"]): second for second, body in world.late_nodes}
    for second in (0, world.scale.warm_up, 75, world.scale.total):
        truth = world.truth(second)
        for node, its in spells(world).items():
            if second < joins.get(node, 0) or truth[node] == "unknown":
                continue
            assert truth[node] == next(state for begin, end, state, _ in reversed(its) if begin <= second)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.text(max_size=8),
    nodes=st.integers(60, 400),
    domains=st.integers(2, 9),
    seconds=st.integers(60, 90),
    churn=st.sampled_from([0.002, 0.01, 0.03]),
)
def test_a_node_is_in_one_state_at_a_time_and_stays_there(
    seed: str, nodes: int, domains: int, seconds: int, churn: float
) -> None:
    scale = Scale(domains, nodes, 20, seconds, churn)
    planner = Planner(scale, seed, populate(scale, seed))
    ledger = planner.plan()
    last: dict[int, tuple[int, int]] = {}
    for change in sorted(ledger.changes, key=lambda change: change.tick):
        since, state = last.get(change.row, (-LEAST_KEPT * TICKS, change.before))
        assert change.before == state != change.after
        assert change.tick - since >= LEAST_KEPT * TICKS
        assert (scale.total * TICKS) - change.tick >= LEAST_KEPT * TICKS
        cut = planner.cut
        near = cut.since - MARGIN <= change.tick / TICKS <= cut.until + MARGIN
        assert not (near and ledger.population.domain[change.row] == cut.domain)
        last[change.row] = (change.tick, change.after)
    assert len(ledger.changes) <= churn * nodes * scale.total + 34


@pytest.mark.parametrize(("scale", "least"), [(QUICK, 350), (FULL, 3000)])
def test_there_are_enough_changes_into_each_state(scale: Scale, least: int) -> None:
    planner = Planner(scale, "counted", populate(scale, "counted"))
    changes = [change for change in planner.plan().changes if change.tick >= scale.warm_up * TICKS]
    seconds = scale.seconds - 16
    assert len(changes) >= least
    assert 0.9 < len(changes) / (scale.churn * scale.nodes * seconds) < 1.1
    into = Counter(STATES[change.after] for change in changes)
    assert all(0.1 < into[state] / len(changes) < 0.23 for state in STATES), into
