"""Windows of running jobs: that they follow from their seed, are what they promise, and can be mastered or not."""

from itertools import pairwise

import numpy as np
import pytest
from conformance.conforming_adjuster import adjust

from kuayu_conformance.testbed.adjustment.run import Disturbance, Scorer, at_once, play
from kuayu_conformance.testbed.adjustment.world import (
    BOUNDS,
    CELL_S,
    FALL,
    INTERVAL_S,
    JUDGED,
    KINDS,
    PAST,
    QUICK,
    RISE,
    SLOW,
    World,
    draw,
)
from kuayu_schemas import schema

SEEDS = [f"window {number}" for number in range(30)]


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    """Some windows."""
    return [draw(seed) for seed in SEEDS]


def test_a_window_follows_from_its_seed_alone() -> None:
    one, again, other = (draw(seed) for seed in ("a", "a", "b"))
    assert np.array_equal(one.measured_loads, again.measured_loads)
    assert np.array_equal(one.measured_latency, again.measured_latency)
    assert (one.events, one.names) == (again.events, again.names)
    assert one.events != other.events


def test_disturbances_are_apart_and_change_by_what_the_sentence_names(worlds: list[World]) -> None:
    for world in worlds:
        assert sum(event.judged for event in world.events) == JUDGED
        instants = [event.instant for event in world.events]
        assert all(60.0 <= after - before < 120.0 for before, after in pairwise(instants))
        assert 60.0 <= world.ends_s - instants[-1] <= 120.0
        for event in world.events:
            assert event.instant % CELL_S == 0.0
            if event.kind in (RISE, FALL):
                assert 0.25 <= abs(event.times - 1.0) <= 0.8
            assert event.kind != SLOW or 1.6 <= event.times <= 10.0
    kinds = [event.kind for world in worlds for event in world.events]
    assert all(kinds.count(kind) >= 0.15 * len(kinds) for kind in KINDS)
    assert kinds.count(QUICK) > 0


def test_loads_stay_within_bounds_but_for_their_wandering_and_latencies_fall_back_to_where_they_were(
    worlds: list[World],
) -> None:
    for world in worlds:
        assert world.loads.min() >= 0.979 * BOUNDS[0]
        assert world.loads.max() <= 1.021 * BOUNDS[1]
        quiet = world.latency[0]
        for event in world.events:
            if event.kind == QUICK:
                assert world.latency[round(event.instant / CELL_S)] == pytest.approx(quiet)


def test_what_is_measured_is_true_but_for_noise_and_rare_spikes(worlds: list[World]) -> None:
    errors, spikes, rows = [], 0, 0
    for world in worlds:
        true = world.loads.reshape(-1, round(INTERVAL_S / CELL_S), len(world.names)).mean(axis=1)
        off = world.measured_loads[PAST:] / true - 1.0
        errors.append(off[np.abs(off) < 0.1])
        spikes += int((np.abs(off) >= 0.1).sum())
        rows += len(off)
        assert len(world.measured_loads) == PAST + len(true)
    assert np.std(np.concatenate(errors)) == pytest.approx(0.015, rel=0.1)
    assert 0.3 * rows / 100 < spikes < 2.0 * rows / 100


def test_every_question_of_a_window_is_a_valid_request() -> None:
    asked = []

    def listener(request: dict[str, object]) -> dict[str, object]:
        asked.append(request)
        return adjust(request)

    for seed in SEEDS[:4]:
        play(draw(seed), listener)
    assert len(asked) > 400
    assert all(schema.is_valid("AdjustmentRequest", request) for request in asked)
    assert any("planned" in job for request in asked for job in request["jobs"])  # type: ignore[attr-defined]  # as the schema says


def test_who_keeps_policies_never_recovers_who_changes_at_once_loses_too_much_and_who_spreads_changes_does_neither(
    worlds: list[World],
) -> None:
    found: dict[str, list[Disturbance]] = {"kept": [], "at once": [], "spread": []}
    shares: dict[str, list[float]] = {name: [] for name in found}
    for world in worlds[:12]:
        scorer = Scorer(world)
        for name, adjuster in (("kept", None), ("at once", at_once), ("spread", adjust)):
            score = scorer.score(play(world, adjuster))
            found[name] += score.disturbances
            shares[name].append(score.share)
    late = {name: np.mean([each.recovery_s > 20.0 for each in its]) for name, its in found.items()}
    much = {name: np.mean([each.loss > 0.1 for each in its]) for name, its in found.items()}
    assert late["kept"] > 0.4
    assert much["kept"] == 0.0
    assert much["at once"] > 0.06
    assert late["spread"] < 0.04
    assert much["spread"] < 0.04
    means = {name: float(np.mean(its)) for name, its in shares.items()}
    assert means["kept"] < means["at once"] < means["spread"] < 1.0
