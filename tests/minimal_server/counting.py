"""What a model holds and asks of each token, counted from its structure, and what contradicts itself in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minimal_server.core import Json
from minimal_server.naming import Naming, Wrong


@dataclass(frozen=True)
class Counts:
    """Parameters of one layer of each kind, and of the rest; scales and biases are left out.

    Attributes:
        layers: Layers, with those for further tokens.
        sparse: How many of them have experts.
        attention: Parameters of a layer's attention.
        dense: Of the feed-forward part of a layer without experts.
        common: Of what every token passes in a layer with experts: its router and shared experts.
        expert: Of one expert.
        experts: Experts of a layer.
        met: Experts that a token is sent to.
        table: Of the embedding, or of the output layer.
        tables: How many of these there are.
        outputs: How often the output layer is passed.
        scores: Numbers that scores of attention multiply for a token, in all layers.
    """

    layers: int
    sparse: int
    attention: int
    dense: int
    common: int
    expert: int
    experts: int
    met: int
    table: int
    tables: int
    outputs: int
    scores: int

    @property
    def in_common(self) -> int:
        """Parameters of all layers without experts."""
        return self.layers * self.attention + (self.layers - self.sparse) * self.dense + self.sparse * self.common

    @property
    def of_experts(self) -> int:
        """Parameters of all experts."""
        return self.sparse * self.experts * self.expert

    @property
    def passed(self) -> int:
        """Parameters of layers that a token is multiplied by."""
        return self.in_common + self.sparse * self.met * self.expert


class Counting(Naming):
    """Counts by the definitions of the standard."""

    def counts(self, model: Json) -> Counts:
        """Count a model."""
        hidden, matrices = model["hidden"], 3 if model.get("gated") else 2
        experts, ahead = model.get("experts", 1), model.get("further_tokens", 0)
        wide = model.get("feed_forward", 4 * hidden)
        layers = model["layers"] + ahead
        return Counts(
            layers=layers,
            sparse=self.expert_layers(model),
            attention=self.attention(model),
            dense=matrices * hidden * wide,
            common=matrices * hidden * model.get("shared_feed_forward", 0) + hidden * experts,
            expert=matrices * hidden * model.get("expert_feed_forward", wide),
            experts=experts,
            met=model.get("experts_per_token", 1),
            table=model["vocabulary"] * hidden,
            tables=1 if model.get("tied", True) else 2,
            outputs=1 + ahead,
            scores=self.score_width(model) * self.seen(model, layers),
        )

    def expert_layers(self, model: Json) -> int:
        """Layers with experts."""
        if model.get("experts", 1) == 1:
            return 0
        sparse = (model["layers"] - model.get("dense_layers", 0)) // model.get("expert_frequency", 1)
        return int(max(sparse, 0) + model.get("further_tokens", 0))

    def head_width(self, model: Json) -> int:
        """Width of a head."""
        return int(model.get("head_width", max(1, model["hidden"] // model["heads"])))

    def key_width(self, model: Json) -> int:
        """Width of the keys of a layer, and of its values."""
        heads: int = model.get("key_value_heads") or model["heads"]
        return heads * self.head_width(model)

    def attention(self, model: Json) -> int:
        """Parameters of a layer's attention."""
        hidden, wide = model["hidden"], model["heads"] * self.head_width(model)
        if "latent" not in model:
            return int(2 * hidden * (wide + self.key_width(model)))
        latent: Json = model["latent"]
        turned = latent["rotary_width"]
        queries = latent["query_rank"] * (hidden + wide + model["heads"] * turned)
        return int(queries + hidden * (latent["value_rank"] + turned) + 2 * latent["value_rank"] * wide + wide * hidden)

    def score_width(self, model: Json) -> int:
        """Numbers that a token multiplies for each token that it looks at: with its keys, and with its values."""
        turned = model["latent"]["rotary_width"] if "latent" in model else 0
        return int(model["heads"] * (2 * self.head_width(model) + turned))

    def seen(self, model: Json, layers: int) -> int:
        """Tokens that a token looks at in all layers, masked or not."""
        sequence, window = model["sequence"], model.get("window", 0)
        windowed = layers // model.get("window_frequency", 2) if window else 0
        return int(windowed * min(window, sequence) + (layers - windowed) * sequence)

    def parameters(self, counts: Counts) -> int:
        """All parameters."""
        return counts.in_common + counts.of_experts + counts.tables * counts.table

    def active_parameters(self, counts: Counts) -> int:
        """Parameters that a token is multiplied by; looking up an embedding is no product."""
        return counts.passed + counts.table

    def work(self, counts: Counts, tokens: float) -> float:
        """FLOP of so many tokens forward and backward, everything once."""
        return 3 * tokens * 2 * (counts.passed + counts.scores + counts.outputs * counts.table)

    def done_again(self, counts: Counts, tokens: float, recomputation: str) -> float:
        """FLOP that is computed anew."""
        again = {"full": counts.passed + counts.scores, "selective": counts.scores}.get(recomputation, 0)
        return 2 * tokens * again

    def check_demand(self, body: Json) -> None:
        """A request about training names nothing twice, nothing that it does not hold, and no model that cannot be."""
        wrong = [*self.twice("/hardware", body["hardware"], "id"), *self.twice("/cases", body.get("cases", ()), "id")]
        self.refuse_if("invalid-body", "names are given twice", wrong)
        models = [(f"/{member}/{number}/model", row["model"]) for member, number, row in self.trainings(body)]
        models += [("/model", body["model"])] if "model" in body else []
        self.refuse_if("invalid-body", "a model contradicts itself", self.impossible(models))
        held = {row["id"] for row in body["hardware"]}
        named = [(f"/{member}/{number}/hardware", row["hardware"]) for member, number, row in self.trainings(body)]
        named += [("/kind", body["kind"])] if "kind" in body else []
        unknown = [wrong for place, name in named for wrong in self.unknown(place, name, held)]
        self.refuse_if("unknown-reference", "names are not in the request", unknown)

    def trainings(self, body: Json) -> Iterator[tuple[str, int, Json]]:
        """Rows that have a model and hardware: the member that holds them, their number, the row."""
        for member in ("runs", "cases"):
            for number, row in enumerate(body.get(member, ())):
                yield member, number, row

    def impossible(self, models: Iterable[tuple[str, Json]]) -> Iterator[Wrong]:
        """Models whose tokens go to more experts than there are."""
        for place, model in models:
            if model.get("experts_per_token", 1) > model.get("experts", 1):
                yield f"{place}/experts_per_token", "there are not so many experts"
