"""What software and links make of the ideal: few numbers, each with what is published about it.

A prior is a median and a spread (standard deviation of the logarithm). None was fitted to a run.
"""

from dataclasses import dataclass, fields

import numpy as np

from kuayu.demand.strategy import Floats


@dataclass(frozen=True)
class Efficiency:
    """Numbers of the law.

    Attributes:
        products: Share of the best multiplication's rate that a model's multiplications reach.
        experts: The same for experts, their unequal load included.
        scores: Share of that rate that fused attention reaches.
        memory: Share of the memory's bandwidth that kernels reach; those that are fused count as faster.
        kernel: Seconds that a kernel takes beside its work.
        node: Share of the nominal bandwidth that exchanges reach inside a node.
        domain: The same between nodes, and between domains.
        exposed: Share of an exchange beside a computation that lengthens the step all the same.
        fixed: Seconds of a step that none of this explains.
    """

    products: float = 0.85
    experts: float = 0.5
    scores: float = 0.55
    memory: float = 0.75
    kernel: float = 4e-6
    node: float = 0.7
    domain: float = 0.7
    exposed: float = 0.2
    fixed: float = 0.02

    def logs(self) -> Floats:
        """Logarithms, in the order of NAMES."""
        return np.log([getattr(self, name) for name in NAMES])

    @classmethod
    def of_logs(cls, logs: Floats) -> "Efficiency":
        """The opposite of logs()."""
        return cls(**{name: float(value) for name, value in zip(NAMES, np.exp(logs), strict=True)})


NAMES = tuple(field.name for field in fields(Efficiency))

PRIOR = Efficiency()
"""Medians. products: a layer's multiplications are not all of the best shape (arXiv:2401.14489, figures 5 to 9);
experts: grouped multiplications and unequal load (MegaBlocks, arXiv:2211.15841); scores: FlashAttention-2 and -3
(arXiv:2307.08691, arXiv:2407.08608) over the best multiplication of the same devices, causal; memory: STREAM-like
kernels; kernel: start and tail of a kernel; node, domain: bus bandwidth of nccl-tests at 1 to 100 MB; exposed: one
tenth to a third of the device is taken by NCCL's own kernels; fixed: reading data, clipping, logging."""

CALIBRATED = Efficiency(
    products=0.8276,
    experts=0.4868,
    scores=0.6861,
    memory=0.7,
    kernel=3.993e-06,
    node=0.8431,
    domain=0.6067,
    exposed=0.2334,
    fixed=0.01979,
)
"""What all public runs make of the prior: "all runs" of ``python -m kuayu_training.demand``. Not what the law is judged
by, which never has seen the source it is judged on."""

SPREADS = Efficiency(
    products=0.15, experts=0.3, scores=0.3, memory=0.3, kernel=0.5, node=0.3, domain=0.4, exposed=0.7, fixed=0.7
)
"""Standard deviations of their logarithms."""

CEILING = Efficiency(
    products=1.0, experts=1.0, scores=1.0, memory=2.0, kernel=1e-4, node=1.0, domain=1.0, exposed=1.0, fixed=10.0
)
"""More than this is not physical. Elementwise work is counted unfused, so that kernels may seem twice as fast."""
