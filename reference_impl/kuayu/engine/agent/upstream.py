"""The service, as the forwarder sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx
from pydantic import ValidationError

from kuayu.client import LOOPBACK, PROBLEM_PREFIX, read
from kuayu.perception import clock
from kuayu.service import instants
from kuayu_schemas.models import BatchResult, Declaration, Durability, Problem

CONNECT_S: Final = 3.0
OK: Final = 200
UNAUTHORISED: Final = 401
TOO_LARGE: Final = 413
HEAD, BETWEEN, TAIL = b'{"mode":"per_item","samples":[', b",", b"]"


class AwayError(Exception):
    """The service cannot take anything now, and what was sent has an unknown fate or none.

    Attributes:
        cause: Why.
        pause: Seconds that it asked to be left alone for.
    """

    def __init__(self, cause: str, pause: float = 0.0) -> None:
        super().__init__(cause)
        self.cause = cause
        self.pause = pause


class RefusalError(Exception):
    """The service refused a batch as a whole.

    Attributes:
        name: Registered name of the problem.
        detail: What it said.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Greeting:
    """What the service said of itself.

    Attributes:
        max_batch: Most items of a batch.
        max_body: Bytes of the largest body.
        retention: Milliseconds for which it keeps samples.
        durability: Which crash survives what it acknowledges.
        clock_off: Whether this clock is surely off its own by more than the standard tolerates, however long the answer
            took on its way.
    """

    max_batch: int
    max_body: int
    retention: int
    durability: Durability
    clock_off: bool


class Upstream:
    """A connection to the service, for one thread.

    Args:
        url: Base URL.
        token: Bearer token, or None.
        timeout: Seconds for an answer.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        base = httpx.URL(url.rstrip("/"))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Timeout(timeout, connect=min(CONNECT_S, timeout))
        # A proxy of the environment cannot reach this very host.
        self._http = httpx.Client(base_url=base, headers=headers, timeout=limits, trust_env=base.host not in LOOPBACK)

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()

    def greet(self) -> Greeting:
        """Ask what the service takes, and how its clock stands.

        Raises:
            AwayError: It does not say.
        """
        sent = instants.now()
        answer = self._send("GET", "/v1/conformance")
        answered = instants.now()
        if answer.status_code != OK:
            raise self._away(answer)
        try:
            said = read(Declaration, answer.content)
        except ValueError as error:
            raise AwayError(f"{self._http.base_url} answers, but is no service of the standard") from error
        theirs = round(said.now.timestamp() * 1000)
        ahead, behind = sent - theirs, theirs - answered
        return Greeting(
            max_batch=int(said.limits.max_batch),
            max_body=int(said.limits.max_body),
            retention=round(float(said.limits.retention) * 1000),
            durability=said.durability,
            clock_off=max(ahead, behind) > clock.TOLERATED_OFFSET,
        )

    def post(self, key: str, bodies: list[bytes], sent_at: str | None) -> BatchResult:
        """Send samples under a key.

        Raises:
            AwayError: Their fate is unknown, or they are not taken now.
            RefusalError: None of them was or will be taken in this form.
        """
        stamp = f',"sent_at":"{sent_at}"'.encode() if sent_at else b""
        content = b"".join((HEAD, BETWEEN.join(bodies), TAIL, stamp, b"}"))
        headers = {"content-type": "application/json", "idempotency-key": key}
        answer = self._send("POST", "/v1/samples", content=content, headers=headers)
        if answer.status_code == OK:
            try:
                return read(BatchResult, answer.content)
            except ValueError as error:
                raise AwayError("the service answered a batch with something else than a result") from error
        raise _refusal(answer, several=len(bodies) > 1) or self._away(answer)

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **parts)
        except httpx.HTTPError as error:
            raise AwayError(f"no answer from {self._http.base_url}: {error or type(error).__name__}") from error

    def _away(self, answer: httpx.Response) -> AwayError:
        try:
            problem = read(Problem, answer.content)
            said = f"{problem.title}: {problem.detail}" if problem.detail else problem.title
        except (ValidationError, ValueError):
            said = "and nothing that the standard knows"
        if answer.status_code == UNAUTHORISED and "authorization" not in self._http.headers:
            said += "; the agent has no token for it, give it one with --token"
        return AwayError(f"the service answered with {answer.status_code}, {said}", _pause(answer.headers))


def _refusal(answer: httpx.Response, *, several: bool) -> RefusalError | None:
    """The problem of an answer that will not change when the same is sent again.

    A proxy on the way that finds a body too large says so without a problem. Batches become smaller then, but a single
    sample is not given up on its word.
    """
    try:
        problem = read(Problem, answer.content)
    except ValueError:
        if answer.status_code == TOO_LARGE and several:
            return RefusalError("payload-too-large", "something on the way to the service takes no body as large")
        return None
    name = problem.type.removeprefix(PROBLEM_PREFIX)
    if name not in {"payload-too-large", "invalid-body", "malformed-json", "idempotency-mismatch"}:
        return None
    return RefusalError(name, problem.detail or problem.title)


def _pause(headers: Mapping[str, str]) -> float:
    """Seconds of the header Retry-After, in either of its forms (RFC 9110, 10.2.3); nought where there is none."""
    from email.utils import parsedate_to_datetime

    stated = headers.get("retry-after", "").strip()
    if stated.isdecimal():
        return float(stated)
    try:
        until = parsedate_to_datetime(stated)
        return max(0.0, (until - datetime.now(until.tzinfo)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
