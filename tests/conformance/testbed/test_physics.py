"""What a cause does to the telemetry: stories find nodes to which it happened, and compare them with their peers."""

from collections.abc import Iterator

import pytest
from conformance.testbed.looking import by_node, families, mean, spells, usual

from kuayu_conformance.testbed.telemetry import QUICK, Incident, Scale, World

SETTLED = 5.0
"""Seconds after which steps and power have followed a change."""
PIPE, POWER, USED = "matrix_pipe_activity", "power", "accelerator_memory_used"
SENT, RECEIVED = "scale_out_transmit_flow", "scale_out_receive_flow"
WORKS = "accelerator_utilisation"


@pytest.fixture(scope="module")
def large() -> World:
    """More incidents of each stratum than at level quick."""
    return World(Scale(domains=8, nodes=2400, warm_up=30, seconds=70), "physics", str)


def happened(world: World, cause: str, after: str) -> Iterator[tuple[Incident, float]]:
    """Incidents of a cause with the end of the state that they began."""
    for its in spells(world).values():
        for _, end, state, incident in its:
            if incident and incident.cause == cause and state == after:
                yield incident, end


def around(world: World, cause: str) -> Iterator[tuple[Incident, list[str], tuple[float, float], tuple[float, float]]]:
    """Stragglers with those peers that are busy from 12 s before until 15 s after, and these two stretches of time."""
    states, relatives = spells(world), families(world)
    for incident, _ in happened(world, cause, "straggling"):
        peers = [
            node
            for node in relatives[incident.node]
            if any(b <= incident.onset - 12 and e >= incident.onset + 15 and s == "busy" for b, e, s, _ in states[node])
        ]
        if peers and incident.onset >= 12:
            yield (
                incident,
                peers,
                (incident.onset - 12, incident.onset),
                (incident.onset + SETTLED, incident.onset + 12),
            )


def speeds(world: World, cause: str) -> list[float]:
    """Flow of the peers after the onset over that before."""
    return [
        sum(usual(world, peer, SENT, *after) for peer in peers)
        / sum(usual(world, peer, SENT, *before) for peer in peers)
        for _, peers, before, after in around(world, cause)
    ]


