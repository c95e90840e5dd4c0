"""The yardstick: a recogniser by rules, with thresholds tuned on the training generator alone.

The rules are what an operator would write down who knows how families work: who stands still with memory held or
faults is faulty; who works more than its peers, or is utilised less, while all are slower than usual is straggling;
who is slower than usual by itself, has faults again and again, or lacks accelerators is degraded.
"""

from dataclasses import astuple, dataclass, fields

import numpy as np

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.network import Weights
from kuayu.perception.recognition.relations import RELATED
from kuayu.perception.recognition.values import Floats, Places

SURE = 0.95
"""Probability that is given to what the rules say, for the filter that all recognisers share."""

_PLACE = {name: place for place, name in enumerate((*OWN, *RELATED))}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the rules; differences are those of logarithms.

    Attributes:
        idle: Utilisation below which no accelerator works.
        idle_power: Dynamic power below which none works, where utilisation is not known.
        held: Memory over the most seen, above which a job is there.
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
    held: float = 0.3
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


NAMES = tuple(name.name for name in fields(Thresholds))


def judge(by: Thresholds, features: Floats) -> Places:
    """State of each node by the rules, positions in ``STATES``.

    Args:
        by: The thresholds.
        features: Own features above those that need other nodes, (features, nodes).
    """

    def named(name: str) -> Floats:
        row: Floats = features[_PLACE[name]]
        return row

    utilisation, known = named("level of utilisation"), named("has utilisation") > 0
    idle = np.where(known, utilisation < by.idle, named("level of dynamic power") < by.idle_power)
    family = named("in a family") > 0
    holds = (named("level of memory") > by.held) & (named("has memory") > 0)
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
