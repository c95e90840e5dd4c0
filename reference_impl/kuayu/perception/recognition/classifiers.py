"""Classifiers of single moments: networks with shipped weights, and the rules beside which they are judged.

1. The networks are evaluated in NumPy with weights that were trained in PyTorch; arrays have one column for each node.
   Each node's features become a hidden vector. In each of two rounds a family sees the mean and the largest entries of
   its members, a domain the mean of its nodes, and each node takes in what its families and its domain saw. Nodes that
   do not answer send nothing. The plain network knows nothing of other nodes.
2. The rules are what an operator would write down who knows how families work: who stands still with memory held or
   faults is faulty; who works more than its peers, or is utilised less, while all are slower than usual is straggling;
   who is slower than usual by itself, has faults again and again, or lacks accelerators is degraded. Their thresholds
   are tuned on the training generator alone.

Source: Gilmer et al. 2017, "Neural Message Passing for Quantum Chemistry", with one virtual node for each group.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib.resources import files

import numpy as np

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.groups import FEATURE_PLACE, Groups
from kuayu.perception.recognition.values import Floats, Places

ROUNDS = 2
WEIGHTS = "weights.npz"

RULES_PROBABILITY = 0.95
"""Probability that is given to what the rules say, for the filter that all recognisers share."""

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
        self._arrays: dict[str, Floats] = {}

    def of(self, name: str, rows: int, columns: int) -> Floats:
        """The array of that name, with whatever it holds."""
        array = self._arrays.get(name)
        if array is None or array.shape != (rows, columns):
            array = self._arrays[name] = np.empty((rows, columns), np.float32)
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


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the rules; differences are those of logarithms.

    Attributes:
        idle: Utilisation below which no accelerator works.
        idle_power: Dynamic power below which none works, where utilisation is not known.
        memory: Memory over the most seen, above which a job is there.
        standing: Samples (logarithm, halved) for which an odd utilisation stands still.
        hung: Flow and power of the family below their usual, at which it hangs.
        slowed: Flow, power and pipe of the family below their usual, at which it is slower.
        more: Pipe above the family's, at which a node does not wait.
        less: Utilisation below the family's, at which a node holds the others up.
        less_power: Power below the family's, at which a node with high pipe or none known has slow clocks.
        slower: Power or pipe for each unit of utilisation below its usual, at which a node is slower by itself.
        common: The same of the family, at which the slowness is not the node's own.
        recurring: Samples with faults in a minute (logarithm) at which faults come again and again.
        missing: Share of accelerators that is missing.
    """

    idle: float = 0.05
    idle_power: float = 0.12
    memory: float = 0.3
    standing: float = 0.8
    hung: float = 1.0
    slowed: float = 0.12
    more: float = 0.1
    less: float = 0.2
    less_power: float = 0.12
    slower: float = 0.14
    common: float = 0.08
    recurring: float = 0.9
    missing: float = 0.03

    @classmethod
    def of(cls, weights: Weights) -> "Thresholds":
        """Thresholds as they are shipped."""
        return cls(*(float(name) for name in weights["rules.thresholds"]))

    def to_weights(self) -> Floats:
        """The same as an array."""
        return np.array(astuple(self), np.float32)


THRESHOLD_NAMES = tuple(name.name for name in fields(Thresholds))


def by_rules(by: Thresholds, features: Floats) -> Places:
    """State of each node by the rules, positions in ``STATES``.

    Args:
        by: The thresholds.
        features: Own features above those that need other nodes, (features, nodes).
    """

    def named(name: str) -> Floats:
        row: Floats = features[FEATURE_PLACE[name]]
        return row

    utilisation, known = named("level of utilisation"), named("has utilisation") > 0
    idle = np.where(known, utilisation < by.idle, named("level of dynamic power") < by.idle_power)
    family = named("in a family") > 0
    holds = (named("level of memory") > by.memory) & (named("has memory") > 0)
    faults = named("faults of seconds") > 0.5  # noqa: PLR2004 - one, not long ago
    stands = (named("utilisation stands still") > by.standing) & (named("has pipe") * named("level of pipe") <= 0.02)  # noqa: PLR2004
    odd = stands & (utilisation > by.idle) & (utilisation < 0.99) & (named("noise of utilisation") > 0)  # noqa: PLR2004
    family_works = (named("family at work") > 0.4) & family  # noqa: PLR2004 - half of it, one being in trouble
    stopped = (
        (idle & holds & (faults | family_works | ~family)) | (idle & faults & (named("samples at work") > 0)) | odd
    )

    slowed_by = np.minimum(named("family's usual of flow"), named("family's usual of power"))
    slowed = family & (np.minimum(slowed_by, named("family's usual of pipe")) < -by.slowed)
    more = named("usual of pipe beside family") > by.more
    clock = (named("usual of power beside family") < -by.less_power) & (named("usual of pipe beside family") > -0.05)  # noqa: PLR2004
    less = named("level of utilisation beside family") < -by.less
    hangs = named("family's usual of flow") < -by.hung
    straggling = slowed & ~hangs & (more | clock | less) & ~idle

    own = np.minimum(named("usual of power per utilisation"), named("usual of pipe per utilisation"))
    of_family = np.where(family, named("family's usual of power per utilisation"), 0.0)
    slower = (own < -by.slower) & (of_family > -by.common) & ~(slowed & family)
    recurring = (named("samples with faults in a minute") > by.recurring) & (named("faults of seconds") > 0.1)  # noqa: PLR2004
    missing = (named("device share") < -by.missing) | (named("allocatable share lost") > by.missing)
    degraded = (slower & ~idle) | recurring | missing

    positions = np.where(idle, states.IDLE, states.BUSY)
    positions = np.where(degraded, states.DEGRADED, positions)
    positions = np.where(straggling, states.STRAGGLING, positions)
    states_of_nodes: Places = np.where(stopped, states.FAULTY, positions).astype(np.intp)
    return states_of_nodes