@pytest.mark.parametrize("cause", ["clock throttled", "slow host", "degraded network card", "memory errors"])
def test_a_straggler_slows_the_flow_of_its_peers(large: World, cause: str) -> None:
    found = sorted(speeds(large, cause))
    assert len(found) >= 5
    assert found[len(found) // 2] < 0.85
    assert found[0] > 0.3
    assert sum(speed < 0.95 for speed in found) >= 0.95 * len(found), "some had begun, or saved, just before"


def test_a_throttled_straggler_works_on_while_its_peers_wait(large: World) -> None:
    for incident, peers, before, after in around(large, "clock throttled"):
        others = [usual(large, peer, POWER, *after) / usual(large, peer, POWER, *before) for peer in peers]
        mine = usual(large, incident.node, POWER, *after) / usual(large, incident.node, POWER, *before)
        assert mine < 0.97 * min(others)
        pipes = [usual(large, peer, PIPE, *after) / usual(large, peer, PIPE, *before) for peer in peers]
        assert usual(large, incident.node, PIPE, *after) / usual(large, incident.node, PIPE, *before) > max(pipes)
        assert all(usual(large, peer, WORKS, *after) > 0.85 for peer in peers), "a wait counts as work"


def test_a_starved_straggler_runs_no_kernel_for_part_of_the_time(large: World) -> None:
    for incident, peers, _, after in around(large, "slow host"):
        assert mean(large, incident.node, WORKS, *after) < min(mean(large, peer, WORKS, *after) for peer in peers) - 0.1


def test_a_degraded_network_card_sends_again_what_was_lost(large: World) -> None:
    for incident, peers, _, after in around(large, "degraded network card"):
        assert mean(large, incident.node, SENT, *after) > 1.1 * mean(large, incident.node, RECEIVED, *after)
        assert all(mean(large, p, SENT, *after) < 1.05 * mean(large, p, RECEIVED, *after) for p in peers)


@pytest.mark.parametrize("cause", ["memory errors", "recurring mended faults"])
def test_recurring_faults_are_counted_soon_and_again(large: World, cause: str) -> None:
    arrived = by_node(large)
    for state in ("straggling", "degraded"):
        for incident, end in happened(large, cause, state):
            its = [a for a in arrived[incident.node] if incident.onset < a.observed <= min(end, incident.onset + 9)]
            assert sum(arrival.sample["faults"] > 0 for arrival in its) >= 2


def test_a_slow_single_node_shows_it(large: World) -> None:
    shown = {"clock throttled": POWER, "slow host": WORKS, "memory errors": POWER}
    for cause, measure in shown.items():
        found = []
        for incident, end in happened(large, cause, "degraded"):
            before = usual(large, incident.node, measure, incident.onset - 12, incident.onset)
            after = usual(large, incident.node, measure, incident.onset + SETTLED, min(end, incident.onset + 12))
            found.append(after / before)
        assert len(found) >= 5
        assert sum(ratio < 0.92 for ratio in found) >= 0.95 * len(found), "some had begun, or saved, just before"


def test_a_lost_device_takes_its_share_away(large: World) -> None:
    arrived, by_device = by_node(large), {b["id"] for b in large.nodes if b["domain"] in large.by_device}
    for incident, end in happened(large, "device lost", "degraded"):
        its = [a for a in arrived[incident.node] if incident.onset < a.observed < min(end, incident.onset + 10)]
        if incident.node in by_device:
            assert len({arrival.sample["device"] for arrival in its}) == 1
        else:
            assert all(arrival.sample["allocatable_share"] <= 7 / 8 for arrival in its)


def test_who_fails_does_nothing_and_keeps_its_memory(large: World) -> None:
    arrived = by_node(large)
    silent = 0
    found = [incident for incident in large.incidents if incident.after == "faulty"]
    for incident in found:
        since, until = incident.onset + SETTLED, incident.onset + 12
        assert mean(large, incident.node, PIPE, since, until) < 0.005
        held = mean(large, incident.node, USED, since, until)
        assert held == pytest.approx(mean(large, incident.node, USED, incident.onset - 3, incident.onset), rel=0.4)
        works = mean(large, incident.node, WORKS, since, until)
        assert works > 0.99 if incident.cause.startswith("stuck") else works == 0.0
        counted = sum(a.sample["faults"] for a in arrived[incident.node] if incident.onset < a.observed <= until)
        assert (counted > 0) == incident.cause.endswith("with faults")
        if incident.cause.endswith("silently"):
            silent += 1
            assert incident.cause.startswith("stuck") or incident.node in families(large), "alone it may just rest"
    assert 0.15 < silent / len(found) < 0.5


def test_peers_of_the_dead_wait_and_give_up_no_sooner_than_twelve_seconds_later(large: World) -> None:
    relatives = families(large)
    gone = [i for i in large.incidents if i.after in {"faulty", "offline"} and i.node in relatives]
    given_up = [incident for incident in large.incidents if incident.cause == "peer failed"]
    assert given_up
    for incident in given_up:
        since = [i.onset for i in gone if i.node in relatives[incident.node] and i.onset < incident.onset]
        assert max(since) <= incident.onset - 12
        assert mean(large, incident.node, WORKS, max(since) + SETTLED, incident.onset - 1) > 0.99
        assert mean(large, incident.node, SENT, max(since) + SETTLED, incident.onset - 1) < 1e6


def test_idle_is_idle_and_busy_is_busy(large: World) -> None:
    for node, its in spells(large).items():
        for begin, end, state, _ in its:
            if state == "idle" and end - begin > 12 and node not in {str(b["id"]) for _, b in large.late_nodes}:
                assert mean(large, node, WORKS, begin + 1, end) == 0.0
            if state == "busy" and end - begin > 16:
                assert mean(large, node, WORKS, begin + SETTLED, end) > 0.05


def test_levels_of_the_a100_are_those_that_were_measured() -> None:
    """Acme: a quarter of all samples of power lies below 66 W, the 99th percentile at 440 W."""
    world = World(QUICK, "levels", str)
    nodes = [body for body in world.nodes if body["devices"][0]["model"].startswith("A100")]
    states = spells(world)
    idle, busy = [], []
    for body in nodes:
        node = str(body["id"])
        for begin, end, state, _ in states[node]:
            if end - begin > 12 and state in {"idle", "busy"}:
                (idle if state == "idle" else busy).append(mean(world, node, POWER, begin + 4, end) / 8)
    assert 55 < sorted(idle)[len(idle) // 2] < 66
    assert 250 < sorted(busy)[int(0.75 * len(busy))] < 440
    assert max(busy) < 460
