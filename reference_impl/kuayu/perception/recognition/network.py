"""Message passing over families and domains, evaluated in NumPy with weights that were trained in PyTorch.

Each node's features become a hidden vector. In each of two rounds a family sees the mean and the largest entries of
its members, a domain the mean of its nodes, and each node takes in what its families and its domain saw (Gilmer et
al. 2017, "Neural Message Passing for Quantum Chemistry", with one virtual node for each group). Nodes that do not
answer send nothing. Arrays have one column for each node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from kuayu.perception.recognition.groups import Groups
from kuayu.perception.recognition.values import Floats

ROUNDS = 2
WEIGHTS = "weights.npz"

Weights = Mapping[str, Floats]
"""Matrices and biases by name; ``graph.``, ``plain.``, ``rules.`` and ``filter.`` say what they belong to."""


@dataclass(frozen=True, slots=True)
class Ties:
    """What messages pass over.

    Attributes:
        families: Groups of nodes that work together.
        domains: Groups of nodes of a domain.
    """

    families: Groups
    domains: Groups


@cache
def shipped() -> Weights:
    """Weights that come with the package."""
    with (files("kuayu.perception.recognition") / WEIGHTS).open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


class Space:
    """Arrays that are used again in every call: to ask for new ones costs more than to compute what they hold."""

    def __init__(self) -> None:
        self._held: dict[str, Floats] = {}

    def of(self, name: str, rows: int, columns: int) -> Floats:
        """The array of that name, with whatever it holds."""
        array = self._held.get(name)
        if array is None or array.shape != (rows, columns):
            array = self._held[name] = np.empty((rows, columns), np.float32)
        return array


def of_graph(weights: Weights, features: Floats, answers: Floats, ties: Ties, space: Space | None = None) -> Floats:
    """Logits of the states told from signals, (states, nodes).

    Args:
        weights: Weights by name.
        features: Own features above those that need other nodes, (features, nodes).
        answers: One where a node answers, else zero, (nodes,).
        ties: Families and domains.
        space: Room to compute in.
    """
    space = space or Space()
    hidden = _layer(weights, "graph.enter", features, space)
    everyone = bool(answers.all())
    for round_number in range(ROUNDS):
        sent = hidden if everyone else np.multiply(hidden, answers, out=space.of("sent", *hidden.shape))
        seen = np.vstack(ties.families.mean_and_maximum(sent))
        of_family = _layer(weights, f"graph.{round_number}.family", seen, space)
        of_domain = _layer(weights, f"graph.{round_number}.domain", ties.domains.mean(sent), space)
        name, groups = f"graph.{round_number}.node", ((ties.families, of_family), (ties.domains, of_domain))
        hidden += _joined(weights, name, hidden, groups, space)
    return _affine(weights, "graph.leave", hidden, space)


def plain(weights: Weights, features: Floats, space: Space | None = None) -> Floats:
    """Logits from own features alone, (states, nodes)."""
    space = space or Space()
    hidden = _layer(weights, "plain.enter", features, space)
    hidden += _layer(weights, "plain.middle", hidden, space)
    return _affine(weights, "plain.leave", hidden, space)


def log_softmax(logits: Floats) -> Floats:
    """Logarithms of probabilities over the first axis."""
    shifted = logits - logits.max(axis=0)
    log_probabilities: Floats = shifted - np.log(np.exp(shifted).sum(axis=0))
    return log_probabilities


def _joined(
    weights: Weights, name: str, hidden: Floats, seen: tuple[tuple[Groups, Floats], ...], space: Space
) -> Floats:
    """A layer over what a node holds and what its groups saw, multiplied before it goes back to the many nodes."""
    matrix = weights[f"{name}.weight"]
    end = len(hidden)
    output = np.matmul(matrix[:, :end], hidden, out=space.of("joined", len(matrix), hidden.shape[1]))
    bias = weights[f"{name}.bias"][:, None]
    for groups, of_groups in seen:
        part = matrix[:, end : end + len(of_groups)] @ of_groups
        if groups.in_order:
            part += bias
            bias = np.zeros_like(bias)
        output += groups.back(part, space.of("back", *output.shape))
        end += len(of_groups)
    if bias.any():
        output += bias
    return np.maximum(output, 0.0, out=output)


def _affine(weights: Weights, name: str, values: Floats, space: Space) -> Floats:
    matrix = weights[f"{name}.weight"]
    output = np.matmul(matrix, values, out=space.of(name, len(matrix), values.shape[1]))
    output += weights[f"{name}.bias"][:, None]
    return output


def _layer(weights: Weights, name: str, values: Floats, space: Space) -> Floats:
    output = _affine(weights, name, values, space)
    return np.maximum(output, 0.0, out=output)
