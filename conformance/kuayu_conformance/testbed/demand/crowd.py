"""Small jobs and services of a domain, as arrays of submissions, seconds and devices; none of them waits.

Small jobs are drawn from what was fitted to ITP's clusters, services from what was fitted to Alibaba's pods that serve
(see ``testbed.scheduling.workload.fitted``): their seconds and sizes, and the hours and days at which they are
submitted, which are those of Philly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand.kinds import Kind
from kuayu_conformance.testbed.scheduling.workload.arrivals import draw_cluster
from kuayu_conformance.testbed.scheduling.workload.curves import growth, read_off
from kuayu_conformance.testbed.scheduling.workload.fitted import LEVELS, parameters

_HOUR = 3_600.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Jobs in no order.

    Attributes:
        submitted: Seconds, whole.
        seconds: Of each, whole.
        devices: Of each.
    """

    submitted: Floats
    seconds: Floats
    devices: Floats


def small_jobs(kind: Kind, span: tuple[float, float], seed: str) -> Crowd:
    """Small jobs that are submitted in a span of seconds since midnight at the begin of a week."""
    fit = parameters()[0]["itp"]
    cluster = next(candidate for candidate in fit.clusters if candidate.name == kind.cluster)
    drawn = draw_cluster(fit, cluster, span, stream(seed, "small jobs"), scale=kind.scale)
    selected = (drawn.turn <= kind.scale) & (drawn.submitted < span[1])
    seconds = np.maximum(1.0, np.rint(drawn.duration[selected]))
    return Crowd(np.rint(drawn.submitted[selected]), seconds, drawn.devices[selected])


def services(kind: Kind, span: tuple[float, float], seed: str) -> Crowd:
    """Replicas of services that are started in a span, and how long they last."""
    fits, serving = parameters()
    rhythm = fits["philly"]
    sizes = np.array([size for size, _ in serving.sizes], dtype=np.float64)
    shares = np.cumsum(np.array([share for _, share in serving.sizes]))
    mean = sum(size * share for size, share in serving.sizes) / float(shares[-1])
    hours = np.floor(span[0] / _HOUR) + np.arange(int((span[1] - span[0]) / _HOUR) + 1)
    hour_numbers = hours.astype(np.intp)
    usual = np.array(rhythm.hours)[hour_numbers % 24] * np.array(rhythm.days)[(hour_numbers // 24) % 7]
    chance = stream(seed, "services")
    rate = kind.served / (mean * serving.duration) * _HOUR * usual
    counts = np.floor(rate + chance.random(len(rate))).astype(np.intp)
    hour = np.repeat(hours, counts)
    when, level, pick = chance.random((3, len(hour)))
    seconds = growth(read_off(level, LEVELS, serving.durations))
    devices = sizes[np.minimum(np.searchsorted(shares, pick * shares[-1], side="right"), len(sizes) - 1)]
    return Crowd(np.rint((hour + when) * _HOUR), np.maximum(1.0, np.rint(seconds)), devices)
