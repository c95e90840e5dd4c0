"""Which measures a node sends, how finely, and how often its page is made and read.

Utilisation is in whole percent (NVML, ``nvmlUtilization_t``) or coarser; DCGM makes its values every 30 s unless told
otherwise (dcgm-exporter, README, ``--collect-interval``), however often they are read.
"""

from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.sparse.patterns import DRIVER
from kuayu_conformance.testbed.sparse.values import Activity, Floats

MEASURES = (
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "memory_bandwidth_utilisation",
    "power",
    "accelerator_memory_used",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "storage_read_flow",
    "faults",
    "allocatable_share",
)
"""What a node of which nothing was reported may send, in the order of a sample's members."""

HOW_MANY = ((1, 3.0), (2, 3.0), (3, 2.0), (4, 1.5), (6, 1.0), (8, 0.7), (10, 0.7))
"""Measures that are sent, and how often so many are."""

RATIO_STEPS = ((1e-6, 1.0), (0.01, 2.0), (0.05, 1.0))
POWER_STEPS = ((0.001, 1.0), (1.0, 1.0), (5.0, 1.0))
PERIODS = ((1, 6.0), (5, 1.0), (10, 1.0), (20, 1.0), (30, 1.0))
PAGES = ((1, 7.0), (6, 1.0), (12, 1.0), (15, 1.0))
"""Least steps of what is shown, seconds between two samples, and seconds for which one page is shown."""

QUICK_PERIODS = ((1, 4.0), (2, 1.0), (5, 1.0))
"""Seconds between two samples of nodes that stop."""

BY_DEVICE = 0.15
"""Share of the nodes of which each device is sent rather than the node."""

GIVES_OUT, LAGS = 0.5, 0.5
"""Shares of the nodes whose accelerators are given out to one job each, and whose power is averaged."""

DEVICES = 2


@dataclass(frozen=True, slots=True)
class Exporter:
    """What shows a node.

    Attributes:
        measures: What is sent, in the order of ``MEASURES``.
        ratio_step: Least step of ratios.
        power_step: The same of power, W.
        period: Seconds between two samples.
        page: Seconds for which the values of a page are shown again.
        by_device: Whether each device is sent.
        limit: Watts that a device draws at most.
        idle: Watts at rest.
        memory: Bytes of a device.
        network: Bytes a second at full work.
        storage: The same from the store.
        pipe: Matrix pipe activity at full work.
        bandwidth: Memory bandwidth utilisation at full work.
        phase: Where in a second its samples are taken.
        gives_out: Whether accelerators are given out to one job each, so that the allocatable share falls with it; else
            jobs share them in time.
        lags: Whether power is the mean of the second before it (NVML, ``nvmlDeviceGetPowerUsage``, from Ampere on), so
            that it comes after utilisation where work begins or ends.
    """

    measures: tuple[str, ...]
    ratio_step: float
    power_step: float
    period: int
    page: int
    by_device: bool
    limit: float
    idle: float
    memory: float
    network: float
    storage: float
    pipe: float
    bandwidth: float
    phase: float
    gives_out: bool
    lags: bool

    @classmethod
    def drawn(cls, chance: Chance, measures: tuple[str, ...], *, quick: bool, in_turns: bool) -> "Exporter":
        """Any exporter; of a node that stops its samples come soon, of one that works in turns every second."""
        period = 1 if in_turns else chance.weighted(QUICK_PERIODS if quick else PERIODS)
        page = 1 if quick or in_turns or period > 1 else chance.weighted(PAGES)
        limit = chance.between(150, 750)
        return cls(
            measures=measures,
            ratio_step=chance.weighted(RATIO_STEPS),
            power_step=chance.weighted(POWER_STEPS),
            period=period,
            page=page,
            by_device=chance.fraction() < BY_DEVICE,
            limit=limit,
            idle=limit * chance.between(0.08, 0.2),
            memory=chance.between(16, 192) * 2**30,
            network=chance.between(1e8, 4e10),
            storage=chance.between(1e6, 1e9),
            pipe=chance.between(0.2, 0.7),
            bandwidth=chance.between(0.2, 0.8),
            phase=chance.below(20) / 20,
            gives_out=chance.fraction() < GIVES_OUT,
            lags=chance.fraction() < LAGS,
        )

    def shows(self, done: Activity) -> dict[str, Floats]:
        """What is sent of each measure, by second, of a device."""
        seconds = np.arange(len(done.utilisation))
        seen = seconds // self.page * self.page
        power = done.power.copy()
        if self.lags:
            power[1:] = (done.power[1:] + done.power[:-1]) / 2
        watts = self.idle + (self.limit - self.idle) * power
        taken = done.memory > 2 * DRIVER if self.gives_out else np.zeros(len(seconds), bool)
        values = {
            "accelerator_utilisation": _stepped(done.utilisation, self.ratio_step),
            "matrix_pipe_activity": _stepped(self.pipe * done.effort, min(self.ratio_step, 0.01)),
            "memory_bandwidth_utilisation": _stepped(self.bandwidth * done.effort, min(self.ratio_step, 0.01)),
            "power": _stepped(watts, self.power_step),
            "accelerator_memory_used": _stepped(self.memory * done.memory, 2.0**20),
            "scale_out_transmit_flow": _stepped(self.network * done.effort + 2e4, 1e3),
            "scale_out_receive_flow": _stepped(0.98 * self.network * done.effort + 2e4, 1e3),
            "storage_read_flow": _stepped(self.storage * done.effort + 1e4, 1e3),
        }
        shown = {name: row[seen] for name, row in values.items()}
        counted = done.faults
        for ago in range(1, self.period if counted.any() else 1):
            counted = np.maximum(counted, np.r_[np.zeros(ago), done.faults[:-ago]])
        return {**shown, "faults": counted, "allocatable_share": np.where(taken, 0.0, 1.0)}


def any_measures(chance: Chance, least: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A subset of the measures, that holds some at least, in their order."""
    left = [(name, 1.0) for name in MEASURES if name not in least]
    chosen = chance.order(left)[: chance.weighted(HOW_MANY)]
    if least:
        chosen = [name for name in chosen if chance.fraction() < 0.5]  # noqa: PLR2004 - few beside what is needed
    return tuple(name for name in (*MEASURES, "health_state") if name in chosen or name in least)


def _stepped(values: Floats, step: float) -> Floats:
    """Values in whole steps, without the last digits of a multiplication."""
    per = round(1 / step) if step < 1 else 0
    made: Floats = np.rint(values * per) / per if per else np.rint(values / step) * step
    return made
