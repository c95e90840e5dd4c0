"""What a node's devices, ports and disks do in each second, before anybody reads a meter.

Arrays are rows × samples, in SI units, for whole nodes. Ratios are means over the devices that are left.
"""

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.telemetry import facts
from kuayu_conformance.testbed.telemetry.history import Floats, History, Timing
from kuayu_conformance.testbed.telemetry.population import SERVING, Population
from kuayu_conformance.testbed.telemetry.steps import Phase
from kuayu_conformance.testbed.telemetry.values import TICKS

_LOADING = 0.05  # utilisation while memory is filled, and while a checkpoint is saved
_EVALUATING = 0.85  # of what training uses of pipes and memory
_MOVING = 0.12  # power of communication above waiting, as a share of the way from idle to full
_STALLED = 0.3  # share of the power above an open context that a stalled kernel still draws at no speed
_READ_AT_START, _WRITTEN_AT_SAVE = 4e9, 3e9  # By/s
_SERVED = 0.45  # power above an open context of a server at full duty, as a share of training's
_REQUESTS, _ANSWERS = 5e6, 2e7  # By/s at full duty
_DRIVER = 4 << 20  # By on a device that nothing uses


class Signals:
    """Levels of everything, from phases and history."""

    def __init__(
        self,
        population: Population,
        history: History,
        table: dict[str, Floats],
        counts: NDArray[np.uint8],
        duty: Floats,
        timing: Timing,
    ) -> None:
        self._population = population
        self._history = history
        self._of_run: dict[str, Floats] = {name: values[history.run] for name, values in table.items() if name in _USED}
        ticks = np.full(duty.shape, TICKS, dtype=np.float32)
        ticks[:, 0] = timing.offset
        self._share: dict[Phase, Floats] = {phase: counts[phase] / ticks for phase in Phase}
        server = np.array([group.kind == SERVING for group in population.groups])[population.group]
        self._server: Floats = server.astype(np.float32)[:, np.newaxis]
        self._duty: Floats = duty * self._server
        self._stuck: Floats = history.stuck * self._server  # others show it as a wait
        figures = ("limit", "idle", "held", "network", "devices", "memory")
        by_domain = np.array([[getattr(kind, name) for name in figures] for kind in population.kinds], dtype=np.float32)
        by_row = (column[:, np.newaxis] for column in by_domain[population.domain].T)
        self._limit, self._idle, self._held, self._network, self._devices, self._memory = by_row

    def _worked(self) -> Floats:
        """Share of a second's usual work of kernels that is done."""
        slow = self._share[Phase.THROTTLED] + self._share[Phase.STALLING]
        return self._share[Phase.COMPUTE] + slow * self._history.speed

    def utilisation(self) -> Floats:
        """Time with a kernel, waiting ones included."""
        share = self._share
        kernels = share[Phase.COMPUTE] + share[Phase.THROTTLED] + share[Phase.STALLING]
        kernels += share[Phase.WAIT] + share[Phase.COMMUNICATE] + share[Phase.EVALUATE]
        kernels += _LOADING * (share[Phase.LOAD] + share[Phase.SAVE])
        utilisation: Floats = kernels + self._duty + self._stuck
        return utilisation

    def pipe(self) -> Floats:
        """Matrix pipe activity: a share of clock cycles, so that a lower clock alone does not show in it."""
        share = self._share
        cycles = share[Phase.COMPUTE] + share[Phase.THROTTLED] + share[Phase.STALLING] * self._history.speed
        pipe: Floats = self._of_run["pipe"] * (cycles + _EVALUATING * share[Phase.EVALUATE] + 0.7 * self._duty)
        return pipe

    def bandwidth(self) -> Floats:
        """Memory bandwidth utilisation."""
        share = self._share
        moved = self._worked() + _EVALUATING * share[Phase.EVALUATE] + 0.1 * share[Phase.COMMUNICATE]
        bandwidth: Floats = self._of_run["bandwidth"] * (moved + self._duty)
        return bandwidth

    def power(self) -> Floats:
        """Watts of the node's devices, with their lag."""
        share, full = self._share, self._limit - self._held
        training = self._of_run["intensity"] * full
        waiting = self._idle + facts.WAITING_POWER * (self._limit - self._idle)
        held = self._held * np.minimum(1.0, self._history.run + 1).astype(np.float32)
        base = np.maximum(held, self._idle)  # an open context, wherever a run holds the node
        speed = self._history.speed
        throttled = facts.power_at_speed(speed) * (base + training) - base
        stalled = training * (_STALLED + (1 - _STALLED) * speed)
        above = share[Phase.COMPUTE] * training + share[Phase.THROTTLED] * throttled
        above += share[Phase.STALLING] * stalled + _EVALUATING * share[Phase.EVALUATE] * training
        above += (share[Phase.WAIT] + share[Phase.COMMUNICATE] + self._stuck) * (waiting - base)
        above += share[Phase.COMMUNICATE] * _MOVING * (self._limit - self._idle)
        above += self._duty * _SERVED * training
        power: Floats = _lagging(base + above) * self._devices * (1 - self._history.lost)
        return power

    def memory(self) -> Floats:
        """Bytes in use."""
        used = self._of_run["memory"] * self._history.memory * self._memory + _DRIVER
        memory: Floats = used * self._devices * (1 - self._history.lost)
        return memory

    def flow(self) -> Floats:
        """Bytes a second that arrive from other nodes; nearly as many are sent, see :meth:`sent`."""
        together = (self._of_run["exposed"] > 0) * (1 - self._server)
        exposed = self._of_run["bus"] * self._share[Phase.COMMUNICATE] * self._history.congestion
        training = together * self._network * (exposed + self._of_run["overlapped"] * self._worked())
        flow: Floats = training + _REQUESTS * self._duty
        return flow

    def sent(self, arrived: Floats) -> Floats:
        """Bytes a second that leave: what arrives elsewhere, and what has to be sent again."""
        sent: Floats = arrived * self._history.again + (_ANSWERS - _REQUESTS) * self._duty
        return sent

    def read(self) -> Floats:
        """Bytes a second read from the store."""
        share = self._share
        batches = self._of_run["reading"] * (self._worked() + share[Phase.EVALUATE])
        starting = self._server * (self._history.memory > 0) * (self._history.memory < 1)
        read: Floats = batches * (1 - self._server) + _READ_AT_START * (share[Phase.LOAD] + starting)
        return read

    def written(self) -> Floats:
        """Bytes a second written to it."""
        written: Floats = _WRITTEN_AT_SAVE * self._share[Phase.SAVE]
        return written


_USED = frozenset({"pipe", "bandwidth", "intensity", "memory", "bus", "overlapped", "exposed", "reading"})


def _lagging(target: Floats) -> Floats:
    """Mean over each second of a power that follows its target with a first-order lag."""
    left = exponential(-1.0 / facts.LAG_OF_POWER)
    mean = np.float32(facts.LAG_OF_POWER * (1.0 - left))
    shown = np.empty_like(target)
    power = target[:, 0].copy()
    for second in range(target.shape[1]):
        behind = power - target[:, second]
        shown[:, second] = target[:, second] + behind * mean
        power = target[:, second] + behind * np.float32(left)
    return shown
