"""A workload: jobs and data sets, as a pure function of family, domains, load, length, seed and source.

1. **Models.** What is trained and served: the sizes of models, and what communication, memory and steps follow from
   them.

   - Shapes and tokens of a batch: T. Brown et al., "Language models are few-shot learners", arXiv:2005.14165, table
     2.1; of 30 B the MPT of mosaicml/llm-foundry, of 65 B H. Touvron et al., "LLaMA", arXiv:2302.13971, table 2.
   - Parameters and FLOPs by D. Narayanan et al., arXiv:2104.04473, without recomputation: c = 72, x = 12. It gives the
     TFLOP/s of ``llm_training_runs/runs.csv`` (llm-foundry) within 0.3 % on average.
   - Bytes a parameter: 18 of state in mixed precision with gradients of 32 bit, 14 in a checkpoint (weights of 16 and
     32 bit and two moments; BLOOM-176B writes 2.3 TB, which is 13), 2 for a gradient or weight of 16 bit (S.
     Rajbhandari et al., "ZeRO", arXiv:1910.02054; bigscience-workshop/bigscience ``train/tr11-176B-ml``).
   - Conventional models: seconds of a step on one A100 and the part of it that does not shrink with more devices,
     fitted to pkusys/ElasticFlow ``throughputs_A100`` [04a0109]; parameters as torchvision, Devlin et al. (2019) and
     Radford et al. (2019) state them. The part takes as many seconds with 64, 128 and 256 samples (ResNet-50: 0.31,
     0.16 and 0.08 of a step), so that of a job with ``n`` times the samples it is an ``n``-th.
2. **Jobs.** What each job of the arrivals is, what it asks for, and what it truly takes. What has no source is an
   assumption, named here: kinds by size, elasticity, priorities, tenants, deadlines.
3. **Data sets.** How large they are, where they lie, and which job reads which. A median of 20 GB times the devices to
   the power of 0.7, a spread of 1.5, and that most lie at home and are read again, are assumptions without a source;
   ``locality``, ``reuse`` and ``pinned`` of a family go through them.
4. **Workload.** :func:`arrive` draws homes and arrivals, :func:`draw` the jobs and data sets of a scenario with them.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.elementary import Floats, growth, logarithm, read_off
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, JobKind, Model, Site, Split
from kuayu_conformance.testbed.scheduling.workload.arrivals import Arrivals, inserted, populate
from kuayu_conformance.testbed.scheduling.workload.families import Family, Home, family_of, homes
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, used

REFERENCE_PEAK = 312e12
"""FLOP/s of the reference device, an A800 or A100, in bf16, dense."""
EFFICIENCY = 0.52
"""Share of it that training of language models reaches: the median of 139 runs of
llm-foundry on A100 (5–95 %: 0.41–0.60)."""
STATE, CHECKPOINT, HALF_PRECISION = 18.0, 14.0, 2.0
"""Bytes a parameter, as above."""
WORKING = 6e9
"""Bytes of a device for activations and buffers, with recomputation; an assumption."""
VOCABULARY, SEQUENCE = 50_257, 2_048
TUNING_TOKENS = 0.25e6
"""Tokens of a batch in fine-tuning; an assumption."""
EXPOSED = 0.1
"""Communication of a step that no computation hides, over the rest: 0.08–0.12 of a step in ByteDance's jobs."""
SERVED_BY = 20
"""A device serves models that as many train: 21·10⁹ parameters, 42 GB of weights."""
MAX_PARAMETERS_PER_DEVICE, MIN_PARAMETERS_PER_DEVICE = 1.6e9, 0.05e9
"""Parameters a device: 29 GB of state at most, so that half of the devices still hold it, and a thirtieth of that."""
KINDS = ((1, 0.85, 1.0), (2, 0.6, 1.0), (8, 0.35, 0.85), (16, 0.1, 0.4))
"""From so many devices on: share of conventional training, and with fine-tuning; the rest is pre-training."""
FEWER, MORE = 2, 2
"""What elastic jobs can do with: half of what they ask for, and twice of it."""
URGENT = 0.2
"""Share of training jobs with a deadline, which go before those without."""
SLACK = (2.0, 10.0)
"""Deadline after submission, over stated seconds."""
TENANTS = 4
"""Tenants of each domain; the first submit most: shares fall as one over their number."""
HALF = 0.5
LEAST_USED = 0.1
"""A job that keeps less of its devices busy counts as one that keeps this much."""
SERVING_MEMORY = 8e9
"""Bytes beside the weights of a model that is served."""
LANGUAGE_SPLITS = (Split.NONE, Split.SYNCHRONOUS, Split.PERIODIC, Split.PIPELINE)
OTHER_SPLITS = (Split.NONE, Split.SYNCHRONOUS, Split.PERIODIC)
MEDIAN = 20e9
"""Bytes for a job of one device."""
POWER, SPREAD = 0.7, 1.5
RECENT = 16
"""A job reads again one of so many data sets that its home has read last; the later the likelier."""
LEAST_SITES = 2
FITS = 0.95
"""Share of a device's memory that a job may need."""
GIANT_ASKS, GIANT_NEEDS = 0.9, 0.75
"""Share of all devices that the giant asks for, and that it cannot do without."""
GIANT_SECONDS = 7200.0
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class Shape:
    """A language model.

    Attributes:
        layers: Its layers.
        hidden: Its width.
        tokens: Tokens of a batch in pre-training.
    """

    layers: int
    hidden: int
    tokens: float

    @property
    def parameters(self) -> float:
        """How many."""
        wide = 12.0 * self.layers * self.hidden
        return wide * self.hidden * (1 + 13 / (12 * self.hidden) + (VOCABULARY + SEQUENCE) / wide)

    def flops(self, tokens: float) -> float:
        """FLOPs of a step over so many tokens."""
        extra = SEQUENCE / (6 * self.hidden) + VOCABULARY / (12 * self.layers * self.hidden)
        return 72.0 * tokens * self.layers * self.hidden * self.hidden * (1 + extra)


