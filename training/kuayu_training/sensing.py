"""Sensors of the training generator: what exporters make of what the accelerators of each node truly do."""

import numpy as np

from kuayu.perception.recognition.values import SIGNALS, Flags, Instants, Places
from kuayu_training.fleet import PLACE, Fleet
from kuayu_training.jobs import Jobs
from kuayu_training.troubles import SLOW_LINK, STUCK, Troubles

GAUGES = [
    PLACE[name]
    for name in (
        "accelerator_utilisation", "matrix_pipe_activity", "power", "accelerator_memory_used",
        "memory_bandwidth_utilisation", "scale_out_transmit_flow", "scale_out_receive_flow", "storage_read_flow",
    )
]  # fmt: skip
"""Signals that a page shows as they were when it was made; faults are counted, and shares are what a scheduler says."""


class Sensors:
    """Exporters of a fleet, with their noise, steps and gaps.

    Args:
        random: Source of chance.
        fleet: The nodes.
        group: Group of each node.
    """

    def __init__(self, random: np.random.Generator, fleet: Fleet, group: Places) -> None:
        self._random = random
        self._fleet = fleet
        self._group = group
        self._last = np.full((len(group), len(SIGNALS)), np.nan)
        self._page = self._last.copy()
        self.renewed: Flags = np.ones(len(group), bool)
        """Whether each exporter has made a new page in the second that was read last."""

    def read(self, second: int, worked: dict[str, Instants], troubles: Troubles, jobs: Jobs) -> Instants:
        """What is shown in a second, (nodes, signals); NaN where the exporter does not give it.

        Args:
            second: Seconds since the world began.
            worked: What the accelerators truly do, by name, each (nodes,).
            troubles: What befalls the nodes.
            jobs: What the groups do.
        """
        random, made = self._random, self._fleet
        nodes = len(self._group)

        def noisy(value: Instants) -> Instants:
            return value * np.exp(random.normal(0, 1, nodes) * made.noise)

        stuck = troubles.cause == STUCK
        there = troubles.missing_share(made.devices)
        works, stopped = worked["works"] > 0, worked["stopped"] > 0
        blip = np.where(random.random(nodes) < 0.02, random.uniform(0, 0.05, nodes), 0.0)
        full = (worked["utilisation"] > 0.97) & (worked["exact"] > 0)
        uneven = random.normal(0, 1, nodes) * made.utilisation_noise * (worked["utilisation"] > 0)
        utilisation = np.where(full, 1.0, worked["utilisation"] + uneven)
        utilisation = np.where(stuck, troubles.odd, np.where(works & ~stopped, utilisation, blip))
        utilisation = _in_steps(utilisation, made.utilisation_step)
        watts = made.idle_power + made.working_power * worked["watts"] + made.waiting_power * worked["polls"]
        watts += stopped * made.working_power * np.where(stuck, troubles.lost, 0.1) * 0.4
        watts = noisy(watts) * there
        watts = np.minimum(watts, made.idle_power + made.working_power * made.cap * jobs.power[self._group])
        stands = jobs.keeps[self._group] | (stopped & troubles.holds)
        left = (jobs.ready - second)[self._group]
        loads = (left > 0) & ~jobs.keeps[self._group]
        loaded = np.where(loads, np.clip(1 - left / 20, 0.1, 1), 1.0)
        held = ((works & ~(stopped & ~troubles.holds)) * loaded + (~works & stands)) * jobs.memory[self._group]
        background = 10 ** random.uniform(3, 5.5, nodes)
        flow = worked["flow"]
        unfit = stopped & (second - troubles.since >= troubles.withheld)
        free = np.where(works | unfit, 0.0, there)
        values = np.empty((nodes, len(SIGNALS)))
        values[:, PLACE["accelerator_utilisation"]] = np.clip(utilisation, 0, 1)
        values[:, PLACE["matrix_pipe_activity"]] = np.clip(_in_steps(noisy(worked["pipe"]), made.pipe_step), 0, 1)
        values[:, PLACE["power"]] = _in_steps(watts, made.power_step)
        values[:, PLACE["accelerator_memory_used"]] = made.capacity * there * (held * 0.99 + 0.005)
        values[:, PLACE["memory_bandwidth_utilisation"]] = np.clip(noisy(worked["memory pipe"]), 0, 1)
        again = np.where(troubles.cause == SLOW_LINK, 1 + 0.6 * troubles.odd, 1.0)
        values[:, PLACE["scale_out_transmit_flow"]] = noisy(flow) * again * jobs.answers[self._group] + background
        values[:, PLACE["scale_out_receive_flow"]] = noisy(flow) + background
        values[:, PLACE["storage_read_flow"]] = worked["storage"] * random.lognormal(0, 0.5, nodes) + background
        values[:, PLACE["faults"]] = troubles.faults(random, second)
        values[:, PLACE["allocatable_share"]] = np.where(made.share_of_fit, np.where(unfit, 0.0, there), free)
        values[:, PLACE["health_state"]] = np.nan
        values[:, PLACE["device_share"]] = np.where(made.by_device, there, np.nan)
        still = [PLACE[name] for name in ("accelerator_utilisation", "power")]
        frozen = stuck & made.frozen & (second - troubles.since > 0) & ~np.isnan(self._last[:, 0])
        values[np.ix_(frozen, still)] = self._last[np.ix_(frozen, still)]
        self._last = values
        return np.where(made.shown.T, self._paged(second, values), np.nan)

    def _paged(self, second: int, values: Instants) -> Instants:
        """What the pages show: nothing new for as long as a page holds, nor where the change is within the band."""
        made, before = self._fleet, self._page[:, GAUGES]
        self.renewed = (second + made.phase) % made.renewed == 0
        within = np.abs(values[:, GAUGES] - before) <= made.band[:, None] * np.abs(before)
        holds = ~self.renewed[:, None] | (within & (made.band > 0)[:, None])
        page = values.copy()
        page[:, GAUGES] = np.where(holds & ~np.isnan(before), before, values[:, GAUGES])
        self._page = page
        return page


def _in_steps(values: Instants, step: Instants) -> Instants:
    """Values in whole steps, where there are any."""
    made: Instants = np.where(step > 0, np.round(values / np.maximum(step, 1e-9)) * step, values)
    return made
