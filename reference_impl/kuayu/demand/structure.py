"""A transformer as numbers: what its layers are made of, and how many parameters that is.

Widths are counted in elements. Counts of parameters are doubles, since numpy's whole numbers end at 2⁶³, and leave out
biases and the scales of normalisation: together below one in a thousand for every model of a thousand million
parameters or more.
"""

from dataclasses import dataclass

import numpy as np

SMALL_SHAPES = (
    (1.3e8, 12),
    (7.6e8, 24),
    (2.7e9, 32),
    (6.7e9, 32),
    (1.3e10, 40),
    (6.5e10, 80),
    (1.75e11, 96),
    (1e12, 128),
)
"""Parameters and layers of well-known dense models (GPT-3, table 2.1 of arXiv:2005.14165; LLaMA, table 2 of
arXiv:2302.13971; 1 T: table 1 of arXiv:2104.04473)."""


@dataclass(frozen=True)
class LatentAttention:
    """Attention with compressed queries, keys and values (DeepSeek-V2, arXiv:2405.04434).

    Attributes:
        query_rank: Width of compressed queries; 0 where queries are not compressed, as in DeepSeek-V2-Lite.
        value_rank: Width of compressed keys and values.
        rotary_width: Width of the part of a key that carries the position, shared by all heads.
    """

    query_rank: int
    value_rank: int
    rotary_width: int


@dataclass(frozen=True)
class Adapter:
    """Low-rank matrices beside frozen weights, which alone are trained (LoRA, arXiv:2106.09685).

    Attributes:
        rank: Their rank.
        attention: The products of attention have them.
        feed_forward: So do those of the feed-forward part, each expert its own.
        frozen_bytes: Bytes of a frozen weight (QLoRA, arXiv:2305.14314: a half).
    """

    rank: int
    attention: bool = True
    feed_forward: bool = True
    frozen_bytes: float = 2.0


