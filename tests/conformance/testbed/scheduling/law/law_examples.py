"""A job, devices and places that the stories on the law share; figures are round, to be worked by hand."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.values import (
    DeviceType,
    Job,
    JobKind,
    Model,
    Placement,
    Share,
    Split,
)

GIGABIT = 1e9
DEVICES: Mapping[str, DeviceType] = {
    "plain": DeviceType("plain", 80e9, 300e12, {"llm": 1.0}, 400.0),
    "quick": DeviceType("quick", 80e9, 600e12, {"llm": 2.0}, 700.0),
}
SITES = ("a", "b", "c", "d")
ROUND_TRIPS = {(source, target): 0.02 for source in SITES for target in SITES if source != target}
LAW = PublishedLaw(DEVICES, ROUND_TRIPS)

JOB = Job(
    name="j",
    kind=JobKind.PRETRAINING,
    submitted=0.0,
    home="a",
    tenant="t",
    priority=0,
    deadline=inf,
    requested=16,
    minimum=4,
    maximum=32,
    memory=40e9,
    profile="llm",
    model=Model(parameters=1e9, gradient=2e9, boundary=4e9, checkpoint=14e9, step=3.0),
    data="d",
    serial=0.0,
    stated=1000.0,
    work=16_000.0,
    used=1.0,
    splits=tuple(Split),
)
"""A step of 3 s on 16 plain devices; a gradient of 16 Gbit; 16 Gbit each way over a pipeline cut."""


def job(**changed: object) -> Job:
    """The same with some members changed."""
    return replace(JOB, **changed)  # type: ignore[arg-type]


def placed(*devices: int, split: Split = Split.NONE, period: int = 1, device: str = "plain") -> Placement:
    """So many devices in domains ``a``, ``b`` and so on."""
    shares = tuple(Share(site, device, count) for site, count in zip(SITES, devices, strict=False))
    return Placement(shares, split, period)
