"""Some tasks by hand, for stories about the cluster."""

import numpy as np

from kuayu_conformance.testbed.right_sizing import Tasks

HOUR = 3600.0
ROOM = (8.0, 10.0, 100.0)
"""A small cluster: devices, cores, gigabytes."""


def few(
    *rows: tuple[float, float],
    arrivals: tuple[float, ...] = (),
    peaks: tuple[float, ...] = (),
    declared: tuple[float, ...] = (),
    users: tuple[int, ...] = (),
    dying: float = 0.5,
) -> Tasks:
    """Tasks of cores and hours each; each needs a device and ten gigabytes, uses half its cores, and comes at once."""
    n = len(rows)
    cores = np.array([row[0] for row in rows])
    need = np.stack([np.ones(n), cores, np.full(n, 10.0)], axis=1)
    duration = np.array([row[1] for row in rows]) * HOUR
    return Tasks(
        kind=np.full(n, 3),
        arrival=np.array(arrivals or (0.0,) * n),
        requested=need.copy(),
        need=need,
        use=need * np.array([0.5, 0.5, 0.8]),
        peak=np.array(peaks or (10.0,) * n),
        duration=duration,
        declared=np.array(declared) if declared else duration,
        dying=np.full(n, dying),
        user=np.array(users or (0,) * n),
    )
