"""Time of a step: what it is made of, and how it moves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from demand.worlds import EXPERTS, GPT3, KORTHIKANTI, SMALL, a100
from hypothesis import given
from hypothesis import strategies as some

from kuayu.demand.flop_counts import layer
from kuayu.demand.hardware import CATALOGUE
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import predict, profile
from kuayu.demand.step_time import PRIOR, Efficiency, terms
from kuayu.demand.strategy import Layouts, Recompute, Strategy
from kuayu.demand.structure import ModelStructure

IDEAL = Efficiency(
    products=1, experts=1, scores=1, memory=1e9, kernel=1e-12, launch=1e-12, node=1e9, domain=1e9, exposed=1, fixed=1e-9
)


def test_without_losses_a_step_is_its_flops_at_the_reachable_rate() -> None:
    hardware = replace(a100(1), units=1, memory_bandwidth=1e30)
    found = predict(SMALL, Layouts.of([Strategy(global_batch=8, fused_attention=False)]), hardware, IDEAL)
    assert found.times.step[0] == pytest.approx(found.model_flops[0] / hardware.rate("bf16"), rel=0.15)
    assert found.times.step[0] >= found.model_flops[0] / hardware.rate("bf16")


def test_a_pipeline_waits_for_its_stages_and_virtual_stages_shorten_that() -> None:
    strategy = replace(KORTHIKANTI, virtual=1)
    plain, interleaved = predict(GPT3, Layouts.of([strategy, replace(strategy, virtual=3)]), a100(64)).times.bubble
    assert interleaved == pytest.approx(plain / 3)
    times = predict(GPT3, Layouts.of([strategy]), a100(64)).times
    body = times.computation + times.tensor
    assert times.bubble[0] / body[0] == pytest.approx(7 / 64, rel=0.03)


@given(
    name=some.sampled_from(["products", "scores", "memory", "node", "domain"]),
    factor=some.floats(0.3, 0.99),
    tensor=some.sampled_from([1, 2, 4, 8]),
    pipeline=some.sampled_from([1, 2, 4]),
)
def test_nothing_gets_faster_by_getting_worse(name: str, factor: float, tensor: int, pipeline: int) -> None:
    layouts = Layouts.of([Strategy(data=2, tensor=tensor, pipeline=pipeline, global_batch=16)])
    hardware = a100(2 * tensor * pipeline)
    worse = replace(PRIOR, **{name: factor * getattr(PRIOR, name)})
    steps = [predict(SMALL, layouts, hardware, efficiency).times.step[0] for efficiency in (PRIOR, worse)]
    assert steps[1] >= steps[0]


@given(
    data=some.sampled_from([1, 2, 8, 16]),
    tensor=some.sampled_from([1, 2, 8]),
    pipeline=some.sampled_from([1, 2, 4]),
    expert=some.sampled_from([1, 2]),
)
def test_segments_add_up_to_the_step_and_its_traffic(data: int, tensor: int, pipeline: int, expert: int) -> None:
    strategy = Strategy(data=data, tensor=tensor, pipeline=pipeline, expert=min(expert, data), global_batch=64)
    found = predict(EXPERTS, Layouts.of([strategy]), a100(strategy.devices))
    segments = profile(found, 0)
    assert sum(part.lasts for part in segments) == pytest.approx(found.times.step[0])
    for place, link in enumerate(CLASSES):
        moved = sum(part.lasts * part.sends[link] for part in segments)
        assert moved == pytest.approx(found.traffic[:, place, 0].sum(), abs=1e-6)
    ends = [part.begins + part.lasts for part in segments]
    assert [part.begins for part in segments[1:]] == pytest.approx(ends[:-1])
    assert all(0 <= part.busy <= 1 for part in segments)


def test_work_per_device_decides_the_efficiency() -> None:
    layouts = Layouts.of([Strategy(tensor=8, micro_batch=size, global_batch=16) for size in (1, 2, 4, 8)])
    assert np.all(np.diff(predict(SMALL, layouts, a100(8)).utilization) > 0)


def test_a_number_format_that_devices_lack_is_an_error() -> None:
    with pytest.raises(KeyError):
        predict(SMALL, Layouts.of([Strategy(precision="fp8")]), a100(1))


def test_with_fused_attention_selective_recomputation_changes_no_time() -> None:
    def step(**changes: Any) -> float:
        return float(predict(SMALL, Layouts.of([Strategy(global_batch=8, **changes)]), a100(1)).times.step[0])

    assert step(recompute=Recompute.SELECTIVE) == step()
    assert step(recompute=Recompute.SELECTIVE, fused_attention=False) > step(fused_attention=False)


def test_where_the_host_is_slower_than_the_device_it_sets_the_pace() -> None:
    tiny = ModelStructure(8, 128, 2, 64, 4096)
    layouts = Layouts.of([Strategy(global_batch=1)])
    quick, slow = (
        predict(tiny, layouts, a100(1), replace(PRIOR, launch=launch)).times.computation[0] for launch in (2e-5, 4e-5)
    )
    assert slow == pytest.approx(2 * quick, rel=0.05)
    large = Layouts.of([Strategy(global_batch=64, micro_batch=64)])
    same = [predict(SMALL, large, a100(1), replace(PRIOR, launch=launch)).times.step[0] for launch in (1e-6, 2e-5)]
    assert same[1] == pytest.approx(same[0], rel=0.02)


def test_fused_attention_reaches_three_quarters_of_the_best_product_on_an_a100() -> None:
    """FlashAttention-2 (arXiv:2307.08691, figure 4); that made for later devices more than half on them."""
    long = replace(SMALL, sequence=65536, hidden=2048, heads=16)
    for hardware, low, high in ((a100(1), 0.65, 0.85), (replace(CATALOGUE["H100-SXM-80GB"], devices=1), 0.55, 0.8)):
        ideal, whole = (
            terms(long, Layouts.of([Strategy(global_batch=1, attention_speed=speed)]), hardware).layer[2, 0]
            for speed in (1e9, 1.0)
        )
        scores = layer(long, Layouts.of([Strategy(global_batch=1)])).scores[0] / hardware.rate("bf16")
        assert ideal < scores * 1e-6
        assert low < scores / whole < high
