"""Faults brought about from outside: workers have no part in it and no way to know.

==========  ========================================================================================================
kind        what happens
==========  ========================================================================================================
kill        SIGKILL: the process is gone, its connections end
hang        SIGSTOP: it answers nothing, its connections stay; continued later, when it has been replaced
slow        it is stopped for nine tenths of the time, in turns of 50 ms
cut         its link carries nothing, to the control plane or to peers; mended later
partial     its link carries nothing to peers, and its heartbeats still arrive (a partial partition; Alfatafta et al.,
            OSDI 2020); mended later
control     SIGKILL to the control plane, which is started anew
amid        SIGKILL to a worker, and up to half a second later to the control plane
==========  ========================================================================================================
"""

import signal
import threading
import time
from enum import StrEnum

from kuayu.live.ground import Ground

TURN_S, STOPPED = 0.05, 0.9
"""Seconds of a turn of a slow worker, and the share of it in which it is stopped."""
AMID_S = 0.5
"""Seconds at most from a worker's end to the control plane's: detection, decision and the new plan fall within it."""
CONTROL = "control"
"""Name of the control plane, to whom something is done as well."""


class Kind(StrEnum):
    """Kinds of faults."""

    kill = "kill"
    hang = "hang"
    slow = "slow"
    cut = "cut"
    partial = "partial"
    control = "control"
    amid = "amid"


class Strike:
    """A fault that has been brought about.

    Attributes:
        at: When, in seconds of the steady clock.

    Args:
        ground: Processes.
        kind: What happens.
        worker: To whom.
        after: Seconds to the second part of what happens.
    """

    def __init__(self, ground: Ground, kind: Kind, worker: str, after: float = 0.0) -> None:
        self._ground, self._kind, self._worker = ground, kind, worker
        self._over = threading.Event()
        self._turns: threading.Thread | None = None
        self.at = time.monotonic()
        match kind:
            case Kind.kill:
                ground.signal(worker, signal.SIGKILL)
            case Kind.hang:
                ground.signal(worker, signal.SIGSTOP)
            case Kind.slow:
                self._turns = threading.Thread(target=self._take_turns, daemon=True)
                self._turns.start()
            case Kind.cut | Kind.partial:
                order = {"cut": ground.domains[worker], "peers_only": kind == Kind.partial}
                self.at = ground.order_links(order)
            case Kind.control:
                self.at = ground.kill_control()
            case Kind.amid:
                ground.signal(worker, signal.SIGKILL)
                time.sleep(after)
                ground.kill_control()

    def lift(self) -> float:
        """Undo it, as far as it can be undone; when."""
        self._over.set()
        if self._turns is not None:
            self._turns.join()
        if self._kind in {Kind.cut, Kind.partial}:
            return self._ground.order_links({"mend": self._ground.domains[self._worker]})
        at = time.monotonic()
        if self._kind is not Kind.control:
            self._ground.signal(self._worker, signal.SIGCONT)
        return at

    def _take_turns(self) -> None:
        while not self._over.is_set() and not self._ground.ended(self._worker):
            self._ground.signal(self._worker, signal.SIGSTOP)
            time.sleep(TURN_S * STOPPED)
            self._ground.signal(self._worker, signal.SIGCONT)
            time.sleep(TURN_S * (1 - STOPPED))
