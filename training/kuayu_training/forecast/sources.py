"""Series of demand of public traces, in the folder that KUAYU_DATA names (``demand_series/README.md`` there)."""

import csv
import gzip
import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kuayu.forecast.requests import Floats

MINUTE = 60.0

TEN_MINUTES = 600.0

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


FLOWS: dict[str, tuple[str, tuple[str, ...] | None, int, int]] = {
    "itp submitted": ("itp_cluster_gpus_submitted_1min.csv.gz", None, EMPTY_DAYS, 10),
    "philly submitted": ("philly_vc_gpus_submitted_1min.csv.gz", None, EMPTY_DAYS, 10),
    "helios venus jobs": ("helios_venus_10min.csv.gz", ("submit_gpu_job", "submit_gpu_num"), 0, 1),
    "genai requests": ("genai_requests_10min.csv", ("requests",), 0, 1),
}
"""File of each flow, the columns that count, the days that are left out, and rows that are one step of ten minutes."""


@dataclass(frozen=True)
class Source:
    """Series of one cluster or trace.

    Attributes:
        name: Its name.
        domains: Names of its domains, D.
        values: Devices, D × T.
        offset: Seconds of the first value since the time zero of the source.
        step: Seconds from one value to the next.
    """

    name: str
    domains: tuple[str, ...]
    values: Floats
    offset: float
    step: float = MINUTE


def folder() -> Path:
    """Where the public data is."""
    return Path(os.environ.get("KUAYU_DATA", "../shared/data"))


def sources(data: Path, names: Container[str] = frozenset(FILES)) -> Iterator[Source]:
    """Sources of these names, all where none are given.

    Raises:
        FileNotFoundError: A file is not there.
    """
    for name, (file, only, days) in FILES.items():
        if name not in names:
            continue
        with gzip.open(data / "demand_series" / file, "rt") as text:
            header = next(csv.reader([text.readline()]))
            table = np.loadtxt(text, delimiter=",")
        columns = [column for column in range(1, len(header)) if only in {None, header[column]}]
        skipped = days * 1440
        names = tuple(header[column] for column in columns)
        yield Source(name, names, table[skipped:, columns].T.copy(), float(table[skipped, 0]))


def flows(data: Path) -> Iterator[Source]:
    """Series of what comes in ten minutes: submissions and requests.

    Raises:
        FileNotFoundError: A file is not there.
    """
    for name, (file, only, days, rows) in FLOWS.items():
        path = data / "demand_series" / file
        with gzip.open(path, "rt") if file.endswith(".gz") else path.open(encoding="utf-8") as text:
            header = next(csv.reader([text.readline()]))
            table = np.loadtxt(text, delimiter=",")[days * 1440 :]
        columns = [column for column in range(1, len(header)) if only is None or header[column] in only]
        count = len(table) // rows
        values = table[: count * rows, columns].T.reshape(len(columns), count, rows).sum(axis=2)
        yield Source(name, tuple(header[column] for column in columns), values, float(table[0, 0]), TEN_MINUTES)
