"""The control plane of a run that a service watches: ``python -m kuayu.engine.live.control``, as kuayu.live.control.

Who is silent it hears from the service, in place of a failure detector of its own.
"""

import logging
import sys
import threading
from collections.abc import Mapping

from kuayu.client import Client, ClientError
from kuayu.engine.live.heartbeats import url
from kuayu.live.control import main
from kuayu.live.detection import Stage
from kuayu.live.findings import domain_of
from kuayu_schemas.models import Fault, FaultKind, FaultState

logger = logging.getLogger(__name__)

AGAIN_S = 0.2
"""Seconds after which a service that went away is asked anew."""


class ServiceFailureDetector:
    """Workers whose node is dead, or whose domain cannot be reached, by the faults of a service that are open.

    Args:
        port: Of the service.
    """

    def __init__(self, port: int) -> None:
        self._lock = threading.Lock()
        self._domains: dict[str, str] = {}
        self._open: dict[str, Fault] = {}
        self._port = port
        threading.Thread(target=self._follow, name="faults", daemon=True).start()

    def beat(self, worker: str, instant: float) -> None:  # noqa: ARG002 - the service hears beats of its own
        """The worker is there."""
        with self._lock:
            self._domains.setdefault(worker, domain_of(worker))

    def forget(self, worker: str) -> None:
        """The worker is gone."""
        with self._lock:
            self._domains.pop(worker, None)

    def verdicts(self, now: float) -> Mapping[str, Stage]:  # noqa: ARG002 - the service has its own clock
        """Silent workers."""
        with self._lock:
            dead = {fault.node for fault in self._open.values() if fault.kind is FaultKind.node_dead}
            cut = {fault.domain for fault in self._open.values() if fault.kind is FaultKind.domain_unreachable}
            return {worker: Stage.silent for worker, domain in self._domains.items() if worker in dead or domain in cut}

    def _follow(self) -> None:
        while True:
            try:
                with Client(url(self._port)) as client:
                    for fault in client.follow_faults():
                        self._take(fault)
            except ClientError as error:
                logger.warning("%s; the faults are asked for anew", error.cause)
            threading.Event().wait(AGAIN_S)

    def _take(self, fault: Fault) -> None:
        with self._lock:
            if fault.state is FaultState.open:
                self._open[fault.id] = fault
            else:
                self._open.pop(fault.id, None)


if __name__ == "__main__":
    main(sys.argv[1:], lambda settings: ServiceFailureDetector(settings.service))
