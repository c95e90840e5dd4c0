"""Demands of trainings: whether the parts make the whole, and what each phase needs (DEM-002, DEM-004).

1. Laws that hold whatever a law of demand is fitted to: one thing of a layout changes, and what follows (DEM-004).
2. Models whose size is published, as the wire states them.
3. Claims about single demands: counts, sums, and what lies inside a step (DEM-004).
4. Device-seconds that are held in vain, or missing, when a plan meets what a training can use (DEM-002).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import (
    KINDS,
    NODE,
    DemandExchange,
    ask_demands,
    case,
    counted,
    devices,
    hardware,
    model,
    names,
    part,
    revision,
    strategy,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

REQUIREMENT = "DEM-004"
TENSORS, SHARDINGS, REPLICAS = (1, 2, 4, 8), (0, 1, 2, 3), 8
SLIGHTLY = 1e-3
"""Share below which figures are the same."""


@dataclass(frozen=True)
class Rung:
    """Cases that differ in one thing: its name, its values, the cases in their order."""

    what: str
    values: tuple[int | str, ...]
    cases: "tuple[documents.TrainingCase, ...]"


def ladders(chance: Random, machine: str) -> tuple[Rung, ...]:
    """Ladders for dense models of two kinds, without fused attention."""
    rungs = []
    for kind in ("plain", "grouped"):
        of = model(chance, kind)
        base = {
            "data": REPLICAS,
            "tensor": 2,
            "pipeline": 1,
            "micro_batch": 1,
            "global_batch": 4 * REPLICAS,
            "fused_attention": False,
        }
        for what, values in (
            ("tensor", TENSORS),
            ("sharding", SHARDINGS),
            ("recomputation", ("none", "selective", "full")),
        ):
            labels = names(chance, "c", len(values))
            steps = zip(labels, values, strict=True)
            cases = tuple(
                case(name, of, cast("documents.ParallelStrategy", {**base, what: value}), machine)
                for name, value in steps
            )
            rungs.append(Rung(what, values, cases))
    return tuple(rungs)


def lawful(rungs: Sequence[Rung], exchange: DemandExchange) -> Iterator[Finding]:
    """Claims about every ladder."""
    for rung in rungs:
        yield from _LAWS[rung.what](rung, [exchange.demands[case["id"]] for case in rung.cases], exchange)


def _tensor(rung: Rung, rows: "Sequence[documents.TrainingDemand]", exchange: DemandExchange) -> Iterator[Finding]:
    sizes = [part(row, "parameters") for row in rows]
    observed = _listed(rung, sizes)
    fallen = all(after <= before * (1 + SLIGHTLY) for before, after in pairwise(sizes))
    yield holds(
        REQUIREMENT, fallen, "more tensor parallelism never raises memory of parameters", observed, exchange.answer
    )
    divided = 0 < sizes[-1] < sizes[0] / 2
    yield holds(
        REQUIREMENT, divided, "eight share their layers: less than half the memory of one", observed, exchange.answer
    )


def _sharding(rung: Rung, rows: "Sequence[documents.TrainingDemand]", exchange: DemandExchange) -> Iterator[Finding]:
    states = [part(row, "optimizer") for row in rows]
    for value, state in list(zip(rung.values, states, strict=True))[1:]:
        expected = (
            f"sharding {value} divides memory of the optimiser by {REPLICAS} replicas: {states[0] / REPLICAS:.5g}"
        )
        fine = state > 0 and near(state, states[0] / REPLICAS)
        yield holds(REQUIREMENT, fine, expected, f"{state:.5g}", exchange.answer)
    for name, first in (("gradients", 2), ("parameters", 3)):
        sizes = [part(row, name) for row in rows]
        unchanged = all(near(size, sizes[0], SLIGHTLY) for size in sizes[1:first])
        less = all(size < sizes[0] for size in sizes[first:])
        expected = f"memory of {name} falls from sharding {first} on, and not before"
        yield holds(REQUIREMENT, unchanged and less, expected, _listed(rung, sizes), exchange.answer)


def _recomputation(
    rung: Rung, rows: "Sequence[documents.TrainingDemand]", exchange: DemandExchange
) -> Iterator[Finding]:
    sizes = [part(row, "activations") for row in rows]
    falling = sizes[0] > sizes[1] > sizes[2] > 0
    expected = "memory of activations falls from none over selective to full recomputation"
    yield holds(REQUIREMENT, falling, expected, _listed(rung, sizes), exchange.answer)
    own = counted(rung.cases[0]["model"])
    layers = own.layer_work + own.score_work
    more = {"none": 0.0, "selective": own.score_work, "full": layers}
    for value, row in zip(rung.values, rows, strict=True):
        share = 1 + more[str(value)] / (3 * own.forward)
        share_of_work = row["executed_work"] / row["work"]
        expected = f"executed work with recomputation {value}: {share:.4f} of the model's"
        yield holds(REQUIREMENT, near(share_of_work, share), expected, f"{share_of_work:.4f}", exchange.answer)


def _listed(rung: Rung, sizes: Sequence[float]) -> str:
    return ", ".join(f"{rung.what} {value}: {size:.5g} B" for value, size in zip(rung.values, sizes, strict=True))


_LAWS: "Mapping[str, Callable[[Rung, Sequence[documents.TrainingDemand], DemandExchange], Iterator[Finding]]]" = {
    "tensor": _tensor,
    "sharding": _sharding,
    "recomputation": _recomputation,
}


_LATENT: "documents.LatentAttention" = {"query_rank": 1536, "value_rank": 512, "rotary_width": 64}

ANCHORS: "Mapping[str, tuple[documents.ModelStructure, float]]" = {
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


HUNDREDTH, TWENTIETH = 0.01, 0.05
_DIMENSIONS = ("data", "tensor", "pipeline", "context", "expert")


@dataclass(frozen=True)
class DemandCase:
    """A case with its demand and its hardware."""

    case: "documents.TrainingCase"
    demand: "documents.TrainingDemand"
    machine: "documents.TrainingHardware"

    @property
    def tokens(self) -> float:
        """Tokens of a step."""
        return float(self.case["strategy"]["global_batch"] * self.case["model"]["sequence"])

    @property
    def sixteen(self) -> float:
        """FLOP/s of an accelerator in 16 bits."""
        peaks = self.machine["peak_matrix_throughput"]
        return peaks["bf16"] if "bf16" in peaks else peaks["fp16"]


def every(exchange: DemandExchange) -> list[DemandCase]:
    """Cases with their demands."""
    machines = {entry["id"]: entry for entry in exchange.body["hardware"]}
    return [
        DemandCase(case, exchange.demands[case["id"]], machines[case["hardware"]]) for case in exchange.body["cases"]
    ]


def counts(exchange: DemandExchange) -> Iterator[Finding]:
    """Parameters, work and accelerators are those that a count of the structure gives."""
    published = {str(sorted(of.items(), key=str)): (name, size) for name, (of, size) in ANCHORS.items()}
    for entry in every(exchange):
        own, row, spread = counted(entry.case["model"]), entry.demand, entry.case["strategy"]
        yield _close(exchange, entry, "parameters", row["parameters"], own.parameters)
        yield _close(exchange, entry, "active_parameters", row["active_parameters"], own.active)
        yield _close(exchange, entry, "work", row["work"], own.work(entry.tokens))
        least = own.executed(entry.tokens, spread.get("recomputation", "none"))
        # Fused attention may compute its scores once more in the backward pass; that is allowed to count.
        most = least + (entry.tokens * own.score_work if spread.get("fused_attention", True) else 0.0)
        observed = row["executed_work"]
        inside = least * (1 - HUNDREDTH) <= observed <= most * (1 + HUNDREDTH)
        yield holds(
            REQUIREMENT,
            inside,
            f"executed work of {entry.case['id']}: {least:.5g} to {most:.5g}",
            observed,
            exchange.answer,
        )
        number = devices(spread)
        yield holds(REQUIREMENT, row["devices"] == number, f"{number} accelerators", row["devices"], exchange.answer)
        key = str(sorted(entry.case["model"].items(), key=str))
        if key in published:
            name, size = published[key]
            observed = row["parameters"]
            yield holds(
                REQUIREMENT, near(observed, size), f"{name}: {size:.5g} parameters", f"{observed:.5g}", exchange.answer
            )


def hangs_together(exchange: DemandExchange) -> Iterator[Finding]:
    """Sums, utilisation, intervals, and which parallelism has traffic."""
    coverage = exchange.body.get("coverage", 0.9)
    for entry in every(exchange):
        row, spread = entry.demand, entry.case["strategy"]
        yield _close(exchange, entry, "sum of memory parts", sum(p["size"] for p in row["memory_parts"]), row["memory"])
        parts = [p["part"] for p in row["memory_parts"]]
        yield holds(REQUIREMENT, len(set(parts)) == len(parts), "each part of memory once", parts, exchange.answer)
        time = row["step_time"]
        if time["expected"] > 0:
            share = row["work"] / (time["expected"] * devices(spread) * entry.sixteen)
            yield _close(exchange, entry, "utilisation", row["utilisation"], share)
        ordered = 0 < time["low"] <= time["expected"] <= time["high"] and time["coverage"] == coverage
        yield holds(REQUIREMENT, ordered, f"an interval of {coverage} about the expected time", time, exchange.answer)
        sent: set[str] = {flow["dimension"] for flow in row["traffic"] if flow["size"] > 0}
        sizes: Mapping[str, Any] = spread
        alone = {name for name in _DIMENSIONS if sizes.get(name, 1) == 1}
        if spread.get("context", 1) > 1:
            alone.discard("data")  # parts of the sequence exchange gradients too
        idle = sorted(sent & alone)
        yield holds(REQUIREMENT, not idle, "no traffic of a parallelism that has one member", idle, exchange.answer)
        silent = sorted(name for name in _DIMENSIONS if sizes.get(name, 1) > 1 and name not in sent)
        yield holds(
            REQUIREMENT, not silent, "traffic of every parallelism that has several members", silent, exchange.answer
        )


def tiles(exchange: DemandExchange) -> Iterator[Finding]:
    """Segments cover the step without a gap, and carry the traffic."""
    for entry in every(exchange):
        name, row = entry.case["id"], entry.demand
        segments = row.get("segments") or []
        yield holds(
            REQUIREMENT,
            bool(segments),
            f"the inside of a step of {name}, which was asked for",
            segments,
            exchange.answer,
        )
        if not segments:
            continue
        expected = row["step_time"]["expected"]
        position, gaps = 0.0, []
        for segment in segments:
            if abs(segment["begin"] - position) > HUNDREDTH * expected:
                gaps.append(f"{segment['activity']} at {segment['begin']:.6g} s, not at {position:.6g} s")
            position = segment["begin"] + segment["duration"]
        yield holds(
            REQUIREMENT, not gaps, f"segments of {name} one after the other from nought", gaps[:3], exchange.answer
        )
        yield _close(exchange, entry, "end of the last segment", position, expected)
        yield from _carried(exchange, entry, segments)


def _carried(
    exchange: DemandExchange, demand_case: DemandCase, segments: "list[documents.StepSegment]"
) -> Iterator[Finding]:
    carried: dict[str, float] = {}
    for segment in segments:
        for flow in segment["traffic"]:
            carried[flow["link"]] = carried.get(flow["link"], 0.0) + flow["flow"] * segment["duration"]
    sent: dict[str, float] = {}
    for row in demand_case.demand["traffic"]:
        sent[row["link"]] = sent.get(row["link"], 0.0) + row["size"]
    for link in sorted(carried.keys() | sent.keys()):
        some, all_of_it = carried.get(link, 0.0), sent.get(link, 0.0)
        # Segments are means over accelerators, traffic is that of the one which sends most.
        fine = some <= all_of_it * (1 + TWENTIETH) and (some > 0 or all_of_it == 0)
        expected = f"{demand_case.case['id']}: segments carry traffic of links {link}, no more than {all_of_it:.5g} B"
        yield holds(REQUIREMENT, fine, expected, f"{some:.5g} B", exchange.answer)


def _close(exchange: DemandExchange, demand_case: DemandCase, name: str, value: float, wanted: float) -> Claim:
    expected = f"{name} of {demand_case.case['id']} ({_described(demand_case.case['model'])}): {wanted:.5g} to 1 %"
    return holds(REQUIREMENT, near(value, wanted, HUNDREDTH), expected, f"{value:.5g}", exchange.answer)


def _described(model: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in model.items())


QUICK_CASES, FULL_CASES = 3, 20
SPARE = 0.03
"""Share by which memory is made too small, or large enough."""
ROOMY = 1e16
"""Bytes that any layout fits into."""


@dataclass(frozen=True)
class DemandAnswers:
    """What was asked.

    Attributes:
        plain: Models of every kind.
        ladders: Cases that differ in one thing, and what that is.
        steps: The answer to these.
        tight: Cases on accelerators with a little more, or a little less, memory than they were told to need.
        roomy: Whether there is more, by case.
        broken: Cases whose layout does not divide.
        why: What does not divide, by case.
    """

    plain: DemandExchange
    ladders: tuple[Rung, ...]
    steps: DemandExchange
    tight: DemandExchange
    roomy: Mapping[str, bool]
    broken: DemandExchange
    why: Mapping[str, str]


def observe(episode: Episode) -> DemandAnswers:
    """Ask for models of every kind, ladders of layouts, accelerators just too small, and layouts that do not divide."""
    chance = episode.random
    share = FULL_CASES if episode.settings.full else QUICK_CASES
    kinds = [kind for kind in KINDS for _ in range(share)]
    machines = [hardware(chance, name) for name in names(chance, "h", 3)]
    labels = iter(names(chance, "c", len(kinds) + len(ANCHORS)))
    cases = [_case(episode, next(labels), kind, machines) for kind in kinds]
    cases += [
        case(next(labels), structure, strategy(chance, structure, pipeline=1, context=1), machines[0]["id"])
        for structure, _ in ANCHORS.values()
    ]
    plain = _ask(episode, machines, cases, profiles=True)
    roomy = hardware(chance, "roomy", memory=ROOMY)
    rungs = ladders(chance, roomy["id"])
    steps = _ask(episode, [roomy], [item for rung in rungs for item in rung.cases])
    tight, more = _tight(episode, plain)
    broken = dict(_broken(episode))
    return DemandAnswers(
        plain,
        rungs,
        steps,
        tight,
        more,
        _ask(episode, [roomy], [entry for entry, _ in broken.values()]),
        {name: why for name, (_, why) in broken.items()},
    )


def _ask(
    episode: Episode,
    machines: "list[documents.TrainingHardware]",
    cases: "list[documents.TrainingCase]",
    **members: Any,
) -> DemandExchange:
    chance = episode.random
    listed = {"hardware": chance.sample(machines, len(machines)), "cases": chance.sample(cases, len(cases))}
    body = {"revision": revision(episode), **listed, **members}
    return ask_demands(episode, cast("documents.TrainingDemandRequest", body))


def _case(
    episode: Episode, name: str, kind: str, machines: "list[documents.TrainingHardware]"
) -> "documents.TrainingCase":
    chance = episode.random
    of = model(chance, kind)
    spread = strategy(
        chance,
        of,
        context=chance.choice((1, 1, 2)),
        fused_attention=chance.random() < 0.5,
        recomputation=chance.choice(("none", "full")),
    )
    return case(name, of, spread, chance.choice(machines)["id"])


def _tight(episode: Episode, plain: DemandExchange) -> tuple[DemandExchange, dict[str, bool]]:
    """Some of the cases again, on accelerators whose memory lies just above or just below what they need."""
    sheets = {entry["id"]: entry for entry in plain.body["hardware"]}
    chosen = episode.random.sample(plain.body["cases"], min(8, len(plain.body["cases"])))
    machines: list[documents.TrainingHardware] = []
    cases: list[documents.TrainingCase] = []
    roomy: dict[str, bool] = {}
    for number, item in enumerate(chosen):
        more = number % 2 == 0
        demand = plain.demands.get(item["id"])
        need = demand["memory"] if demand else ROOMY
        size = need * (1 + SPARE if more else 1 - SPARE)
        machines.append({**sheets[item["hardware"]], "id": f"h{number}", "accelerator_memory_capacity": size})
        cases.append({**item, "hardware": f"h{number}"})
        roomy[item["id"]] = more
    return _ask(episode, machines, cases), roomy


def _broken(episode: Episode) -> "Iterator[tuple[str, tuple[documents.TrainingCase, str]]]":
    """Layouts that do not divide by any reading, on accelerators with room for everything."""
    chance = episode.random
    dense, sparse = model(chance, "plain"), model(chance, "experts")
    whole = {"data": 4, "tensor": 2, "pipeline": 2, "micro_batch": 2, "expert": 1}
    uneven: documents.ModelStructure = {**dense, "heads": 20, "hidden": 2560}
    odd: tuple[tuple[documents.ModelStructure, dict[str, int], str], ...] = (
        (dense, {"pipeline": 2 * dense["layers"]}, "more stages than layers"),
        (uneven, {"tensor": 8}, "tensor parallelism that does not divide the heads"),
        (dense, {"global_batch": 4 * 2 * 2 * 3 + 1}, "a batch that replicas and micro-batches do not divide"),
        (sparse, {"data": 3, "expert": 3, "global_batch": 24}, "expert parallelism that does not divide the experts"),
    )
    for name, (of, members, why) in zip(names(chance, "c", len(odd)), odd, strict=True):
        spread = cast("documents.ParallelStrategy", {**whole, "global_batch": 32, **members})
        yield name, (case(name, of, spread, "roomy"), why)


def judge(observation: DemandAnswers) -> Iterable[Finding]:
    """Claims about every part."""
    for entry in (observation.plain, observation.steps, observation.tight, observation.broken):
        if entry.amiss:
            yield holds("DEM-004", False, "a demand of every case, in their order", entry.amiss, entry.answer)
            return
    yield from counts(observation.plain)
    yield from hangs_together(observation.plain)
    yield from tiles(observation.plain)
    yield from lawful(observation.ladders, observation.steps)
    yield from _fitting(observation)


def _fitting(observation: DemandAnswers) -> Iterator[Finding]:
    for asked_for in (observation.plain, observation.tight, observation.steps):
        sizes = {entry["id"]: entry["accelerator_memory_capacity"] for entry in asked_for.body["hardware"]}
        for training in asked_for.body["cases"]:
            row, size = asked_for.demands[training["id"]], sizes[training["hardware"]]
            fits = row["memory"] <= size
            expected = f"fits exactly where {row['memory']:.4g} B ≤ {size:.4g} B, since the layout divides"
            observed = f"fits: {row['fits']}, obstacles: {row['obstacles']}"
            yield holds("DEM-004", row["fits"] is fits, expected, observed, asked_for.answer)
            consistent = bool(row["obstacles"]) is not row["fits"]
            yield holds(
                "DEM-004", consistent, "obstacles where it cannot run, and nowhere else", observed, asked_for.answer
            )
    for name, more in observation.roomy.items():
        fits = observation.tight.demands[name]["fits"]
        expected = f"with {SPARE:.0%} {'more' if more else 'less'} memory than was told, it fits: {more}"
        yield holds("DEM-004", fits is more, expected, fits, observation.tight.answer)
    for name, why in observation.why.items():
        row = observation.broken.demands[name]
        observed = f"fits: {row['fits']}, obstacles: {row['obstacles']}"
        yield holds(
            "DEM-004", not row["fits"] and bool(row["obstacles"]), f"{why}: told", observed, observation.broken.answer
        )


CHECK = Check(
    "dem_whole",
    ("DEM-004",),
    observe,
    judge,
    summary="Whether the parts of a demand make the whole, and whether its counts are right (DEM-004).",
)


class Occupancy(NamedTuple):
    """So many accelerators for so many seconds."""

    devices: int
    seconds: float


def in_vain(plan: Sequence[Occupancy], use: Sequence[Occupancy], node: int) -> float:
    """Integral of the difference between what is held and what is of use, in device-seconds.

    Nodes are held whole. When the plan has ended before the use, nothing is held; when the use has ended, nothing is
    of use.

    Args:
        plan: What is held, one after the other.
        use: What is of use, likewise.
        node: Accelerators of a node.
    """
    ends = sorted({*accumulate(item.seconds for item in plan), *accumulate(entry.seconds for entry in use)})
    total, before = 0.0, 0.0
    for end in ends:
        middle = (before + end) / 2
        devices = ceil(_devices_at(plan, middle) / node) * node
        total += abs(devices - _devices_at(use, middle)) * (end - before)
        before = end
    return total


def _devices_at(course: Sequence[Occupancy], instant: float) -> int:
    for item, end in zip(course, accumulate(entry.seconds for entry in course), strict=True):
        if instant < end:
            return item.devices
    return 0


PHASES_REQUIREMENT = "DEM-002"
QUICK_TRAININGS, FULL_TRAININGS = 6, 40
TENTH = 0.1
PHASES: "tuple[documents.TrainingPhase, ...]" = ("warm_up", "fast_convergence", "stable_convergence")


@dataclass(frozen=True)
class PhaseDemands:
    """Trainings by phase, and each of their phases as a training of its own.

    Attributes:
        whole: Trainings with phases.
        alone: Phases on their own.
        names: Name of a phase's case among these, by case and number of the phase; absent where its batch does not
            divide, so that it is no layout of its own.
    """

    whole: DemandExchange
    alone: DemandExchange
    names: Mapping[tuple[str, int], str]


def observe_phases(episode: Episode) -> PhaseDemands:
    """Ask for trainings whose batch grows and whose sequences become longer, then for their phases on their own."""
    chance = episode.random
    count = FULL_TRAININGS if episode.settings.full else QUICK_TRAININGS
    machines = [hardware(chance, name) for name in names(chance, "h", 2)]
    cases = [_training(episode, name, number, machines) for number, name in enumerate(names(chance, "c", count))]
    apart: dict[tuple[str, int], documents.TrainingCase] = {}
    for training in cases:
        for number, phase in enumerate(training["phases"]):
            own = on_its_own(training, phase, f"{training['id']}-{number}")
            spread = own["strategy"]
            if spread["global_batch"] % (spread["data"] * spread["micro_batch"]) == 0:
                apart[training["id"], number] = own
    alone = list(apart.values())
    return PhaseDemands(
        ask_demands(episode, {"revision": revision(episode), "hardware": machines, "cases": cases}),
        ask_demands(
            episode,
            {"revision": revision(episode), "hardware": machines, "cases": chance.sample(alone, len(alone))},
        ),
        {place: own["id"] for place, own in apart.items()},
    )


def _training(
    episode: Episode, name: str, number: int, machines: "list[documents.TrainingHardware]"
) -> "documents.TrainingCase":
    """A training that begins with few sequences; its batch grows to many times that, then its sequences do.

    Replicas fill whole servers, so that servers can be given back and taken one by one.
    """
    chance = episode.random
    of = model(chance, ("plain", "grouped", "window")[number % 3])
    data, micro = chance.choice((8, 16, 32)), chance.choice((1, 2))
    tensor, pipeline = chance.choice(((8, 1), (8, 2), (4, 2), (2, 4)))
    most = data * micro * pipeline * chance.randint(2, 4)
    spread = strategy(
        chance, of, data=data, micro_batch=micro, tensor=tensor, pipeline=pipeline, global_batch=most, expert=1
    )
    few = chance.choice([size for size in (1, 2, 4) if size < data // 2])
    odd = micro * (data // 2) + (micro - 1)  # micro-batches are whole or not at all
    phases: list[documents.PlannedPhase] = [
        {"phase": PHASES[0], "steps": chance.randint(500, 5000), "global_batch": few * micro},
        {"phase": PHASES[0], "steps": chance.randint(500, 5000), "global_batch": odd},
        {"phase": PHASES[1], "steps": chance.randint(5000, 50_000)},
        {"phase": PHASES[2], "steps": chance.randint(500, 5000), "sequence": 4 * of["sequence"]},
    ]
    if number % 3 == 2:  # ends with less than a micro-batch
        phases.append({"phase": PHASES[2], "steps": chance.randint(50, 500), "global_batch": 1})
    return case(name, of, spread, chance.choice(machines)["id"], phases=phases)


def on_its_own(whole: "documents.TrainingCase", phase: "documents.PlannedPhase", name: str) -> "documents.TrainingCase":
    """A phase as a training: its batch and sequence, on as many replicas as have a micro-batch."""
    spread = whole["strategy"]
    batch = phase.get("global_batch", spread["global_batch"])
    replicas = max(1, min(spread["data"], batch // spread["micro_batch"]))
    of: documents.ModelStructure = {**whole["model"], "sequence": phase.get("sequence", whole["model"]["sequence"])}
    own: documents.ParallelStrategy = {**spread, "data": replicas, "global_batch": batch}
    return case(name, of, own, whole["hardware"])


def judge_phases(observation: PhaseDemands) -> Iterable[Finding]:
    """Claims about each phase, then about each training."""
    for entry in (observation.whole, observation.alone):
        if entry.amiss:
            yield holds(PHASES_REQUIREMENT, False, "a demand of every case, in their order", entry.amiss, entry.answer)
            return
    for training in observation.whole.body["cases"]:
        phases = observation.whole.demands[training["id"]].get("phases") or []
        order = [row["phase"] for row in phases]
        wanted = [phase["phase"] for phase in training["phases"]]
        yield _claim(observation, order == wanted, f"phases {wanted} of {training['id']}", order)
        if order == wanted:
            for number, (phase, row) in enumerate(zip(training["phases"], phases, strict=True)):
                yield from _phase(observation, training, phase, row, observation.names.get((training["id"], number)))
            yield _mismatch(observation, training, phases)


def _phase(
    observation: PhaseDemands,
    training: "documents.TrainingCase",
    phase: "documents.PlannedPhase",
    row: "documents.PhaseDemand",
    alone: str | None,
) -> Iterator[Finding]:
    own = on_its_own(training, phase, "")
    spread, of, steps = own["strategy"], own["model"], phase["steps"]
    what = f"{training['id']}, {phase['phase']} with {spread['global_batch']} sequences of {of['sequence']}"
    devices = spread["tensor"] * spread["pipeline"] * spread.get("context", 1) * spread["data"]
    yield _claim(observation, row["devices"] == devices, f"{what}: {devices} accelerators", row["devices"])
    work = steps * counted(of).work(spread["global_batch"] * of["sequence"])
    yield _claim(observation, near(row["work"], work), f"{what}: {work:.5g} FLOP", f"{row['work']:.5g}")
    lasts = steps * row["step_time"]
    yield _claim(observation, near(row["duration"], lasts), f"{what}: lasts {lasts:.5g} s", f"{row['duration']:.5g}")
    if alone is None:
        return
    single = observation.alone.demands[alone]
    sent = [flow["size"] for flow in single["traffic"]]
    time, memory = single["step_time"]["expected"], single["memory"]
    for name, stated, wanted in (("step_time", row["step_time"], time), ("memory", row["memory"], memory)):
        expected = f"{what}: {name} as on its own, {wanted:.5g}"
        yield _claim(observation, near(stated, wanted), expected, f"{stated:.5g}")
    least, most = max(sent, default=0.0), sum(sent)
    fine = least * 0.99 <= row["traffic"] <= most * 1.01
    expected = f"{what}: traffic of a step between {least:.5g} and {most:.5g} B, as on its own"
    yield _claim(observation, fine, expected, f"{row['traffic']:.5g}")


def _mismatch(
    observation: PhaseDemands, training: "documents.TrainingCase", phases: "list[documents.PhaseDemand]"
) -> Claim:
    """Accelerators held and of no use, or of use and not held: by the phases told, and where a job holds all."""
    planned = [Occupancy(row["devices"], row["duration"]) for row in phases]
    true = []
    for number, (phase, row) in enumerate(zip(training["phases"], phases, strict=True)):
        own = on_its_own(training, phase, "")["strategy"]
        alone = observation.names.get((training["id"], number))
        step = observation.alone.demands[alone]["step_time"]["expected"] if alone else row["step_time"]
        useful = own["tensor"] * own["pipeline"] * own.get("context", 1) * own["data"]
        true.append(Occupancy(useful, phase["steps"] * step))
    spread = training["strategy"]
    everything = spread["tensor"] * spread["pipeline"] * spread.get("context", 1) * spread["data"]
    without = in_vain([Occupancy(everything, entry.seconds) for entry in true], true, NODE)
    by_phase = in_vain(planned, true, NODE)
    expected = f"{training['id']}: by its phases at most a tenth of {without:.4g} device-seconds is held in vain"
    return _claim(observation, by_phase <= TENTH * without and without > 0, expected, f"{by_phase:.4g}")


def _claim(observation: PhaseDemands, met: bool, expected: str, observed: object) -> Claim:  # noqa: FBT001
    return holds(PHASES_REQUIREMENT, met, expected, observed, observation.whole.answer)


PHASES_CHECK = Check(
    "dem_phases",
    (PHASES_REQUIREMENT,),
    observe_phases,
    judge_phases,
    summary="What a training needs in each of its phases, and what is held in vain around their switches (DEM-002).",
)
