"""Demand of real clusters, from the folder of public originals (``KUAYU_DATA``).

- *itp-demand*: GPUs that jobs of ten clusters of Microsoft held or waited for in spring 2021, as if none had queued;
  microsoft/elasticflow-traces (D. Gu et al., ASPLOS 2023).
- *earth-running*: GPUs in use of 16 virtual clusters of SenseTime's cluster Earth, May 2020; HeliosArtifact (Q. Hu et
  al., "Characterization and prediction of deep learning workloads in large-scale GPU datacenters", SC 2021).
- *philly-running*: GPUs in use of virtual clusters of Microsoft, 2017 (M. Jeon et al., ATC 2019).
- *openb-running*: GPUs in use by a sample of Alibaba's pods, 2023 (Q. Weng et al., ATC 2023).

They are not judged: nobody can keep them from having been seen.
"""

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.corpora.data_folder import DEMAND_SERIES

FILES = DEMAND_SERIES
"""Tables of a value each minute and cluster, by name."""

DEMANDED = frozenset({"itp-demand"})
"""Those that count what is demanded; the others count what is held."""

EMPTY_AT_FIRST = 3 * 1440
"""Values at the begin that say nothing, as the lists of jobs begin with nobody there."""

MIN_MEAN_DEVICES = 20.0
"""Mean devices of a cluster that is worth a forecast."""

_OTHERS = frozenset({"time_s", "cpus_running", "pods_running"})


def series(name: str, folder: Path) -> Mapping[str, NDArray[np.float64]]:
    """Values each minute by cluster, those at the begin that say nothing left out.

    Raises:
        KeyError: There is no such table.
        OSError: It cannot be read.
    """
    with gzip.open(folder / FILES[name], "rt", encoding="utf-8") as lines:
        rows = csv.reader(lines)
        names = next(rows)
        table = np.array([[float(cell or 0.0) for cell in row] for row in rows])
    kept = {names[place]: table[EMPTY_AT_FIRST:, place] for place in range(len(names)) if names[place] not in _OTHERS}
    return {cluster: values for cluster, values in kept.items() if values.mean() >= MIN_MEAN_DEVICES}
