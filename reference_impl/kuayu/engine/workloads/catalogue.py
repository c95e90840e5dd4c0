"""Names of the reference workloads; PyTorch is loaded with the first of them that is asked for."""

import importlib
from typing import Final

from kuayu.engine.workloads.workload import Workload

WORKLOADS: Final = {
    "transformer-single": ("transformer", "SINGLE"),
    "transformer-half": ("transformer", "HALF"),
    "recommendation": ("recommendation", "HALF"),
    "recurrent": ("recurrent", "HALF"),
    "waveform": ("waveform", "HALF"),
    "residual": ("residual", "HALF"),
}
"""Short name of each workload, the module that it is in, and its name there; the most telling first."""


def load(name: str) -> Workload:
    """The workload of that short name.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        KeyError: There is none of that name.
    """
    module, constant = WORKLOADS[name]
    workload = getattr(importlib.import_module(f"kuayu.engine.workloads.{module}"), constant)
    assert isinstance(workload, Workload)
    return workload
