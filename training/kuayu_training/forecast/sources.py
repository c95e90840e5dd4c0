"""Series of demand of public traces, in the folder that KUAYU_DATA names (``demand_series/README.md`` there)."""

import csv
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kuayu.forecast.values import Floats

MINUTE = 60.0

EMPTY_DAYS = 3
"""Days that ITP and Philly take to fill up; they are left out."""

FILES: dict[str, tuple[str, str | None, int]] = {
    "itp": ("itp_cluster_gpus_demand_1min.csv.gz", None, EMPTY_DAYS),
    "philly": ("philly_vc_gpus_running_1min.csv.gz", None, EMPTY_DAYS),
    "helios earth": ("helios_earth_vc_gpus_running_1min.csv.gz", None, 0),
    "openb": ("openb_2023_running_1min.csv.gz", "gpus_running", 0),
    "dlrm": ("dlrm_2025_running_1min.csv.gz", "gpus_running", 0),
}
"""File of each source, the only column that counts, and the days that are left out."""


@dataclass(frozen=True)
class Source:
    """Series of one cluster or trace, a value each minute.

    Attributes:
        name: Its name.
        domains: Names of its domains, D.
        values: Devices, D × T.
        offset: Seconds of the first value since the time zero of the source.
    """

    name: str
    domains: tuple[str, ...]
    values: Floats
    offset: float


def folder() -> Path:
    """Where the public data is."""
    return Path(os.environ.get("KUAYU_DATA", "../shared/data"))


def sources(data: Path) -> Iterator[Source]:
    """All sources.

    Raises:
        FileNotFoundError: A file is not there.
    """
    for name, (file, only, days) in FILES.items():
        with gzip.open(data / "demand_series" / file, "rt") as text:
            header = next(csv.reader([text.readline()]))
            table = np.loadtxt(text, delimiter=",")
        columns = [at for at in range(1, len(header)) if only in {None, header[at]}]
        skipped = days * 1440
        names = tuple(header[at] for at in columns)
        yield Source(name, names, table[skipped:, columns].T.copy(), float(table[skipped, 0]))
