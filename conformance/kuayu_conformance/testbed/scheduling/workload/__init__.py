"""What is submitted: jobs by models fitted to real traces, or by the traces themselves, at a stated load and skew."""

from kuayu_conformance.testbed.scheduling.workload.arrivals import NotEnoughJobs
from kuayu_conformance.testbed.scheduling.workload.families import (
    FAMILIES,
    FITS,
    Family,
    UnknownFamily,
    UnknownSource,
    demand,
)
from kuayu_conformance.testbed.scheduling.workload.jobs import Workload, draw
from kuayu_conformance.testbed.scheduling.workload.traces import MissingTraces

SOURCES = tuple(FITS)
"""Where jobs may come from: fitted models first, then the traces."""

__all__ = [
    "FAMILIES",
    "SOURCES",
    "Family",
    "MissingTraces",
    "NotEnoughJobs",
    "UnknownFamily",
    "UnknownSource",
    "Workload",
    "demand",
    "draw",
]
