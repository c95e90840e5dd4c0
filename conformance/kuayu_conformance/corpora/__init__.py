"""Tables of measured throughput, which compute indices are judged by, and where public originals lie.

1. **Tables.** Five origins with an open licence come with the suite. What states none is read from a folder of public
   originals where there is one. Every table is a corpus of the model: it travels in requests, and nothing is fitted to
   it beforehand.
2. **Gaps.** Where numbers are missing: what FlagPerf's pages of Chinese vendors hold.
3. **Originals.** Where they lie in the data folder (``KUAYU_DATA``, ``--data``) is said here, where no library is
   needed; who measured them and how, where they are read.
"""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from kuayu_conformance.corpora.sources import LAMBDA_FILE, Gap, lambda_labs
from kuayu_conformance.corpora.table import Table

__all__ = ["Gap", "Table", "UnknownTable", "available", "flagperf_gaps", "load", "shipped"]

NAMES = ("gavel", "neusight", "mlperf", "mlperf-time", "zeus", "flagperf")
JOB_TRACES = {
    "itp": "job_traces/itp.csv.gz",
    "philly": "job_traces/philly.csv.gz",
    "openb": "job_traces/openb_2023.csv.gz",
}
"""Read by ``testbed.scheduling.workload.traces``."""
TRAINING_CURVES = {
    "megatron_curves": "training_curves/megatron_release_curves.csv.gz",
    "megatron_configurations": "training_curves/megatron_release_configs.csv",
    "mlperf_curves": "mlperf_curves/curves.csv.gz",
    "mlperf_runs": "mlperf_curves/runs.csv",
}
"""Read by ``testbed.curves``."""
DEMAND_SERIES = {
    "itp-demand": "demand_series/itp_cluster_gpus_demand_1min.csv.gz",
    "earth-running": "demand_series/helios_earth_vc_gpus_running_1min.csv.gz",
    "philly-running": "demand_series/philly_vc_gpus_running_1min.csv.gz",
    "openb-running": "demand_series/openb_2023_running_1min.csv.gz",
}
"""Tables of a value each minute and cluster; read by ``testbed.demand.baselines``."""
BY_FOLDER = {"lambda": (LAMBDA_FILE, lambda_labs)}
"""Tables that need a data folder: the file there that they are made of, and what makes them."""


class UnknownTable(LookupError):
    """There is no table of the name that was asked for; the message says which there are."""


@cache
def shipped() -> tuple[Table, ...]:
    """Tables that come with the suite."""
    folder = files(__package__).joinpath("tables")
    return tuple(Table.from_json(folder.joinpath(f"{name}.json").read_text("utf-8")) for name in NAMES)


def flagperf_gaps() -> tuple[Gap, ...]:
    """What FlagPerf tells of Chinese accelerators, by vendor, as counted from the public copy."""
    text = files(__package__).joinpath("flagperf_gaps.json").read_text("utf-8")
    return tuple(Gap(**entry) for entry in json.loads(text))


@cache
def available(data: Path | None) -> tuple[Table, ...]:
    """Tables that come with the suite, and those whose originals lie in a data folder."""
    if data is None:
        return shipped()
    tables_by_file = [make(data) for file, make in BY_FOLDER.values() if (data / file).is_file()]
    return shipped() + tuple(table for tables in tables_by_file for table in tables)


def load(name: str, data: Path | None) -> Table:
    """The table of a name.

    Raises:
        UnknownTable: There is none, or its originals are not in the data folder.
    """
    tables = available(data)
    for table in tables:
        if table.name == name:
            return table
    if name in BY_FOLDER:
        raise UnknownTable(
            f"the table {name} does not come with the suite, since its origin states no licence; "
            f"set KUAYU_DATA to a folder that holds {BY_FOLDER[name][0]}"
        )
    raise UnknownTable(f"there is no table {name}; there are {', '.join(table.name for table in tables)}")
