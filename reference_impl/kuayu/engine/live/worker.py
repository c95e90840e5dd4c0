"""A worker of a run that a service watches: ``python -m kuayu.engine.live.worker``, as kuayu.live.worker.

It beats to the service through the gateway of its domain.
"""

import sys

from kuayu.engine.live.heartbeats import beats
from kuayu.live.worker import main

if __name__ == "__main__":
    main(sys.argv[1:], beats)
