"""The process of a domain's agent: it beats for the domain, and fences nodes as the service asks.

    python -m kuayu.engine.live.agent DOMAIN GATEWAY FOLDER

To fence a node is to have the engine end its worker: nothing runs on the node from then on. All that it says and hears
passes the domain's gateway, so that it is cut off with its domain.
"""

import logging
import sys
import threading
from pathlib import Path

from kuayu.client import Client
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Fence, Holding
from kuayu.engine.live.heartbeats import ANSWER_S, agent_of, beats, url
from kuayu.engine.runs.protocol import Engine, EngineError
from kuayu.live.launcher import engine_of

logger = logging.getLogger(__name__)

MAX_WORKERS = 1000
"""Workers that a domain has one after the other."""

WAIT_S = 5.0
"""Seconds that the service is to wait for something to do; after a cut, it is asked anew not much later."""


class FencingHooks:
    """Does what is asked to workers of this machine.

    Args:
        engine: Of the workers, which are called as their nodes are.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def take(self, holding: Holding) -> None:
        """Nothing is held by this run."""

    def give_back(self, holding: Holding) -> None:
        """Nothing is held by this run."""

    def fence(self, fence: Fence) -> None:
        """Nothing may run on these nodes; on some nothing ever did."""
        for node in fence.nodes:
            try:
                self._engine.stop(node, 0.0)
            except EngineError as error:
                logger.warning("%s is not fenced: %s", node, error.cause)

    def lift(self, fence: Fence) -> None:
        """These nodes may be used again; a worker that was ended is started anew under another name."""

    def stop(self, job: str, cause: str | None) -> None:
        """A job hangs. The control plane of the run sees that by itself, and sooner."""


def main(arguments: list[str]) -> None:
    """Start from the arguments of the command line."""
    domain, gateway, folder = arguments
    logging.basicConfig(level=logging.WARNING)
    beats(int(gateway), agent_of(domain))
    with Client(url(int(gateway)), timeout_s=ANSWER_S, attempts=1) as client:
        nodes = {f"{domain}-{number}": 1 for number in range(1, MAX_WORKERS)}
        hooks = FencingHooks(engine_of(Path(folder)))
        controller = DomainController(client, domain, {"cpu": nodes}, hooks=hooks, wait_s=WAIT_S)
        controller.run(threading.Event())


if __name__ == "__main__":
    main(sys.argv[1:])
