"""Compute index: what one device is worth for a task, counted in devices of a reference kind.

Pure: an answer depends on the request alone. No input or output, no clock, no chance.
"""

from kuayu.index.probe_plan import plan_probes
from kuayu.index.report import METHOD_NAME, METHOD_VERSION, compute_indices

__all__ = ["METHOD_NAME", "METHOD_VERSION", "compute_indices", "plan_probes"]
