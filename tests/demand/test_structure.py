"""Parameters and FLOPs are those of the papers."""

import pytest
from demand.worlds import GPT3, KORTHIKANTI, SMALL

from kuayu.demand.flop_counts import hardware_flops, model_flops
from kuayu.demand.strategy import Layouts, Recompute, Strategy
from kuayu.demand.structure import LatentAttention, ModelStructure, of_parameters


@pytest.mark.parametrize(
    ("structure", "total", "active"),
    [
        (GPT3, 174.6, 174.6),
        (
            ModelStructure(
                126, 16384, 128, 8192, 128256, key_value_heads=8, feed_forward=53248, gated=True, tied=False
            ),
            405.8,
            403.7,
        ),
        (
            ModelStructure(
                61,
                7168,
                128,
                4096,
                129280,
                head_width=128,
                latent=LatentAttention(1536, 512, 64),
                gated=True,
                tied=False,
                feed_forward=18432,
                experts=256,
                experts_per_token=8,
                expert_feed_forward=2048,
                shared_feed_forward=2048,
                dense_layers=3,
            ),
            671.0,
            36.6,
        ),
    ],
    ids=["GPT-3", "Llama 3.1 405B", "DeepSeek-V3"],
)
def test_parameters_are_those_that_papers_tell(structure: ModelStructure, total: float, active: float) -> None:
    assert structure.parameters / 1e9 == pytest.approx(total, abs=0.06)
    assert structure.active_parameters / 1e9 == pytest.approx(active, abs=0.06)


def test_flops_of_a_step_are_those_of_korthikanti() -> None:
    batch, s, layers, h, v = 64, 2048, 96, 12288, 51200
    model = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))
    hardware = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    assert model_flops(GPT3, batch) == pytest.approx(model)
    assert hardware_flops(GPT3, Layouts.of([KORTHIKANTI]))[0] == pytest.approx(hardware)


def test_selective_recomputation_repeats_the_scores_alone() -> None:
    plain = Strategy(global_batch=4)
    selective = Strategy(global_batch=4, recompute=Recompute.SELECTIVE)
    flops = [hardware_flops(SMALL, Layouts.of([each]))[0] for each in (plain, selective)]
    scores = 8 * 4 * 512 * (4 * 512 * 1024)
    assert flops[1] - flops[0] == pytest.approx(scores)


def test_a_mask_halves_the_scores_and_a_window_narrows_them() -> None:
    windowed = ModelStructure(8, 1024, 16, 512, 4096, window=128)
    assert SMALL.seen(causal=False) == 512
    assert SMALL.seen(causal=True) == 256
    assert windowed.seen(causal=True) == (128 + 256) / 2


@pytest.mark.parametrize("parameters", [1.3e9, 1.3e10, 1.75e11, 1e12])
def test_a_model_guessed_from_its_parameters_has_about_as_many(parameters: float) -> None:
    assert of_parameters(parameters, 2048).parameters == pytest.approx(parameters, rel=0.05)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ModelStructure(0, 1024, 16, 512, 4096)
    with pytest.raises(ValueError, match="cannot go to 8 of 4 experts"):
        ModelStructure(8, 1024, 16, 512, 4096, experts=4, experts_per_token=8)
