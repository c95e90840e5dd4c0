"""A smoke run asks as much as the bound of a figure needs: what it decides is decided by the same statistics."""

from collections import Counter
from typing import Any

import pytest

from kuayu_conformance.checks.metrics import sampling
from kuayu_conformance.checks.metrics import states as met_states
from kuayu_conformance.checks.resilience import adjustment_gain as res_adjusting
from kuayu_conformance.checks.resilience import partitions as res_apart
from kuayu_conformance.checks.scheduling import coordination as sch_coordination
from kuayu_conformance.checks.scheduling import latency as sch_latency
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.statistics import proportion_lower_bound, quantile_upper_bound
from kuayu_conformance.testbed import heartbeats, telemetry

# ruff: noqa: SLF001 - what a run plays is drawn by parts of the checks

TIMED_OF_99 = 299
"""Values of which the greatest is a 95 % upper bound of the 99th percentile; of 473 the one before it is."""


def bound_of(count: int, q: float) -> float:
    return quantile_upper_bound([float(number) for number in range(1, count + 1)], q)


def episode() -> Episode:
    settings = Settings("n", "r", full=False, features=frozenset(), limits={}, other_tenant=False, smoke=True)
    nobody: Any = None
    return Episode("smoke", settings, nobody)


@pytest.mark.parametrize(("full", "smoke", "size"), [(True, False, 3), (False, True, 1), (False, False, 2)])
def test_a_size_follows_from_the_level(full: bool, smoke: bool, size: int) -> None:
    settings = Settings("n", "r", full=full, features=frozenset(), limits={}, other_tenant=False, smoke=smoke)
    assert settings.sized(smoke=1, quick=2, full=3) == size


def test_percentiles_have_a_bound() -> None:
    assert bound_of(TIMED_OF_99, 0.99) == TIMED_OF_99
    assert sch_latency.DECISIONS_SMOKE >= TIMED_OF_99
    scripts = sch_coordination.AllocationScenarios(episode())
    told = [script for group in sch_coordination._silent(scripts) for script in group]
    told += sch_coordination.ordinary(scripts, sch_coordination.SMOKE)
    assert sum(script.committed is not None for script in told) >= TIMED_OF_99
    disturbances = 5 * res_adjusting.SMOKE
    assert bound_of(disturbances, 0.95) < disturbances, "it is not the worst of them"


def test_one_value_may_be_wrong() -> None:
    cells = sampling.CELLS_SMOKE
    assert proportion_lower_bound(cells - 1, cells) >= 0.98 > proportion_lower_bound(cells - 2, cells - 1)


def test_a_gap_that_is_too_long_shows() -> None:
    assert sampling.WINDOW_SMOKE > sampling.MAX_INTERVAL_SECONDS


@pytest.mark.parametrize("seed", ["a", "b"])
def test_one_fault_may_be_missed_and_one_responded_to_late(seed: str) -> None:
    scale = heartbeats.SMOKE
    assert proportion_lower_bound(scale.incidents - 1, scale.incidents) >= 0.99
    found = [entry.kind for entry in heartbeats.World(scale, seed, str).incidents if entry.demanded]
    assert len(found) == scale.incidents
    responded = sum(kind in {"node_dead", "node_failing", "job_hung"} for kind in found)
    assert bound_of(responded, 0.99) < responded
    assert Counter(found).keys() == {
        *("node_dead", "node_failing", "domain_unreachable"),
        *("job_hung", "rank_straggling"),
    }


def test_changes_of_the_graph_and_of_states_are_enough() -> None:
    scale = met_states.SMOKE
    world = telemetry.World(scale, "a", str, lambda tier, label: f"{tier}{label}")
    assert sum(1 for _ in met_states._judged(world)) >= TIMED_OF_99
    seen = scale.warm_up + scale.seconds + met_states.SETTLE - met_states.VISIBLE
    ups = seen - met_states.HELD_SECONDS
    assert (len(met_states.KINDS) - 1) * int(seen) + int(ups) >= TIMED_OF_99


def test_every_kind_of_job_is_played_once_beside_those_whose_pauses_are_alike() -> None:
    played = [kind for together in res_apart._played_together(res_apart.SMOKE) for kind, _ in together]
    assert sorted(played) == sorted(res_apart.STORIES)
    longer = list(res_apart._played_together(res_apart.QUICK))
    assert [len({kind for kind, _ in together}) for together in longer] == [1] * len(res_apart.STORIES)
    assert sum(map(len, longer)) == res_apart.QUICK * len(res_apart.STORIES)
