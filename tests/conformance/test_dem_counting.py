"""The suite's own counts, by hand and against what is published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.checks.demand.demand_requests import counted, devices
from kuayu_conformance.checks.demand.totals import ANCHORS, Occupancy, in_vain
from kuayu_conformance.checks.kit.decisions import Json

SMALL: Json = {"layers": 2, "hidden": 4, "heads": 2, "sequence": 8, "vocabulary": 10}


@pytest.mark.parametrize("name", list(ANCHORS))
def test_published_models_have_the_parameters_that_were_published(name: str) -> None:
    structure, published = ANCHORS[name]
    assert counted(structure).parameters == pytest.approx(published, rel=0.002)


@pytest.mark.parametrize(
    ("start", "published", "with_look_up"),
    [("Mixtral", 12.9e9, True), ("DeepSeek", 37e9, False), ("GPT-3", 174.6e9, False)],
)
def test_published_models_have_the_active_parameters_that_were_published(
    start: str, published: float, with_look_up: bool
) -> None:
    """Mixtral's 12.9 thousand million count both tables."""
    (structure,) = (structure for name, (structure, _) in ANCHORS.items() if name.startswith(start))
    table = structure["vocabulary"] * structure["hidden"] if with_look_up else 0
    assert counted(structure).active + table == pytest.approx(published, rel=0.012)


def test_a_small_model_by_hand() -> None:
    """A layer: 4 · 4 · 4 of attention and 2 · 4 · 16 of feed-forward; a table of 10 · 4."""
    found = counted(SMALL)
    assert found.parameters == found.active == 2 * (64 + 128) + 40
    assert found.layer_work == 2 * 2 * 192
    assert found.score_work == 2 * 2 * (2 * 8 * 4)  # two layers, two products of 2 · 8 tokens · width 4
    assert found.output_work == 2 * 40
    assert found.work(3) == 3 * 3 * (768 + 256 + 80)
    assert found.executed(3, "full") - found.work(3) == 3 * (768 + 256)
    assert found.executed(3, "selective") - found.work(3) == 3 * 256
    assert found.executed(3, "none") == found.work(3)


def test_full_recomputation_makes_four_thirds_of_what_is_not_the_output_layer() -> None:
    found = counted(SMALL)
    matrices = 3 * (found.layer_work + found.score_work)
    assert found.executed(1, "full") == pytest.approx(4 / 3 * matrices + 3 * found.output_work)


@pytest.mark.parametrize(
    ("members", "parameters", "active"),
    [
        ({"key_value_heads": 1}, 2 * (16 + 16 + 2 * 8 + 128) + 40, None),
        ({"gated": True}, 2 * (64 + 192) + 40, None),
        ({"feed_forward": 5}, 2 * (64 + 40) + 40, None),
        ({"head_width": 3}, 2 * (4 * 4 * 6 + 128) + 40, None),
        ({"tied": False}, 2 * 192 + 80, 2 * 192 + 40),
        ({"further_tokens": 1}, 3 * 192 + 40, None),
        ({"experts": 4, "experts_per_token": 2}, 2 * (64 + 4 * 128 + 16) + 40, 2 * (64 + 2 * 128 + 16) + 40),
        (
            {"experts": 4, "expert_frequency": 2, "expert_feed_forward": 3, "shared_feed_forward": 2},
            (64 + 128) + (64 + 4 * 24 + 16 + 16) + 40,
            (64 + 128) + (64 + 24 + 16 + 16) + 40,
        ),
        ({"experts": 4, "dense_layers": 1}, 192 + (64 + 4 * 128 + 16) + 40, 192 + (64 + 128 + 16) + 40),
        (
            {"latent": {"query_rank": 3, "value_rank": 2, "rotary_width": 1}},
            2 * (3 * (4 + 2 * 3) + 4 * (2 + 1) + 2 * 2 * 2 * 2 + 16 + 128) + 40,
            None,
        ),
    ],
)
def test_what_a_member_adds(members: Json, parameters: int, active: int | None) -> None:
    found = counted({**SMALL, **members})
    assert found.parameters == parameters
    assert found.active == (parameters if active is None else active)


def test_a_window_takes_scores_of_every_second_layer_away() -> None:
    assert counted({**SMALL, "window": 2}).score_work == 2 * (2 + 8) * 2 * 4
    assert counted({**SMALL, "window": 100}).score_work == counted(SMALL).score_work
    assert counted({**SMALL, "window": 2, "window_frequency": 1}).score_work == 2 * (2 + 2) * 2 * 4


def test_latent_attention_scores_with_the_rotary_part_and_puts_out_without() -> None:
    latent = {"query_rank": 3, "value_rank": 2, "rotary_width": 1}
    assert counted({**SMALL, "latent": latent}).score_work == 2 * 2 * 8 * 2 * (2 + 1 + 2)


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
def test_accelerators_are_a_product(data: int, tensor: int, pipeline: int, context: int) -> None:
    spread = {"data": data, "tensor": tensor, "pipeline": pipeline, "context": context}
    assert devices(spread) == data * tensor * pipeline * context


def test_what_is_held_in_vain_by_hand() -> None:
    """Sixteen held for ten seconds of which four use eight, then a plan that is a second late."""
    use = [Occupancy(8, 4.0), Occupancy(16, 6.0)]
    assert in_vain([Occupancy(16, 10.0)], use, 8) == 4 * 8
    assert in_vain(use, use, 8) == 0
    assert in_vain([Occupancy(8, 5.0), Occupancy(16, 5.0)], use, 8) == 8
    assert in_vain([Occupancy(16, 9.0)], [Occupancy(16, 10.0)], 8) == 16
    assert in_vain([Occupancy(5, 1.0)], [Occupancy(5, 1.0)], 8) == 3
