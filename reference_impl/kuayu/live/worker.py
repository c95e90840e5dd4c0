"""The process of a worker; PyTorch is loaded only once it is sure to end with its parent.

python -m kuayu.live.worker NAME DOMAIN GATEWAY CONTROL PARENT FOLDER SETTINGS SERVICE
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from kuayu.live.ending import end_with_parent
from kuayu.live.settings import Settings

Attend = Callable[[str, Path, int, Callable[[], tuple[int, int]]], None]
"""Has a service hear of a worker: its name, the folder of the run, the service's port, its rank and last step."""


def main(arguments: list[str], attend: Attend | None = None) -> None:
    """Start from the arguments of the command line; where a service watches, have it hear of the worker."""
    own, domain, gateway, control, parent, folder, settings, service = arguments
    end_with_parent(int(parent))
    from kuayu.live.member import Worker

    try:
        worker = Worker(own, domain, int(gateway), int(control), Path(folder), Settings.of_json(settings))
        if attend is not None:
            attend(own, Path(folder), int(service), worker.now)
        worker.run()
    finally:
        traceback.print_exc()  # it runs until it is ended, so there was an error
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
