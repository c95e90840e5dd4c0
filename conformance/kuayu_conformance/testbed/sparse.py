"""Sparse telemetry: nodes that send any part of their measures, healthy ones and hung ones, and the truth.

The worlds of MET-006 (:mod:`kuayu_conformance.testbed.telemetry`) hold what goes wrong in many ways at nodes that send
most of their measures. These hold little that goes wrong, and all that healthy nodes look like while few measures are
known of them. :class:`World` is what a check plays, ``World(QUICK, seed)`` in a short run.

1. **Time.** Seconds since the beginning of the warm-up; everything follows from scale and seed.
2. **Patterns.** What accelerators do that are well: arrays by second, drawn for one node. A power cap holds a board at
   one value (NVIDIA, "nvidia-smi" manual, *Software Power Cap*); servers of inference reserve their memory once and
   keep it (vLLM, ``gpu_memory_utilization``); two thirds of the samples of the Acme clusters show utilisation, and
   half of them next to no power (InternLM/AcmeTrace, ``data/utilization``). Lengths and levels are assumptions.
3. **Stops.** How nodes stop, each with evidence that suffices whatever else is sent. Who waits in a collective
   operation shows full utilisation at little power, the one that hangs shows none
   (:mod:`kuayu_conformance.testbed.telemetry.population`, *Waiting*).
4. **Exporters.** Which measures a node sends, how finely, and how often its page is made and read. Utilisation is in
   whole percent (NVML, ``nvmlUtilization_t``) or coarser; DCGM makes its values every 30 s unless told otherwise
   (dcgm-exporter, README, ``--collect-interval``), however often they are read.
5. **Left out** is what telemetry cannot decide: a single node that rests with its memory held and will never go on
   shows what one shows that will, so nothing of that kind stops here without a counted fault.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.telemetry.population import Delivery, NameOf
from kuayu_conformance.testbed.telemetry.world import urn_with

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
DOMAINS = 4
GRACE = 10.0
"""Seconds within which a state has to be recognised (MET-006)."""
LASTING = 5.0
"""Seconds for which a state must be shown to count as recognised, as in MET-006."""
SAMPLES = 2
"""Samples that are waited for beyond it, where they come seldom: one that differs may be a slip."""
WARM = 48
"""Seconds of the warm-up. Whoever works in turns works all through it, so that no rest has been seen before."""
DRIVER = 0.004
"""Share of the memory that a driver takes without a job."""
OPEN = 0.06
"""Power of an open context that does nothing, above that at rest."""
IN_TURNS = frozenset({"notebook", "server", "jobs"})
"""Patterns of which something changes within seconds: they are sent once a second."""
WAITING = 0.18
"""Power of who waits busily, or of a kernel that never ends, between that at rest and the most."""
FAMILY = np.array([3, 4])
"""Nodes of a family."""
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
GUIDE = ("accelerator_utilisation", "power")
"""What the sample of the guide for integrators holds, as values that never change: 0.93 and 68.5 W."""
_GUIDE_SHARE = 0.03
_FAMILIES = 0.06
"""Share of the healthy units that are a family which works together."""
_STATED = 0.5
"""Share of the nodes whose devices are registered with their memory and their limit of power."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is: units with which nothing is wrong, units that stop, seconds before judging, and after."""

    healthy: int
    faulty: int
    warm_up: int
    seconds: int

    @property
    def total(self) -> int:
        """Seconds from the beginning of the warm-up to the end."""
        return self.warm_up + self.seconds


FULL = Scale(healthy=2600, faulty=2400, warm_up=48, seconds=92)
"""With one unit of 480 shown wrongly the exact bound is 99.0 %; with thirteen of 2 400 too."""
QUICK = Scale(healthy=520, faulty=480, warm_up=48, seconds=62)