@dataclass(frozen=True)
class ModelStructure:
    """A decoder of equal layers, dense or with experts.

    Where many go through the law together, sizes are columns, N each, and so is what follows from them.

    Attributes:
        layers: Number of layers.
        hidden: Width of the residual stream.
        heads: Attention heads.
        sequence: Tokens of a sequence.
        vocabulary: Rows of the embedding.
        key_value_heads: Heads of keys and values; as many as heads where absent.
        head_width: Width of a head; hidden ÷ heads where absent.
        feed_forward: Width of the feed-forward part of a dense layer; 4 × hidden where absent.
        gated: The feed-forward part has a gate (three matrices instead of two).
        tied: The output layer shares the embedding's parameters.
        dropout: Dropout with its masks, as in models up to 2022.
        experts: Experts of a layer; 1 in a dense model.
        experts_per_token: Experts that each token goes to.
        nodes_per_token: Nodes that these lie on at most (arXiv:2412.19437, section 2.1.2); 0: any.
        expert_feed_forward: Width of one expert.
        shared_feed_forward: Width of all experts together that every token goes to.
        moe_frequency: Every how manieth layer has experts.
        dense_layers: First layers that have none in any case.
        window: Tokens that a head looks back over, in every `window_frequency`-th layer; 0: all of them.
        window_frequency: Every how manieth layer has that window.
        windowed_layers: How many layers have it, where the frequency does not say that (Gemma 3: five of six,
            arXiv:2503.19786); -1 where it does.
        latent: Compressed attention, if any.
        adapter: What is trained in place of the weights, if anything.
        ahead: Further tokens predicted, each by a layer of its own and the output layer once more.
    """

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    key_value_heads: int = 0
    head_width: int = 0
    feed_forward: int = 0
    gated: bool = False
    tied: bool = True
    dropout: bool = False
    experts: int = 1
    experts_per_token: int = 1
    nodes_per_token: int = 0
    expert_feed_forward: int = 0
    shared_feed_forward: int = 0
    moe_frequency: int = 1
    dense_layers: int = 0
    window: int = 0
    window_frequency: int = 2
    windowed_layers: int = -1
    latent: LatentAttention | None = None
    adapter: Adapter | None = None
    ahead: int = 0

    def __post_init__(self) -> None:
        """Fill in what follows, and refuse what is no model.

        Raises:
            ValueError: If a size is not positive, heads of keys and values do not divide heads, or tokens go to more
                experts than there are.
        """
        sizes = (self.layers, self.hidden, self.heads, self.sequence, self.vocabulary, self.experts)
        if min(*sizes, self.experts_per_token, self.moe_frequency, self.window_frequency) < 1:
            raise ValueError("every size of a model is at least 1")
        if self.key_value_heads and self.heads % self.key_value_heads:
            raise ValueError(f"{self.key_value_heads} heads of keys and values do not divide {self.heads} heads")
        if self.experts_per_token > self.experts:
            raise ValueError(f"a token cannot go to {self.experts_per_token} of {self.experts} experts")
        object.__setattr__(self, "key_value_heads", self.key_value_heads or self.heads)
        object.__setattr__(self, "head_width", self.head_width or self.hidden // self.heads)
        object.__setattr__(self, "feed_forward", self.feed_forward or 4 * self.hidden)
        object.__setattr__(self, "expert_feed_forward", self.expert_feed_forward or self.feed_forward)

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward part."""
        return 3 if self.gated else 2

    @property
    def moe_layers(self) -> int:
        """Layers with experts, those of further tokens among them."""
        return (self.experts > 1) * ((self.layers - self.dense_layers) // self.moe_frequency + self.ahead)

    @property
    def all_layers(self) -> int:
        """Layers, those of further tokens among them."""
        return self.layers + self.ahead

    @property
    def query_width(self) -> int:
        """Width of all queries together, as the scores see them."""
        return self.heads * (self.head_width + (self.latent.rotary_width if self.latent else 0))

    @property
    def key_value_width(self) -> int:
        """Width of the keys (or the values) of all heads together."""
        return self.key_value_heads * self.head_width

    @property
    def value_width(self) -> int:
        """Width of what attention puts out."""
        return self.heads * self.head_width

    @property
    def attention_parameters(self) -> float:
        """Parameters of one layer's attention."""
        out = 1.0 * self.value_width * self.hidden
        if self.latent is None:
            return self.hidden * (self.value_width + 2 * self.key_value_width) + out
        rank = self.latent.query_rank
        queries = rank * (self.hidden + self.query_width) + (rank == 0) * self.hidden * self.query_width
        down = self.hidden * (self.latent.value_rank + self.latent.rotary_width)
        return queries + down + 2 * self.latent.value_rank * self.value_width + out

    @property
    def up_parameters(self) -> float:
        """Those of its up-projections from compressed queries, keys and values; none where nothing is compressed."""
        if self.latent is None:
            return 0.0
        return self.latent.query_rank * self.query_width + 2.0 * self.latent.value_rank * self.value_width

    @property
    def dense_parameters(self) -> float:
        """Parameters of one dense layer's feed-forward part."""
        return 1.0 * self.matrices * self.hidden * self.feed_forward

    @property
    def expert_parameters(self) -> float:
        """Parameters of one expert."""
        return 1.0 * self.matrices * self.hidden * self.expert_feed_forward

    @property
    def shared_parameters(self) -> float:
        """Parameters of a layer with experts that every token passes: shared experts and the router."""
        return 1.0 * self.matrices * self.hidden * self.shared_feed_forward + self.hidden * self.experts

    @property
    def embedding_parameters(self) -> float:
        """Parameters of the embedding, and again of the output layer where it has its own."""
        return 1.0 * self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> float:
        """All parameters."""
        dense = (self.all_layers - self.moe_layers) * self.dense_parameters
        moe = self.moe_layers * (self.experts * self.expert_parameters + self.shared_parameters)
        plain = self.all_layers * self.attention_parameters + dense + moe + self.embedding_parameters
        return plain + self.adapter_parameters

    @property
    def active_parameters(self) -> float:
        """Parameters that a token meets, the output layer once."""
        dense = (self.all_layers - self.moe_layers) * self.dense_parameters
        moe = self.moe_layers * (self.experts_per_token * self.expert_parameters + self.shared_parameters)
        plain = self.all_layers * self.attention_parameters + dense + moe + self.vocabulary * self.hidden
        return plain + self.active_adapter_parameters

    @property
    def attention_adapter(self) -> float:
        """Parameters of one layer's adapters of attention: rank times both sides of each product."""
        if self.adapter is None or not self.adapter.attention:
            return 0.0
        sides = 1.0 * self.value_width + self.hidden
        if self.latent is None:
            return self.adapter.rank * (sides + 3 * self.hidden + self.value_width + 2 * self.key_value_width)
        rank, keys = self.latent.query_rank, self.latent.value_rank
        sides += (rank == 0) * (self.hidden + self.query_width) + (rank > 0) * (
            self.hidden + 2 * rank + self.query_width
        )
        sides += self.hidden + 2 * keys + self.latent.rotary_width + 2 * self.value_width
        return self.adapter.rank * sides

    def feed_forward_adapter(self, width: float) -> float:
        """Parameters of the adapters of a feed-forward part of this width."""
        if self.adapter is None or not self.adapter.feed_forward:
            return 0.0
        return 1.0 * self.adapter.rank * self.matrices * (self.hidden + width) * (width > 0)

    @property
    def adapter_parameters(self) -> float:
        """Parameters of adapters; none where there are none."""
        return self._adapters(self.experts)

    @property
    def active_adapter_parameters(self) -> float:
        """Those that a token meets."""
        return self._adapters(self.experts_per_token)

    def _adapters(self, experts: float) -> float:
        moe = experts * self.feed_forward_adapter(self.expert_feed_forward)
        moe += self.feed_forward_adapter(self.shared_feed_forward)
        dense = (self.all_layers - self.moe_layers) * self.feed_forward_adapter(self.feed_forward)
        return self.all_layers * self.attention_adapter + dense + self.moe_layers * moe

    def seen(self, *, causal: bool) -> float:
        """Tokens that a token looks at, on the mean over layers.

        Args:
            causal: Count what a causal mask leaves; else every token of the sequence, as most definitions of FLOPs do.
        """
        whole = self.sequence / 2 if causal else 1.0 * self.sequence
        if not np.any(self.window):
            return whole
        narrow: float = np.minimum(self.window, whole)
        stated = self.windowed_layers >= 0
        windows = stated * self.windowed_layers + (1 - stated) * (self.all_layers // self.window_frequency)
        return (windows * narrow + (self.all_layers - windows) * whole) / self.all_layers


def of_parameters(parameters: float, sequence: int, vocabulary: int = 51200) -> ModelStructure:
    """A dense model of about this many parameters, shaped as well-known ones are.

    Layers are interpolated over the logarithm of parameters; the width follows from 12·L·h² + V·h and is rounded to a
    multiple of 128, the width of its heads.

    Raises:
        ValueError: If it would be narrower than one head.
    """
    points = [np.log(size) for size, _ in SMALL_SHAPES]
    layers = round(float(np.interp(np.log(parameters), points, [float(depth) for _, depth in SMALL_SHAPES])))
    width = (-vocabulary + (vocabulary**2 + 48 * layers * parameters) ** 0.5) / (24 * layers)
    heads = round(width / 128)
    if heads < 1:
        raise ValueError(f"{parameters:.3g} parameters are too few for {layers} layers")
    return ModelStructure(layers, 128 * heads, heads, sequence, vocabulary, dropout=True)
