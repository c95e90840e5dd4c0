"""Models, strategies and hardware that the checks of demand make up, and asking for demands of them.

1. Parameters and work of a transformer, counted from the definitions of the standard.

   Work is that of matrix products, 2·m·n·k each. A step is three times its forward pass; scores of attention are
   counted in full, not halved for a causal mask; the look-up of an embedding is no work, the output layer is. Biases
   and the scales of normalisations are left out. What is known by hand stands in the tests: GPT-3, Llama 3, Mixtral,
   DeepSeek-V3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.decisions import Json, named_revision
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True)
class ModelCounts:
    """What a model holds, and what a token asks of it.

    Attributes:
        parameters: All of them.
        active: Those that a token is multiplied by; the output layer is among them, a look-up is not.
        layer_work: FLOP of a token's forward pass through all layers, without scores.
        score_work: FLOP of its scores of attention in all layers.
        output_work: FLOP of its output layer, once more for each further token that is predicted.
    """

    parameters: int
    active: int
    layer_work: float
    score_work: float
    output_work: float

    @property
    def forward(self) -> float:
        """FLOP of a token's forward pass."""
        return self.layer_work + self.score_work + self.output_work

    def work(self, tokens: float) -> float:
        """FLOP of forward and backward passes of so many tokens, everything once."""
        return 3.0 * tokens * self.forward

    def executed(self, tokens: float, recomputation: str) -> float:
        """FLOP with what is computed anew: all layers where that is ``full``, their scores where ``selective``."""
        again = {"full": self.layer_work + self.score_work, "selective": self.score_work}.get(recomputation, 0.0)
        return self.work(tokens) + tokens * again


def counted(model: "documents.ModelStructure") -> ModelCounts:
    """Count a model; absent members are as the standard says."""
    hidden, heads, layers = model["hidden"], model["heads"], model["layers"]
    ahead = model.get("further_tokens", 0)
    matrices = 3 if model.get("gated") else 2
    wide = model.get("feed_forward", 4 * hidden)
    experts, met = model.get("experts", 1), model.get("experts_per_token", 1)
    attention, scored = _attention(model, hidden, heads)
    sparse = _expert_layers(model) + (ahead if experts > 1 else 0)
    dense = layers + ahead - sparse
    expert = matrices * hidden * model.get("expert_feed_forward", wide)
    common = matrices * hidden * model.get("shared_feed_forward", 0) + hidden * experts
    table = model["vocabulary"] * hidden
    shared = (layers + ahead) * attention + dense * matrices * hidden * wide + sparse * common
    through = shared + sparse * met * expert
    return ModelCounts(
        parameters=shared + sparse * experts * expert + table * (1 if model.get("tied", True) else 2),
        active=through + table,
        layer_work=2.0 * through,
        score_work=2.0 * scored * _seen(model, layers + ahead),
        output_work=2.0 * table * (1 + ahead),
    )


