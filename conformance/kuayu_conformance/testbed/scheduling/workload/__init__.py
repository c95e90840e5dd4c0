"""What is submitted: jobs by models fitted to real traces, or by the traces themselves, at a stated load and skew.

:func:`draw` makes a workload, a pure function of family, domains, load, length, seed and source. ``traces`` has jobs of
real clusters and what was fitted to them; ``python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR`` fits
again, and compares.

1. **Families.** Named sets of parameters, each an assumption or a measured value. What a family does to links, devices
   or the engine is not said here; those that do nothing to the workload have that of the reference. Any other set may
   be given in place of a name, so that curves can be drawn over each parameter.
2. **Homes.** Each domain has a cluster's habits, and the devices that its jobs would hold: the skew of the workload.
3. **Candidates.** They come from the fit, from a trace, to serve, and of a size that no home holds. Each has a
   threshold, the level of demand from which on it is there.
4. **Load.** Candidates join in the order of their thresholds until what they would hold, had each started at once, is
   the load times the capacity. That is counted over one span of time after the other (a day, say), with what came
   before and would still run: so every span has the load that it is said to have, that of the window as well as those
   in which it drains.
5. **Models.** What is trained and served: the sizes of models, and what communication, memory and steps follow from
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
6. **Jobs.** What each job of the arrivals is, what it asks for, and what it truly takes. What has no source is an
   assumption, named here: kinds by size, elasticity, priorities, tenants, deadlines.
7. **Data sets.** How large they are, where they lie, and which job reads which. A median of 20 GB times the devices to
   the power of 0.7, a spread of 1.5, and that most lie at home and are read again, are assumptions without a source;
   ``locality``, ``reuse`` and ``pinned`` of a family go through them.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.elementary import Floats, exact_sum, growth, logarithm, read_off
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, JobKind, Model, Site, Split
from kuayu_conformance.testbed.scheduling.workload.traces import (
    DAY,
    LEVELS,
    Cluster,
    Fit,
    Trace,
    device_use,
    draw_cluster,
    parameters,
    read,
    within,
)

MERIDIAN = 112.0
"""Degrees east: the hubs of the east lie beyond it, from 113.3 (Greater Bay) on; those of the west before 111.7."""
BUSIEST, QUIETEST = 0.67, 0.14
"""Mean over 95th percentile of the devices held, of the busiest and of the quietest of ITP's ten clusters."""
FITS = {"fitted": "itp", "fitted-philly": "philly", "itp": "itp", "philly": "philly", "openb": "itp"}
"""Sources of jobs, and the fit whose clusters' sizes and loads domains take."""
SOURCES = tuple(FITS)
"""Where jobs may come from: fitted models first, then the traces."""
SETTLED = 20 * DAY
"""Seconds before the beginning from which on jobs are drawn: one that still runs is there with what is left of it."""
COPIED_WITHIN = 1800.0
"""Seconds after a job of a trace in which its copies are submitted where a domain is larger than its cluster was."""
OPENB_P95 = 48.8
"""Devices that all of openb held at its 95th percentile: it has no clusters, and stands whole for each domain."""
OVER = (1.05, 1.6)
"""Devices of a job larger than its home, over those of the home; an assumption."""
MAX_DEVICE_SHARE = 0.5
"""Share of all devices that such a job asks for at most."""
NODE = 8
"""Devices that such a job asks for at once."""
MAX_TRACE_DEVICES = 32
"""Devices of the largest jobs of the traces: one of more devices does as much work as these, and takes less time."""
MAX_DOUBLINGS = 12
"""Times that candidates are drawn again, twice as many, until they suffice."""
MIN_SHARE_OF_HOMES = 0.25
"""Share of the load that is left to usual jobs where a job larger than its home holds more than it should."""
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
MIN_USED_SHARE = 0.1
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
MIN_SITES = 2
MAX_MEMORY_SHARE = 0.95
"""Share of a device's memory that a job may need."""
GIANT_ASKS, GIANT_NEEDS = 0.9, 0.75
"""Share of all devices that the giant asks for, and that it cannot do without."""
GIANT_SECONDS = 7200.0
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class Family:
    """Parameters of a workload.

    Attributes:
        skew: How much domains differ in load and in when they are busy: one as the trace's clusters do, zero not.
        east: Whether the load of a domain follows its longitude rather than a cluster drawn for it.
        burst: How many times as long, and as rare, batches are as in the trace.
        serving: Share of the work in jobs that serve.
        oversize: Share of the work in jobs larger than their home.
        giant: Whether one job asks for most devices of all domains and cannot do with those of any one.
        locality: Chance that a data set lies at the home of the job it is made for.
        reuse: Chance that a job reads a data set that an earlier one of its home has read.
        pinned: Chance that a data set may not leave its domain.
        elastic: Share of jobs of several devices that can do with half of what they ask for, and use twice of it; the
            others run on what they ask for and on nothing else.
        over_request: How far ``used`` lies below one: one as measured, zero not at all.
        stated_spread: Standard deviation of the logarithm of stated over true seconds.
        misjudged: Factor by which half of the jobs state too much and half too little.
    """

    skew: float = 1.0
    east: bool = False
    burst: float = 1.0
    serving: float = 0.1
    oversize: float = 0.1
    giant: bool = False
    locality: float = 0.7
    reuse: float = 0.6
    pinned: float = 0.0
    elastic: float = 0.5
    over_request: float = 1.0
    stated_spread: float = 0.5
    misjudged: float = 1.0