@dataclass(slots=True)
class Activity:
    """What the accelerators of a node do in each second.

    Attributes:
        utilisation: Share of the time in which they compute, or wait busily.
        effort: How much of what they can do gets done; pipes, memory and flows follow it.
        power: Where their power stands between that at rest (0) and the most (1).
        memory: Share of their memory that is held.
        works: Whether they work, which is the truth of a node that is well.
        faults: Faults that are counted, or one in each second in which one stands.
        fails: Whether what was given to the node does not go on any more.
    """

    utilisation: Floats
    effort: Floats
    power: Floats
    memory: Floats
    works: Flags
    faults: Floats
    fails: Flags

    @classmethod
    def of(cls, utilisation: Floats, effort: Floats, power: Floats, memory: Floats) -> "Activity":
        """Activity of a node that is well; it works where anything is computed."""
        none = np.zeros(len(utilisation))
        return cls(utilisation, effort, power, memory, utilisation > 0, none, none > 0)


Pattern = Callable[[Chance, np.random.Generator, int], Activity]


@dataclass(frozen=True, slots=True)
class Unit:
    """One node, or one family, of which one thing is judged: whether it is shown rightly.

    Attributes:
        pattern: What it does.
        measures: What it sends.
        nodes: Its nodes; of a family that stops, the one that does so is the first.
        works: Whether it works, by second.
        onset: Second from which it does not go on; None where nothing is wrong.
        patience: Seconds after a change within which it need not be shown.
    """

    pattern: str
    measures: tuple[str, ...]
    nodes: tuple[str, ...]
    works: Flags
    onset: int | None
    patience: float


