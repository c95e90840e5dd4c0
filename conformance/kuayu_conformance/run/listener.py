"""What is told of each exchange while a run goes on, beside the transcript.

Whoever looks at a run as it happens wants more than the transcript keeps: bodies of requests, which a replay makes
again, and all headers. Listeners are told of them, and no transcript holds them. Credentials are masked before: every
header that a tenant's credentials consist of, and every other that is known to carry some, on both sides.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from kuayu_conformance.answers import Answer
from kuayu_conformance.transcript import Request

MASK = "***"
"""What stands in place of a credential."""

SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
"""Headers that carry credentials whoever adds them, in lower case."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Exchange:
    """One exchange as it went over the network.

    Attributes:
        episode: Episode that it belongs to.
        request: What was asked, without credentials.
        url: Where, without credentials that the target's URL may hold.
        sent: Headers of the request, credentials masked.
        answer: What came back; status 0 where nothing did.
        received: Headers of the answer, credentials masked; none where no answer came.
        reason: Reason phrase of the answer.
        http_version: Such as ``HTTP/1.1``; empty where no answer came.
        is_stream: Whether the body is a stream of events, which is not known when the exchange is told of.
    """

    episode: str
    request: Request
    url: str
    sent: Headers
    answer: Answer
    received: Headers = ()
    reason: str = ""
    http_version: str = ""
    is_stream: bool = False


Listener = Callable[[Exchange], None]
"""Told of each exchange when it is over, from whatever thread made it; must neither raise nor take long."""


def tell(
    listeners: Sequence[Listener],
    episode: str,
    request: Request,
    answer: Answer,
    client: httpx.Client,
    credentials: Mapping[str, Mapping[str, str]],
    response: httpx.Response | None,
    *,
    is_stream: bool = False,
) -> None:
    """Tell listeners of an exchange; ``response`` is None where no answer came."""
    if not listeners:
        return
    secret = SECRET | {name.lower() for headers in credentials.values() for name in headers}
    if response is not None:
        sent = response.request.headers
    else:
        sent = httpx.Headers(client.headers)
        sent.update({**request.headers, **credentials.get(request.tenant, {})})
    base = client.base_url.copy_with(username=None, password=None, query=None, fragment=None)
    exchange = Exchange(
        episode,
        request,
        f"{str(base).rstrip('/')}{request.path}",
        _masked(sent.multi_items(), secret),
        answer,
        _masked(response.headers.multi_items(), secret) if response is not None else (),
        response.reason_phrase if response is not None else "",
        response.http_version if response is not None else "",
        is_stream,
    )
    for listener in listeners:
        listener(exchange)


def _masked(headers: Iterable[tuple[str, str]], secret: frozenset[str]) -> Headers:
    return tuple((name, MASK if name.lower() in secret else value) for name, value in headers)
