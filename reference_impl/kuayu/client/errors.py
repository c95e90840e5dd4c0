"""What can go wrong with a request: every failure says its cause and a hint."""

from collections.abc import Mapping
from typing import Final

import httpx

from kuayu.client.reading import read
from kuayu_schemas import registers
from kuayu_schemas.models import Problem

SERVER_ERROR: Final = 500
PROBLEM_PREFIX: Final = "urn:kuayu:problem:"


class ClientError(Exception):
    """A request failed.

    Attributes:
        cause: What went wrong.
        hint: What the caller can do about it.
        transient: Whether the same request may succeed later.
    """

    def __init__(self, cause: str, hint: str, *, transient: bool) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint
        self.transient = transient


class UnreachableError(ClientError):
    """No answer came: the service is away, the name is wrong, or the time limit passed."""


class BrokenStreamError(UnreachableError):
    """A stream broke off."""


class UnexpectedAnswerError(ClientError):
    """What answered does not follow the standard.

    Attributes:
        status: HTTP status code of the answer.
    """

    def __init__(self, cause: str, status: int) -> None:
        hint = "check that the URL is that of a service of the standard, not of a proxy or another program"
        super().__init__(cause, hint, transient=status >= SERVER_ERROR)
        self.status = status


class RefusedError(ClientError):
    """The service answered with a problem.

    Attributes:
        problem: The problem as it was sent.
    """

    def __init__(self, problem: Problem) -> None:
        places = "; ".join(
            f"{place.parameter or place.pointer or 'body'}: {place.detail}" for place in problem.errors or ()
        )
        cause = ": ".join(part for part in (problem.title, problem.detail, places) if part)
        super().__init__(cause, _remedy(problem), transient=problem.retryable or problem.status >= SERVER_ERROR)
        self.problem = problem

    @property
    def name(self) -> str:
        """Registered name of the problem type, such as ``not-found``."""
        return self.problem.type.removeprefix(PROBLEM_PREFIX)


class NotFoundError(RefusedError):
    """Nothing is known under that identifier."""


class UnauthorisedError(RefusedError):
    """The token is missing or unknown."""


_REFUSALS: Final[Mapping[int, type[RefusedError]]] = {401: UnauthorisedError, 404: NotFoundError}


def unreachable(request: httpx.Request, error: httpx.HTTPError) -> UnreachableError:
    """No answer came to a request."""
    return UnreachableError(
        f"no answer from {request.url.scheme}://{request.url.netloc.decode()} ({error})",
        "check that the service runs and that the URL leads to it",
        transient=True,
    )


def unexpected(request: httpx.Request, response: httpx.Response, expected: str) -> UnexpectedAnswerError:
    """An answer is not what the standard has for it."""
    cause = f"{request.method} {request.url.path} was answered with {response.status_code} and a body that is no"
    return UnexpectedAnswerError(f"{cause} {expected}", response.status_code)


def refusal(request: httpx.Request, response: httpx.Response) -> ClientError:
    """What an answer that is no success says."""
    try:
        problem = read(Problem, response.content)
    except ValueError:
        return unexpected(request, response, "Problem")
    return _REFUSALS.get(response.status_code, RefusedError)(problem)


def _remedy(problem: Problem) -> str:
    """What the register of problems advises."""
    remedies = {each.type: each.remedy_en for each in registers.problems().problems}
    return remedies.get(problem.type, "see the service's documentation of this problem type")
