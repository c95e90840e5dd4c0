"""Parameters and work of a transformer, counted from the definitions of the standard.

Work is that of matrix products, 2·m·n·k each. A step is three times its forward pass; scores of attention are counted
in full, not halved for a causal mask; the look-up of an embedding is no work, the output layer is. Biases and the
scales of normalisations are left out. What is known by hand stands in the tests: GPT-3, Llama 3, Mixtral, DeepSeek-V3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Counted:
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


def counted(model: Document) -> Counted:
    """Count a model: JSON of the class ModelStructure; absent members are as the standard says."""
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
    return Counted(
        parameters=shared + sparse * experts * expert + table * (1 if model.get("tied", True) else 2),
        active=through + table,
        layer_work=2.0 * through,
        score_work=2.0 * scored * _seen(model, layers + ahead),
        output_work=2.0 * table * (1 + ahead),
    )


def _attention(model: Document, hidden: int, heads: int) -> tuple[int, int]:
    """Parameters of one layer's attention, and the width of queries and of values together as scores see them."""
    head = model.get("head_width", hidden // heads)
    latent = model.get("latent")
    if latent is None:
        keys = model.get("key_value_heads", heads) * head
        return hidden * (2 * heads * head + 2 * keys), 2 * heads * head
    rank, kept, rotary = latent["query_rank"], latent["value_rank"], latent["rotary_width"]
    queries = rank * (hidden + heads * (head + rotary))
    keys_and_values = hidden * (kept + rotary) + kept * heads * 2 * head
    return queries + keys_and_values + heads * head * hidden, heads * (2 * head + rotary)


def _expert_layers(model: Document) -> int:
    """Layers with experts: every so manieth, after the first dense ones."""
    if model.get("experts", 1) == 1:
        return 0
    return int((model["layers"] - model.get("dense_layers", 0)) // model.get("expert_frequency", 1))


def _seen(model: Document, layers: int) -> int:
    """Tokens that a token looks at, summed over layers; no mask takes any away."""
    sequence, window = model["sequence"], model.get("window", 0)
    windowed = layers // model.get("window_frequency", 2) if window else 0
    return int(windowed * min(window, sequence) + (layers - windowed) * sequence)


def devices(strategy: Document) -> int:
    """Accelerators of a strategy."""
    return int(strategy["data"] * strategy["tensor"] * strategy["pipeline"] * strategy.get("context", 1))
