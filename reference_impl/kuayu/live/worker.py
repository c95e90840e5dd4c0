"""The process of a worker; PyTorch is loaded only once it is sure to end with its parent.

python -m kuayu.live.worker NAME DOMAIN GATEWAY CONTROL PARENT FOLDER SETTINGS
"""

import os
import sys
import traceback
from pathlib import Path

from kuayu.live.ending import end_with_parent
from kuayu.live.settings import Settings


def main(arguments: list[str]) -> None:
    """Start from the arguments of the command line."""
    own, domain, gateway, control, parent, folder, settings = arguments
    end_with_parent(int(parent))
    from kuayu.live.member import Worker

    try:
        Worker(own, domain, int(gateway), int(control), Path(folder), Settings.of_json(settings)).run()
    finally:
        traceback.print_exc()  # it runs until it is ended, so there was an error
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
