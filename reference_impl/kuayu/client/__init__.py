"""Client of the standard's HTTP interface for integrators, synchronous.

>>> with Client("https://kuayu.example", token="...") as client:          # doctest: +SKIP
...     client.put_domain(Domain(id="gz-1"))
...     client.post_samples([sample])

Values go in and come out as :mod:`kuayu_schemas.models`. Answers are read as the standard asks of readers: unknown
members are passed over, unknown values of extensible enumerations become ``unknown``. Every failure is a
:class:`ClientError` that says its cause and a hint.
"""

from kuayu.client.computations import Adjustments, Demands, Forecasts, Indices, Recovery, Scheduling, Transfers
from kuayu.client.connection import (
    LOOPBACK,
    PROBLEM_PREFIX,
    BrokenStreamError,
    ClientError,
    NotFoundError,
    RefusedError,
    UnauthorisedError,
    UnexpectedAnswerError,
    UnreachableError,
    authorities,
    http_client,
    read,
)
from kuayu.client.jobs import Jobs
from kuayu.client.telemetry import Faults, Graphs, Telemetry


class Client(
    Telemetry, Graphs, Indices, Scheduling, Demands, Forecasts, Transfers, Recovery, Adjustments, Faults, Jobs
):
    """Connection to one service; safe to share between threads.

    Args:
        url: Where the service is, without ``/v1``.
        token: Bearer token, where the service asks for one.
        timeout_s: Longest time in seconds for connecting and for each answer.
        attempts: How often a request is sent at most. It is repeated only where no answer came or the problem says that
            it is retryable; writes are idempotent, and what is posted carries an Idempotency-Key.
    """


__all__ = [
    "LOOPBACK",
    "PROBLEM_PREFIX",
    "BrokenStreamError",
    "Client",
    "ClientError",
    "NotFoundError",
    "RefusedError",
    "UnauthorisedError",
    "UnexpectedAnswerError",
    "UnreachableError",
    "authorities",
    "http_client",
    "read",
]
