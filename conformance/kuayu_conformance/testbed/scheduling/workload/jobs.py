"""Jobs of arrivals: what each is, what it asks for, and what it truly takes.

What has no source is an assumption, named here: kinds by size, elasticity, priorities, tenants, deadlines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.scheduling.values import Job, JobKind, Model, Split
from kuayu_conformance.testbed.scheduling.workload import models
from kuayu_conformance.testbed.scheduling.workload.curves import Floats, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.families import Family
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, used
from kuayu_conformance.testbed.scheduling.workload.homes import Home
from kuayu_conformance.testbed.scheduling.workload.submitting import Arrivals

_Choice = TypeVar("_Choice")

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
        shape = _one(models.fitting(models.SERVED_BY * devices), model)
        memory = SERVING_MEMORY + models.HALF * shape.parameters / devices
        return Form(kind, devices, devices, memory, models.served(shape), 0.0, (Split.NONE,))
    minimum, maximum = (-(-devices // FEWER), MORE * devices) if elastic and devices > 1 else (devices, devices)
    if kind is JobKind.TRAINING:
        network = _one(models.NETWORKS, model)
        made = models.conventional(network, devices, busy)
        return Form(kind, minimum, maximum, network.memory, made, network.fixed / devices, OTHER_SPLITS)
    shape = _one(models.fitting(devices), model)
    memory = models.WORKING + models.STATE * shape.parameters / minimum
    tokens = shape.tokens if kind is JobKind.PRETRAINING else models.TUNING_TOKENS
    made = models.language_model(shape, tokens, busy)
    return Form(kind, minimum, maximum, memory, made, models.EXPOSED / devices, LANGUAGE_SPLITS)


def _one(choices: Sequence[_Choice], draw: float) -> _Choice:
    return choices[int(draw * len(choices))]
