"""Numbers fitted to public measurements; ``tests/conformance/testbed/test_facts.py`` fits them again.

Sources, by the name used below (commits of the originals in brackets):

- *Acme*: utilisation, power and memory of the A100 clusters Kalos and Seren, InternLM/AcmeTrace ``data/utilization``
  [6d6ac9c]; Q. Hu et al., "Characterization of large language model development in the datacenter", NSDI 2024.
- *Zeus*: time and power of training under power limits on A40, V100 and RTX 6000, ml-energy/zeus
  ``examples/research_reproducibility/zeus_nsdi23/trace`` [75a8b93].
- *Steps*: step times by rank of three jobs, ByteDance-Seed/StragglerAnalysis ``data/trace-{AR,SE,ST}.parquet``
  [8efcd7f].
- *Workers*: mini-batch times by worker, alibaba/clusterdata ``cluster-trace-gpu-v2020/mini-batch-time`` [7a6c496].
- *Series*: power of servers once a second, mlcommons/training_results_v4.1 ``*/power`` [b87b9e3] and v5.0 [0fdc28f].
- *Context*: an open context raises the power of an idle GPU with HBM by 26–50 W, however much memory it holds,
  S. S. Vadari, arXiv:2605.23918.
- *Waiting*: who waits in a collective operation shows full utilisation at a power little above idle; the one that
  hangs shows none (NVIDIA/nccl issue 968, cupy/cupy issue 3557, Theano/libgpuarray issue 387). A device may stop
  without any error counted (NVIDIA/nccl issue 1063).
- *Interruptions*: 419 in 54 days on 16 384 GPUs, Llama Team, "The Llama 3 herd of models", arXiv:2407.21783, table 5.
- *Retransmission*: a network card that recovers by go-back-N sends again all that follows a lost packet, R. Mittal et
  al., "Revisiting network support for RDMA", SIGCOMM 2018.
"""

import numpy as np
from numpy.typing import NDArray

SPEED_UNDER_LIMIT = (0.45, 0.55, 0.65, 0.75, 0.85, 1.0)
POWER_UNDER_LIMIT = (0.44, 0.47, 0.52, 0.59, 0.69, 1.0)
"""Zeus: power over that without a limit, by speed over that without: means of medians of three GPUs, in bins of 0.1."""

MEMORY_QUANTILES = ((0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0), (0.15, 0.20, 0.50, 0.63, 0.74, 0.97, 0.98))
"""Acme: share of the memory that a job holds; mean of both clusters over samples above 1 %, ends shortened."""

STEP_VARIATION = (0.0045, 0.023, 0.071)
"""Steps: coefficient of variation of the step time of a whole job, in three jobs."""
EXPOSED_COMMUNICATION = (0.08, 0.12)
"""Steps: share of a step that the last pipeline stage, which waits for nobody, spends in communication (AR, SE)."""
WORKER_SPREAD = 0.01
"""Workers: distance of the step times of healthy workers from their median (0.98–1.00 of it in jobs 1 and 3)."""

NOISE_OF_POWER = 0.0065
"""Series: standard deviation of the power of a server under even load, from differences of successive samples."""
LAG_OF_POWER = 0.8
"""Series: seconds; servers go from 3.1 to 7.9 kW within two to three samples of a second each."""

CONTEXT_POWER = (26.0, 50.0)
"""Context: watts between an idle GPU and one with an open context."""
WAITING_POWER = 0.15
"""Share of the way from idle to full power at which a device waits. Waiting: 70 W; and Acme: half of all samples draw
at most 97–101 W on an A100 (idle 62 W, limit 400 W), although two thirds show a utilisation of more than nought."""

SILENT_FATAL_SHARE = 0.5
"""Share of fatal faults that no counter shows, fixed by design. Interruptions: 268 of 419 are of the GPU, and not all
of these are counted; the others (software, network, host) show on no counter of a GPU."""


def power_at_speed(speed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Power over that at full clock, for speeds over that at full clock; below the fit it goes on straight to 0.42."""
    return np.interp(speed, (0.4, *SPEED_UNDER_LIMIT), (0.42, *POWER_UNDER_LIMIT)).astype(np.float32)
