"""Which of several dispatchers writes: the one that holds a Lease (coordination.k8s.io/v1).

1. It is the election of client-go, so that a dispatcher gets along with what else holds leases
   (k8s.io/client-go/tools/leaderelection): a lease lasts 15 s, its holder renews it every 2 s, and writes no more when
   it could not for 10 s.
2. Clocks of hosts are not compared: a lease is over when nobody has renewed it for as long as it lasts, by the clock of
   whoever watches it.
3. A dispatcher that ends gives its lease back, so that another one takes over at once.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kuayu.engine.runs.kubernetes_connection import CONFLICT, ApiError, Connection, JsonObject, MissingError
from kuayu.engine.runs.protocol import EngineError

LEASE_SECONDS = 15
RENEW_SECONDS = 10.0
RETRY_SECONDS = 2.0

log = logging.getLogger(__name__)


class Leadership:
    """Holds a lease where nobody else does.

    Args:
        connection: To the API server.
        namespace: Where the lease is.
        name: Of the lease.
        identity: Of this dispatcher.
        changed: Called when it has come to hold the lease, or holds it no longer.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name, self._identity = namespace, name, identity
        self._changed = changed
        self._clock = clock
        self._until = float("-inf")
        self._observed: tuple[str, float] = ("", float("-inf"))
        self._holder = ""
        self._ending = threading.Event()
        self._lock = threading.Lock()

    @property
    def leads(self) -> bool:
        """Whether this dispatcher may write."""
        return self._clock() < self._until

    @property
    def holder(self) -> str:
        """Who holds the lease, as it was seen last."""
        return self._holder

    def attempt(self) -> bool:
        """Renew the lease, or take one that is over; whether this dispatcher holds it now.

        Raises:
            EngineError: That cannot be told.
        """
        with self._lock:
            if self._ending.is_set():
                return False
            begun = self._clock()
            lease = self._connection.find(f"{self._leases}/{self._name}")
            try:
                written = self._take(lease)
            except MissingError:
                written = False
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                written = False
            if written:
                self._until = begun + RENEW_SECONDS
                self._holder = self._identity
            elif self._holder != self._identity:
                self._until = float("-inf")
            return written

    def _take(self, lease: JsonObject | None) -> bool:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        own = {"holderIdentity": self._identity, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
            self._connection.create(self._leases, {**body, "spec": {**own, "acquireTime": now, "leaseTransitions": 0}})
            return True
        spec = lease.get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), str(lease["metadata"]["resourceVersion"])
        if renewed != self._observed[0]:
            self._observed = (renewed, self._clock())
        self._holder = holder
        if holder != self._identity:
            lasts = float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)
            if holder and self._clock() < self._observed[1] + lasts:
                return False
            own |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        self._connection.patch(f"{self._leases}/{self._name}", {"metadata": version, "spec": own})
        return True

    def follow(self) -> None:
        """Renew the lease, or wait for it, until it is given back; a thread of its own does that."""
        led, leader = None, ""
        while True:
            if self.leads != led:
                led = self.leads
                log.info("this dispatcher %s", "leads" if led else "does not lead, and writes nothing")
                self._changed()
            if not led and self._holder != leader:
                leader = self._holder
                log.info("standing by; %s leads", leader or "nobody")
            if self._ending.wait(RETRY_SECONDS):
                return
            try:
                self.attempt()
            except EngineError as error:
                log.warning("lease %s/%s: %s (%s)", self._namespace, self._name, error.cause, error.hint)

    def give_back(self) -> None:
        """Give the lease back where this dispatcher holds it, so that another one need not wait until it is over."""
        self._ending.set()
        with self._lock:
            if not self.leads:
                return
            self._until = float("-inf")
            try:
                lease = self._connection.get(f"{self._leases}/{self._name}")
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
                    over = {"holderIdentity": "", "leaseDurationSeconds": 1}
                    self._connection.patch(f"{self._leases}/{self._name}", {"metadata": version, "spec": over})
            except EngineError as error:
                log.warning("lease %s/%s was not given back: %s", self._namespace, self._name, error.cause)
