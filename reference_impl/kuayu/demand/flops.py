"""FLOPs of a step, of the model and of the hardware."""

from typing import TypeVar

import numpy as np

from kuayu.demand.strategy import Floats, Layouts, Recompute
from kuayu.demand.structure import ModelStructure

Number = TypeVar("Number", float, Floats)


def model_flops(structure: ModelStructure, sequences: Number, *, causal: bool = False) -> Number:
    """FLOP that the model needs for so many sequences: forward and backward, nothing twice.

    For a dense model with as many key heads as heads this is 72·B·s·L·h²·(1 + s/6h + V/12Lh), the definition of
    arXiv:2205.05198.

    Args:
        structure: The model.
        sequences: How many.
        causal: Count of the scores only what the mask leaves.
    """
    return sequences * structure.sequence * (3 * _forward(structure, causal=causal) - _frozen(structure))


def hardware_flops(structure: ModelStructure, layouts: Layouts, *, causal: bool = False) -> Floats:
    """FLOP of a step with what is computed once more, N."""
    scores = structure.all_layers * _scores(structure, causal=causal)
    outer = 2.0 * structure.vocabulary * structure.hidden * (1 + structure.ahead)
    whole = _forward(structure, causal=causal)
    again = np.select(
        [layouts.recompute == Recompute.FULL, layouts.recompute == Recompute.SELECTIVE],
        [whole - outer, scores + 2 * structure.all_layers * structure.up_parameters],
        0.0,
    )
    return np.asarray(layouts.global_batch * structure.sequence * (3 * whole - _frozen(structure) + again), dtype=float)


def _frozen(structure: ModelStructure) -> float:
    """FLOP of a token that frozen weights save: their gradients."""
    if structure.adapter is None:
        return 0.0
    outputs = structure.ahead * structure.vocabulary * structure.hidden
    return 2 * (structure.active_parameters - structure.active_adapter_parameters + outputs)


def _scores(structure: ModelStructure, *, causal: bool) -> float:
    return 2 * structure.seen(causal=causal) * (structure.query_width + structure.value_width)


def _forward(structure: ModelStructure, *, causal: bool) -> float:
    """FLOP of a token's forward pass."""
    outputs = structure.ahead * structure.vocabulary * structure.hidden
    return 2 * (structure.active_parameters + outputs) + structure.all_layers * _scores(structure, causal=causal)
