"""What runs in a window: jobs over two domains or more, of which load or latency is what counts.

Sizes are assumptions of ours. Half of the jobs are anything: steps of 0.5 to 4 s, 1 to 8 nodes in each domain, and 0.2
to 20 GB to exchange, 0.1 to 10 billion parameters at two bytes each. The other half exchange little over many nodes and
make short steps, so that latency decides by which collective they are quick. A step has 64 to 256 parts, so that a
division can be as fine as some per cent. That a part takes 20 to 80 ms to move and a switch 0.1 to 0.8 s makes all
changes at once more than a tenth of a window now and then, and no single switch as much as that: whoever spreads them
can keep the allowance.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from kuayu_conformance.testbed.adjustment.law import Floats, Job
from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential

JOBS = (1, 2, 3, 4)
STEPS_S, SHORT_S = (0.5, 4.0), (0.5, 1.5)
"""Of a step without load, had all domains as many parts; of jobs for which latency counts."""
EXCHANGES, SMALL, SMALL_SHARE = (0.2e9, 20e9), (0.2e9, 1e9), 0.5
NODES, MANY = (1, 8), (4, 8)
PARTS = (64, 256)
NODE_BANDWIDTHS, NODE_LATENCY_S = (25e9, 100e9, 200e9), 1e-5
UNEVEN = 1.5
"""Times the time of a part in the quickest domain, in the slowest."""
MOVES_S, SWITCHES_S = (0.02, 0.08), (0.1, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A job of a window.

    Attributes:
        id: Its name.
        domains: Where it runs, by number.
        law: What does not change about it.
        total: Parts of a step.
    """

    id: str
    domains: tuple[int, ...]
    law: Job
    total: int


def draw(names: Chance, chance: Chance, bandwidth: Floats) -> tuple[Running, ...]:
    """Jobs over some of the domains.

    Args:
        names: What names are drawn from.
        chance: What all else is drawn from.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
    """
    return tuple(_job(names, chance, bandwidth) for _ in range(chance.pick(JOBS)))


def _job(names: Chance, chance: Chance, bandwidth: Floats) -> Running:
    all_of_them = range(len(bandwidth))
    count = 2 + chance.below(len(all_of_them) - 1)
    domains = tuple(chance.order([(domain, 1.0) for domain in all_of_them])[:count])
    small = chance.fraction() < SMALL_SHARE
    nodes = MANY if small else NODES
    total = PARTS[0] + chance.below(PARTS[1] - PARTS[0] + 1)
    step = chance.between(*(SHORT_S if small else STEPS_S))
    part_times = [round(step * count / total * chance.between(1.0, UNEVEN), 6) for _ in domains]
    law = Job(
        np.array(part_times),
        nodes[0] + chance.below(nodes[1] - nodes[0] + 1),
        chance.pick(NODE_BANDWIDTHS),
        NODE_LATENCY_S,
        round(power(chance, *(SMALL if small else EXCHANGES)), -6),
        bandwidth[np.ix_(domains, domains)],
        round(chance.between(*MOVES_S), 6),
        round(chance.between(*SWITCHES_S), 3),
    )
    return Running(f"{names.below(1 << 48):012x}", domains, law, total)


def power(chance: Chance, low: float, high: float) -> float:
    """Between two numbers, the logarithm uniform."""
    return low * exponential(chance.fraction() * log(high / low))
