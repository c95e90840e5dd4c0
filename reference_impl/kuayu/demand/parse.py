"""Models, strategies and hardware of a request in the law's own terms, and what is refused on the way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kuayu.demand.flop_counts import BYTES
from kuayu.demand.hardware import Hardware
from kuayu.demand.strategy import Outermost, Recompute, Sharding, Strategy
from kuayu.demand.structure import Adapter, LatentAttention, ModelStructure
from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

    TrainingRequest = documents.TrainingDemandRequest | documents.LayoutRequest

MAX_DEVICES = 2**53 - 1
"""Most devices that a document can state."""

NO_PRECISION = "devices do not have its number format"
NO_SIXTEEN = "devices state no number format of 16 bits or more"

_MODEL = {
    "key_value_heads": "key_value_heads",
    "head_width": "head_width",
    "feed_forward": "feed_forward",
    "gated": "gated",
    "tied": "tied",
    "dropout": "dropout",
    "experts": "experts",
    "experts_per_token": "experts_per_token",
    "nodes_per_token": "nodes_per_token",
    "expert_feed_forward": "expert_feed_forward",
    "shared_feed_forward": "shared_feed_forward",
    "expert_frequency": "moe_frequency",
    "dense_layers": "dense_layers",
    "window": "window",
    "window_frequency": "window_frequency",
    "windowed_layers": "windowed_layers",
    "further_tokens": "ahead",
}
"""Members of documents that may be absent, and what the law calls them."""

STRATEGY = {
    "data": "data",
    "tensor": "tensor",
    "pipeline": "pipeline",
    "virtual_stages": "virtual",
    "first_stage_layers": "first_layers",
    "last_stage_layers": "last_layers",
    "context": "context",
    "expert": "expert",
    "sequence_parallel": "sequence_parallel",
    "micro_batch": "micro_batch",
    "global_batch": "global_batch",
    "precision": "precision",
    "fused_attention": "fused_attention",
    "attention_speed": "attention_speed",
    "overlap_data": "overlap_data",
    "overlap_tensor": "overlap_tensor",
    "overlap_expert": "overlap_expert",
    "dispatch_precision": "dispatch_precision",
    "scattered": "scattered",
    "gradient_size": "gradient_bytes",
    "exchanged_size": "exchanged_bytes",
}
"""Members that are the same on both sides."""

BIDIRECTIONAL = "bidirectional"
SCHEDULES = ("one_forward_one_backward", BIDIRECTIONAL)
"""Orders in which stages work through micro-batches."""

_SIXTEEN_BITS = ("bf16", "fp16")
_WIDER = ("tf32", "fp32", "fp64")


@dataclass(frozen=True)
class Training:
    """A model, how it is spread, and on which devices.

    Attributes:
        structure: The model.
        strategy: Its layout.
        hardware: So many devices as the layout takes; they have its number format.
        missing: Why they do not have it in truth; empty where they do.
    """

    structure: ModelStructure
    strategy: Strategy
    hardware: Hardware
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredRun:
    """A run with the time of its step.

    Attributes:
        training: What ran.
        source: Who measured it.
        seconds: Time of a step.
        position: Which run of the request it is.
    """

    training: Training
    source: str
    seconds: float
    position: int


def check(request: "TrainingRequest") -> None:
    """Refuse a request for demands or layouts that does not hold together.

    Raises:
        RepeatedName: Hardware or cases share a name.
        UnknownName: A case, a run or a request for layouts names hardware that the request does not hold.
        Impossible: A model, a strategy or hardware contradicts itself.
    """
    names = [device["id"] for device in request["hardware"]]
    cases = [case["id"] for case in request["cases"]] if "cases" in request else []
    refuse(RepeatedName, [*repeated("/hardware", names), *repeated("/cases", cases)])
    known = set(names)
    refuse(
        UnknownName,
        [(place, f"{name} is no hardware of the request") for place, name in _unknown_hardware(request, known)],
    )
    refuse(Impossible, _impossible(request))


def structure_of(model: "documents.ModelStructure", sequence: int | None = None) -> ModelStructure:
    """A model of a document, perhaps with sequences of another length."""
    members: Mapping[str, Any] = model
    given = {ours: _whole_number(members[theirs]) for theirs, ours in _MODEL.items() if theirs in members}
    if "latent" in model:
        ranks: Mapping[str, Any] = model["latent"]
        given["latent"] = LatentAttention(**{"query_rank": 0} | {name: int(rank) for name, rank in ranks.items()})
    if "adapter" in model:
        adapter = model["adapter"]
        given["adapter"] = Adapter(
            int(adapter["rank"]),
            attention=adapter.get("attention", True),
            feed_forward=adapter.get("feed_forward", True),
            frozen_bytes=float(adapter.get("frozen_size", 2.0)),
        )
    return ModelStructure(
        layers=int(model["layers"]),
        hidden=int(model["hidden"]),
        heads=int(model["heads"]),
        sequence=int(sequence or model["sequence"]),
        vocabulary=int(model["vocabulary"]),
        **given,
    )


def strategy_of(strategy: "documents.ParallelStrategy") -> Strategy:
    """A strategy of a document."""
    members: Mapping[str, Any] = strategy
    given = {ours: _whole_number(members[theirs]) for theirs, ours in STRATEGY.items() if theirs in members}
    return Strategy(
        sharding=Sharding(int(strategy.get("sharding", 0))),
        recompute=Recompute[strategy.get("recomputation", "none").upper()],
        outermost=Outermost(strategy.get("outermost", "pipeline")),
        bidirectional=strategy.get("pipeline_schedule") == BIDIRECTIONAL,
        **given,
    )


def hardware_of(hardware: "documents.TrainingHardware") -> Hardware:
    """Devices of a document; so many that only a strategy can say how many there are."""
    rates: Mapping[str, Any] = hardware["peak_matrix_throughput"]
    peak = {name: rate for name, rate in rates.items() if rate > 0 and name in BYTES}
    sustained: Mapping[str, Any] = hardware.get("sustained_matrix_throughput", {})
    return Hardware(
        hardware["id"],
        0,
        int(hardware["devices_per_node"]),
        peak,
        hardware["accelerator_memory_capacity"],
        hardware["accelerator_memory_bandwidth"],
        hardware["node_bandwidth"],
        hardware["domain_bandwidth"],
        {name: sustained[name] / rate for name, rate in peak.items() if sustained.get(name, 0) > 0},
        across=hardware.get("federation_bandwidth", 0.0),
        per_domain=int(hardware.get("devices_per_domain", 0)),
        units=int(hardware.get("multiprocessors", Hardware.units)),
    )


def training_of(structure: ModelStructure, strategy: Strategy, hardware: Hardware) -> Training:
    """What is to be predicted. A number format that devices lack is taken to be as quick as their 16-bit one."""
    peak, reached, missing = dict(hardware.peak), dict(hardware.reached), []
    if not any(name in peak for name in _SIXTEEN_BITS):
        wider = [name for name in _WIDER if name in peak]
        instead = wider[0] if wider else min(peak, key=lambda name: peak[name])
        _stand_in(peak, reached, "bf16", instead)
        missing += [] if wider else [NO_SIXTEEN]
    if strategy.precision not in hardware.peak:
        missing += [NO_PRECISION]
        _stand_in(peak, reached, strategy.precision, "bf16" if "bf16" in peak else "fp16")
    whole = replace(hardware, devices=strategy.devices, peak=peak, reached=reached)
    return Training(structure, strategy, whole, tuple(missing))


def measured_of(request: "TrainingRequest", kinds: Mapping[str, Hardware]) -> list[MeasuredRun]:
    """Runs of a request that tell the time of a step."""
    return [
        MeasuredRun(
            training_of(structure_of(run["model"]), strategy_of(run["strategy"]), kinds[run["hardware"]]),
            run["source"],
            run["step_time"],
            position,
        )
        for position, run in enumerate(request.get("runs", ()))
        if "step_time" in run
    ]


def _whole_number(value: Any) -> Any:
    """A number that is whole as one, however it was written; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _stand_in(peak: dict[str, float], reached: dict[str, float], name: str, instead: str) -> None:
    if name in peak:
        return
    peak[name] = peak[instead]
    if instead in reached:
        reached[name] = reached[instead]