SHAPES = (
    Shape(12, 768, 0.5e6), Shape(24, 1024, 0.5e6), Shape(24, 1536, 0.5e6), Shape(24, 2048, 1e6), Shape(32, 2560, 1e6),
    Shape(32, 4096, 2e6), Shape(40, 5120, 2e6), Shape(48, 7168, 4e6), Shape(80, 8192, 4e6), Shape(96, 12288, 3.2e6),
)  # fmt: skip
"""Language models by size."""


@dataclass(frozen=True, slots=True)
class Network:
    """A conventional model.

    Attributes:
        parameters: How many.
        step: Seconds of a step on one reference device.
        fixed: Share of that which more devices do not shorten.
        memory: Bytes that it needs on each device; an assumption of the order of ``lucid_single.csv``.
    """

    parameters: float
    step: float
    fixed: float
    memory: float


NETWORKS = (
    Network(25.6e6, 0.542, 0.079, 12e9),  # ResNet-50, 256 samples
    Network(138.4e6, 0.761, 0.049, 16e9),  # VGG-16, 256
    Network(27.2e6, 0.390, 0.185, 12e9),  # Inception v3, 128
    Network(110e6, 0.280, 0.331, 20e9),  # BERT, 128
    Network(117e6, 0.244, 0.212, 14e9),  # GPT-2, 256
)


@cache
def fitting(devices: int) -> tuple[Shape, ...]:
    """Language models that so many devices can train and that are worth them; the smallest if all are too large."""
    able = [shape for shape in SHAPES if shape.parameters <= MAX_PARAMETERS_PER_DEVICE * devices]
    return (
        tuple(shape for shape in able if shape.parameters >= MIN_PARAMETERS_PER_DEVICE * devices)
        or tuple(able[-1:])
        or SHAPES[:1]
    )


