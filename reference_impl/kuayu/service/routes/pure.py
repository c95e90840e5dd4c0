"""Routes to pure answers: the body goes to a worker, what comes back is the answer."""

from collections.abc import Callable
from typing import TypeVarTuple, Unpack

from fastapi import Request
from fastapi.responses import Response

from kuayu.service import bodies, lanes
from kuayu.service.computing import Decided
from kuayu.service.problems import MEDIA_TYPE
from kuayu.service.runtime import runtime_of, tenant_of

Ts = TypeVarTuple("Ts")


async def decide(
    request: Request,
    operation: str,
    decide: Callable[[bytes, Unpack[Ts]], Decided],
    *arguments: *Ts,
    search: bool = False,
) -> Decided:
    """Have a worker answer a request.

    Args:
        request: The request.
        operation: Name of the operation, for the metrics.
        decide: Function of a module, from the body and the arguments.
        arguments: What it is called with after the body.
        search: Whether it may take seconds, and so waits for a worker of its kind.

    Raises:
        ProblemException: unauthorised, unsupported-media-type, payload-too-large or overloaded.
    """
    runtime = runtime_of(request)
    tenant = tenant_of(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    workers = runtime.searches if search else runtime.decisions
    return await lanes.while_wanted(request, workers.compute(operation, decide, body, *arguments, tenant=tenant))


async def decide_on_bases(
    request: Request,
    operation: str,
    decide: Callable[[bytes, str, int, int], Decided],
    may_need_bases: Callable[[bytes], bool],
) -> Decided:
    """Have a request answered that may rest on what the service was sent before.

    Args:
        request: The request.
        operation: Name of the operation, for the metrics.
        decide: Function of a module, from the body, the tenant, the bytes that its worker may hold for patches, and
            those of the largest document.
        may_need_bases: Whether the body may rest on that; the tenant's own worker then answers it, and any worker else.

    Raises:
        ProblemException: unauthorised, unsupported-media-type, payload-too-large or overloaded.
    """
    runtime = runtime_of(request)
    tenant = tenant_of(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    workers = runtime.holders(tenant) if may_need_bases(body) else runtime.decisions
    room, most = runtime.settings.base_bytes, runtime.settings.max_body
    computed = workers.compute(operation, decide, body, tenant, room, most, tenant=tenant)
    return await lanes.while_wanted(request, computed)


def answer(decided: Decided) -> Response:
    """The answer of a worker as that of the service."""
    failed = decided.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(decided.body, decided.status, media_type=MEDIA_TYPE if failed else "application/json")
