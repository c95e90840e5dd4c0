"""Models, devices and layouts that the handbook tells of, and their drawings as small SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import yaml

from kuayu.demand.hardware import CATALOGUE, Hardware
from kuayu.demand.placement import CLASSES
from kuayu.demand.prediction import Demand, predict, profile
from kuayu.demand.search import Ranking, search
from kuayu.demand.strategy import Layouts, Outermost, Recompute, Sharding, Strategy
from kuayu.demand.structure import LatentAttention, ModelStructure
from kuayu_conformance.rendering.words import Language

TEXT = Path(__file__).with_name("handbook_text")
"""What the handbook says, for whoever writes or translates it; a paragraph is one line."""

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 40, 60
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#bf8700", "#0a7b83", "#953800", "#57606a", "#cf222e", "#6e7781")

SEQUENCE, VOCABULARY = 4096, 128256
BATCH = 1024
"""Sequences of a step, 4.2 million tokens."""

TOKENS_PER_PARAMETER = 20
"""Tokens of a whole training for each active parameter (arXiv:2203.15556)."""

ACCELERATORS = ("A100-SXM-80GB", "H100-SXM-80GB", "GB200", "Ascend-910B")

COMMON = Strategy(global_batch=BATCH, sequence_parallel=True, precision="bf16")
"""What layouts have in common: sequence parallelism, fused attention, gradients exchanged beside the computation."""

RACK = 64
"""Devices of a rack of 72 that are used: powers of two are easier to divide, and published runs do the same."""

MAX_DEVICES = 4096

LINKS = (10, 40, 100, 400)
"""Gbit/s that a domain sends to another."""

ROUND_TRIP = 0.02
"""Seconds between domains, both ways: some 2 000 km of fibre."""

NODE, DOMAIN = CLASSES.index("node"), CLASSES.index("domain")


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        title: What it shows, with its unit.
        low: Its beginning.
        high: Its end.
        logarithmic: Equal ratios are equally long.
    """

    title: str
    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the beginning to 1 at the end."""
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values, or powers of ten."""
        if self.logarithmic:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        span = (self.high - self.low) / 5
        size = 10.0 ** floor(log10(span))
        step = next(size * times for times in (1, 2, 5, 10) if size * times >= span)
        return [step * place for place in range(ceil(self.low / step), floor(self.high / step) + 1)]


def over(title: str, values: Sequence[float], *, logarithmic: bool = False) -> Axis:
    """An axis that holds all values; a plain one begins at 0."""
    low, high = min(values), max(values)
    if logarithmic:
        return Axis(title, 10 ** floor(log10(low)), 10 ** ceil(log10(high)), logarithmic=True)
    return Axis(title, 0.0, 1.08 * high or 1.0)