def language_model(shape: Shape, tokens: float, busy: float) -> Model:
    """What the communication of training follows from, where so many reference devices are busy.

    A cut through the pipeline carries activations forth and their gradients back, two bytes each, for every token.
    """
    parameters, flops = _sizes(shape, tokens)
    return Model(
        parameters=parameters,
        gradient=HALF_PRECISION * parameters,
        boundary=2 * HALF_PRECISION * tokens * shape.hidden,
        checkpoint=CHECKPOINT * parameters,
        step=flops / (REFERENCE_PEAK * EFFICIENCY * busy),
    )


def conventional(network: Network, devices: int, busy: float) -> Model:
    """The same of a conventional model in 32 bit, whose batch grows with the devices asked for; it is not cut."""
    return Model(
        parameters=network.parameters,
        gradient=4.0 * network.parameters,
        boundary=0.0,
        checkpoint=12.0 * network.parameters,
        step=network.step * devices / busy,
    )


@cache
def served(shape: Shape) -> Model:
    """A model that answers: nothing is exchanged between replicas, and its weights alone are to be moved."""
    weights = HALF_PRECISION * shape.parameters
    return Model(parameters=shape.parameters, gradient=0.0, boundary=0.0, checkpoint=weights, step=1.0)


@dataclass(frozen=True, slots=True)
class Form:
    """What a job is, without its place in the stream of jobs."""

    kind: JobKind
    minimum: int
    maximum: int
    memory: float
    model: Model
    serial: float
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True)
class Draws:
    """Numbers that jobs follow from, in arrays by job; those of a batch share ``kind``, ``model`` and ``elastic``."""

    kind: Floats
    model: Floats
    elastic: Floats
    tenant: Floats
    used: Floats
    urgent: Floats
    slack: Floats
    error: Floats
    side: Floats


def draws(batches: NDArray[np.intp], seed: str) -> Draws:
    """All numbers for jobs of these batches."""
    chance = stream(seed, "habits of batches")
    kind, model, elastic, tenant = chance.random((4, int(batches.max(initial=-1)) + 1))[:, batches]
    used, urgent, slack, side = stream(seed, "jobs").random((4, len(batches)))
    error = normal(stream(seed, "what is stated"), len(batches)).astype(np.float64)
    return Draws(kind, model, elastic, tenant, used, urgent, slack, error, side)


def jobs(arrivals: Arrivals, homes: Sequence[Home], data: Sequence[str], family: Family, seed: str) -> tuple[Job, ...]:
    """Jobs in the order of arrivals.

    Args:
        arrivals: When each is submitted, how large it is and how long it takes.
        homes: Domains, by their places in ``arrivals.home``.
        data: Name of the data set that each reads.
        family: Parameters of the workload.
        seed: What is drawn follows from it.
    """
    drawn = draws(arrivals.batch, seed)
    its_kinds = kinds(arrivals, drawn.kind)
    conventional = np.array([kind is JobKind.TRAINING for kind in its_kinds], dtype=np.bool_)
    busy = _used(arrivals, conventional, drawn.used, drawn.error, family)
    stated = _stated(arrivals, drawn, family)
    urgent = (drawn.urgent < URGENT) & ~arrivals.serving
    ends = arrivals.submitted + stated * (SLACK[0] + (SLACK[1] - SLACK[0]) * drawn.slack)
    deadline = np.where(urgent, np.rint(ends), np.inf)
    priority = np.where(arrivals.serving, 2, urgent.astype(np.intp))
    tenants = _tenants(drawn.tenant)
    columns = zip(
        _forms(arrivals, its_kinds, homes, drawn, busy, family),
        arrivals.submitted.tolist(),
        arrivals.home.tolist(),
        tenants.tolist(),
        priority.tolist(),
        deadline.tolist(),
        arrivals.devices.astype(np.intp).tolist(),
        data,
        stated.tolist(),
        (arrivals.duration * arrivals.devices * busy).tolist(),
        busy.tolist(),
        strict=True,
    )
    made = []
    for number, (form, submitted, home_number, whose, first, due, requested, reads, says, work, share) in enumerate(
        columns
    ):
        home = homes[home_number].site.name
        made.append(
            Job(
                name=f"job-{number:06d}",
                kind=form.kind,
                submitted=submitted,
                home=home,
                tenant=f"{home}-{whose}",
                priority=first,
                deadline=due,
                requested=requested,
                minimum=form.minimum,
                maximum=form.maximum,
                memory=form.memory,
                profile=form.kind.value,
                model=form.model,
                data=reads,
                serial=form.serial,
                stated=says,
                work=work,
                used=share,
                splits=form.splits,
            )
        )
    return tuple(made)


