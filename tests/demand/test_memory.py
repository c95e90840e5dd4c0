"""Memory follows Korthikanti et al. and ZeRO."""

from dataclasses import replace

import pytest
from demand.worlds import EXPERTS, GPT3, KORTHIKANTI

from kuayu.demand.memory import layer_activations, memory
from kuayu.demand.strategy import Layouts, Recompute, Sharding, Strategy

S, H, A = 2048, 12288, 96
SBH = float(S * H)


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"tensor": 1}, SBH * (34 + 5 * A * S / H)),
        ({}, SBH * (10 + 24 / 8 + 5 * A * S / (H * 8))),
        ({"sequence_parallel": True}, SBH / 8 * (34 + 5 * A * S / H)),
        ({"sequence_parallel": True, "recompute": Recompute.SELECTIVE}, SBH * 34 / 8),
        ({"recompute": Recompute.FULL}, 2 * SBH),
    ],
    ids=["equation 1", "equation 2", "equation 4", "equation 6", "full"],
)
def test_activations_of_a_layer_are_those_of_the_paper(changes: dict[str, object], kept: float) -> None:
    strategy = replace(KORTHIKANTI, **({"recompute": Recompute.NONE} | changes))  # type: ignore[arg-type]
    assert layer_activations(GPT3, Layouts.of([strategy]))[0][0] == pytest.approx(kept)


def test_zero_divides_one_part_after_the_other() -> None:
    base = Strategy(data=64, global_batch=64, gradient_bytes=2.0)
    found = memory(GPT3, Layouts.of([replace(base, sharding=stage) for stage in Sharding]))
    parameters = GPT3.parameters
    states = [2, 2, 12]
    for row in range(4):
        parts = (found.parameters[row], found.gradients[row], found.optimizer[row])
        divided = (row >= 3, row >= 2, row >= 1)
        expected = [size * parameters / (64 if cut else 1) for size, cut in zip(states, divided, strict=True)]
        assert parts == pytest.approx(expected, rel=1e-6)


def test_the_first_stage_holds_a_micro_batch_for_every_stage() -> None:
    one = Strategy(tensor=8, pipeline=8, global_batch=8, recompute=Recompute.FULL)
    few, many = memory(GPT3, Layouts.of([one, replace(one, global_batch=64)])).activations
    assert many == few
    fewer = memory(GPT3, Layouts.of([replace(one, global_batch=2)])).activations[0]
    assert few - fewer == pytest.approx(12 * 6 * 2 * SBH)


def test_virtual_stages_hold_more() -> None:
    plain, interleaved = memory(
        GPT3, Layouts.of([replace(KORTHIKANTI, virtual=virtual) for virtual in (1, 3)])
    ).activations
    assert interleaved - plain == pytest.approx(12 * 8 * 2 * SBH * 7 / 24)


def test_experts_are_divided_over_their_group_and_nothing_else_is() -> None:
    together, apart = (
        memory(EXPERTS, Layouts.of([Strategy(data=8, expert=expert, global_batch=8)])) for expert in (1, 8)
    )
    routed = 8 * 16 * EXPERTS.expert_parameters
    assert together.parameters[0] - apart.parameters[0] == pytest.approx(2 * routed * 7 / 8)
