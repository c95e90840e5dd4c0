import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from kuayu_conformance.testbed.shards import FAMILIES, ON_DEMAND, ONE_AHEAD, RATIOS, Run, Static, draw
from kuayu_training.resilience import shards
from kuayu_training.resilience.shards import InOrder, planned
from kuayu_training.resilience.shards_measured import ratios

SEED = 1003
NAME = f"comparison/{SEED}"
WAN = Path(os.environ.get("KUAYU_DATA", "../shared/data")) / "wan" / "throughput.csv.gz"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plan_waits_and_blocks_less_than_fixed_shards_in_every_family(family: str) -> None:
    window = draw(family, NAME)
    ours = Run(window, planned(window)).play()
    for schedule in (ON_DEMAND, ONE_AHEAD):
        theirs = Run(window, Static(window, schedule)).play()
        assert ours.waiting <= theirs.waiting
        assert ours.blocked <= theirs.blocked


def test_the_plan_in_a_window_ends_the_same_every_time() -> None:
    window = dataclasses.replace(draw("outages", NAME), steps=40, local=4)
    assert Run(window, planned(window)).play() == Run(window, planned(window)).play()


def test_with_the_order_fixed_the_plan_takes_local_data_where_the_order_says_and_still_waits_less() -> None:
    window = draw("±30 %", NAME)
    run = Run(window, InOrder(window))
    ours, theirs = run.play(), Run(window, Static(window, ON_DEMAND)).play()
    assert ours.finished
    assert ours.waiting < theirs.waiting
    assert all(job.local_left == 0 for job in run.state.jobs)


def test_reductions_are_of_means_and_bounds_hold_them() -> None:
    found = shards.reduction(np.array([1.0, 0.0, 1.0]), np.array([2.0, 4.0, 2.0]), 1)
    assert found is not None
    assert found["value"] == pytest.approx(0.75)
    assert found["low"] is not None
    assert found["high"] is not None
    assert found["low"] <= 0.75 <= found["high"]
    unbounded = shards.reduction(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1)
    assert unbounded is not None
    assert unbounded["low"] is None
    assert shards.reduction(np.zeros(3), np.zeros(3), 1) is None


def test_collectives_are_compared_with_every_fixed_one_and_json_holds_all() -> None:
    found = shards.play_collectives("busy", SEED)
    assert found["quickest"] >= max(found["chosen"], *(found[name] for name in shards.COLLECTIVE_NAMES))
    rows = shards.collective_figures([SEED], 1, lambda: None)
    assert {row["family"] for row in rows} == {*shards.COLLECTIVE_FAMILIES, "all"}
    assert json.loads(json.dumps(rows)) == rows


@pytest.mark.skipif(not WAN.is_file(), reason="public data are not here")
def test_levels_are_off_as_was_measured_between_cloud_regions() -> None:
    found = ratios(WAN)
    assert len(found) == 3906
    assert np.quantile(found, np.linspace(0.05, 0.95, 19)).round(3).tolist() == list(RATIOS)
