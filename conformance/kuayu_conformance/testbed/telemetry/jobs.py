"""What jobs are like: parameters of each run, and the public measurements that they were fitted to.

1. **Facts.** Numbers fitted to public measurements; ``tests/conformance/testbed/test_facts.py`` fits them again.

   Sources, by the name used below (commits of the originals in brackets):

   - *Acme*: utilisation, power and memory of the A100 clusters Kalos and Seren, InternLM/AcmeTrace ``data/utilization``
     [6d6ac9c]; Q. Hu et al., "Characterization of large language model development in the datacenter", NSDI 2024.
   - *Zeus*: time and power of training under power limits on A40, V100 and RTX 6000, ml-energy/zeus
     ``examples/research_reproducibility/zeus_nsdi23/trace`` [75a8b93].
   - *Steps*: step times by rank of three jobs, ByteDance-Seed/StragglerAnalysis ``data/trace-{AR,SE,ST}.parquet``
     [8efcd7f].
   - *Workers*: mini-batch times by worker, alibaba/clusterdata ``cluster-trace-gpu-v2020/mini-batch-time`` [7a6c496].
   - *Series*: power of servers once a second, mlcommons/training_results_v4.1 ``*/power`` [b87b9e3] and v5.0 [0fdc28f].
   - *Context*: an open context raises the power of an idle GPU with HBM by 26–50 W, however much memory it holds, S. S.
     Vadari, arXiv:2605.23918.
   - *Waiting*: who waits in a collective operation shows full utilisation at a power little above idle; the one that
     hangs shows none (NVIDIA/nccl issue 968, cupy/cupy issue 3557, Theano/libgpuarray issue 387). A device may stop
     without any error counted (NVIDIA/nccl issue 1063).
   - *Interruptions*: 419 in 54 days on 16 384 GPUs, Llama Team, "The Llama 3 herd of models", arXiv:2407.21783, table
     5.
   - *Retransmission*: a network card that recovers by go-back-N sends again all that follows a lost packet, R. Mittal
     et al., "Revisiting network support for RDMA", SIGCOMM 2018.
2. **Runs.** Lengths of steps and starts, reading, network shares and gaps are assumptions; bounds cut off what could
   not be decided. Time runs faster than in reality, so that something happens within minutes: a checkpoint comes every
   30–60 s rather than every half hour, a start takes seconds, and those who wait for the dead give up within half a
   minute.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.elementary import exponential

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
at most 97–101 W on an A100 (idle 62 W, limit 400 W), although two thirds show a utilisation of more than zero."""
SILENT_FATAL_SHARE = 0.5
"""Share of fatal faults that no counter shows, fixed by design. Interruptions: 268 of 419 are of the GPU, and not all
of these are counted; the others (software, network, host) show on no counter of a GPU."""
_DRAWN_AT_ONCE = 4096


def power_at_speed(speed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Power over that at full clock, for speeds over that at full clock; below the fit it goes on straight to 0.42."""
    return np.interp(speed, (0.4, *SPEED_UNDER_LIMIT), (0.42, *POWER_UNDER_LIMIT)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Run:
    """A job from its start to its end.

    Attributes:
        compute: Seconds that kernels of a step take on a healthy node.
        gap: Seconds of a step in which no kernel runs, since the host prepares the next batch.
        exposed: Seconds of communication that no computation hides; zero for a single node.
        load: Seconds of the start, in which memory is filled from the store.
        common: Coefficient of variation of the step time of the whole job.
        own: Coefficient of variation of a node's own share of each step.
        checkpoint: Seconds between two checkpoints.
        saving: Seconds that a checkpoint takes.
        evaluation: Seconds between two evaluations.
        evaluating: Seconds that an evaluation takes.
        pipe: Matrix pipe activity while kernels compute.
        bandwidth: Memory bandwidth utilisation meanwhile.
        intensity: Where power stands meanwhile between that of an open context (0) and the limit (1).
        memory: Share of the devices' memory that is held.
        bus: Share of the network's speed that exposed communication reaches.
        overlapped: Share of the network's speed that is used while kernels compute.
        reading: Bytes a second that are read from the store while kernels compute.
        duty: Usual share of the time in which a server of inference works.
        burst: Factor of its bursts of load.
        phase: Where in its cycles a job is that runs from the beginning, as a share of them.
    """

    compute: float
    gap: float
    exposed: float
    load: float
    common: float
    own: float
    checkpoint: float
    saving: float
    evaluation: float
    evaluating: float
    pipe: float
    bandwidth: float
    intensity: float
    memory: float
    bus: float
    overlapped: float
    reading: float
    duty: float
    burst: float
    phase: float

    @property
    def step(self) -> float:
        """Seconds of a step of which nothing is slow."""
        return self.compute + self.gap + self.exposed


FIELDS = tuple(Run.__dataclass_fields__)


class Runs:
    """Runs in the order in which they start; each draws as many numbers as any other."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._uniform: list[list[float]] = []
        self._normal: list[list[float]] = []
        self.drawn: list[Run] = []

    def new(self, *, alone: bool) -> int:
        """Number of a new run, of a single node or of several."""
        if not self._uniform:
            self._uniform = self._chance.random((_DRAWN_AT_ONCE, 16)).tolist()
            self._normal = self._chance.standard_normal((_DRAWN_AT_ONCE, 6)).tolist()
        uniform, normal = iter(self._uniform.pop()), iter(self._normal.pop())
        compute = _within(0.55 * exponential(0.35 * next(normal)), 0.3, 1.1)
        share = _between(0.75 * EXPOSED_COMMUNICATION[0], 1.5 * EXPOSED_COMMUNICATION[1], next(uniform))
        run = Run(
            compute=compute,
            gap=compute * _between(0.0, 0.04, next(uniform)),
            exposed=0.0 if alone else compute * share / (1 - share),
            load=_between(1.5, 3.5, next(uniform)),
            common=float(np.interp(next(uniform), (0.0, 0.5, 1.0), STEP_VARIATION)),
            own=_between(0.003, 0.015, next(uniform)),
            checkpoint=_between(30.0, 60.0, next(uniform)),
            saving=_between(1.0, 2.5, next(uniform)),
            evaluation=_between(50.0, 110.0, next(uniform)),
            evaluating=_between(2.0, 4.0, next(uniform)),
            pipe=_within(0.26 * exponential(0.35 * next(normal)), 0.12, 0.65),
            bandwidth=_within(0.35 * exponential(0.35 * next(normal)), 0.12, 0.8),
            intensity=_between(0.78, 1.03, next(uniform)),
            memory=float(np.interp(next(uniform), *MEMORY_QUANTILES)),
            bus=_between(0.35, 0.7, next(uniform)),
            overlapped=_between(0.03, 0.12, next(uniform)),
            reading=_within(60e6 * exponential(1.0 * next(normal)), 5e6, 800e6),
            duty=_within(DUTY_MEDIAN * exponential(DUTY_SIGMA * next(normal)), 0.1, 0.6),
            burst=_between(1.5, 3.0, next(uniform)),
            phase=next(uniform),
        )
        self.drawn.append(run)
        return len(self.drawn) - 1

    def table(self) -> dict[str, NDArray[np.float32]]:
        """Parameters by run, with noughts behind the last for nodes without one (number -1)."""
        rows = [[getattr(run, name) for name in FIELDS] for run in self.drawn]
        columns = np.array([*rows, [0.0] * len(FIELDS)], dtype=np.float32).T
        return dict(zip(FIELDS, np.ascontiguousarray(columns), strict=True))


def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def _within(figure: float, low: float, high: float) -> float:
    return min(max(float(figure), low), high)
