"""What software and links make of the ideal: few numbers, each with what is published about it.

A prior is a median and a spread (standard deviation of the logarithm), from publications; where these leave a range,
the value was chosen in the inner loop of ``python -m kuayu_training.demand.protocol``.
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
        scores: Share of the time reckoned for fused attention in which it is done.
        memory: Share of the memory's bandwidth that kernels reach; those that are fused count as faster.
        kernel: Seconds that a kernel takes beside its work.
        launch: Seconds that the host needs to launch a kernel.
        node: Share of the nominal bandwidth that exchanges reach inside a node.
        domain: The same between nodes, and between domains.
        exposed: Share of an exchange beside a computation that lengthens the step all the same.
        fixed: Seconds of a step that none of this explains.
    """

    products: float = 0.85
    experts: float = 0.5
    scores: float = 1.0
    memory: float = 0.75
    kernel: float = 4e-6
    launch: float = 2e-5
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
experts: grouped multiplications and unequal load (MegaBlocks, arXiv:2211.15841); scores: products of fused attention,
whose other work is counted by itself (`terms.SOFTMAX`); memory: STREAM-like kernels; kernel: start and tail of a
kernel; launch: a call of PyTorch with its part of autograd, ten to twenty microseconds; node, domain: bus bandwidth of
nccl-tests at 1 to 100 MB; exposed: one tenth to a third of the device is taken by NCCL's own kernels; fixed: reading
data, clipping, logging."""

SPREADS = Efficiency(
    products=0.15,
    experts=0.3,
    scores=0.3,
    memory=0.3,
    kernel=0.5,
    launch=0.5,
    node=0.3,
    domain=0.4,
    exposed=0.7,
    fixed=0.7,
)
"""Standard deviations of their logarithms."""