REFERENCE = Family()


FAMILIES = {
    "reference": REFERENCE,
    "balanced": dataclasses.replace(REFERENCE, skew=0.0),
    "east-west": dataclasses.replace(REFERENCE, east=True),
    "gravity": dataclasses.replace(REFERENCE, pinned=0.6),
    "wan-poor": REFERENCE,
    "wan-rich": REFERENCE,
    "bursty": dataclasses.replace(REFERENCE, burst=4.0),
    "heterogeneous": REFERENCE,
    "identical": REFERENCE,
    "faulty": REFERENCE,
    "slow-on-site": REFERENCE,
    "false-capacity": REFERENCE,
    "giant": dataclasses.replace(REFERENCE, giant=True),
    "collapse": REFERENCE,
    "partition": REFERENCE,
    "misjudged": dataclasses.replace(REFERENCE, misjudged=10.0),
}
"""Families by name. ``slow-on-site`` is fastest on paper and slowest in practice; from there on they are hostile."""


class UnknownFamily(LookupError):
    """There is no family of the name; the message says which there are."""


def family_of(family: str | Family) -> Family:
    """The family of a name, or the one that is given.

    Raises:
        UnknownFamily: There is none of that name.
    """
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        raise UnknownFamily(f"there is no family {family}; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


class UnknownSource(LookupError):
    """Jobs do not come from there; the message says from where they may."""


@dataclass(frozen=True, slots=True)
class Home:
    """A domain as jobs are submitted there.

    Attributes:
        site: The domain.
        capacity: Its devices, each as many as reference devices it is worth.
        cluster: Cluster whose habits it has; its ``active`` is that of the family.
        ratio: Its mean demand over its capacity, where ``level`` is one.
    """

    site: Site
    capacity: float
    cluster: Cluster
    ratio: float


def fit_of(source: str) -> Fit:
    """The fit whose clusters a source's domains take.

    Raises:
        UnknownSource: There is no such source.
    """
    if source not in FITS:
        raise UnknownSource(f"no jobs come from {source}; they come from {', '.join(FITS)}")
    return parameters()[0][FITS[source]]


def assigned(names: Sequence[str], seed: str, source: str = "fitted") -> dict[str, Cluster]:
    """A cluster for each domain, all of them before any a second time, in an order that the seed draws."""
    clusters = fit_of(source).clusters
    chance = Chance(seed, "clusters of domains")
    drawn: list[Cluster] = []
    while len(drawn) < len(names):
        drawn += chance.order([(cluster, 1.0) for cluster in clusters])
    return dict(zip(names, drawn, strict=False))


def demand(names: Sequence[str], seed: str, source: str = "fitted") -> dict[str, float]:
    """Devices for each domain, so that it is as large as the 95th percentile of the demand that ``draw`` gives it.

    That is the reference skew. ``draw`` has to be given the same names, seed and source.

    Raises:
        UnknownSource: There is no such source.
    """
    return {name: cluster.p95 for name, cluster in assigned(names, seed, source).items()}


def homes(sites: Sequence[Site], capacities: Sequence[float], family: Family, seed: str, source: str) -> list[Home]:
    """Domains as homes. With skew below one they become more alike in load and in activity.

    Raises:
        UnknownSource: There is no such source.
    """
    clusters = assigned([site.name for site in sites], seed, source)
    ratios = {site.name: _ratio(site, clusters[site.name], family) for site in sites}
    mean = sum(capacity * ratios[site.name] for site, capacity in zip(sites, capacities, strict=True)) / sum(capacities)
    return [
        Home(
            site,
            capacity,
            clusters[site.name],
            mean + family.skew * (ratios[site.name] - mean),
        )
        for site, capacity in zip(sites, capacities, strict=True)
    ]


def _ratio(site: Site, cluster: Cluster, family: Family) -> float:
    if not family.east:
        return cluster.ratio
    return BUSIEST if site.longitude > MERIDIAN else QUIETEST


class NotEnoughJobs(Exception):
    """A source has no jobs in the time asked for that could add up to the load."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Jobs as they are submitted, in arrays by job.

    Attributes:
        submitted: Seconds since the scenario began; may be before.
        duration: Seconds on the reference devices that were asked for.
        devices: How many were asked for.
        share: Share of these that was asked for; below one where a device may be shared.
        home: Place of the home.
        batch: Number of the batch; those of one batch are of one home.
        serving: Whether it serves.
        threshold: Level of demand from which on it is there.
    """

    submitted: Floats
    duration: Floats
    devices: Floats
    share: Floats
    home: NDArray[np.intp]
    batch: NDArray[np.intp]
    serving: NDArray[np.bool_]
    threshold: Floats

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "Arrivals":
        """Some of them, by a mask or by places."""
        return Arrivals(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def joined(parts: Sequence[Arrivals]) -> Arrivals:
    """All of some arrivals, with batches numbered anew."""
    first = np.cumsum([0, *(int(part.batch.max(initial=-1)) + 1 for part in parts)])
    parts = [dataclasses.replace(part, batch=part.batch + base) for part, base in zip(parts, first, strict=False)]
    fields = (field.name for field in dataclasses.fields(Arrivals))
    return Arrivals(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def inserted(arrivals: Arrivals, submitted: float, duration: float, devices: float, home: int) -> Arrivals:
    """The same with one training job more, in the order of submission."""
    begin, length, size, zeros = np.array([submitted]), np.array([duration]), np.array([devices]), np.zeros(1)
    one = _alone(begin, length, size, np.ones(1), np.array([home]), zeros)
    both = joined([arrivals, one])
    return both.only(np.argsort(both.submitted, kind="stable"))


def fitted_arrivals(
    home: Home, place: int, seconds: float, family: Family, seed: str, source: str, level: float, most: float
) -> Arrivals:
    """Jobs by the fit, up to ``most`` times those of a level; the scenario begins at midnight of a weekday drawn."""
    fit = fit_of(source)
    cluster = dataclasses.replace(home.cluster, active=1.0 - family.skew * (1.0 - home.cluster.active))
    size = home.ratio * home.capacity * DAY / (cluster.batches * cluster.work)
    begin = (4 * 7 + Chance(seed, "day of the week").below(7)) * DAY
    span = (begin - SETTLED, begin + seconds)
    chance = stream(seed, f"jobs of {place}")
    drawn = draw_cluster(fit, cluster, span, chance, scale=size * level, most=most, burst=family.burst)
    count = len(drawn.batch)
    return Arrivals(
        drawn.submitted - begin,
        drawn.duration,
        drawn.devices,
        np.ones(count),
        np.full(count, place, dtype=np.intp),
        drawn.batch,
        np.zeros(count, dtype=np.bool_),
        drawn.threshold / size,
    )


def trace_arrivals(home: Home, place: int, trace: Trace, seconds: float, seed: str, level: float) -> Arrivals:
    """Jobs of a cluster of a trace from one of its midnights on, left out or copied as the domain's size asks."""
    since, until = trace.span
    days = int((until - since - seconds) / DAY)
    if days < 0:
        raise NotEnoughJobs(f"{trace.name} has jobs for {(until - since) / DAY:.0f} days; the scenario is longer")
    own = len(trace.clusters) > 1
    begin = since + DAY * Chance(seed, "begin in the trace" if own else f"begin in the trace of {place}").below(
        days + 1
    )
    selected = trace.cluster == (trace.clusters.index(home.cluster.name) if own else 0)
    selected &= (trace.submitted + trace.duration > begin) & (trace.submitted < begin + seconds)
    size = home.capacity / home.cluster.p95 if own else home.capacity / OPENB_P95
    chance = stream(seed, f"copies of {place}")
    jobs = np.nonzero(selected)[0]
    own_fraction = chance.random(len(jobs))
    copies = np.floor(size * level + own_fraction).astype(np.intp)
    of = np.repeat(np.arange(len(jobs)), copies)
    rank = np.arange(len(of)) - np.repeat(np.cumsum(copies) - copies, copies)
    late = np.where(rank == 0, 0.0, COPIED_WITHIN * chance.random(len(of)))
    job = jobs[of]
    return Arrivals(
        trace.submitted[job] - begin + late,
        trace.duration[job],
        trace.devices[job],
        trace.share[job],
        np.full(len(job), place, dtype=np.intp),
        of,
        trace.serving[job],
        (rank + 1 - own_fraction[of]) / size,
    )


def serving_arrivals(homes: Sequence[Home], work: float, seconds: float, seed: str) -> Arrivals:
    """Pods that serve, about as many as hold so many device seconds; each comes alone, to a home by its capacity."""
    fitted = parameters()[1]
    sizes, shares = np.array([float(size) for size, _ in fitted.sizes]), np.array([share for _, share in fitted.sizes])
    device_seconds = sum(size * share for size, share in fitted.sizes) * fitted.duration
    chance = stream(seed, "serving")
    instant, pick, level, share_level, where, threshold = chance.random((6, _count(work, seconds, device_seconds)))
    return _alone(
        instant * (seconds + SETTLED) - SETTLED,
        growth(read_off(level, LEVELS, fitted.durations)),
        sizes[_picked(pick, shares)],
        read_off(share_level, LEVELS, fitted.shares),
        _picked(where, np.array([home.capacity for home in homes])),
        threshold,
        serving=True,
    )


def outgrown(homes: Sequence[Home]) -> NDArray[np.intp]:
    """Places of homes that a job can be larger than; none where one domain has most of all devices."""
    sizes = _home_sizes(homes)
    return np.nonzero(OVER[0] * sizes + NODE <= MAX_DEVICE_SHARE * sizes.sum())[0]


def oversize_arrivals(homes: Sequence[Home], work: float, seconds: float, seed: str, source: str) -> Arrivals:
    """Jobs larger than their home, about as many as hold so many device seconds; every home has as much work in them.

    Each does as much work as one of the largest jobs of the fit. If it took as long as that, two or three would be all
    the work that there is to be in such jobs, and two windows of three would have none. There has to be a home that
    ``outgrown`` names.
    """
    sizes, able = _home_sizes(homes), outgrown(homes)
    group = fit_of(source).groups[-1]
    shares = 1.0 / sizes[able]
    device_seconds = MAX_TRACE_DEVICES * group.duration
    chance = stream(seed, "oversize")
    instant, level, over, where, threshold = chance.random((5, _count(work, seconds, device_seconds)))
    home = able[_picked(where, shares)]
    requested = sizes[home] * (OVER[0] + (OVER[1] - OVER[0]) * over)
    devices = NODE * np.ceil(np.minimum(requested, MAX_DEVICE_SHARE * sizes.sum() - NODE) / NODE)
    duration = growth(read_off(level, LEVELS, group.durations)) * np.minimum(1.0, MAX_TRACE_DEVICES / devices)
    begin = instant * (seconds + SETTLED) - SETTLED
    return _alone(begin, duration, devices, np.ones(len(instant)), home, threshold)


def populate(
    homes: Sequence[Home],
    load: float,
    seconds: float,
    until: float,
    family: Family,
    seed: str,
    source: str,
    data: Path | None,
) -> Arrivals:
    """What is submitted, in order; what was submitted earlier and still runs comes at zero.

    Args:
        homes: Domains.
        load: What is to be held of their capacity.
        seconds: Over which that is counted, again and again.
        until: Seconds until which jobs are submitted, no fewer.
        family: Parameters.
        seed: What is drawn follows from it.
        source: Where jobs come from.
        data: Folder of public originals.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario, or empty for all of it.
        UnknownSource: There is no such source.
    """
    target = load * seconds * sum(home.capacity for home in homes)
    spans = _load_spans(seconds, until)
    trace = None if source.startswith("fitted") else read(source, data)
    serves = 0.0 if trace is not None and trace.serving.any() else target * family.serving
    large = target * family.oversize if len(outgrown(homes)) else 0.0
    beside, longer = [], until / seconds
    if large > 0.0:
        added = _up_to(
            [large] * len(spans),
            spans,
            lambda m: oversize_arrivals(homes, m * large * longer, until, seed, source),
        )
        beside.append(added)
    if serves > 0.0:
        added = _up_to(
            [serves] * len(spans), spans, lambda m: serving_arrivals(homes, m * serves * longer, until, seed)
        )
        beside.append(added)
    rest = [
        max(target - sum(_work_within(part, *span) for part in beside), MIN_SHARE_OF_HOMES * target) for span in spans
    ]
    level = rest[0] / (seconds * sum(home.ratio * home.capacity for home in homes))

    def of_homes(most: float) -> Arrivals:
        if trace is None:
            return joined(
                [fitted_arrivals(home, i, until, family, seed, source, level, most) for i, home in enumerate(homes)]
            )
        return joined([trace_arrivals(home, i, trace, until, seed, level * most) for i, home in enumerate(homes)])

    return _present(joined([_up_to(rest, spans, of_homes), *beside]), until)


def _home_sizes(homes: Sequence[Home]) -> Floats:
    return np.array([float(sum(pool.devices for pool in home.site.pools)) for home in homes])


def _alone(
    submitted: Floats,
    duration: Floats,
    devices: Floats,
    share: Floats,
    home: NDArray[np.intp],
    threshold: Floats,
    *,
    serving: bool = False,
) -> Arrivals:
    """Jobs each of which is a batch of its own."""
    count = len(submitted)
    batch, serves = np.arange(count), np.full(count, serving)
    return Arrivals(submitted, np.maximum(1.0, duration), devices, share, home, batch, serves, threshold)


def _count(work: float, seconds: float, device_seconds: float) -> int:
    """Jobs, of so many device seconds each, that hold so much work between zero and the end; a few more."""
    return int(work * (seconds + SETTLED) / seconds / device_seconds) + 16


def _picked(draws: Floats, shares: Floats) -> NDArray[np.intp]:
    """Place of what is picked, by shares that need not add up to one."""
    reached = np.cumsum(shares)
    places: NDArray[np.intp] = np.minimum(np.searchsorted(reached, draws * reached[-1], side="right"), len(shares) - 1)
    return places


def _load_spans(seconds: float, until: float) -> list[tuple[float, float]]:
    """Begin and end of each span over which the load is counted; the last one may reach beyond the end."""
    return [(place * seconds, (place + 1) * seconds) for place in range(ceil(until / seconds))]


def _work_within(arrivals: Arrivals, since: float, until: float) -> float:
    return exact_sum(within(arrivals.submitted - since, arrivals.duration, arrivals.devices, until - since))


def _present(arrivals: Arrivals, seconds: float) -> Arrivals:
    """Only those that are there between zero and the end, with what is left of them, in the order of submission."""
    present = arrivals.only((arrivals.submitted + arrivals.duration > 0.0) & (arrivals.submitted < seconds))
    left = np.maximum(1.0, np.rint(present.duration + np.minimum(present.submitted, 0.0)))
    submitted = np.rint(np.maximum(present.submitted, 0.0) * 1e3) / 1e3
    return dataclasses.replace(present, submitted=submitted, duration=left).only(np.argsort(submitted, kind="stable"))


def _up_to(
    targets: Sequence[float], spans: Sequence[tuple[float, float]], candidates: Callable[[float], Arrivals]
) -> Arrivals:
    """Candidates until each span has its target in device seconds; they are drawn for twice of it, then for more."""
    for doubling in range(1, MAX_DOUBLINGS):
        cut = _cut(candidates(2.0**doubling), targets, spans)
        if cut is not None:
            return cut
    seconds = spans[0][1]
    raise NotEnoughJobs(f"no jobs add up to the load within {seconds:.0f} s; take a longer scenario or another seed")


def _cut(arrivals: Arrivals, targets: Sequence[float], spans: Sequence[tuple[float, float]]) -> Arrivals | None:
    """Those up to the threshold that reaches the target, the last one in or out as is nearer; none if it is not."""
    order = np.argsort(arrivals.threshold, kind="stable")
    chosen = np.zeros(len(order), dtype=np.bool_)
    # what comes before the first span or after the last belongs to these
    number = np.searchsorted([since for since, _ in spans[1:]], arrivals.submitted[order], side="right")
    for place, (target, (since, until)) in enumerate(zip(targets, spans, strict=True)):
        device_seconds = within(arrivals.submitted - since, arrivals.duration, arrivals.devices, until - since)
        members = order[number == place]
        before = float(device_seconds[chosen].sum())
        if before >= target:
            continue
        reached = before + np.cumsum(device_seconds[members])
        count = int(np.searchsorted(reached, target))
        if count == len(members):
            return None
        last = float(reached[count - 1]) if count else before
        count += bool(reached[count] - target < target - last)
        chosen[members[:count]] = True
    return arrivals.only(np.nonzero(chosen)[0])


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
    parameters, flops = _shape_sizes(shape, tokens)
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
    job_kinds = kinds(arrivals, drawn.kind)
    conventional = np.array([kind is JobKind.TRAINING for kind in job_kinds], dtype=np.bool_)
    busy = _used(arrivals, conventional, drawn.used, drawn.error, family)
    stated = _stated(arrivals, drawn, family)
    urgent = (drawn.urgent < URGENT) & ~arrivals.serving
    ends = arrivals.submitted + stated * (SLACK[0] + (SLACK[1] - SLACK[0]) * drawn.slack)
    deadline = np.where(urgent, np.rint(ends), np.inf)
    priority = np.where(arrivals.serving, 2, urgent.astype(np.intp))
    tenants = _tenants(drawn.tenant)
    columns = zip(
        _forms(arrivals, job_kinds, homes, drawn, busy, family),
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
    rows = []
    for number, (form, submitted, home_number, whose, first, due, requested, reads, says, work, share) in enumerate(
        columns
    ):
        home = homes[home_number].site.name
        rows.append(
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
    return tuple(rows)


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
    capacities = [sum(pool.devices for pool in home.site.pools) for home in homes]
    sites = [home.site.name for home in homes]
    elsewhere = [[place for place in range(len(homes)) if place != home] for home in range(len(homes))]
    reuse, locality, pins = family.reuse, family.locality, family.pinned
    names, datasets = [], dict[str, Dataset]()
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
        name = f"data-{len(datasets):06d}"
        datasets[name] = Dataset(
            name, size[job], (sites[place],), pinned=fixed[job] < pins and devices <= capacities[place]
        )
        least[name] = capacities[place]
        recent.append(datasets[name])
        del recent[:-RECENT]
        names.append(name)
    return tuple(names), datasets


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
            devices. Jobs that were submitted before the beginning and still run then are submitted at zero.
        seconds: Over which the load is counted, from the beginning.
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
    job_list = jobs(arrivals, places, names, chosen, seed)
    if devices is not None:
        job_list = _in_memory(job_list, topology_sites, devices, sets)
    if chosen.giant:
        job_list = _of_giant(job_list, topology_sites)
    return Workload(job_list, MappingProxyType(sets))


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
    if load <= 0 or seconds <= 0 or len(capacities) < MIN_SITES or min(capacities) <= 0:
        raise ValueError("a workload needs load, time and two domains or more, each with devices")
    places = homes(topology_sites, capacities, family, seed, source)
    arrivals = populate(places, load, seconds, max(seconds, until or 0.0), family, seed, source, data)
    return places, _with_giant(arrivals, places, seconds) if family.giant else arrivals


@cache
def _shape_sizes(shape: Shape, tokens: float) -> tuple[float, float]:
    """Parameters, and FLOPs of a step: thousands of jobs train one of a few shapes."""
    return shape.parameters, shape.flops(tokens)


def _used(arrivals: Arrivals, conventional: NDArray[np.bool_], draws: Floats, error: Floats, family: Family) -> Floats:
    """Share of its devices that a job keeps busy, to a thousandth.

    Samples of utilisation stand for jobs: what a job reaches on average lies closer together than its samples do.
    """
    trained = np.where(
        conventional, read_off(draws, LEVELS, device_use().conventional), read_off(draws, LEVELS, device_use().language)
    )
    served = arrivals.share * DUTY_MEDIAN * growth(DUTY_SIGMA * error)
    share = np.clip(np.where(arrivals.serving, served, trained), MIN_USED_SHARE, 1.0)
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
    capacities = np.array([sum(pool.devices for pool in home.site.pools) for home in homes])[arrivals.home]
    elastic = (drawn.elastic >= 1.0 - family.elastic) | (arrivals.devices > capacities)
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
        job_model = conventional(network, devices, busy)
        return Form(kind, minimum, maximum, network.memory, job_model, network.fixed / devices, OTHER_SPLITS)
    shape = _one(fitting(devices), model)
    memory = WORKING + STATE * shape.parameters / minimum
    tokens = shape.tokens if kind is JobKind.PRETRAINING else TUNING_TOKENS
    job_model = language_model(shape, tokens, busy)
    return Form(kind, minimum, maximum, memory, job_model, EXPOSED / devices, LANGUAGE_SPLITS)


def _one(choices: Sequence[_Choice], draw: float) -> _Choice:
    return choices[int(draw * len(choices))]


def _speed(device: str, devices: Mapping[str, DeviceType] | None) -> float:
    if devices is None:
        return 1.0
    index = devices[device].index
    return sum(index[kind.value] for kind in JobKind) / len(JobKind)


def _in_memory(
    job_list: tuple[Job, ...], sites: Sequence[Site], devices: Mapping[str, DeviceType], sets: Mapping[str, Dataset]
) -> tuple[Job, ...]:
    """Jobs that need no more memory than devices of their home have, and of where their data is pinned.

    They offload what does not fit, so that every one can run where it was submitted unless it is too large for that.
    """
    named = {site.name: site for site in sites}

    @cache  # tens of thousands of jobs ask for one of a few numbers of devices
    def memory(site: str, wanted: int) -> float:
        return _memory(named[site], wanted, devices)

    rows = []
    for job in job_list:
        reads = sets[job.data]
        most = MAX_MEMORY_SHARE * memory(job.home, job.requested)
        if reads.pinned:
            most = min(most, *(MAX_MEMORY_SHARE * memory(site, job.requested) for site in reads.sites))
        rows.append(dataclasses.replace(job, memory=most) if job.memory > most else job)
    return tuple(rows)


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


def _of_giant(job_list: tuple[Job, ...], sites: Sequence[Site]) -> tuple[Job, ...]:
    """The giant does with less than it asks for, yet not with what any one domain has."""
    total = _devices(sites)
    return tuple(
        dataclasses.replace(job, minimum=int(GIANT_NEEDS * total), maximum=job.requested, splits=tuple(Split))
        if job.requested == int(GIANT_ASKS * total)
        else job
        for job in job_list
    )


def _devices(sites: Sequence[Site]) -> int:
    return sum(pool.devices for site in sites for pool in site.pools)
