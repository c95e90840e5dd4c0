"""The model that a run trains, and the text that it learns.

1. Text without data: sentences of a small grammar, each a function of seed, step and place in the batch.
2. A character transformer of about 62 000 parameters, whose gradients are exact sums. Floating-point sums depend on
   their order, and with the number of workers the order changes. So the gradient of each part of a batch, which
   always has the same shape, is rounded to a multiple of 2⁻⁴⁰ and summed as an integer: the sum is then the same in
   any order (the idea of fixed-point accumulators; Demmel and Nguyen, Fast Reproducible Floating-Point Summation,
   ARITH 2013). Loaded by workers alone, since it loads PyTorch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

ALPHABET = " .,abcdefghijklmnopqrstuvwxyz"
"""Characters of the text; a character's number is its place here."""

_ARTICLES = ("the", "a", "every", "no")
_ADJECTIVES = ("small", "distant", "busy", "idle", "northern", "new")
_NOUNS = ("node", "link", "domain", "job", "cluster", "gateway")
_VERBS = ("sends", "takes", "keeps", "loses", "shares", "awaits")
_ADVERBS = ("again", "at night", "in time", "slowly")

_NUMBERS = {character: number for number, character in enumerate(ALPHABET)}


def characters(seed: int, step: int, part: int, sequences: int, length: int) -> NDArray[np.int64]:
    """The text of one part of a batch.

    Args:
        seed: Of the training.
        step: Number of the step.
        part: Which part of the batch.
        sequences: How many stretches of text.
        length: Characters of each.

    Returns:
        Numbers of characters, shape (sequences, length).
    """
    generator = np.random.default_rng([seed, step, part])
    rows = [[_NUMBERS[entry] for entry in _text(generator, length)] for _ in range(sequences)]
    return np.array(rows, dtype=np.int64)


def _text(generator: np.random.Generator, length: int) -> str:
    text = ""
    while len(text) < length:
        text += _sentence(generator)
    return text[:length]


def _sentence(generator: np.random.Generator) -> str:
    def one(words: tuple[str, ...]) -> str:
        return words[int(generator.integers(len(words)))]

    def thing() -> str:
        adjective = f"{one(_ADJECTIVES)} " if generator.random() < 0.5 else ""  # noqa: PLR2004 - as often as not
        return f"{one(_ARTICLES)} {adjective}{one(_NOUNS)}"

    return f"{thing()} {one(_VERBS)} {thing()}, {one(_ADVERBS)}. "


WIDTH, HEADS, LAYERS, CONTEXT, SEQUENCES = 48, 4, 2, 48, 3
SCALE = float(1 << 40)
"""Integers to one unit of gradient or loss."""


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixing, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    @override
    def forward(self, seen: Tensor) -> Tensor:
        batch, length, _ = seen.shape
        parts = self.mixing(self.before_attention(seen)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        seen = seen + self.projection(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        hidden: Tensor = self.down(functional.gelu(self.up(self.before_network(seen))))
        after: Tensor = seen + hidden
        return after


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(len(ALPHABET), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(_Layer() for _ in range(LAYERS)))
        self.last, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(ALPHABET))

    @override
    def forward(self, letters: Tensor) -> Tensor:
        seen = self.letters(letters) + self.places.weight
        scores: Tensor = self.out(self.last(self.layers(seen)))
        return scores


@dataclass(frozen=True, slots=True)
class Gradient:
    """What parts of a batch add to the whole.

    Attributes:
        values: Gradient of the mean loss of the batch in multiples of 2⁻⁴⁰, shape (parameters,).
        loss: The same of the loss itself, in nats a character.
    """

    values: NDArray[np.int64]
    loss: int


class Model:
    """The network with its parameters as one flat vector.

    Args:
        seed: Of parameters and text.
        parts: Parts of a batch.
    """

    def __init__(self, seed: int, parts: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._network = _Network()
        self._own = list(self._network.parameters())
        self._seed, self._parts = seed, parts

    def start(self) -> NDArray[np.float32]:
        """Parameters as they are now, shape (parameters,); right after the making, those that training starts from."""
        return np.asarray(nn.utils.parameters_to_vector(self._own).detach().numpy()).copy()

    def load(self, values: NDArray[np.float32]) -> None:
        """Take these parameters, shape (parameters,)."""
        nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self._own)

    def gradient(self, step: int, part: int) -> Gradient:
        """What one part of a step's batch adds.

        Raises:
            FloatingPointError: The training has diverged.
        """
        text = torch.from_numpy(characters(self._seed, step, part, SEQUENCES, CONTEXT + 1))
        scores = self._network(text[:, :-1])
        loss = functional.cross_entropy(scores.reshape(-1, len(ALPHABET)), text[:, 1:].reshape(-1)) / self._parts
        gradients = torch.autograd.grad(loss, self._own)
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).double().numpy()
        if not np.isfinite(flat).all():
            raise FloatingPointError(f"the gradient of step {step} is not finite")
        return Gradient(np.rint(flat * SCALE).astype(np.int64), round(float(loss.detach()) * SCALE))
