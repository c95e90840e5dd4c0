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
  (``kuayu.scheduling.throughput.penalty``, fitted to arXiv:2503.09799 and others).

An exchange hides behind a share of a step; throughput is steps a second, with what rare reconciliation costs charged.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.scene import Floats
from kuayu.scheduling.throughput import OVERLAP, penalty

PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations that are looked at."""
RING, HIERARCHICAL, LOW = "ring", "hierarchical", "low_communication"
NAMELESS = "unknown"
"""Of a kind that the standard does not name; nothing is known of it."""


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


def message(candidate: Candidate, domains: int, nodes: int, work: Work) -> float:
    """Bytes that each round moves from a domain to the next."""
    return work.gradient_bytes / (domains * nodes if candidate.kind == RING else domains)


def exchange_s(candidate: Candidate, fabric: Fabric, work: Work, hop_s: Floats) -> tuple[float, Floats]:
    """Seconds of exchange inside domains, each step, and over them, each period; for the ring all of it over them.

    Args:
        candidate: Which.
        fabric: For what lies inside domains.
        work: What is exchanged.
        hop_s: Seconds of the slowest message from a domain to the next, of any shape; nought where there is but one.
    """
    domains, nodes, size = len(fabric.rates), fabric.nodes, work.gradient_bytes
    with np.errstate(over="ignore"):
        if candidate.kind == RING:
            together = domains * nodes
            own = fabric.inside_latency_s + np.float64(size / together) / fabric.inside if nodes > 1 else 0.0
            return 0.0, np.maximum(hop_s, own) * (2 * (together - 1)) if together > 1 else np.zeros_like(hop_s)
        inside = 2 * (nodes - 1) * (fabric.inside_latency_s + np.float64(size / nodes) / fabric.inside)
        return float(inside) if nodes > 1 else 0.0, hop_s * (2 * (domains - 1)) if domains > 1 else np.zeros_like(hop_s)


def charged(candidate: Candidate, domains: int) -> float:
    """How many times as many steps it takes to the same loss."""
    if candidate.kind != LOW or domains == 1:
        return 1.0
    return float(penalty(np.array(float(domains)), np.array(float(candidate.period))))


def rate(candidate: Candidate, domains: int, work: Work, inside_s: float, across_s: Floats) -> Floats:
    """Steps a second, in the shape of ``across_s``; nought where a link that is needed is out."""
    hidden = work.overlap * work.step_s
    if candidate.kind == LOW:
        step = work.step_s + max(0.0, inside_s - hidden)
        lasts = candidate.period * step + np.maximum(0.0, across_s - max(0.0, hidden - inside_s))
    else:
        lasts = work.step_s + np.maximum(0.0, inside_s + across_s - hidden)
    made: Floats = candidate.period / lasts / charged(candidate, domains)  # nought where it lasts for ever
    return made
