"""Kinds of domains. Each world has one of each, so that a domain's figures are gathered over worlds.

How many devices large trainings may hold and how many small jobs there are is assumed; the habits of small jobs are
those of clusters that were measured (see ``testbed.scheduling.workload.fitted``).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """What domains of a kind have in common.

    Attributes:
        label: For people.
        room: Devices that large trainings may hold at once.
        load: Devices that they would hold on average if none waited, over these.
        cluster: Cluster of ITP whose habits small jobs have.
        scale: Their number over that of the cluster.
        served: Devices that services hold on average.
    """

    label: str
    room: int
    load: float
    cluster: str
    scale: float
    served: float


KINDS = (
    Kind("large trainings", 3_072, 0.8, "cluster07", 0.5, 60.0),
    Kind("large trainings, small jobs", 2_560, 0.8, "cluster04", 0.5, 60.0),
    Kind("large trainings, services", 2_560, 0.75, "cluster08", 1.0, 300.0),
    Kind("fewer trainings", 1_792, 0.8, "cluster07", 0.5, 100.0),
    Kind("trainings and all else", 2_048, 0.75, "cluster04", 0.5, 200.0),
)
"""Domains of a world."""
