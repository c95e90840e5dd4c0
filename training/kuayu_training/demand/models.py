"""Structures of the models that runs name, by public configurations.

Sources: the papers and the `config.json` published with the weights. Widths that a run states itself are the run's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kuayu.demand.structure import LatentAttention

LATENT = LatentAttention(query_rank=1536, value_rank=512, rotary_width=64)
"""DeepSeek-V3 (arXiv:2412.19437) and Kimi K2 (arXiv:2507.20534)."""

LLAMA = {"gated": True, "key_value_heads": 8, "vocabulary": 128256, "tied": False}
QWEN = {
    "gated": True,
    "key_value_heads": 4,
    "head_width": 128,
    "vocabulary": 151936,
    "tied": False,
    "experts": 128,
    "experts_per_token": 8,
}
DEEPSEEK = {
    "latent": LATENT,
    "head_width": 128,
    "gated": True,
    "feed_forward": 18432,
    "expert_feed_forward": 2048,
    "shared_feed_forward": 2048,
    "experts_per_token": 8,
    "tied": False,
}

FAMILIES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "LLAMA3_8B": LLAMA | {"feed_forward": 14336},
        "LLAMA3_70B": LLAMA | {"feed_forward": 28672},
        "LLAMA3.1_405B": LLAMA | {"feed_forward": 53248},
        "Llama-3-405B": LLAMA | {"feed_forward": 53248},
        "Qwen3_30B_a3B": QWEN | {"expert_feed_forward": 768},
        "Qwen3_235B_a22B": QWEN | {"expert_feed_forward": 1536},
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
        },
        "DeepSeekV3": DEEPSEEK | {"vocabulary": 129280, "experts": 256, "dense_layers": 3, "ahead": 1},
        "DeepSeekV3 (w/o MTP)": DEEPSEEK | {"vocabulary": 129280, "experts": 256, "dense_layers": 3},
        "Kimi_K2": DEEPSEEK | {"vocabulary": 163840, "experts": 384, "dense_layers": 1},
        "PaLM-540B": {"gated": True, "key_value_heads": 1, "head_width": 256, "vocabulary": 256000},
        "MPT": {"vocabulary": 50368},
        "BLOOM-176B": {"vocabulary": 250880, "dropout": True},
        "GPT-NeoX-20B": {"vocabulary": 50432, "tied": False},
        "GPT": {"vocabulary": 51200, "dropout": True},
    }
)
"""What is added to layers, width, heads and sequence; by the model's name or the beginning of it."""


def family(model: str) -> Mapping[str, Any]:
    """What is known of a model by its name; a GPT of 2021 where nothing is."""
    plain = model.removesuffix(" (w/ MTP)").removesuffix(" (tokendrop)").removesuffix(" (dropless)")
    if plain in FAMILIES:
        return FAMILIES[plain]
    return FAMILIES["MPT"] if plain.startswith("MPT-") else FAMILIES["GPT"]