def lines(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Lines with a dot at every point."""
    drawn = []
    for place, (name, points) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        spots = [(_x(across.share(x)), _y(up.share(y))) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        drawn.append(_legend(place, name, colour))
    return _framed(title, [*_ticks_across(across), *_ticks_up(up), *drawn], across.title, up.title)


def steps(title: str, across: Axis, up: Axis, series: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """Functions that are constant between a beginning and an end: (begins, ends, value)."""
    drawn = []
    for place, (name, parts) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{_x(across.share(x)):.1f},{_y(up.share(y)):.1f}" for a, b, y in parts for x in (a, b))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(_legend(place, name, colour))
    return _framed(title, [*_ticks_across(across), *_ticks_up(up), *drawn], across.title, up.title)


def bars(title: str, up: Axis, parts: Sequence[str], stacks: Mapping[str, Sequence[float]], line: float = 0.0) -> str:
    """Stacked bars, with a line across where asked for."""
    drawn, slot = [], (WIDTH - LEFT - RIGHT) / len(stacks)
    for place, (name, values) in enumerate(stacks.items()):
        base, left = 0.0, LEFT + slot * (place + 0.15)
        for part, value in enumerate(values):
            top, bottom = _y(up.share(base + value)), _y(up.share(base))
            colour = COLOURS[part % len(COLOURS)]
            drawn.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.7 * slot:.1f}" height="{max(0.0, bottom - top):.1f}" '
                f'fill="{colour}"/>'
            )
            base += value
        drawn.append(_text(left + 0.35 * slot, HEIGHT - BOTTOM + 18, name, "middle"))
    drawn += [_legend(place, part, COLOURS[place % len(COLOURS)]) for place, part in enumerate(parts)]
    if line:
        y = _y(up.share(line))
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#24292f" '
            'stroke-dasharray="6 4"/>'
        )
    return _framed(title, [*_ticks_up(up), *drawn], "", up.title)


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe}</text>'


def _legend(place: int, name: str, colour: str) -> str:
    y = TOP + 12 + 20 * place
    swatch = f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="12" height="10" fill="{colour}"/>'
    return swatch + _text(WIDTH - RIGHT + 32, y, name)


def _label(value: float) -> str:
    return f"{value:.0e}".replace("e+0", "e") if value >= 1e5 else f"{value:g}"


def _ticks_across(axis: Axis) -> list[str]:
    return [_text(_x(axis.share(tick)), HEIGHT - BOTTOM + 18, _label(tick), "middle") for tick in axis.ticks()]


def _ticks_up(axis: Axis) -> list[str]:
    elements = []
    for tick in axis.ticks():
        y = _y(axis.share(tick))
        elements.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>')
        elements.append(_text(LEFT - 8, y + 4, _label(tick), "end"))
    return elements


def _framed(title: str, drawn: Sequence[str], across: str, up: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    label = _text(0, 0, up, "middle")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<g font-size="14" font-weight="bold">{_text(LEFT, 22, title)}</g>'
        f'<line x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#57606a"/>'
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}" stroke="#57606a"/>'
        + "\n".join(drawn)
        + _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, across, "middle")
        + f'<g transform="translate(16 {middle:.0f}) rotate(-90)">{label}</g></svg>\n'
    )


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


STUDIED = MODELS[3]
"""The model on which the dimensions are told apart: 70 B."""


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


Phrases = Mapping[str, Any]


@cache
def phrases(language: Language) -> Phrases:
    """What stands in tables and drawings, in one language, by name."""

    def in_one(said: Any) -> Any:
        if not isinstance(said, dict):
            return said
        return said[language] if said.keys() == {"en", "zh"} else {name: in_one(said[name]) for name in said}

    whole: Phrases = in_one(yaml.safe_load((TEXT / "handbook.yaml").read_text("utf-8")))
    return whole


def drawings(language: Language) -> dict[str, str]:
    """SVG by file name."""
    say = phrases(language)
    return {
        f"demand-{name}.{language}.svg": draw(say)
        for name, draw in {
            "traffic": _draw_traffic,
            "memory": _draw_memory,
            "hours": _draw_hours,
            "scaling": _draw_scaling,
            "inside": _draw_inside,
        }.items()
    }


def _draw_traffic(say: Phrases) -> str:
    series = {}
    for name, short in say["dimensions"].items():
        choices, demand = degrees(name)
        for link, place in (("node", NODE), ("domain", DOMAIN)):
            label = f"{short}, {say['links'][link]}"
            sent = demand.traffic[:, place].sum(axis=0) / 1e9
            series[label] = [(float(x), max(0.1, float(y))) for x, y in zip(choices, sent, strict=True)]
    points = [point for line in series.values() for point in line]
    across = over(say["axes"]["degree"], [x for x, _ in points], logarithmic=True)
    up = over(say["axes"]["traffic"], [y for _, y in points], logarithmic=True)
    return lines(say["plots"]["traffic"], across, up, series)


def _draw_memory(say: Phrases) -> str:
    names, demand = savings()
    parts = [
        getattr(demand.memory, name) / 1e9
        for name in ("parameters", "gradients", "optimizer", "activations", "working")
    ]
    stacks = {name: [float(part[row]) for part in parts] for row, name in enumerate(names)}
    limit = CATALOGUE[ACCELERATORS[0]].memory / 1e9
    up = over(say["axes"]["memory"], [limit, *(sum(stack) for stack in stacks.values())])
    return bars(say["plots"]["memory"], up, say["parts"], stacks, limit)


def _draw_hours(say: Phrases) -> str:
    series = {}
    for name in ACCELERATORS:
        line = []
        for model in DENSE:
            ranking = ranked(model, name, 1024)
            if len(ranking.order):
                line.append(
                    (model.structure.active_parameters / 1e9, hours(model, ranking.demand, int(ranking.order[0])) / 1e3)
                )
        series[name] = line
    points = [point for line in series.values() for point in line]
    across = over(say["axes"]["parameters"], [x for x, _ in points], logarithmic=True)
    up = over(say["axes"]["hours"], [y for _, y in points], logarithmic=True)
    return lines(say["plots"]["hours"], across, up, series)


def _draw_scaling(say: Phrases) -> str:
    series = {}
    for model in DENSE:
        line = []
        for devices in (8, 16, 32, 64, 128, 256, 512, 1024):
            ranking = ranked(model, ACCELERATORS[0], devices)
            if len(ranking.order):
                line.append((float(devices), 100 * float(ranking.demand.utilization[ranking.order[0]])))
        if line:
            series[model.name] = line
    across = over(say["axes"]["devices"], [x for line in series.values() for x, _ in line], logarithmic=True)
    up = Axis(say["axes"]["utilisation"], 0.0, 80.0)
    return lines(say["plots"]["scaling"], across, up, series)


def _draw_inside(say: Phrases) -> str:
    ranking, row = inside()
    parts = profile(ranking.demand, row)
    series = {
        say["links"][link]: [(part.begins, part.begins + part.lasts, part.sends[link] / 1e9) for part in parts]
        for link in ("node", "domain")
    }
    across = over(say["axes"]["seconds"], [parts[-1].begins + parts[-1].lasts])
    up = over(say["axes"]["rate"], [value for line in series.values() for _, _, value in line])
    return steps(say["plots"]["inside"], across, up, series)
