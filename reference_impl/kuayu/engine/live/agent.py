"""The process of a domain's agent: it beats for the domain, and fences nodes as the service asks.

    python -m kuayu.engine.live.agent DOMAIN GATEWAY PARENT FOLDER

To fence a node is to kill its worker: nothing runs on the node from then on. All that it says and hears passes the
domain's gateway, so that it is cut off with its domain.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from kuayu.client import Client
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Fence, Holding
from kuayu.engine.live.heartbeats import ANSWER_S, agent_of, beats, url
from kuayu.live.transport import end_with_parent

MAX_WORKERS = 1000
"""Workers that a domain has one after the other."""

WAIT_S = 5.0
"""Seconds that the service is to wait for something to do; after a cut, it is asked anew not much later."""


class FencingHooks:
    """Does what is asked to workers of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, holding: Holding) -> None:
        """Nothing is held by this run."""

    def give_back(self, holding: Holding) -> None:
        """Nothing is held by this run."""

    def fence(self, fence: Fence) -> None:
        """Nothing may run on these nodes."""
        for node in fence.nodes:
            with contextlib.suppress(OSError, ValueError):  # it has ended, or never began
                os.kill(int((self._folder / f"{node}.pid").read_text("ascii")), signal.SIGKILL)

    def lift(self, fence: Fence) -> None:
        """These nodes may be used again; a worker that was killed is started anew under another name."""

    def stop(self, job: str, cause: str | None) -> None:
        """A job hangs. The control plane of the run sees that by itself, and sooner."""


def main(arguments: list[str]) -> None:
    """Start from the arguments of the command line."""
    domain, gateway, parent, folder = arguments
    end_with_parent(int(parent))
    logging.basicConfig(level=logging.WARNING)
    beats(int(gateway), agent_of(domain))
    with Client(url(int(gateway)), timeout_s=ANSWER_S, attempts=1) as client:
        nodes = {f"{domain}-{number}": 1 for number in range(1, MAX_WORKERS)}
        controller = DomainController(client, domain, {"cpu": nodes}, hooks=FencingHooks(Path(folder)), wait_s=WAIT_S)
        controller.run(threading.Event())


if __name__ == "__main__":
    main(sys.argv[1:])
