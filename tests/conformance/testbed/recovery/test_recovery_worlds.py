"""Windows as they are drawn, what is told of them, and planners that are compared."""

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conformance.conforming_recovery import Conforming

from conformance import conforming_recovery
from kuayu_conformance.checks.resilience.backups import backup_deviations
from kuayu_conformance.checks.resilience.backups import fewest as fewest_told
from kuayu_conformance.checks.resilience.resilience_requests import deviations
from kuayu_conformance.testbed.recovery import world as recovery_world
from kuayu_conformance.testbed.recovery.run import BaselinePlanner, Codec, Planner, Run, play
from kuayu_conformance.testbed.recovery.world import FAULTS_S, LEAD_S, World, begin, draw, fewest
from kuayu_schemas import schema

Json = dict[str, Any]
FAULTS_AT = [4352.738, 4563.337, 4648.255]
MEASURED = [7240e6, 21054e6, 16799e6, 7328e6, 9942e6]
STATES = [39095e6, 44475e6, 30929e6]
"""Of a window, as they were first drawn."""
SEEDS = [f"stories {number}" for number in range(8)]


class Looked:
    """A planner whose requests and plans are looked at."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self.failovers = 0

    def backup(self, request: Json) -> Json | None:
        """Its plan, which is sound but for what cold pools lack."""
        assert schema.is_valid("BackupRequest", request)
        return self._planner.backup(request)

    def failover(self, request: Json) -> Json | None:
        """Its plan, which is sound."""
        if self.failovers % 50 == 0:
            assert schema.is_valid("FailoverRequest", request)
        self.failovers += 1
        told = self._planner.failover(request)
        assert told is not None
        assert deviations(request, told) == []
        return told


@pytest.mark.parametrize("cold", [True, False])
def test_opponents_make_sound_plans_of_valid_requests(cold: bool) -> None:
    for seed in SEEDS[:2]:
        world = draw(seed)
        looked = Looked(BaselinePlanner(world, cold=cold))
        outcome = play(world, looked)
        assert looked.failovers == outcome.failover_requests > 0


def test_the_conforming_planner_makes_sound_plans() -> None:
    for seed in SEEDS[:4]:
        world = draw(seed)
        request = Codec(world).backup()
        assert backup_deviations(request, conforming_recovery.backup(request)) == []
        outcome = play(world, Looked(Conforming()))
        assert outcome.holdings.left_out == ()
        assert all(told > 0 for told in outcome.holdings.spares)


def test_a_window_follows_from_its_seed_and_its_names_tell_nothing() -> None:
    one, again, other = draw("one"), draw("one"), draw("other")
    assert (one.jobs, one.nodes, one.domains, one.faults) == (again.jobs, again.nodes, again.domains, again.faults)
    assert np.array_equal(one.links.measured, again.links.measured)
    assert Codec(one).failover(begin(one)) == Codec(again).failover(begin(again))
    assert not {node.id for node in one.nodes} & {node.id for node in other.nodes}


def test_a_window_is_the_same_on_every_machine() -> None:
    """Requests are made of these figures, and whoever judges a report again makes them anew."""
    world = draw("fixed")
    assert [fault.instant for fault in world.faults[:3]] == FAULTS_AT
    assert world.links.measured[3, 0].tolist() == MEASURED
    assert [job.state_size for job in world.jobs[:3]] == STATES


def test_nodes_fail_as_often_as_requests_say() -> None:
    """Each node that fails counts, by itself, with its rack or with its domain."""
    failed = nodes = 0
    for number in range(60):
        world = draw(f"rates {number}")
        nodes += len(world.nodes)
        sizes = Counter(node.domain for node in world.nodes)
        for fault in world.faults:
            failed += len(fault.nodes) if fault.nodes else sizes[fault.domain] * (fault.kind == recovery_world.DOMAIN)
    # domains are away one after the other, which leaves some out
    assert failed / (nodes * FAULTS_S) == pytest.approx(1.0 / recovery_world.time_between_failures(), rel=0.2)
    assert pytest.approx(54 * 86400 * 2048 / 419 / recovery_world.SPED_UP) == recovery_world.NODES_S


def test_things_fail_after_hourly_copies_were_taken_and_one_domain_after_the_other() -> None:
    for seed in SEEDS:
        world = draw(seed)
        assert all(LEAD_S <= fault.instant < LEAD_S + FAULTS_S for fault in world.faults)
        away = [fault for fault in world.faults if fault.kind in {recovery_world.DOMAIN, recovery_world.CUT_OFF}]
        assert all(one.instant + one.lasts_s < two.instant for one, two in pairwise(away))
        assert {fault.kind for fault in world.faults} >= {recovery_world.NODE}


def test_both_ways_to_count_spares_agree() -> None:
    for seed in SEEDS:
        world = draw(seed)
        numbers = {domain.id: number for number, domain in enumerate(world.domains)}
        for domain in Codec(world).backup()["domains"]:
            assert fewest(world, numbers[domain["id"]]) == fewest_told(domain, world.risk)


def test_quick_windows_have_enough_incidents() -> None:
    found = [len(play(draw(seed), Conforming()).incidents) for seed in SEEDS]
    assert sum(found) > 150


class Erratic:
    """Makes sound plans of any kind, in no order."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    backup = staticmethod(conforming_recovery.backup)

    def failover(self, request: Json) -> Json:
        """Some of the conforming recoveries, now and then later, and something else for others."""
        told = conforming_recovery.failover(request)
        for each in told["recoveries"]:
            if self._chance.random() < 0.3:
                each["after"] += self._chance.choice((5.0, 60.0, 600.0, 1e300))
            if self._chance.random() < 0.2:
                each.update(strategy="wait", replicas=[])
                each.pop("source", None)
        assert deviations(request, told) == []
        return told


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_a_node_is_held_once_and_nothing_is_made_of_nothing(seed: int) -> None:
    world: World = draw(f"erratic {seed}")
    run = Run(world, Erratic(seed))
    outcome = run.play()
    held = Counter(node for job in run.state.jobs for its in job.replica_nodes for node in its)
    assert max(held.values()) == 1
    for job in run.state.jobs:
        assert 0.0 <= job.progress <= job.high <= world.ends_s
        for node in (node for its in job.replica_nodes for node in its):
            assert run.state.nodes[node].job == job.number
        waiting = job.recovery.nodes if job.recovery is not None else set()
        holds = {node for node, its in enumerate(run.state.nodes) if its.job == job.number}
        assert holds == waiting | {node for its in job.replica_nodes for node in its}
    for its in outcome.incidents:
        assert its.switch_s > 0.0
        assert its.interruption_s >= 0.0
        assert its.lost_s >= 0.0
