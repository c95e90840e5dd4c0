"""Features that compare each node with its family and domain, from the own features of all.

A family's job may run on some of its members only. Who neither works nor holds what it worked on takes no part in it,
and says nothing about how the others should fare.
"""

import numpy as np

from kuayu.perception.recognition.features import HOLDS, IDLE_UTILISATION, OWN, WORKS_AT_POWER
from kuayu.perception.recognition.groups import Groups
from kuayu.perception.recognition.rows import put_together
from kuayu.perception.recognition.values import Flags, Floats

COMPARED = (
    *(OWN.index(f"level of {name}") for name in ("utilisation", "pipe", "dynamic power", "memory")),
    *(OWN.index(f"usual of {name}") for name in ("utilisation", "pipe", "memory pipe", "power", "flow")),
    OWN.index("usual of power per utilisation"),
    OWN.index("sudden in power"),
    OWN.index("sudden in utilisation"),
    *(OWN.index(f"recent in {name}") for name in ("utilisation", "pipe", "power", "flow")),
    OWN.index("sent over received"),
)
"""Own features that are compared with the median of those of the family that take part in its work."""

RELATED = (
    *(f"family's {OWN[place]}" for place in COMPARED),
    *(f"{OWN[place]} beside family" for place in COMPARED),
    "takes part",
    "family takes part",
    "family at work",
    "family missing",
    "most missing in family",
    "most utilised in family",
    "faults in family",
    "size of family",
    "power beside domain",
    "utilisation beside domain",
    "missing",
)
"""Names of the features that need other nodes."""

NEARLY_SILENT = 0.6
"""Part of the way to silence at which a node counts as missing in its family."""

WAITED_FOR = 12.0
"""Further ways to silence after which a missing node is no news to its family any more: it waits by then, or not."""


def relate(own: Floats, missing: Floats, answers: Flags, families: Groups, domains: Groups, out: Floats) -> None:
    """Features that compare each node with its family and domain, (features, nodes).

    Args:
        own: Own features, (features, nodes).
        missing: How far each node is on the way to be silent.
        answers: Whether it has been heard and is not silent.
        families: Groups of nodes that work together.
        domains: Groups of nodes of a domain.
        out: Where they are put, (features, nodes).
    """
    news = np.minimum(missing, 2.0) * np.exp(-np.maximum(missing - 2.0, 0.0) / WAITED_FOR)
    compared = own[list(COMPARED)]
    works = (own[OWN.index("level of utilisation")] > IDLE_UTILISATION) & answers
    part = _takes_part(own) & answers
    middle = families.median(np.where(part, compared, np.float32(np.nan)))
    np.nan_to_num(middle, copy=False)
    usual_of_family = families.back(middle)
    faults = own[OWN.index("faults of seconds")]
    together = families.mean(np.stack([part, works & part, news > NEARLY_SILENT, faults]).astype(np.float32))
    together[1] /= np.maximum(together[0], np.float32(0.01))
    size = 0.3 * np.log(families.sizes).astype(np.float32)
    utilised = np.where(part, own[OWN.index("level of utilisation")], np.float32(0.0))
    most = families.maximum(np.stack([news, utilised]).astype(np.float32))
    of_family = families.back(np.vstack([together[:3], most, np.log1p(together[3] * families.sizes), size]))
    in_family = families.share > 0
    places = [OWN.index("level of dynamic power"), OWN.index("level of utilisation")]
    working = np.where(works, own[places], np.float32(np.nan))
    beside = own[places] - domains.back(domains.median(working))
    put_together(
        out,
        [
            usual_of_family,
            np.where(in_family, compared - usual_of_family, np.float32(0.0)),
            part,
            of_family,
            np.nan_to_num(beside),
            np.minimum(missing, 2.0),
        ],
    )


def _takes_part(own: Floats) -> Flags:
    """Who works, or holds what it worked on: a family's job may run on some of its members only."""

    def named(name: str) -> Floats:
        row: Floats = own[OWN.index(name)]
        return row

    runs = (named("level of utilisation") > IDLE_UTILISATION) | (named("level of dynamic power") > WORKS_AT_POWER)
    holds = np.where(named("has memory") > 0, named("level of memory") > HOLDS, named("samples at work") > 0)
    flags: Flags = runs | holds
    return flags
