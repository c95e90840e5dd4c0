"""A worker of a run that a service watches: ``python -m kuayu.engine.live.worker``, as kuayu.live.worker.

It beats to the service through the gateway of its domain, and leaves its number for whoever has to fence it.
"""

import os
import sys
from pathlib import Path

from kuayu.engine.live.heartbeats import Now, beats
from kuayu.live.worker import main


def announce(own: str, folder: Path, service: int, now: Now) -> None:
    """Be there for the service."""
    (folder / f"{own}.pid").write_text(str(os.getpid()), encoding="ascii")
    beats(service, own, now)


if __name__ == "__main__":
    main(sys.argv[1:], announce)
