"""Text without data: sentences of a small grammar, each a function of seed, step and place in the batch."""

import numpy as np
from numpy.typing import NDArray

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
    rows = [[_NUMBERS[each] for each in _text(generator, length)] for _ in range(sequences)]
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
