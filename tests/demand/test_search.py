"""Layouts: all of them, the fastest first, and why the others cannot run."""

from dataclasses import replace

import numpy as np
import pytest
from demand.worlds import EXPERTS, GPT3, SMALL, a100

from kuayu.demand.prediction import predict
from kuayu.demand.search import divisors, search
from kuayu.demand.strategy import Layouts, Sharding, Strategy

COMMON = Strategy(global_batch=64, sequence_parallel=True)


def test_divisors_are_all_divisors() -> None:
    assert divisors(36) == [each for each in range(1, 37) if 36 % each == 0]


def test_every_layout_takes_all_devices_and_the_fastest_comes_first() -> None:
    found = search(GPT3, a100(64), COMMON)
    assert set(found.demand.layouts.devices) == {64}
    steps = found.demand.times.step[found.order]
    assert np.all(np.diff(steps) >= 0)
    assert found.demand.feasible[found.order].all()
    assert len(found.order) + len(found.infeasible) == len(found.demand.layouts)


def test_those_that_cannot_run_say_why() -> None:
    found = search(GPT3, a100(64), COMMON)
    assert all(found.demand.reasons(int(row)) for row in found.infeasible)
    alone = predict(GPT3, Layouts.of([replace(COMMON, data=64)]), a100(64))
    assert alone.reasons(0) == ("it needs more memory than a device has",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data": 4}, "the product of data, tensor, context and pipeline is not the number of devices"),
        ({"data": 8, "global_batch": 12}, "data times micro-batch does not divide the global batch"),
        ({"pipeline": 8, "virtual": 3}, "there are more stages, or pieces of stages, than layers"),
        ({"pipeline": 8, "virtual": 1, "data": 1, "global_batch": 3, "micro_batch": 2}, "data times micro-batch"),
        ({"pipeline": 4, "virtual": 2, "data": 2, "global_batch": 6}, "virtual stages ask for a multiple"),
        ({"data": 8, "expert": 3}, "expert does not divide the experts and the replicas"),
    ],
)
def test_a_reason_for_each_demand(changes: dict[str, int], reason: str) -> None:
    found = predict(EXPERTS, Layouts.of([replace(COMMON, **changes)]), a100(8))  # type: ignore[arg-type]
    assert any(text.startswith(reason) for text in found.reasons(0))


def test_domains_without_a_link_and_inner_groups_across_them_cannot_run() -> None:
    strategy = replace(COMMON, tensor=8, data=2)
    apart = predict(SMALL, Layouts.of([strategy]), a100(16, per_domain=8))
    assert "it spans domains without a link between them" in apart.reasons(0)
    torn = predict(SMALL, Layouts.of([replace(COMMON, context=4, tensor=4)]), a100(16, per_domain=8, across=1e9))
    assert "tensor, context or experts reach into another domain" in torn.reasons(0)


def test_a_layout_may_be_asked_for_alone() -> None:
    listed = Layouts.of([replace(COMMON, data=8, sharding=stage) for stage in Sharding])
    found = search(SMALL, a100(8), COMMON, listed=listed)
    assert len(found.order) == len(Sharding)
    assert found.best(1)[0] in [listed.row(row) for row in range(len(Sharding))]


def test_layouts_of_one_table_are_alike_but_for_whole_numbers() -> None:
    with pytest.raises(ValueError, match="whole numbers only"):
        Layouts.of([COMMON, replace(COMMON, precision="fp16")])
    with pytest.raises(ValueError, match="no layout"):
        Layouts.of([])


def test_a_layout_is_told_in_a_few_signs() -> None:
    strategy = Strategy(data=8, tensor=4, pipeline=12, virtual=2, sharding=Sharding.OPTIMIZER, micro_batch=2)
    assert strategy.described() == "D8 T4 P12×2 ZeRO-1 b2"
