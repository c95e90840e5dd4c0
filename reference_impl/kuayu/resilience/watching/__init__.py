"""Faults of named nodes, domains, jobs and ranks that open and clear, from heartbeats and log lines as on the wire.

``Watch`` is the door; what it says is in ``values``. ``detection`` judges rows of arrays and ``logs`` judge lines;
here are names for the rows (``roll``), columns of what is heard (``arriving``), and when a fault begins and is over.
"""

from kuayu.resilience.watching.values import Change, Subject
from kuayu.resilience.watching.watch import Watch

__all__ = ["Change", "Subject", "Watch"]
