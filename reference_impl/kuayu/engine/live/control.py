"""The control plane of a run that a service watches: ``python -m kuayu.engine.live.control``, as kuayu.live.control."""

import sys

from kuayu.engine.live.faulting import FaultJudge
from kuayu.live.control import main

if __name__ == "__main__":
    main(sys.argv[1:], lambda settings: FaultJudge(settings.service))
