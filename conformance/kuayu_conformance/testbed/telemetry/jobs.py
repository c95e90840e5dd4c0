"""What jobs are like: parameters of each run, drawn from what was measured (see ``facts``).

Lengths of steps and starts, reading, network shares and gaps are assumptions; bounds cut off what could not be decided.
Time runs faster than in reality, so that something happens within minutes: a checkpoint comes every 30–60 s rather than
every half hour, a start takes seconds, and those who wait for the dead give up within half a minute.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.telemetry import facts

_DRAWN_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Run:
    """A job from its start to its end.

    Attributes:
        compute: Seconds that kernels of a step take on a healthy node.
        gap: Seconds of a step in which no kernel runs, since the host prepares the next batch.
        exposed: Seconds of communication that no computation hides; nought for a single node.
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
        phase: Where in its cycles a job is that runs from the begin, as a share of them.
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
        share = _between(0.75 * facts.EXPOSED_COMMUNICATION[0], 1.5 * facts.EXPOSED_COMMUNICATION[1], next(uniform))
        run = Run(
            compute=compute,
            gap=compute * _between(0.0, 0.04, next(uniform)),
            exposed=0.0 if alone else compute * share / (1 - share),
            load=_between(1.5, 3.5, next(uniform)),
            common=float(np.interp(next(uniform), (0.0, 0.5, 1.0), facts.STEP_VARIATION)),
            own=_between(0.003, 0.015, next(uniform)),
            checkpoint=_between(30.0, 60.0, next(uniform)),
            saving=_between(1.0, 2.5, next(uniform)),
            evaluation=_between(50.0, 110.0, next(uniform)),
            evaluating=_between(2.0, 4.0, next(uniform)),
            pipe=_within(0.26 * exponential(0.35 * next(normal)), 0.12, 0.65),
            bandwidth=_within(0.35 * exponential(0.35 * next(normal)), 0.12, 0.8),
            intensity=_between(0.78, 1.03, next(uniform)),
            memory=float(np.interp(next(uniform), *facts.MEMORY_QUANTILES)),
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