def kinds(arrivals: Arrivals, draws: Floats) -> list[JobKind]:
    """Kind of each job, by its size and a number drawn for its batch."""
    table = np.array(KINDS)
    row = table[np.searchsorted(table[:, 0], arrivals.devices, side="right") - 1]
    place = np.where(draws < row[:, 1], 0, np.where(draws < row[:, 2], 1, 2))
    names = (JobKind.TRAINING, JobKind.FINE_TUNING, JobKind.PRETRAINING, JobKind.SERVING)
    return [names[number] for number in np.where(arrivals.serving, 3, place)]


def data_sets(
    arrivals: Arrivals, homes: Sequence[Home], family: Family, seed: str
) -> tuple[tuple[str, ...], dict[str, Dataset]]:
    """Name of the data set of each job, and all data sets by name.

    A pinned one lies in a domain that has the devices that its jobs ask for.
    """
    count = len(arrivals.home)
    spread = SPREAD * normal(stream(seed, "data sizes"), count).astype(np.float64)
    size = np.rint(MEDIAN * growth(POWER * logarithm(arrivals.devices) + spread)).tolist()
    again, back, local, where, fixed = stream(seed, "data").random((5, count)).tolist()
    rooms = [sum(pool.devices for pool in home.site.pools) for home in homes]
    sites = [home.site.name for home in homes]
    elsewhere = [[place for place in range(len(homes)) if place != home] for home in range(len(homes))]
    reuse, locality, pins = family.reuse, family.locality, family.pinned
    names, made = [], dict[str, Dataset]()
    read: list[list[Dataset]] = [[] for _ in homes]
    least = dict[str, int]()
    for job, (home, devices) in enumerate(zip(arrivals.home.tolist(), arrivals.devices.tolist(), strict=True)):
        recent = read[home]
        if recent and again[job] < reuse:
            chosen = recent[-1 - int(len(recent) * back[job] * back[job])]
            if not chosen.pinned or devices <= least[chosen.name]:
                names.append(chosen.name)
                continue
        others = elsewhere[home]
        place = home if local[job] < locality or not others else others[int(where[job] * len(others))]
        name = f"data-{len(made):06d}"
        made[name] = Dataset(name, size[job], (sites[place],), pinned=fixed[job] < pins and devices <= rooms[place])
        least[name] = rooms[place]
        recent.append(made[name])
        del recent[:-RECENT]
        names.append(name)
    return tuple(names), made


@dataclass(frozen=True, slots=True)
class Workload:
    """What is submitted.

    Attributes:
        jobs: Jobs in the order of their submission.
        datasets: Data sets by name; every job's is among them.
    """

    jobs: tuple[Job, ...]
    datasets: Mapping[str, Dataset]


