"""Models, devices and layouts that the handbook tells of."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kuayu.demand.hardware import CATALOGUE, Hardware
from kuayu.demand.prediction import Demand, predict
from kuayu.demand.search import Ranking, search
from kuayu.demand.strategy import Layouts, Outermost, Recompute, Sharding, Strategy
from kuayu.demand.structure import LatentAttention, ModelStructure

SEQUENCE, VOCABULARY = 4096, 128256
BATCH = 1024
"""Sequences of a step, 4.2 million tokens."""

TOKENS_PER_PARAMETER = 20
"""Tokens of a whole training for each active parameter (arXiv:2203.15556)."""


@dataclass(frozen=True)
class Model:
    """A model of the handbook."""

    name: str
    structure: ModelStructure


def _dense(name: str, layers: int, hidden: int, heads: int, keys: int, width: int) -> Model:
    gated = ModelStructure(
        layers,
        hidden,
        heads,
        SEQUENCE,
        VOCABULARY,
        key_value_heads=keys,
        feed_forward=width,
        gated=True,
        tied=layers < 20,  # the smallest shares its table
    )
    return Model(name, gated)


DENSE = (
    _dense("1B", 16, 2048, 32, 8, 8192),
    _dense("8B", 32, 4096, 32, 8, 14336),
    _dense("32B", 64, 5120, 40, 8, 27648),
    _dense("70B", 80, 8192, 64, 8, 28672),
    Model("175B", ModelStructure(96, 12288, 96, SEQUENCE, 50304)),
    _dense("405B", 126, 16384, 128, 8, 53248),
    Model("1T", ModelStructure(128, 25600, 160, SEQUENCE, 50304)),
)
"""Llama 3 (arXiv:2407.21783), Qwen2.5-32B (arXiv:2412.15115), GPT-3, and the largest of arXiv:2104.04473."""

MOE = (
    Model(
        "30B-A3B",
        ModelStructure(
            48,
            2048,
            32,
            SEQUENCE,
            151936,
            key_value_heads=4,
            head_width=128,
            gated=True,
            tied=False,
            experts=128,
            experts_per_token=8,
            expert_feed_forward=768,
        ),
    ),
    Model(
        "235B-A22B",
        ModelStructure(
            94,
            4096,
            64,
            SEQUENCE,
            151936,
            key_value_heads=4,
            head_width=128,
            gated=True,
            tied=False,
            experts=128,
            experts_per_token=8,
            expert_feed_forward=1536,
        ),
    ),
    Model(
        "671B-A37B",
        ModelStructure(
            61,
            7168,
            128,
            SEQUENCE,
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
    ),
)
"""Qwen3 (arXiv:2505.09388) and DeepSeek-V3 (arXiv:2412.19437)."""

MODELS = DENSE + MOE

ACCELERATORS = ("A100-SXM-80GB", "H100-SXM-80GB", "GB200", "Ascend-910B")

COMMON = Strategy(global_batch=BATCH, sequence_parallel=True, precision="bf16")
"""What layouts have in common: sequence parallelism, fused attention, gradients exchanged beside the computation."""

STUDIED = MODELS[3]
"""The model on which the dimensions are told apart: 70 B."""


RACK = 64
"""Devices of a rack of 72 that are used: powers of two are easier to divide, and published runs do the same."""


def machine(name: str, devices: int) -> Hardware:
    """So many devices, in nodes or racks of a power of two."""
    hardware = CATALOGUE[name]
    return replace(hardware, devices=devices, per_node=min(hardware.per_node, RACK))


def best(model: Model, hardware: Hardware) -> Ranking:
    """All layouts, ranked by the law."""
    return search(model.structure, hardware, COMMON)


@cache
def fewest(model: Model, name: str) -> int | None:
    """The smallest number of devices, of powers of two up to MAX_DEVICES, on which some layout fits."""
    sizes = (2**power for power in range(MAX_DEVICES.bit_length()))
    return next((size for size in sizes if len(best(model, machine(name, size)).order)), None)


MAX_DEVICES = 4096


@cache
def degrees(dimension: str) -> tuple[list[int], Demand]:
    """The studied model on 64 nodes of A100 with one dimension growing and replicas making way.

    Args:
        dimension: ``data``, ``tensor`` or ``pipeline``; data grows with the devices, the batch staying the same.
    """
    base = replace(COMMON, tensor=4, pipeline=4, micro_batch=1, sharding=Sharding.OPTIMIZER)
    strategies: list[Strategy] = []
    degree = {"data": (2, 4, 8, 16, 32, 64), "tensor": (1, 2, 4, 8), "pipeline": (1, 2, 4, 8, 16)}[dimension]
    for size in degree:
        changed: dict[str, Any] = {dimension: size}
        one = replace(base, **changed)
        strategies.append(one if dimension == "data" else replace(one, data=512 // (one.tensor * one.pipeline)))
    layouts = Layouts.of(strategies)
    hardware = machine("A100-SXM-80GB", max(strategy.devices for strategy in strategies))
    return list(degree), predict(STUDIED.structure, layouts, hardware)


@cache
def savings() -> tuple[list[str], Demand]:
    """Ways of needing less memory, on the studied model with 256 devices."""
    base = replace(COMMON, data=8, tensor=8, pipeline=4, micro_batch=1)
    strategies = {
        "ZeRO-0": base,
        "ZeRO-1": replace(base, sharding=Sharding.OPTIMIZER),
        "ZeRO-2": replace(base, sharding=Sharding.GRADIENTS),
        "ZeRO-3": replace(base, sharding=Sharding.PARAMETERS),
        "ZeRO-1, full": replace(base, sharding=Sharding.OPTIMIZER, recompute=Recompute.FULL),
        "ZeRO-1, ×4": replace(base, sharding=Sharding.OPTIMIZER, virtual=4),
        "ZeRO-1, C2": replace(base, sharding=Sharding.OPTIMIZER, data=4, context=2),
    }
    return list(strategies), predict(
        STUDIED.structure, Layouts.of(list(strategies.values())), machine("A100-SXM-80GB", 256)
    )


LINKS = (10, 40, 100, 400)
"""Gbit/s that a domain sends to another."""

ROUND_TRIP = 0.02
"""Seconds between domains, both ways: some 2 000 km of fibre."""


@cache
def domains() -> tuple[list[tuple[str, int]], list[Demand]]:
    """The model of 175 B on two domains of 512 A100, as two halves of a pipeline and as two groups of replicas."""
    inner = replace(COMMON, data=16, tensor=8, pipeline=8, sharding=Sharding.OPTIMIZER)
    keys, demands = [], []
    for outermost in Outermost:
        layouts = Layouts.of([replace(inner, outermost=outermost)])
        for speed in LINKS:
            latencies = (*CATALOGUE["A100-SXM-80GB"].latencies[:2], ROUND_TRIP / 2)
            link = replace(machine("A100-SXM-80GB", 1024), per_domain=512, across=speed / 8 * 1e9, latencies=latencies)
            keys.append((outermost.value, speed))
            demands.append(predict(DENSE[4].structure, layouts, link))
    together = predict(DENSE[4].structure, Layouts.of([inner]), machine("A100-SXM-80GB", 1024))
    return [("", 0), *keys], [together, *demands]


@cache
def ranked(model: Model, accelerator: str, devices: int) -> Ranking:
    """Layouts of a model, ranked; made once for both languages."""
    return best(model, machine(accelerator, devices))


@cache
def inside() -> tuple[Ranking, int]:
    """The model of 175 B on 1024 devices, and its fastest layout that has a pipeline."""
    ranking = ranked(DENSE[4], ACCELERATORS[0], 1024)
    deep = ranking.demand.layouts.pipeline > 1
    return ranking, int(next(row for row in ranking.order if deep[row]))


def hours(model: Model, demand: Demand, row: int) -> float:
    """Device-hours of a whole training."""
    tokens = TOKENS_PER_PARAMETER * model.structure.active_parameters
    number = tokens / (BATCH * SEQUENCE)
    return float(number * demand.times.step[row] * demand.layouts.devices[row] / 3600)
