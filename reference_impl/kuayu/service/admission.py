"""What is looked at before a request is: who sends it, how much is in hand already, and how fast its body comes.

Requests that tell of faults, and of what is done about them, have places of their own; the others of all tenants share
the rest. Bodies are counted while they come, so that what is in hand at a time is bounded, whoever sends it. A body
that hardly comes is given up, with an answer that lets its sender try again (RFC 9110, 15.6.4).
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kuayu.service import auth
from kuayu.service.lanes import Lane
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings

AT_ONCE = 64
"""Requests that are worked on at a time, in each lane."""

MAX_WAITING = 4_096
"""Requests that may wait in each lane."""

URGENT = ("/v1/heartbeats", "/v1/log-lines", "/v1/faults", "/v1/action-results")
"""Where faults, and what was done about them, are told and read."""

ELSEWHERE = {
    *("/v1/health", "/v1/actions", "/v1/faults/events", "/v1/graph/events"),
    *("/v1/placements", "/v1/pareto-fronts", "/v1/allocation-plans", "/v1/routes"),
    *("/v1/training-demands", "/v1/layouts", "/v1/task-sizes", "/v1/compute-indices", "/v1/probe-plans"),
    *("/v1/forecasts", "/v1/training-phases", "/v1/waveforms", "/v1/peak-plans", "/v1/reservations"),
    *("/v1/shard-plans", "/v1/collectives", "/v1/backup-plans", "/v1/failover-plans", "/v1/adjustments"),
}
"""Where little is done, or where who waits is bounded by who does the work."""


class Admission:
    """Lets requests in, and counts their bodies.

    Args:
        app: What answers.
        settings: What the operator set.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._urgent, self._others = (
            Lane(AT_ONCE, settings.share(AT_ONCE), MAX_WAITING, settings.share(MAX_WAITING)) for _ in range(2)
        )
        self._bytes: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once there is a place for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            tenant = auth.tenant_of(Request(scope), self._settings)
        except ProblemException:
            # Whoever answers says so; what needs no token takes no body.
            await self._app(scope, receive, send)
            return
        body = _Body(self, tenant, receive)
        async with AsyncExitStack() as stack:
            stack.callback(body.let_go)
            if scope["path"] not in ELSEWHERE:
                lane = self._urgent if scope["path"].startswith(URGENT) else self._others
                try:
                    await stack.enter_async_context(lane.place(tenant))
                except ProblemException as problem:
                    await problem.response()(scope, receive, send)
                    return
            await self._app(scope, body.receive, send)

    def take(self, tenant: str, size: int) -> None:
        """Take so many bytes more in hand.

        Raises:
            ProblemException: overloaded.
        """
        most = self._settings.body_bytes
        if self._bytes.total() + size > most or self._bytes[tenant] + size > self._settings.share(most):
            raise ProblemException(
                "overloaded", "more bodies are in hand than the service takes", retry_after=1, headers=CLOSE
            )
        self._bytes[tenant] += size

    def give_back(self, tenant: str, size: int) -> None:
        """Have so many bytes less in hand."""
        self._bytes[tenant] -= size
        if not self._bytes[tenant]:
            del self._bytes[tenant]

    def patience(self, size: int) -> float:
        """Seconds that so many bytes may take to come."""
        return self._settings.body_grace + size / self._settings.body_rate


CLOSE = {"Connection": "close"}
"""What is left of the body is not read."""


class _Body:
    """The body of one request, as it comes."""

    def __init__(self, admission: Admission, tenant: str, receive: Receive) -> None:
        self._admission = admission
        self._tenant = tenant
        self._receive = receive
        self._size = 0
        self._whole = False
        self._waited = 0.0

    async def receive(self) -> Message:
        """The next piece; after the last, what the client does.

        Raises:
            ProblemException: overloaded, where too much is in hand or the body comes too slowly.
        """
        if self._whole:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(0.0, self._admission.patience(self._size) - self._waited)):
                message = await self._receive()
        except TimeoutError:
            seconds = self._waited + clock() - began
            detail = f"{self._size} bytes of the body came in {seconds:.0f} s, and no more is waited for"
            raise ProblemException("overloaded", detail, retry_after=1, headers=CLOSE) from None
        self._waited += clock() - began
        self._whole = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self._admission.take(self._tenant, size)
        self._size += size
        return message

    def let_go(self) -> None:
        """The request is over."""
        self._admission.give_back(self._tenant, self._size)