def draw(
    family: str | Family,
    topology_sites: Sequence[Site],
    load: float,
    seconds: float,
    seed: str,
    source: str = "fitted",
    *,
    until: float | None = None,
    devices: Mapping[str, DeviceType] | None = None,
    data: Path | None = None,
) -> Workload:
    """Jobs of a scenario.

    Args:
        family: Its name, or parameters of one's own.
        topology_sites: Domains, each with a device or more.
        load: Devices that jobs would hold on average if each of them started at once on what it asks for, over all
            devices. Jobs that were submitted before the begin and still run then are submitted at nought.
        seconds: Over which the load is counted, from the begin.
        seed: What is drawn follows from it.
        source: ``fitted`` (to ITP) or ``fitted-philly``, or a trace: ``itp``, ``philly``, ``openb``.
        until: Seconds until which jobs are submitted, if these are more.
        devices: Accelerators of the domains: a device counts in the load as its mean index, and no job needs more
            memory than its home has. Without them all devices are the reference device.
        data: Folder of public originals, else that of ``KUAYU_DATA``; only traces need it.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario.
        UnknownFamily: There is no family of that name.
        UnknownSource: There is no such source.
        ValueError: No load, no time or fewer than two domains, or one without devices.
    """
    chosen = family_of(family)
    places, arrivals = arrive(chosen, topology_sites, load, seconds, seed, source, until, devices, data)
    names, sets = data_sets(arrivals, places, chosen, seed)
    made = jobs(arrivals, places, names, chosen, seed)
    if devices is not None:
        made = _in_memory(made, topology_sites, devices, sets)
    if chosen.giant:
        made = _of_giant(made, topology_sites)
    return Workload(made, MappingProxyType(sets))


def arrive(
    family: Family,
    topology_sites: Sequence[Site],
    load: float,
    seconds: float,
    seed: str,
    source: str,
    until: float | None,
    devices: Mapping[str, DeviceType] | None,
    data: Path | None,
) -> tuple[Sequence[Home], Arrivals]:
    """Homes, and when jobs are submitted there, how large they are and how long they take; see ``draw``."""
    capacities = [sum(pool.devices * _speed(pool.device, devices) for pool in site.pools) for site in topology_sites]
    if load <= 0 or seconds <= 0 or len(capacities) < LEAST_SITES or min(capacities) <= 0:
        raise ValueError("a workload needs load, time and two domains or more, each with devices")
    places = homes(topology_sites, capacities, family, seed, source)
    arrivals = populate(places, load, seconds, max(seconds, until or 0.0), family, seed, source, data)
    return places, _with_giant(arrivals, places, seconds) if family.giant else arrivals


@cache
def _sizes(shape: Shape, tokens: float) -> tuple[float, float]:
    """Parameters, and FLOPs of a step: thousands of jobs train one of a few shapes."""
    return shape.parameters, shape.flops(tokens)


def _used(arrivals: Arrivals, conventional: NDArray[np.bool_], draws: Floats, error: Floats, family: Family) -> Floats:
    """Share of its devices that a job keeps busy, to a thousandth.

    Samples of utilisation stand for jobs: what a job reaches on average lies closer together than its samples do.
    """
    trained = np.where(
        conventional, read_off(draws, LEVELS, used().conventional), read_off(draws, LEVELS, used().language)
    )
    served = arrivals.share * DUTY_MEDIAN * growth(DUTY_SIGMA * error)
    share = np.clip(np.where(arrivals.serving, served, trained), LEAST_USED, 1.0)
    return np.clip(np.rint((1.0 - family.over_request * (1.0 - share)) * 1e3) / 1e3, 0.001, 1.0)


def _stated(arrivals: Arrivals, drawn: Draws, family: Family) -> Floats:
    """Seconds that each states: off by a log-normal factor, and by ``misjudged`` up or down; whole minutes."""
    factor = np.where(drawn.side < HALF, family.misjudged, 1.0 / family.misjudged)
    stated = arrivals.duration * growth(family.stated_spread * drawn.error) * factor
    return 60.0 * np.maximum(1.0, np.ceil(stated / 60.0))


def _tenants(draws: Floats) -> NDArray[np.intp]:
    shares = np.cumsum(1.0 / np.arange(1, TENANTS + 1))
    numbers: NDArray[np.intp] = np.minimum(np.searchsorted(shares, draws * shares[-1], side="right"), TENANTS - 1)
    return numbers


def _forms(
    arrivals: Arrivals, of_kind: Sequence[JobKind], homes: Sequence[Home], drawn: Draws, busy: Floats, family: Family
) -> Iterator[Form]:
    rooms = np.array([sum(pool.devices for pool in home.site.pools) for home in homes])[arrivals.home]
    elastic = (drawn.elastic >= 1.0 - family.elastic) | (arrivals.devices > rooms)
    columns = (arrivals.devices.astype(np.intp), drawn.model, elastic, busy * arrivals.devices)
    rows = zip(of_kind, *(column.tolist() for column in columns), strict=True)
    return (_form(*row) for row in rows)