def _unknown_hardware(request: "TrainingRequest", known: set[str]) -> Iterator[Complaint]:
    """Where hardware is named that is not there."""
    for place, entry in _trainings(request):
        if entry["hardware"] not in known:
            yield f"{place}/hardware", entry["hardware"]
    if "kind" in request and request["kind"] not in known:
        yield "/kind", request["kind"]


def _trainings(request: "TrainingRequest") -> "Iterator[tuple[str, documents.MeasuredRun | documents.TrainingCase]]":
    """Each run and case, with where it stands."""
    for position, run in enumerate(request.get("runs") or ()):
        yield f"/runs/{position}", run
    if "cases" in request:
        for position, case in enumerate(request["cases"]):
            yield f"/cases/{position}", case


def _impossible(request: "TrainingRequest") -> Iterator[Complaint]:
    for position, device in enumerate(request["hardware"]):
        rates: Mapping[str, Any] = device["peak_matrix_throughput"]
        if not any(rate > 0 and name in BYTES for name, rate in rates.items()):
            yield f"/hardware/{position}/peak_matrix_throughput", "it states no throughput"
    if "model" in request:
        yield from _impossible_model(request["model"], "/model")
        if request.get("precision", "bf16") not in BYTES:
            yield "/precision", f"{request['precision']} is no number format of training"
    for place, entry in _trainings(request):
        yield from _impossible_model(entry["model"], f"{place}/model")
        yield from _impossible_strategy(entry["strategy"], f"{place}/strategy")


