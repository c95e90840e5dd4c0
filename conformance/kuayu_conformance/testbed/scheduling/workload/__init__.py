"""What is submitted: jobs by models fitted to real traces, or by the traces themselves, at a stated load and skew.

:func:`draw` makes a workload. Behind it:

- ``families``: named sets of parameters, and the homes of jobs: whose habits each domain has, and how large it is;
- ``traces``: jobs of real clusters; ``fitted``: parameters fitted to them, and jobs drawn from these;
- ``arrivals``: candidates from both, and as many of them as a load asks for;
- ``jobs``: what each is, asks for and truly takes, with its data set;
- ``fitting``: how parameters follow from traces, and how the model compares with them.

``python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR`` fits again, and compares.
"""

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
