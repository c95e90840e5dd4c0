"""Faults from heartbeats, steps and measurements: which nodes, domains, links, jobs and ranks are in trouble, and why.

``Detector`` is what the service uses; what it is given and what it says is in ``records``.
"""

from kuayu.resilience.detection.detector import Detector
from kuayu.resilience.detection.records import (
    DOMAIN_STATES,
    JOB_STATES,
    LINK_STATES,
    NODE_STATES,
    RANK_STATES,
    Beats,
    Explanation,
    Measurements,
    Origins,
    Population,
    Report,
    Settings,
    Steps,
)

__all__ = [
    "DOMAIN_STATES",
    "JOB_STATES",
    "LINK_STATES",
    "NODE_STATES",
    "RANK_STATES",
    "Beats",
    "Detector",
    "Explanation",
    "Measurements",
    "Origins",
    "Population",
    "Report",
    "Settings",
    "Steps",
]
