"""The reference's rule compiled, to be played inside the suite's compiled world; for training and tuning alone.

Modules are those of ``kuayu.scheduling``, function by function: ``snapshot`` (what is decided on), ``throughput``,
``candidates``, ``availability``, ``scoring``, ``scheduler``, ``preemption``; ``orders`` carries out what was decided,
``observation`` asks whoever learns, ``epoch_loop`` lets time pass, ``batch`` does so in many worlds, and ``player`` is
the policy. What serves is never this, but the rule itself; tests hold both to the same orders.

numba keeps what it has compiled and looks only at the file that a function stands in: what was compiled of another
version of these files, or of those of the suite's compiled world, is removed here before anything is loaded.
"""

from pathlib import Path

import kuayu.scheduling
from kuayu_conformance.testbed.scheduling import core
from kuayu_conformance.testbed.scheduling.core import forget_what_is_stale

forget_what_is_stale(Path(__file__).parent, *(Path(package.__path__[0]) for package in (core, kuayu.scheduling)))
