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
    with (files("kuayu.perception.recognition") / WEIGHTS).open("rb") as file, np.load(file) as held:
        return {name: held[name] for name in held.files}


def of_graph(weights: Weights, features: Floats, answers: Floats, ties: Ties) -> Floats:
    """Logits of the states told from signals, (states, nodes).

    Args:
        weights: Weights by name.
        features: Own features above those that need other nodes, (features, nodes).
        answers: One where a node answers, else nought, (nodes,).
        ties: Families and domains.
    """
    hidden = _layer(weights, "graph.enter", features)
    everyone = bool(answers.all())
    for turn in range(ROUNDS):
        sent = hidden if everyone else hidden * answers
        seen = np.vstack([ties.families.mean(sent), ties.families.maximum(sent)])
        of_family = _layer(weights, f"graph.{turn}.family", seen)
        of_domain = _layer(weights, f"graph.{turn}.domain", ties.domains.mean(sent))
        hidden += _joined(weights, f"graph.{turn}.node", hidden, (ties.families, of_family), (ties.domains, of_domain))
    return _affine(weights, "graph.leave", hidden)


def plain(weights: Weights, features: Floats) -> Floats:
    """Logits from own features alone, (states, nodes)."""
    hidden = _layer(weights, "plain.enter", features)
    hidden = hidden + _layer(weights, "plain.middle", hidden)
    return _affine(weights, "plain.leave", hidden)


def log_softmax(logits: Floats) -> Floats:
    """Logarithms of probabilities over the first axis."""
    shifted = logits - logits.max(axis=0)
    made: Floats = shifted - np.log(np.exp(shifted).sum(axis=0))
    return made


def _joined(weights: Weights, name: str, hidden: Floats, *seen: tuple[Groups, Floats]) -> Floats:
    """A layer over what a node holds and what its groups saw, multiplied before it goes back to the many nodes."""
    matrix = weights[f"{name}.weight"]
    at = len(hidden)
    made: Floats = matrix[:, :at] @ hidden
    for groups, of_groups in seen:
        made += groups.back(matrix[:, at : at + len(of_groups)] @ of_groups)
        at += len(of_groups)
    made += weights[f"{name}.bias"][:, None]
    return np.maximum(made, 0.0, out=made)


def _affine(weights: Weights, name: str, values: Floats) -> Floats:
    made: Floats = weights[f"{name}.weight"] @ values
    made += weights[f"{name}.bias"][:, None]
    return made


def _layer(weights: Weights, name: str, values: Floats) -> Floats:
    made = _affine(weights, name, values)
    return np.maximum(made, 0.0, out=made)
