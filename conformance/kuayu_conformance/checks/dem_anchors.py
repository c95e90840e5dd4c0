"""Models whose size is published, as the wire states them."""

from collections.abc import Mapping

from kuayu_conformance.checks.dem_fixtures import Document

_LATENT = {"query_rank": 1536, "value_rank": 512, "rotary_width": 64}

ANCHORS: Mapping[str, tuple[Document, float]] = {
    "GPT-3 (arXiv:2104.04473, table 2)": (
        {"layers": 96, "hidden": 12288, "heads": 96, "sequence": 2048, "vocabulary": 51200},
        174.6e9,
    ),
    "Llama 3 405B (arXiv:2407.21783)": (
        {
            "layers": 126,
            "hidden": 16384,
            "heads": 128,
            "key_value_heads": 8,
            "sequence": 8192,
            "vocabulary": 128256,
            "feed_forward": 53248,
            "gated": True,
            "tied": False,
        },
        405.85e9,
    ),
    "Mixtral 8x7B (arXiv:2401.04088)": (
        {
            "layers": 32,
            "hidden": 4096,
            "heads": 32,
            "key_value_heads": 8,
            "sequence": 4096,
            "vocabulary": 32000,
            "feed_forward": 14336,
            "gated": True,
            "tied": False,
            "experts": 8,
            "experts_per_token": 2,
        },
        46.7e9,
    ),
    "DeepSeek-V3 (arXiv:2412.19437)": (
        {
            "layers": 61,
            "hidden": 7168,
            "heads": 128,
            "head_width": 128,
            "latent": _LATENT,
            "sequence": 4096,
            "vocabulary": 129280,
            "feed_forward": 18432,
            "gated": True,
            "tied": False,
            "experts": 256,
            "experts_per_token": 8,
            "expert_feed_forward": 2048,
            "shared_feed_forward": 2048,
            "dense_layers": 3,
        },
        671.0e9,
    ),
}
"""Structure and published parameters by name."""
