"""Faults of named nodes, domains, jobs and ranks that open and clear, from beats, logs and telemetry.

1. ``Watch`` is what the service uses; what it says is in ``lifecycle``.
2. :mod:`kuayu.resilience.detection` judges rows of arrays and :mod:`kuayu.resilience.logs` judges lines; ``membership``
   gives the rows names and keeps what has arrived until the next look.
3. ``lifecycle`` has when a fault begins and when it is over.
"""

from kuayu.resilience.faults.lifecycle import Change, IdentityConflict, Subject
from kuayu.resilience.faults.watch import Watch

__all__ = ["Change", "IdentityConflict", "Subject", "Watch"]