def _attention(model: "documents.ModelStructure", hidden: int, heads: int) -> tuple[int, int]:
    """Parameters of one layer's attention, and the width of queries and of values together as scores see them."""
    head = model.get("head_width", hidden // heads)
    latent = model.get("latent")
    if latent is None:
        keys = model.get("key_value_heads", heads) * head
        return hidden * (2 * heads * head + 2 * keys), 2 * heads * head
    rank, compressed, rotary = latent["query_rank"], latent["value_rank"], latent["rotary_width"]
    queries = rank * (hidden + heads * (head + rotary))
    keys_and_values = hidden * (compressed + rotary) + compressed * heads * 2 * head
    return queries + keys_and_values + heads * head * hidden, heads * (2 * head + rotary)


def _expert_layers(model: "documents.ModelStructure") -> int:
    """Layers with experts: every so manieth, after the first dense ones."""
    if model.get("experts", 1) == 1:
        return 0
    return int((model["layers"] - model.get("dense_layers", 0)) // model.get("expert_frequency", 1))


def _seen(model: "documents.ModelStructure", layers: int) -> int:
    """Tokens that a token looks at, summed over layers; no mask takes any away."""
    sequence, window = model["sequence"], model.get("window", 0)
    windowed = layers // model.get("window_frequency", 2) if window else 0
    return int(windowed * min(window, sequence) + (layers - windowed) * sequence)


def devices(strategy: "documents.ParallelStrategy") -> int:
    """Accelerators of a strategy."""
    return int(strategy["data"] * strategy["tensor"] * strategy["pipeline"] * strategy.get("context", 1))


DEMANDS, LAYOUTS, SIZES = "/v1/training-demands", "/v1/layouts", "/v1/task-sizes"
NODE = 8
MAX_WHOLE, MAX_NUMBER = 2**53, 1e300
GIGA = 1e9


@dataclass(frozen=True)
class DemandExchange:
    """A question for demands and its answer.

    Attributes:
        body: What was asked.
        answer: The exchange.
        demands: Rows of the answer by case.
    """

    body: "documents.TrainingDemandRequest"
    answer: Answer
    demands: "Mapping[str, documents.TrainingDemand]"

    @property
    def amiss(self) -> str:
        """What is wrong with the rows: cases that are missing, too many, or in another order; else empty."""
        cases = [row["case"] for row in self.answer.json["demands"]]
        wanted = [case["id"] for case in self.body["cases"]]
        return "" if cases == wanted else f"demands of {shown(cases)} where {shown(wanted)} were asked for"


def revision(episode: Episode) -> "documents.Revision":
    """Revision that a request was made from."""
    return named_revision(episode, "demand")


def ask_demands(episode: Episode, body: "documents.TrainingDemandRequest") -> DemandExchange:
    """Ask for demands that nothing stands against.

    Raises:
        SetUpFailure: The answer is no report of demands.
    """
    answer = episode.set_up("POST", DEMANDS, body)
    document = report(answer, "TrainingDemandReport")
    if document is None:
        raise SetUpFailure("the answer is not a valid report of training demands", answer)
    return DemandExchange(body, answer, {row["case"]: row for row in document["demands"]})


def report(answer: Answer, name: str) -> Any:
    """The report that an answer holds, of a class; None where it is none, or has figures beyond all arithmetic."""
    if answer.status != 200 or not schema.is_valid(name, answer.json, reader=True):
        return None
    try:
        return _finite(answer.json)
    except OverflowError:
        return None


def _finite(value: Any) -> Any:
    """The same with whole numbers beyond a double's as doubles; raises OverflowError beyond LARGEST."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not abs(value) <= MAX_NUMBER:
        raise OverflowError
    return float(value) if abs(value) > MAX_WHOLE else value


def names(chance: Random, letter: str, count: int) -> list[str]:
    """Names that say nothing, all different."""
    return [f"{letter}{number}" for number in chance.sample(range(100_000, 1_000_000), count)]


def hardware(chance: Random, name: str, *, memory: float | None = None) -> "documents.TrainingHardware":
    """Servers of eight made-up accelerators."""
    peak = chance.uniform(1.5e14, 2e15)
    return {
        "id": name,
        "peak_matrix_throughput": {"bf16": peak, "fp16": peak, "fp8": 2 * peak},
        "sustained_matrix_throughput": {"bf16": peak * chance.uniform(0.7, 0.9)},
        "accelerator_memory_capacity": memory or chance.choice((32, 64, 80, 141, 192)) * GIGA,
        "accelerator_memory_bandwidth": chance.uniform(1e12, 6e12),
        "multiprocessors": chance.choice((80, 108, 132)),
        "devices_per_node": NODE,
        "node_bandwidth": chance.uniform(1e11, 9e11),
        "domain_bandwidth": chance.uniform(1.2e10, 1e11),
    }


def model(chance: Random, kind: str) -> "documents.ModelStructure":
    """A model whose sizes are whole by every reading, and divide by what strategies ask for.

    Args:
        chance: Where sizes come from.
        kind: ``plain``, ``grouped`` (fewer heads of keys, a gate), ``window``, ``experts``, ``sparse`` (experts every
            second layer, shared ones too), ``latent`` (compressed attention, experts, first layers dense) or ``ahead``
            (further tokens).
    """
    heads = 8 * chance.randint(2, 12)
    structure = {
        "layers": 8 * chance.randint(2, 9),
        "hidden": 128 * heads,
        "heads": heads,
        "sequence": 2048 * chance.choice((1, 2, 4)),
        "vocabulary": 1024 * chance.randint(32, 192),
    }
    return cast("documents.ModelStructure", structure | _PARTS[kind](chance, heads))


KINDS = ("plain", "grouped", "window", "experts", "sparse", "latent", "ahead")
_PARTS: Mapping[str, Callable[[Random, int], Json]] = {
    "plain": lambda chance, _heads: {"dropout": chance.random() < 0.5},
    "grouped": lambda chance, heads: {
        "key_value_heads": 8,
        "gated": True,
        "feed_forward": 1024 * chance.randint(6, 32),
        "head_width": chance.choice((64, 128, 160)),
        "tied": heads % 16 == 0,
    },
    "window": lambda chance, _heads: {
        "window": 256 * chance.randint(1, 4),
        "window_frequency": chance.choice((2, 4)),
        "tied": False,
    },
    "experts": lambda chance, _heads: {
        "experts": 8 * chance.choice((1, 2, 4)),
        "experts_per_token": chance.choice((1, 2, 4)),
        "gated": True,
        "tied": False,
        "key_value_heads": 8,
    },
    "sparse": lambda chance, _heads: {
        "experts": 16,
        "experts_per_token": 2,
        "expert_frequency": 2,
        "expert_feed_forward": 512 * chance.randint(2, 12),
        "shared_feed_forward": 512 * chance.randint(1, 6),
    },
    "latent": lambda chance, _heads: {
        "latent": {
            "query_rank": 256 * chance.randint(3, 8),
            "value_rank": 256 * chance.randint(1, 3),
            "rotary_width": chance.choice((32, 64)),
        },
        "head_width": 128,
        "gated": True,
        "tied": False,
        "experts": 32,
        "experts_per_token": 4,
        "dense_layers": chance.randint(1, 4),
        "feed_forward": 1024 * chance.randint(8, 20),
        "expert_feed_forward": 512 * chance.randint(2, 6),
        "shared_feed_forward": 512 * chance.randint(2, 6),
    },
    "ahead": lambda chance, _heads: {"layers": 64, "further_tokens": 1, "gated": chance.random() < 0.5},
}


def strategy(chance: Random, of: "documents.ModelStructure", **members: Any) -> "documents.ParallelStrategy":
    """A strategy that divides everything there is to divide; members that are named stay as they are."""
    pipeline = members.get("pipeline", chance.choice((1, 2, 4)))
    data, micro = members.get("data", chance.choice((2, 4, 8))), members.get("micro_batch", chance.choice((1, 2)))
    plan = {
        "data": data,
        "tensor": chance.choice((1, 2, 4, 8)),
        "pipeline": pipeline,
        "micro_batch": micro,
        "global_batch": data * micro * pipeline * chance.randint(2, 8),
        "expert": chance.choice((1, 2)) if of.get("experts", 1) > 1 else 1,
        "sharding": chance.choice((0, 1)),
        "sequence_parallel": True,
        "recomputation": chance.choice(("none", "full")),
    }
    return cast("documents.ParallelStrategy", plan | members)


def case(
    name: str, of: "documents.ModelStructure", spread: "documents.ParallelStrategy", kind: str, **members: Any
) -> "documents.TrainingCase":
    """A case."""
    body = {"id": name, "model": dict(of), "strategy": dict(spread), "hardware": kind, **members}
    return cast("documents.TrainingCase", body)


def shown(entries: Sequence[Any], most: int = 5) -> str:
    """The first few for people."""
    text = ", ".join(map(str, entries[:most]))
    return f"{text}, …" if len(entries) > most else text or "none"


def part(demand: "documents.TrainingDemand", name: str) -> float:
    """Bytes of a part of memory; zero where it is not told."""
    return float(sum(row["size"] for row in demand["memory_parts"] if row["part"] == name))