def _form(kind: JobKind, devices: int, model: float, elastic: bool, busy: float) -> Form:  # noqa: FBT001
    if kind is JobKind.SERVING:
        shape = _one(fitting(SERVED_BY * devices), model)
        memory = SERVING_MEMORY + HALF_PRECISION * shape.parameters / devices
        return Form(kind, devices, devices, memory, served(shape), 0.0, (Split.NONE,))
    minimum, maximum = (-(-devices // FEWER), MORE * devices) if elastic and devices > 1 else (devices, devices)
    if kind is JobKind.TRAINING:
        network = _one(NETWORKS, model)
        made = conventional(network, devices, busy)
        return Form(kind, minimum, maximum, network.memory, made, network.fixed / devices, OTHER_SPLITS)
    shape = _one(fitting(devices), model)
    memory = WORKING + STATE * shape.parameters / minimum
    tokens = shape.tokens if kind is JobKind.PRETRAINING else TUNING_TOKENS
    made = language_model(shape, tokens, busy)
    return Form(kind, minimum, maximum, memory, made, EXPOSED / devices, LANGUAGE_SPLITS)


def _one(choices: Sequence[_Choice], draw: float) -> _Choice:
    return choices[int(draw * len(choices))]


def _speed(device: str, devices: Mapping[str, DeviceType] | None) -> float:
    if devices is None:
        return 1.0
    index = devices[device].index
    return sum(index[kind.value] for kind in JobKind) / len(JobKind)


def _in_memory(
    made: tuple[Job, ...], sites: Sequence[Site], devices: Mapping[str, DeviceType], sets: Mapping[str, Dataset]
) -> tuple[Job, ...]:
    """Jobs that need no more memory than devices of their home have, and of where their data is pinned.

    They offload what does not fit, so that every one can run where it was submitted unless it is too large for that.
    """
    named = {site.name: site for site in sites}

    @cache  # tens of thousands of jobs ask for one of a few numbers of devices
    def memory(site: str, wanted: int) -> float:
        return _memory(named[site], wanted, devices)

    kept = []
    for job in made:
        reads = sets[job.data]
        most = FITS * memory(job.home, job.requested)
        if reads.pinned:
            most = min(most, *(FITS * memory(site, job.requested) for site in reads.sites))
        kept.append(dataclasses.replace(job, memory=most) if job.memory > most else job)
    return tuple(kept)


def _memory(site: Site, wanted: int, devices: Mapping[str, DeviceType]) -> float:
    """Bytes that so many devices of a domain, or all of them, have at least."""
    pools = sorted(site.pools, key=lambda pool: devices[pool.device].memory, reverse=True)
    for pool in pools:
        wanted -= pool.devices
        if wanted <= 0:
            return devices[pool.device].memory
    return devices[pools[-1].device].memory


def _with_giant(arrivals: Arrivals, homes: Sequence[Home], seconds: float) -> Arrivals:
    """One job more, a quarter into the scenario, of the domain with most devices; it comes on top of the load."""
    total = _devices([home.site for home in homes])
    largest = max(range(len(homes)), key=lambda place: (homes[place].capacity, -place))
    return inserted(arrivals, seconds / 4, GIANT_SECONDS, float(int(GIANT_ASKS * total)), largest)


def _of_giant(made: tuple[Job, ...], sites: Sequence[Site]) -> tuple[Job, ...]:
    """The giant does with less than it asks for, yet not with what any one domain has."""
    total = _devices(sites)
    return tuple(
        dataclasses.replace(job, minimum=int(GIANT_NEEDS * total), maximum=job.requested, splits=tuple(Split))
        if job.requested == int(GIANT_ASKS * total)
        else job
        for job in made
    )


def _devices(sites: Sequence[Site]) -> int:
    return sum(pool.devices for site in sites for pool in site.pools)
