"""Constants of the law, each with its source; ``python -m kuayu_conformance.testbed.scheduling.law`` varies them.

- *Backward*: the backward pass takes twice the operations of the forward pass, J. Kaplan et al., "Scaling laws for
  neural language models", arXiv:2001.08361, section 2.1. An exchange that hides behind it alone reproduces 73 of 74
  cells of table 6 of arXiv:2503.09799 within 1.46.
- *Llama*: Llama Team, "The Llama 3 herd of models", arXiv:2407.21783, sections 3.3.1 and 3.3.4: storage that sustains
  2 TB/s for 16 384 GPUs, 419 unexpected interruptions of them in 54 days.
- *Runs*: median of global batch ÷ (data-parallel degree × micro-batch) over the 329 measured runs with pipeline stages
  in ``data/llm_training_runs``.
- *Pollux*: 30 s for the restart of a job in the simulator of A. Qiao et al., "Pollux", OSDI 2021 (petuum/adaptdl,
  ``simulator``); process groups of more than 10 000 GPUs begin in less than 30 s, Z. Jiang et al., "MegaScale",
  NSDI 2024.
- *Refit*: T. Besiroglu et al., "Chinchilla scaling: a replication attempt", arXiv:2404.10102: loss = 1.8172 +
  482.01 ÷ parameters^0.3478 + 2085.43 ÷ tokens^0.3658.
- *Optimal*: 20 tokens for each parameter, J. Hoffmann et al., "Training compute-optimal large language models",
  arXiv:2203.15556, and the budget of all runs that ``evidence`` holds.
"""

from dataclasses import dataclass

DATA_TERM, DATA_EXPONENT = 2085.43, 0.3658
"""Refit: the part of the loss that tokens reduce is the first over tokens to the power of the second."""
TOKENS_PER_PARAMETER = 20.0
"""Optimal."""

GAP, REPLICA_EXPONENT, PERIOD_SCALE = 0.0240, 0.818, 18.4
"""Fitted by ``fitting`` to ``evidence``: periodic reconciliation enlarges the part of the loss that tokens reduce by
``GAP · (replicas - 1)^REPLICA_EXPONENT · ln(1 + period / PERIOD_SCALE)``."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What is the same for all jobs.

    Attributes:
        overlap: Share of a step behind which an exchange hides. Backward.
        micro_batches: Micro-batches of a step, over which the filling of a pipeline spreads. Runs.
        storage: Bytes a second at which each device writes and reads checkpoints. Llama.
        starting: Seconds until processes run and find each other. Pollux.
        between_faults: Seconds of a device between faults that end its job. Llama.
    """

    overlap: float = 2 / 3
    micro_batches: float = 128.0
    storage: float = 2e12 / 16_384
    starting: float = 30.0
    between_faults: float = 16_384 * 54 * 86_400.0 / 419


PUBLISHED = Constants()
