"""Structures of the models that runs name: what a run itself does not state.

From the papers and the ``config.json`` that were published with the weights: Llama 3 (arXiv:2407.21783), Qwen3
(arXiv:2505.09388), gpt-oss (arXiv:2508.10925), DeepSeek-V3 (arXiv:2412.19437), Kimi K2 (arXiv:2507.20534), MPT
(mosaicml/llm-foundry, ``scripts/train/yamls/pretrain``), BLOOM (arXiv:2211.05100), GPT-NeoX (arXiv:2204.06745), Llama 2
(arXiv:2307.09288), Code Llama (arXiv:2308.12950), Nemotron-4 (arXiv:2406.11704), Mixtral (arXiv:2401.04088).
"""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

Members = Mapping[str, Any]
"""Some members of class ModelStructure; what it has to have besides, runs say or :func:`guessed` does."""

_LATENT = {"query_rank": 1536, "value_rank": 512, "rotary_width": 64}
_LLAMA3: Members = {"gated": True, "key_value_heads": 8, "vocabulary": 128256, "tied": False}
_QWEN3: Members = {
    "gated": True,
    "key_value_heads": 4,
    "head_width": 128,
    "vocabulary": 151936,
    "tied": False,
    "experts": 128,
    "experts_per_token": 8,
}
_DEEPSEEK3: Members = {
    "latent": _LATENT,
    "head_width": 128,
    "gated": True,
    "feed_forward": 18432,
    "expert_feed_forward": 2048,
    "shared_feed_forward": 2048,
    "experts": 256,
    "experts_per_token": 8,
    "dense_layers": 3,
    "vocabulary": 129280,
    "tied": False,
}
_LLAMA2: Members = {"gated": True, "vocabulary": 32000, "tied": False}
_QWEN3_DENSE: Members = {"gated": True, "key_value_heads": 8, "head_width": 128, "vocabulary": 151936}
_NEMOTRON: Members = {"vocabulary": 256000, "tied": False}
_GPT: Members = {"vocabulary": 51200, "dropout": True}
_MPT: Members = {"vocabulary": 50368}

BY_NAME: Mapping[str, Members] = {
    "LLAMA3_8B": {**_LLAMA3, "feed_forward": 14336},
    "LLAMA3_70B": {**_LLAMA3, "feed_forward": 28672},
    "LLAMA3.1_405B": {**_LLAMA3, "feed_forward": 53248},
    "Llama-3-405B": {**_LLAMA3, "feed_forward": 53248},
    "Qwen3_30B_a3B": {**_QWEN3, "expert_feed_forward": 768},
    "Qwen3_235B_a22B": {**_QWEN3, "expert_feed_forward": 1536},
    "GPT OSS 120B": {
        "gated": True,
        "key_value_heads": 8,
        "head_width": 64,
        "vocabulary": 201088,
        "tied": False,
        "experts": 128,
        "experts_per_token": 4,
        "expert_feed_forward": 2880,
        "window": 128,
        "window_frequency": 2,
    },
    "GPT OSS 20B": {
        "gated": True,
        "key_value_heads": 8,
        "head_width": 64,
        "vocabulary": 201088,
        "tied": False,
        "experts": 32,
        "experts_per_token": 4,
        "expert_feed_forward": 2880,
        "window": 128,
        "window_frequency": 2,
    },
    "Mixtral 8x7B": {
        **_LLAMA2,
        "key_value_heads": 8,
        "experts": 8,
        "experts_per_token": 2,
        "expert_feed_forward": 14336,
    },
    **{f"{name}-7B": {**_LLAMA2, "feed_forward": 11008} for name in ("LLAMA2", "Llama-2")},
    **{f"{name}-13B": {**_LLAMA2, "feed_forward": 13824} for name in ("LLAMA2", "Llama-2")},
    **{f"{name}-70B": {**_LLAMA2, "feed_forward": 28672, "key_value_heads": 8} for name in ("LLAMA2", "Llama-2")},
    "CodeLlama-34B": {**_LLAMA2, "feed_forward": 22016, "key_value_heads": 8},
    "Nemotron-8B": _NEMOTRON,
    "Nemotron-22B": _NEMOTRON,
    "Nemotron-340B": {**_NEMOTRON, "key_value_heads": 8},
    "Qwen3-0.6B": {**_QWEN3_DENSE, "feed_forward": 3072},
    "Qwen3-1.7B": {**_QWEN3_DENSE, "feed_forward": 6144},
    "Qwen3-4B": {**_QWEN3_DENSE, "feed_forward": 9728},
    "Qwen3-8B": {**_QWEN3_DENSE, "feed_forward": 12288, "tied": False},
    "Qwen3-14B": {**_QWEN3_DENSE, "feed_forward": 17408, "tied": False},
    "Qwen3-32B": {**_QWEN3_DENSE, "feed_forward": 25600, "tied": False},
    "DeepSeekV3": {**_DEEPSEEK3, "further_tokens": 1},
    "DeepSeekV3 (w/o MTP)": _DEEPSEEK3,
    "Kimi_K2": {**_DEEPSEEK3, "experts": 384, "dense_layers": 1, "vocabulary": 163840},
    "BLOOM-176B": {"vocabulary": 250880, "dropout": True},
    "GPT-NeoX-20B": {"vocabulary": 50432, "tied": False},
}

_SUFFIXES = (" (w/ MTP)", " (tokendrop)", " (dropless)")


def members(model: str) -> Members:
    """What is known of a model by its name; where nothing is, a GPT as Megatron-LM trained it in 2021."""
    for suffix in _SUFFIXES:
        model = model.removesuffix(suffix)
    if model in BY_NAME:
        return BY_NAME[model]
    return _MPT if model.startswith("MPT-") else _GPT


_DEPTHS = ((1.25e8, 12), (7.6e8, 24), (2.7e9, 32), (6.7e9, 32), (1.3e10, 40), (1.75e11, 96), (1.008e12, 128))
"""Parameters and layers of GPT-3 (arXiv:2005.14165, table 2.1) and of 1 T (arXiv:2104.04473, table 1)."""

_STEP = 512
_SPLIT = 8


def guessed(parameters: float, vocabulary: int) -> dict[str, int]:
    """Layers, width and heads of a GPT of about so many parameters.

    Layers lie between those of the next sizes by the logarithm; the width solves 12·L·h² + V·h = P. It is rounded so
    that heads of 128, else of 64, can be split over eight accelerators, as the runs split them.
    """
    size = min(max(parameters, _DEPTHS[0][0]), _DEPTHS[-1][0])
    above = next(number for number, (limit, _) in enumerate(_DEPTHS) if number and size <= limit)
    (low, few), (high, many) = _DEPTHS[above - 1 : above + 1]
    layers = round(few + (many - few) * log(size / low) / log(high / low))
    width = (sqrt(vocabulary**2 + 48 * layers * parameters) - vocabulary) / (24 * layers)
    hidden = max(1, round(width / _STEP)) * _STEP
    heads = hidden // 128 if hidden % (128 * _SPLIT) == 0 else hidden // 64
    return {"layers": layers, "hidden": hidden, "heads": heads}
