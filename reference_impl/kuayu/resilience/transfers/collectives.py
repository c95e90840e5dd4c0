"""How long candidates for the exchange of gradients take over links as measured, and what throughput they leave.

A message of ``s`` bytes takes ``α + s / B`` (R. W. Hockney, "The communication challenge for MPP", Parallel Computing
20, 1994). ``D`` domains of ``n`` nodes sum up ``G`` bytes:

- *ring*: all ``P = D · n`` nodes in one ring, domain after domain: ``2 (P - 1)`` rounds of the slowest hop with
  ``G / P`` bytes (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
  69, 2009). One flow enters and one leaves each domain.
- *hierarchical*: a reduce-scatter inside each domain, ``n - 1`` rounds of ``G / n``; then a ring over domains for each
  of the ``n`` parts, all over the same links, ``2 (D - 1)`` rounds of ``G / D``; then an all-gather inside (M. Cho et
  al., "BlueConnect", IBM Journal of Research and Development 63, 2019).
- *low communication*: inside each domain every step, over domains every ``H`` steps (A. Douillard et al., "DiLoCo",
  arXiv:2311.08105). Quality is not free: the steps that it takes more to the same loss are charged
  (``kuayu.scheduling.speeds.penalty``, fitted to arXiv:2503.09799 and others).

An exchange hides behind a share of a step; throughput is steps a second, with what rare reconciliation costs charged.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.rings import hop_seconds, ring
from kuayu.resilience.transfers.scene import Floats
from kuayu.scheduling.speeds import OVERLAP, penalty

PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations that are looked at."""
RING, HIERARCHICAL, LOW = "ring", "hierarchical", "low_communication"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to exchange gradients.

    Attributes:
        kind: RING, HIERARCHICAL or LOW.
        period: Steps between exchanges over domains.
    """

    kind: str
    period: int = 1


CANDIDATES = (Candidate(RING), Candidate(HIERARCHICAL), *(Candidate(LOW, period) for period in PERIODS))


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """Links as measured.

    Attributes:
        rates: Bytes a second from domain to domain, (D, D); nought where a link is out. The diagonal does not count.
        latency_s: Seconds of a message from domain to domain, (D, D).
        nodes: In each domain.
        inside: Bytes a second from a node to another of its domain; the least of all domains.
        inside_latency_s: Seconds of a message there.
    """

    rates: Floats
    latency_s: Floats
    nodes: int
    inside: float
    inside_latency_s: float

    def __post_init__(self) -> None:
        """Look at shapes.

        Raises:
            ValueError: They do not fit.
        """
        count = len(self.rates)
        if self.rates.shape != (count, count) or self.latency_s.shape != (count, count) or count < 1:
            raise ValueError("rates and latency_s must be square, of one size")
        if self.nodes < 1 or self.inside <= 0.0:
            raise ValueError("nodes must be at least 1, inside above nought")


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained.

    Attributes:
        gradient_bytes: That all replicas sum up.
        step_s: Seconds of a step without any exchange.
        overlap: Share of a step behind which an exchange hides.
    """

    gradient_bytes: float
    step_s: float
    overlap: float = OVERLAP


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a candidate would do.

    Attributes:
        candidate: Which.
        throughput: Steps a second; nought where a link that it needs is out.
        inside_s: Seconds of exchange inside domains, each step.
        across_s: Seconds of exchange over domains, each period; for the ring all of it.
        charged: How many times as many steps it takes to the same loss.
        order: Of domains in the ring.
    """

    candidate: Candidate
    throughput: float
    inside_s: float
    across_s: float
    charged: float
    order: tuple[int, ...]


def predict(fabric: Fabric, work: Work) -> tuple[Predicted, ...]:
    """Throughput of all candidates."""
    domains, nodes, size = len(fabric.rates), fabric.nodes, work.gradient_bytes
    order = ring(fabric.rates, fabric.latency_s, size / domains) if domains > 1 else (0,)
    across = (
        2 * (domains - 1) * hop_seconds(order, fabric.rates, fabric.latency_s, size / domains) if domains > 1 else 0.0
    )
    inside = 2 * (nodes - 1) * (fabric.inside_latency_s + size / nodes / fabric.inside)
    flat = _flat(fabric, size)
    made = []
    for candidate in CANDIDATES:
        if candidate.kind == RING:
            made.append(_of(candidate, work, 0.0, flat[0], 1.0, flat[1]))
        else:
            apart = candidate.kind == LOW and domains > 1
            charged = float(penalty(np.array(float(domains)), np.array(float(candidate.period)))) if apart else 1.0
            made.append(_of(candidate, work, inside, across, charged, order))
    return tuple(made)


def _flat(fabric: Fabric, size: float) -> tuple[float, tuple[int, ...]]:
    """Seconds of one ring over all nodes, and the order of domains in it."""
    domains, nodes = len(fabric.rates), fabric.nodes
    together = domains * nodes
    if together == 1:
        return 0.0, (0,)
    hops = [0.0]
    order: tuple[int, ...] = (0,)
    if nodes > 1:
        hops.append(fabric.inside_latency_s + size / together / fabric.inside)
    if domains > 1:
        order = ring(fabric.rates, fabric.latency_s, size / together)
        hops.append(hop_seconds(order, fabric.rates, fabric.latency_s, size / together))
    return 2 * (together - 1) * max(hops), order


def _of(
    candidate: Candidate, work: Work, inside_s: float, across_s: float, charged: float, order: tuple[int, ...]
) -> Predicted:
    hidden = work.overlap * work.step_s
    if candidate.kind == LOW:
        step = work.step_s + max(0.0, inside_s - hidden)
        left = hidden - min(inside_s, hidden)
        lasts = candidate.period * step + max(0.0, across_s - left)
    else:
        lasts = work.step_s + max(0.0, inside_s + across_s - hidden)
    throughput = candidate.period / lasts / charged if np.isfinite(lasts) else 0.0
    return Predicted(candidate, throughput, inside_s, across_s, charged, order)
