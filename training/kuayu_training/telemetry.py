"""The training generator: worlds of nodes whose telemetry follows from what their jobs and faults do to each other.

1. A synchronous family advances at the pace of its slowest member. Each member works for the part of a step that its
   own speed asks for and waits for the rest: a waiting accelerator that polls shows as utilised, draws less power and
   moves nothing; one that sleeps shows as idle. Where a member stops or falls silent, the others wait without end; they
   are busy, for what holds them up is not theirs (clause *Resource graph*: a node that waits is busy).
2. Sensors are what exporters make of what the accelerators of each node truly do.
3. Every parameter is drawn at random, widely (domain randomisation; Tobin et al. 2017), so that a recogniser learns
   what follows from waiting and not what one generator happens to look like. Step times of stragglers are of the order
   found in production (Lin et al. 2025, "Understanding Stragglers in Large Model Training").
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import SIGNALS, UNKNOWN, Flags, Instants, Places, Population, Telemetry
from kuayu_training import fleet as causes
from kuayu_training.fleet import (
    PLACE,
    SERVING,
    SLOW_LINK,
    STUCK,
    SYNCHRONOUS,
    Fleet,
    InjectedFaults,
    Jobs,
    Post,
    Region,
    fleet,
)

PARTIAL = 0.35
"""Share of the jobs of families that run on a part of their members."""

NOTICED = 6
"""Seconds after which an elastic family goes on without a member that stopped."""

MOVES = 1e7
"""Bytes a second of a job from which on what is sent again can be told."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One second of a world.

    Attributes:
        telemetry: What a recogniser is given.
        truth: State of each node now, position in ``STATES``.
        shown: State of each node when its newest sample was taken.
        cause: What befalls each node now, position in ``CAUSES``.
    """

    telemetry: Telemetry
    truth: NDArray[np.int8]
    shown: NDArray[np.int8]
    cause: Places


class World:
    """Nodes in domains, in families and alone, played second by second.

    Args:
        seed: Everything follows from it.
        region: Where parameters are drawn from.
        sizes: Nodes of each domain.
        period: Seconds between samples; drawn for each domain where None.
    """

    def __init__(self, seed: int, region: Region, sizes: list[int], period: int | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._region = region
        self.fleet: Fleet = fleet(self._random, region, sizes, period)
        self._group, self.population = self._families()
        group_sizes = np.bincount(self._group)
        self._jobs = Jobs.draw(self._random, region, group_sizes)
        nodes = len(self._group)
        self._injected = causes.InjectedFaults.none(nodes)
        self._post = Post(self.fleet, self._random)
        spread = self._random.uniform(*region.variation, len(group_sizes))[self._group]
        self._lasting = np.exp(self._random.normal(0, 1, (3, nodes)) * spread)
        self._spread = spread
        self._passing = np.ones((3, nodes))
        self._factors = np.ones((4, len(group_sizes)))
        self._load = np.full(nodes, 0.6)
        self._sensors = Sensors(self._random, self.fleet, self._group)
        self._paged = np.zeros(nodes, np.int8)
        late = self._random.random(nodes) < 0.06
        self._born = np.where(late, self._random.uniform(20, 250, nodes), 0)
        self._part = np.ones(nodes, bool)
        self._choose(np.ones(len(group_sizes), bool))
        self.second = -1

    def _families(self) -> tuple[Places, Population]:
        """Cut each domain into groups; a tenth of the families belong to a larger one that does not work as one."""
        group, pairs_node, pairs_family, count, families = [], [], [], 0, 0
        for domain in range(self.fleet.domains):
            rows = np.flatnonzero(self.fleet.domain == domain)
            place = 0
            previous: NDArray[np.intp] = rows[:0]
            while place < len(rows):
                size = 1 if self._random.random() < 0.45 else int(self._random.integers(*self._region.family))
                members = rows[place : place + size]
                place += size
                group.append(np.full(len(members), count))
                count += 1
                if len(members) == 1:
                    continue
                both = [members]
                if len(previous) and self._random.random() < 0.1:
                    both.append(np.concatenate([members, previous]))
                previous = members
                for rows_of_family in both:
                    pairs_node.append(rows_of_family)
                    pairs_family.append(np.full(len(rows_of_family), families))
                    families += 1
        member = np.concatenate([*pairs_node, np.zeros(0, np.intp)]).astype(np.intp)
        family = np.concatenate([*pairs_family, np.zeros(0, np.intp)]).astype(np.intp)
        return np.concatenate(group), self.fleet.population(member, family)

    def step(self) -> Moment:
        """Let a second pass."""
        self.second += 1
        random, jobs, injected = self._random, self._jobs, self._injected
        before = jobs.working.copy()
        self._factors = jobs.step(random, self._region, self.second)
        self._choose(jobs.working & ~before)
        shown = {name: self.fleet.shown[PLACE[name]] for name in ("faults", "device_share", "allocatable_share")}
        both = self.fleet.shown[PLACE["scale_out_transmit_flow"]] & self.fleet.shown[PLACE["scale_out_receive_flow"]]
        works = jobs.working[self._group] & self._part
        fit = shown["allocatable_share"] & (self.fleet.share_of_fit | ~works)
        smaller = works & self.fleet.shown[PLACE["accelerator_memory_used"]] & self.fleet.shown[PLACE["power"]]
        parted = ((shown["device_share"] & self.fleet.by_device) | fit | smaller) & (self.fleet.devices > 1)
        visible = np.stack([shown["faults"], parted, both & (jobs.flow > MOVES)[self._group], self.fleet.standing])
        injected.step(random, self._region, self.second, self._group, jobs, works, visible)
        injected.end_jobs(random, self.second, self._group, jobs)
        self._go_on_without()
        works = jobs.working[self._group] & self._part
        injected.stop_of_idle(works)
        truth = injected.states(self._group, jobs, works, self._hung())
        values = self._sensors.read(self.second, self._worked(), injected, jobs)
        born = self.second >= self._born
        self._paged = np.where(self._sensors.renewed, truth, self._paged)
        fresh = self._post.step(self.second, values, self._paged, (injected.cause != causes.AWAY) & born)
        post = self._post
        telemetry = Telemetry(float(self.second), post.values.copy(), post.observed.copy(), post.arrived.copy(), fresh)
        shown_state = np.where(np.isnan(post.observed), np.int8(UNKNOWN), post.state)
        return Moment(telemetry, np.where(born, truth, np.int8(UNKNOWN)), shown_state, injected.cause.copy())

    def _choose(self, groups: Flags) -> None:
        """Choose who takes part in the jobs that some groups begin: mostly all, sometimes a part of them."""
        random, group = self._random, self._group
        shares = np.where(random.random(len(groups)) < PARTIAL, random.uniform(0.4, 1.0, len(groups)), 1.0)
        takes = random.random(len(group)) < shares[group]
        few = np.bincount(group, takes, minlength=len(groups)) < np.minimum(
            np.bincount(group, minlength=len(groups)), 2
        )
        self._part = np.where(groups[group], takes | few[group], self._part)

    def _go_on_without(self) -> None:
        """Elastic families go on without the member that stopped, once they have noticed; it waits for the next job."""
        injected, jobs = self._injected, self._jobs
        elastic = (jobs.elastic & (jobs.kind == SYNCHRONOUS))[self._group]
        left = causes.stops(injected.cause) & elastic & (self.second - injected.since >= NOTICED)
        self._part &= ~left

    def _rates(self) -> tuple[Instants, Instants, Flags]:
        """Speed of each node, pace at which its job goes on over the usual, and whether it works at all."""
        group, jobs, injected = self._group, self._jobs, self._injected
        works = jobs.working[group] & self._part & (injected.cause != causes.LEFT)
        slow = np.isin(injected.cause, causes.SLOW)
        speed = np.where(slow, injected.speed, 1.0)
        slowest = np.ones(len(jobs.kind))
        np.minimum.at(slowest, group[works], speed[works])
        pace = 1 / (1 + jobs.coupling * (1 / slowest - 1))
        synchronous = jobs.kind == SYNCHRONOUS
        pace = np.where(self._hung() & synchronous, 0.0, pace)
        return speed, np.where(synchronous[group], pace[group], speed), works

    def _hung(self) -> Flags:
        """Groups of which a member has stopped, and is still waited for."""
        group, jobs, injected = self._group, self._jobs, self._injected
        hung = np.zeros(len(jobs.kind), bool)
        hung[group[causes.stops(injected.cause) & self._part]] = True
        return hung

    def _worked(self) -> dict[str, Instants]:
        """What the accelerators of each node truly do in this second, before sensors see it."""
        random, group, jobs, cause = self._random, self._group, self._jobs, self._injected.cause
        speed, pace, works = self._rates()
        self._passing = 0.75 * self._passing + 0.25 * (1 + random.normal(0, 1.5, self._passing.shape) * self._spread)
        vary = np.maximum(self._lasting * self._passing, 0.2)
        serving = (jobs.kind == SERVING)[group]
        jumps = np.where(jobs.bursty[group], 0.2, 0.05)
        self._load = np.clip(
            self._load + jumps * (jobs.load[group] - self._load + random.normal(0, 0.25, len(group))), 0.1, 1
        )
        demand = np.where(serving, np.clip(0.5 * self._load + 0.5 * jobs.load[group], 0.1, 1), 1.0)
        used = np.where(serving, np.minimum(1.0, demand / speed), 1.0)
        own = np.where(serving, 1.0, np.where(pace > 0, np.minimum(1.0, pace / speed), 0.0))
        clock, host = cause == causes.SLOW_CLOCK, cause == causes.SLOW_HOST
        memory = cause == causes.SLOW_MEMORY
        one, link = cause == causes.SLOW_DEVICE, cause == causes.SLOW_LINK
        devices = np.maximum(self.fleet.devices, 1)
        own = np.where(one, (1 + (devices - 1) * np.minimum(1, pace)) / devices, own)
        own = np.where(host | link, pace, own)
        waits = np.where(host, 0.0, 1 - own)
        done = np.where(serving, np.minimum(demand, speed * used), pace)
        factors, loads = self._factors[:, group], (self.second < jobs.ready)[group]
        stalls = np.where(clock & (self._injected.power > 1.2), 1.0, np.where(clock, 0.5 + 0.5 * speed, 1.0))
        alone = (jobs.kind != SYNCHRONOUS)[group]
        active = np.where(serving, used, own)
        pipe = active * np.where(memory | (alone & host), done / np.maximum(active, 0.05), stalls)
        memory_pipe = np.where(memory, done + (active - done) * self._injected.odd, done)
        watts = active * np.where(clock | one, speed**self._injected.power, 1.0)
        watts = np.where(one, (speed**self._injected.power + (devices - 1) * pace) / devices, watts)
        watts = np.where(alone & host, done, watts)
        stalls_draw = 0.3 + 0.5 * self._injected.odd
        watts = np.where(memory, stalls_draw * watts + (1 - stalls_draw) * done, watts)
        polls = waits * jobs.busy_waiting[group]
        zero = np.where(works & ~np.isin(cause, causes.STOPPED), 1.0, 0.0)
        level = np.where(
            alone & host & ~serving,
            pace ** np.minimum(self._injected.power / 1.6, 1),
            np.where(serving, used, own),
        )
        usual = np.where(jobs.saturated[group], 1.0, jobs.utilisation[group])
        return {
            "utilisation": zero * np.minimum(1, usual * factors[0] * level + polls),
            "exact": ((polls > 0.3) | (jobs.saturated[group] & ~serving)).astype(float),
            "pipe": zero * jobs.pipe[group] * factors[1] * pipe * vary[0],
            "memory pipe": zero * (jobs.memory_pipe[group] * factors[2] * memory_pipe * vary[1] + 0.01 * polls),
            "watts": zero * np.clip(factors[1], 0.05, 1.1) ** 0.7 * jobs.power[group] * watts * vary[0] ** 0.6,
            "polls": zero * np.maximum(polls, 0.6 * (factors[1] < 0.2) * factors[0]),
            "flow": zero
            * jobs.flow[group]
            * factors[3]
            * done
            * vary[2]
            * np.where(link, 0.7 + 0.3 * self._injected.odd, 1.0),
            "storage": zero * jobs.storage[group] * np.where(loads, 10.0, factors[3]) * done,
            "works": works.astype(float),
            "stopped": np.isin(cause, causes.STOPPED).astype(float),
        }


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

    def read(self, second: int, worked: dict[str, Instants], injected: InjectedFaults, jobs: Jobs) -> Instants:
        """What is shown in a second, (nodes, signals); NaN where the exporter does not give it.

        Args:
            second: Seconds since the world began.
            worked: What the accelerators truly do, by name, each (nodes,).
            injected: What befalls the nodes.
            jobs: What the groups do.
        """
        random, fleet = self._random, self._fleet
        nodes = len(self._group)

        def noisy(value: Instants) -> Instants:
            return value * np.exp(random.normal(0, 1, nodes) * fleet.noise)

        stuck = injected.cause == STUCK
        present = injected.missing_share(fleet.devices)
        works, stopped = worked["works"] > 0, worked["stopped"] > 0
        blip = np.where(random.random(nodes) < 0.02, random.uniform(0, 0.05, nodes), 0.0)
        full = (worked["utilisation"] > 0.97) & (worked["exact"] > 0)
        uneven = random.normal(0, 1, nodes) * fleet.utilisation_noise * (worked["utilisation"] > 0)
        utilisation = np.where(full, 1.0, worked["utilisation"] + uneven)
        utilisation = np.where(stuck, injected.odd, np.where(works & ~stopped, utilisation, blip))
        utilisation = _in_steps(utilisation, fleet.utilisation_step)
        watts = fleet.idle_power + fleet.working_power * worked["watts"] + fleet.waiting_power * worked["polls"]
        watts += stopped * fleet.working_power * np.where(stuck, injected.lost, 0.1) * 0.4
        watts = noisy(watts) * present
        watts = np.minimum(watts, fleet.idle_power + fleet.working_power * fleet.cap * jobs.power[self._group])
        stands = jobs.keeps[self._group] | (stopped & injected.holds)
        left = (jobs.ready - second)[self._group]
        loads = (left > 0) & ~jobs.keeps[self._group]
        loaded = np.where(loads, np.clip(1 - left / 20, 0.1, 1), 1.0)
        occupied = ((works & ~(stopped & ~injected.holds)) * loaded + (~works & stands)) * jobs.memory[self._group]
        background = 10 ** random.uniform(3, 5.5, nodes)
        flow = worked["flow"]
        unfit = stopped & (second - injected.since >= injected.withheld)
        free = np.where(works | unfit, 0.0, present)
        values = np.empty((nodes, len(SIGNALS)))
        values[:, PLACE["accelerator_utilisation"]] = np.clip(utilisation, 0, 1)
        values[:, PLACE["matrix_pipe_activity"]] = np.clip(_in_steps(noisy(worked["pipe"]), fleet.pipe_step), 0, 1)
        values[:, PLACE["power"]] = _in_steps(watts, fleet.power_step)
        values[:, PLACE["accelerator_memory_used"]] = fleet.capacity * present * (occupied * 0.99 + 0.005)
        values[:, PLACE["memory_bandwidth_utilisation"]] = np.clip(noisy(worked["memory pipe"]), 0, 1)
        again = np.where(injected.cause == SLOW_LINK, 1 + 0.6 * injected.odd, 1.0)
        values[:, PLACE["scale_out_transmit_flow"]] = noisy(flow) * again * jobs.answers[self._group] + background
        values[:, PLACE["scale_out_receive_flow"]] = noisy(flow) + background
        values[:, PLACE["storage_read_flow"]] = worked["storage"] * random.lognormal(0, 0.5, nodes) + background
        values[:, PLACE["faults"]] = injected.faults(random, second)
        values[:, PLACE["allocatable_share"]] = np.where(fleet.share_of_fit, np.where(unfit, 0.0, present), free)
        values[:, PLACE["health_state"]] = np.nan
        values[:, PLACE["device_share"]] = np.where(fleet.by_device, present, np.nan)
        still = [PLACE[name] for name in ("accelerator_utilisation", "power")]
        frozen = stuck & fleet.frozen & (second - injected.since > 0) & ~np.isnan(self._last[:, 0])
        values[np.ix_(frozen, still)] = self._last[np.ix_(frozen, still)]
        self._last = values
        return np.where(fleet.shown.T, self._paged(second, values), np.nan)

    def _paged(self, second: int, values: Instants) -> Instants:
        """What the pages show: nothing new for as long as a page holds, nor where the change is within the band."""
        fleet, before = self._fleet, self._page[:, GAUGES]
        self.renewed = (second + fleet.phase) % fleet.renewed == 0
        within = np.abs(values[:, GAUGES] - before) <= fleet.band[:, None] * np.abs(before)
        holds = ~self.renewed[:, None] | (within & (fleet.band > 0)[:, None])
        page = values.copy()
        page[:, GAUGES] = np.where(holds & ~np.isnan(before), before, values[:, GAUGES])
        self._page = page
        return page


def _in_steps(values: Instants, step: Instants) -> Instants:
    """Values in whole steps, where there are any."""
    rounded: Instants = np.where(step > 0, np.round(values / np.maximum(step, 1e-9)) * step, values)
    return rounded