def steady(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """Work that shows the same values all the time."""
    level = chance.between(0.3, 1.0)
    return _constant(seconds, level, chance.between(0.2, 0.9), chance.between(0.2, 0.95))


def capped(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Full utilisation under a limit of power that is reached all the time; what gets done varies a little."""
    activity = _constant(seconds, 1.0, chance.between(0.15, 0.6), chance.between(0.3, 0.95))
    activity.effort = _noisy(activity.effort, noise, 0.03)
    return activity


def noisy(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Work whose values vary from second to second, each by itself."""
    by = chance.between(0.01, 0.05)
    activity = _constant(seconds, chance.between(0.45, 0.95), chance.between(0.3, 0.9), chance.between(0.2, 0.95))
    activity.utilisation = np.minimum(1.0, _noisy(activity.utilisation, noise, by))
    activity.effort, activity.power = _noisy(activity.effort, noise, by), _noisy(activity.power, noise, by)
    return activity


def drifting(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Work that swings slowly about its mean."""
    activity = noisy(chance, noise, seconds)
    swing = 1 + chance.between(0.01, 0.05) * wave(np.arange(seconds) / chance.between(40, 160) + chance.fraction())
    activity.utilisation = np.minimum(1.0, activity.utilisation * swing)
    activity.effort, activity.power = activity.effort * swing, activity.power * swing
    return activity


def at_rest(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """No job at all."""
    return _constant(seconds, 0.0, 0.0, chance.between(DRIVER, 2 * DRIVER))


def held_at_rest(chance: Chance, _noise: np.random.Generator, seconds: int) -> Activity:
    """Memory held by a notebook or a server that nobody has asked anything since it was started."""
    return _constant(seconds, 0.0, OPEN, chance.between(0.3, 0.95))


def notebook(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Even work and rests with all memory kept, in turns."""
    works = _spells(chance, seconds)
    activity = _constant(seconds, chance.between(0.5, 1.0), chance.between(0.3, 0.9), chance.between(0.3, 0.95))
    activity.effort, activity.power = _noisy(activity.effort, noise, 0.02), _noisy(activity.power, noise, 0.02)
    return _resting(activity, works)


def server(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """A load that wanders, and seconds without any request, likewise."""
    works = _spells(chance, seconds)
    activity = _constant(seconds, 1.0, 1.0, chance.between(0.6, 0.95))
    load, aside = np.empty(seconds), 0.0
    mean = chance.between(0.35, 0.7)
    for second, shock in enumerate(normal(noise, seconds).tolist()):
        aside = 0.8 * aside + 0.2 * shock
        load[second] = min(0.85, max(0.15, mean * float(exponential(aside))))
    activity.utilisation, activity.effort, activity.power = load, load, 0.1 + 0.6 * load
    return _resting(activity, works)


def jobs(chance: Chance, noise: np.random.Generator, seconds: int) -> Activity:
    """Jobs one after the other; between two of them the memory is given back."""
    activity = notebook(chance, noise, seconds)
    activity.memory = np.where(activity.works, activity.memory, DRIVER)
    activity.power = np.where(activity.works, activity.power, 0.0)
    return activity


PATTERNS: dict[str, tuple[Pattern, float]] = {
    "steady": (steady, 2.0),
    "power-capped": (capped, 2.0),
    "noisy": (noisy, 1.5),
    "drifting": (drifting, 1.0),
    "at rest": (at_rest, 1.5),
    "at rest, memory held": (held_at_rest, 2.0),
    "notebook": (notebook, 2.0),
    "server": (server, 2.0),
    "jobs": (jobs, 1.0),
}
"""What nodes do that are well, and how often each is drawn."""


def with_faults(activity: Activity, onset: int, chance: Chance) -> None:
    """Work stops with a fault that is counted once or stands; the memory stays held."""
    hang(activity, onset, chance)
    if chance.fraction() < 0.5:  # noqa: PLR2004 - exporters of either kind
        activity.faults[onset:] = 1.0
    else:
        activity.faults[onset] = 1.0 + chance.below(3)


def hang(activity: Activity, onset: int, _chance: Chance) -> None:
    """Work stops, and nothing counts it."""
    activity.utilisation[onset:] = activity.effort[onset:] = 0.0
    activity.power[onset:] = OPEN
    activity.works[onset:] = False
    activity.fails[onset:] = True


def stuck(activity: Activity, onset: int, _chance: Chance) -> None:
    """A kernel never ends: fully utilised, and nothing gets done."""
    activity.utilisation[onset:], activity.effort[onset:], activity.power[onset:] = 1.0, 0.0, WAITING
    activity.fails[onset:] = True


def reported(activity: Activity, onset: int, _chance: Chance) -> None:
    """Somebody else knows, and reports the state of health."""
    activity.fails[onset:] = True


def waiting(activity: Activity, onset: int) -> None:
    """What the others of a family do from then on: they wait, busily."""
    activity.utilisation[onset:], activity.effort[onset:], activity.power[onset:] = 1.0, 0.0, WAITING


Stop = Callable[[Activity, int, Chance], None]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A way to stop.

    Attributes:
        stop: What it does to the activity.
        least: Measures that are sent at least, so that what is sent suffices.
        weight: How often it is drawn.
        together: Whether it befalls one of a family, for whom the others wait.
    """

    stop: Stop
    least: tuple[str, ...]
    weight: float
    together: bool = False


INJECTED_FAULTS: dict[str, InjectedFault] = {
    "stops with a fault": InjectedFault(
        with_faults, ("accelerator_utilisation", "accelerator_memory_used", "faults"), 1.5
    ),
    "stuck kernel": InjectedFault(stuck, ("accelerator_utilisation", "matrix_pipe_activity"), 1.2),
    "reported as faulty": InjectedFault(reported, ("health_state",), 0.8),
    "hangs while its family waits": InjectedFault(
        hang, ("accelerator_utilisation", "power", "accelerator_memory_used"), 0.8, together=True
    ),
}
"""How nodes stop."""


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


class World:
    """Nodes in a few domains; everything follows from scale and seed.

    Attributes:
        domains: To be registered first (class Domain).
        nodes: To be registered next (class Node).
        families: Likewise (class ComputeIdentifier).
        units: What is judged.
    """

    def __init__(self, scale: Scale, seed: str, name_of: NameOf) -> None:
        self.scale = scale
        self._seed = seed
        self._name_of, self._urn_of = name_of, urn_with(name_of)
        self._sites = [name_of(f"sparse-{number}") for number in range(DOMAINS)]
        self.domains: tuple[documents.Domain, ...] = tuple({"id": site} for site in self._sites)
        self._nodes: list[documents.Node] = []
        self._families: list[documents.ComputeIdentifier] = []
        self._sent: dict[str, list[_Sent]] = defaultdict(list)
        healthy = [self._healthy(number) for number in range(scale.healthy)]
        faulty = [self._faulty(scale.healthy + number) for number in range(scale.faulty)]
        self.units = (*healthy, *faulty)
        self.nodes = tuple(self._nodes)
        self.families = tuple(self._families)

    def deliveries(self, second: int) -> tuple[Delivery, ...]:
        """What the aggregators send in a second: what was observed in the one before it."""
        seen = second - 1
        if not 0 <= seen < self.scale.total:
            return ()
        return tuple(Delivery(site, tuple(self._samples(site, seen))) for site in self._sites)

    def _samples(self, site: str, second: int) -> Iterator[tuple[float, Mapping[str, Any]]]:
        for sent in self._sent[site]:
            exporter = sent.exporter
            if second % exporter.period:
                continue
            instant = second + exporter.phase
            body: dict[str, object] = {
                name: sent.values[name][second] for name in exporter.measures if name in sent.values
            }
            if sent.health:
                body["health_state"] = sent.health[second]
            for device in range(DEVICES) if exporter.by_device and not sent.health else (-1,):
                head = {"subject": sent.node, "subject_kind": "node"}
                if device >= 0:
                    head = {"subject": sent.node, "subject_kind": "device", "device": str(device)}
                yield instant, {**head, **body}

    def _healthy(self, number: int) -> Unit:
        chance, noise = Chance(self._seed, f"unit {number}"), stream(self._seed, f"noise {number}")
        if chance.fraction() < _GUIDE_SHARE:
            return self._guide(number, chance)
        together = chance.fraction() < _FAMILIES
        pattern = chance.weighted([(name, weight) for name, (_, weight) in PATTERNS.items()])
        in_turns = pattern in IN_TURNS
        if together and in_turns:
            pattern, in_turns = "steady", False
        measures = any_measures(chance)
        exporter = Exporter.drawn(chance, measures, quick=False, in_turns=in_turns)
        members = chance.pick(FAMILY.tolist()) if together else 1
        nodes = self._registered(number, exporter, members, chance)
        done = PATTERNS[pattern][0](chance, noise, self.scale.total)
        for node in nodes:
            self._send(number, node, exporter, done, ())
        patience = GRACE + SAMPLES * max(exporter.period, exporter.page)
        return Unit(f"{pattern}{', a family' if together else ''}", measures, nodes, done.works, None, patience)

    def _guide(self, number: int, chance: Chance) -> Unit:
        exporter = Exporter.drawn(chance, GUIDE, quick=False, in_turns=True)
        (node,) = self._registered(number, exporter, 1, chance)
        seconds = self.scale.total
        values = {name: [value] * seconds for name, value in zip(GUIDE, (0.93, 68.5), strict=True)}
        self._sent[self._site(number)].append(_Sent(node, exporter, values, ()))
        return Unit("sample of the guide", GUIDE, (node,), np.ones(seconds, bool), None, GRACE)

    def _faulty(self, number: int) -> Unit:
        chance, noise = Chance(self._seed, f"unit {number}"), stream(self._seed, f"noise {number}")
        pattern = chance.weighted([(name, fault.weight) for name, fault in INJECTED_FAULTS.items()])
        fault = INJECTED_FAULTS[pattern]
        measures = any_measures(chance, fault.least)
        exporter = Exporter.drawn(chance, measures, quick=True, in_turns=False)
        members = chance.pick(FAMILY.tolist()) if fault.together else 1
        nodes = self._registered(number, exporter, members, chance)
        patience = GRACE + SAMPLES * exporter.period
        last = int(self.scale.seconds - patience - LASTING - 1)
        onset = self.scale.warm_up + chance.below(last)
        work = steady if chance.fraction() < 0.4 else noisy  # noqa: PLR2004 - some of either
        does = [work(Chance(self._seed, f"work {number}"), noise, self.scale.total) for _ in nodes]
        fault.stop(does[0], onset, chance)
        for activity in does[1:]:
            waiting(activity, onset)
        reports_health = "health_state" in measures
        health = (
            tuple("faulty" if second >= onset else "healthy" for second in range(self.scale.total))
            if reports_health
            else ()
        )
        for node, activity in zip(nodes, does, strict=True):
            self._send(number, node, exporter, activity, health)
        return Unit(pattern, measures, nodes, does[0].works, onset, patience)

    def _send(self, number: int, node: str, exporter: Exporter, done: Activity, health: tuple[str, ...]) -> None:
        values = {name: row.tolist() for name, row in exporter.shows(done).items()}
        self._sent[self._site(number)].append(_Sent(node, exporter, values, health))

    def _site(self, number: int) -> str:
        return self._sites[number % DOMAINS]

    def _registered(self, number: int, exporter: Exporter, members: int, chance: Chance) -> tuple[str, ...]:
        """Register the nodes of a unit, as a family where there are several."""
        labels = [f"unit-{number:05d}-{member}" for member in range(members)]
        stated = chance.fraction() < _STATED
        devices: list[documents.Device] = [
            {"id": str(place), "kind": "gpu", "vendor": "conformance", "model": "sparse"}
            for place in range(DEVICES if exporter.by_device else 1)
        ]
        for device in devices if stated else ():
            device["memory_capacity"] = int(exporter.memory)
            device["power_limit"] = round(exporter.limit, 1)
        for label in labels:
            body: documents.Node = {"id": self._name_of(label), "domain": self._site(number), "devices": devices}
            if members > 1:
                body["compute_identifier"] = self._urn_of("node", label)
            self._nodes.append(body)
        if members > 1:
            urn = self._urn_of("family", f"family-{number:05d}")
            self._families.append({"urn": urn, "members": sorted(self._urn_of("node", label) for label in labels)})
        return tuple(self._name_of(label) for label in labels)


def _constant(seconds: int, utilisation: float, power: float, memory: float) -> Activity:
    return Activity.of(*(np.full(seconds, value) for value in (utilisation, utilisation, power, memory)))


def _noisy(values: Floats, noise: np.random.Generator, by: float) -> Floats:
    result: Floats = values * (1 + by * np.clip(normal(noise, len(values)).astype(np.float64), -3, 3))
    return result


def _resting(activity: Activity, works: np.ndarray) -> Activity:
    activity.utilisation, activity.effort = (
        np.where(works, activity.utilisation, 0.0),
        np.where(works, activity.effort, 0.0),
    )
    activity.power, activity.works = np.where(works, activity.power, OPEN), works
    return activity


def _spells(chance: Chance, seconds: int) -> np.ndarray:
    """Whether it works, by second: through the warm-up, then with rests of up to half a minute."""
    works = np.zeros(seconds, bool)
    second = 0
    while second < seconds:
        work = WARM + chance.below(12) if second == 0 else 12 + chance.below(12)
        rest = 12 + chance.below(20)
        works[second : second + work] = True
        second += work + rest
    return works


def _stepped(values: Floats, step: float) -> Floats:
    """Values in whole steps, without the last digits of a multiplication."""
    per = round(1 / step) if step < 1 else 0
    result: Floats = np.rint(values * per) / per if per else np.rint(values / step) * step
    return result


@dataclass(frozen=True, slots=True)
class _Sent:
    """One node as it is sent: its name, exporter, values by measure and second, and reported states of health."""

    node: str
    exporter: Exporter
    values: Mapping[str, list[float]]
    health: tuple[str, ...]
