"""The loop of a dispatcher: passes when something has changed, when a round ends, and every half minute.

1. A pass is made by the one that leads; others follow the same objects and stand by, so that they can take over at
   once.
2. A pass that fails leaves everything as it was. It is made again after a pause that doubles; what is wrong is said
   once, and again when it has become something else.
3. Told to end, it writes no further nomination, gives its lease back and returns.
4. What the first look at the manager cluster shows to be wrong for good (no Kueue, no permission) ends it with what to
   do.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kuayu.client import Client, ClientError, UnauthorisedError
from kuayu.engine.kueue.adviser import Adviser
from kuayu.engine.kueue.dispatcher import Dispatcher, Nomination, PassResult, Policy
from kuayu.engine.kueue.leader import Leadership
from kuayu.engine.kueue.manager import Manager, served_version
from kuayu.engine.kueue.objects import Version
from kuayu.engine.kueue.watch import Backoff
from kuayu.engine.kueue.workloads import Describe
from kuayu.engine.runs.kubernetes_connection import FORBIDDEN, ApiError, Connection
from kuayu.engine.runs.protocol import EngineError

INTERVAL_SECONDS = 30.0
"""Seconds after which a pass is made in any case, since what the service knows changes too."""

SETTLE_SECONDS = 0.3
"""Seconds that a pass waits for further changes: workloads come together, and are best decided on together."""

MAX_ATTEMPTS = 5
"""Passes that are made for one, as long as somebody else is faster."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseName:
    """A lease.

    Attributes:
        namespace: Where it is.
        name: What it is called.
        identity: Who holds it.
    """

    namespace: str
    name: str
    identity: str


def hint_of(error: EngineError | ClientError) -> str:
    """What to do about what went wrong."""
    if isinstance(error, ApiError) and error.status == FORBIDDEN:
        return "apply what `kuayu kueue manifests` prints, or have this account allowed the same"
    return error.hint or "see what the service and the API server log"


class Controller:
    """Dispatches the workloads of a manager cluster until it is told to end.

    Args:
        connection: To the manager cluster.
        client: Of the service.
        describe: Reads annotations of workloads.
        report: Told of each nomination.
        policy: How clusters are nominated.
        lease: By which one of several dispatchers writes.
        interval: Seconds after which a pass is made in any case.
    """

    def __init__(
        self,
        connection: Connection,
        client: Client,
        describe: Describe,
        report: Callable[[Nomination], None],
        *,
        policy: Policy | None = None,
        lease: LeaseName | None = None,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._connection = connection
        self._client = client
        self._report = report
        self._describe = describe
        self._policy = policy
        self._interval = interval
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ending = False
        self._error = ""
        self._leadership: Leadership | None = None
        if lease is not None:
            self._leadership = Leadership(connection, lease.namespace, lease.name, lease.identity, self.wake)

    def wake(self) -> None:
        """Have a pass made soon."""
        self._wake.put(None)

    def end(self) -> None:
        """Have it end; a signal handler may call this."""
        self._ending = True
        self._wake.put(None)

    def once(self) -> PassResult:
        """Make one pass, whoever leads: what is written is written only where nobody has changed it.

        Raises:
            EngineError: The manager cluster does not answer, or refuses.
            ClientError: The service does not answer, or refuses.
        """
        manager = Manager(self._connection, served_version(self._connection))
        dispatcher = self._dispatcher(manager.version)
        for _ in range(MAX_ATTEMPTS):
            manager.read()
            result = dispatcher.dispatch(manager.state())
            if not result.again:
                break
        return result

    def run(self) -> None:
        """Dispatch until told to end.

        Raises:
            EngineError: The manager cluster refuses for good what a dispatcher needs.
            ClientError: The service refuses this dispatcher.
        """
        manager = self._begin()
        if manager is None:
            return
        dispatcher = self._dispatcher(manager.version)
        manager.follow(self.wake)
        if self._leadership is not None:
            threading.Thread(target=self._leadership.follow, name="lease", daemon=True).start()
        try:
            self._loop(manager, dispatcher)
        finally:
            if self._leadership is not None:
                self._leadership.give_back()

    def _dispatcher(self, version: Version) -> Dispatcher:
        return Dispatcher(
            self._connection,
            Adviser(self._client),
            self._describe,
            self._report,
            policy=self._policy,
            version=version,
            may_write=self._may_write,
        )

    def _may_write(self) -> bool:
        return not self._ending and (self._leadership is None or self._leadership.leads)

    def _begin(self) -> Manager | None:
        """Have a first look at the service and the manager cluster; None where it is told to end before they answer."""
        backoff = Backoff()
        while not self._ending:
            try:
                self._client.graph(nodes=False)
                manager = Manager(self._connection, served_version(self._connection))
                manager.read()
                if self._leadership is not None:
                    self._leadership.attempt()
            except (EngineError, ClientError) as error:
                if not error.transient:
                    raise
                self._pause(error, backoff.seconds())
            else:
                return manager
        return None

    def _loop(self, manager: Manager, dispatcher: Dispatcher) -> None:
        backoff = Backoff()
        while not self._ending:
            pause = self._interval
            if self._may_write():
                try:
                    result = dispatcher.dispatch(manager.state())
                except (EngineError, ClientError) as error:
                    if isinstance(error, UnauthorisedError):
                        raise
                    self._pause(error, backoff.seconds())
                    continue
                backoff.reset()
                if self._error:
                    log.info("passes are made again")
                    self._error = ""
                if result.next_seconds is not None:
                    pause = min(pause, max(result.next_seconds, SETTLE_SECONDS))
            if self._wait(pause):
                self._settle()

    def _pause(self, error: EngineError | ClientError, seconds: float) -> None:
        """Say once what is wrong, and wait, whatever changes meanwhile."""
        if error.cause != self._error:
            self._error = error.cause
            log.warning("%s (%s); it is tried again", error.cause, hint_of(error))
        end = time.monotonic() + seconds
        while not self._ending and (left := end - time.monotonic()) > 0:
            self._wait(left)

    def _wait(self, seconds: float) -> bool:
        """Wait until something has changed, or so many seconds; whether something has."""
        try:
            self._wake.get(timeout=seconds)
        except queue.Empty:
            return False
        return True

    def _settle(self) -> None:
        """Let changes that come together be one."""
        end = time.monotonic() + SETTLE_SECONDS
        while not self._ending and (left := end - time.monotonic()) > 0:
            if not self._wait(left):
                return
        while not self._wake.empty():
            self._wake.get()