def _impossible_model(model: "documents.ModelStructure", place: str) -> Iterator[Complaint]:
    experts, per_token = model.get("experts", 1), model.get("experts_per_token", 1)
    if per_token > experts:
        yield f"{place}/experts_per_token", f"a token cannot go to {per_token} of {experts} experts"
    if "adapter" in model:
        yield from _impossible_adapter(model["adapter"], model["hidden"], f"{place}/adapter")
    groups = model.get("key_value_heads", model["heads"])
    if groups > model["heads"]:
        yield f"{place}/key_value_heads", f"there are only {model['heads']} heads to share {groups} of keys and values"
    elif model["heads"] % groups:
        yield f"{place}/key_value_heads", f"{groups} heads of keys and values do not divide {model['heads']} heads"
    for name, layers in (
        ("dense_layers", model.get("dense_layers", 0)),
        ("windowed_layers", model.get("windowed_layers", 0)),
    ):
        if layers > model["layers"]:
            yield f"{place}/{name}", f"there are only {model['layers']} layers"
    if "windowed_layers" in model and "window_frequency" in model:
        yield f"{place}/windowed_layers", "either it or window_frequency says which layers are windowed"
    if model.get("windowed_layers") and not model.get("window"):
        yield f"{place}/windowed_layers", "without a window no layer is windowed"
    yield from _impossible_widths(model, place)


def _impossible_widths(model: "documents.ModelStructure", place: str) -> Iterator[Complaint]:
    heads, hidden = model["heads"], model["hidden"]
    if "head_width" not in model and hidden % heads:
        yield f"{place}/heads", f"they do not share a width of {hidden} evenly; state head_width if they need not"
    ranks: Mapping[str, Any] = model.get("latent", {})
    for name in ("query_rank", "value_rank"):
        if ranks.get(name, 0) > hidden:
            yield f"{place}/latent/{name}", f"it is more than the width of {hidden}, and compresses nothing"


def _impossible_adapter(adapter: "documents.Adapter", hidden: int, place: str) -> Iterator[Complaint]:
    if adapter["rank"] > hidden:
        yield f"{place}/rank", f"it is more than the width of {hidden}, and no low rank"
    if not (adapter.get("attention", True) or adapter.get("feed_forward", True)):
        yield place, "no product has one, so that nothing is trained"


def _impossible_strategy(strategy: "documents.ParallelStrategy", place: str) -> Iterator[Complaint]:
    if strategy.get("outermost", "pipeline") not in {dimension.value for dimension in Outermost}:
        yield f"{place}/outermost", "the outermost dimension is pipeline or data"
    if strategy.get("recomputation", "none").upper() not in Recompute.__members__:
        yield f"{place}/recomputation", f"{strategy['recomputation']} is no recomputation of this version"
    for name in ("precision", "dispatch_precision"):
        if strategy.get(name, "bf16") not in BYTES:
            yield f"{place}/{name}", f"{strategy[name]} is no number format of training"
    if strategy.get("pipeline_schedule", SCHEDULES[0]) not in SCHEDULES:
        yield f"{place}/pipeline_schedule", f"{strategy['pipeline_schedule']} is no schedule of this version"
    for name in ("first_stage_layers", "last_stage_layers"):
        if name in strategy and strategy["pipeline"] == 1:
            yield f"{place}/{name}", "with one stage it has all layers"
    devices = strategy["data"] * strategy["tensor"] * strategy["pipeline"] * strategy.get("context", 1)
    if devices > MAX_DEVICES:
        yield place, f"{devices} accelerators are more than can be told"
