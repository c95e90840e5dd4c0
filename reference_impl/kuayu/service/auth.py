"""Bearer tokens → tenants."""

import hmac

from fastapi import Request

from kuayu.service.problems import ProblemException
from kuayu.service.settings import SOLE_TENANT, Settings


def tenant_of(request: Request, settings: Settings) -> str:
    """Tenant that a request speaks for.

    Raises:
        ProblemException: unauthorised.
    """
    if not settings.tokens:
        return SOLE_TENANT
    scheme, _, stated = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        given = stated.strip().encode()
        # Every token is compared, each in constant time, so that the time taken tells nothing of any of them.
        tenants = [
            tenant
            for token, tenant in settings.tokens.items()
            if hmac.compare_digest(token.encode(), given) and token  # one that is empty is none
        ]
        if tenants:
            return tenants[0]
    detail = "the token is unknown" if stated else "the request has no bearer token"
    raise ProblemException("unauthorised", detail, headers={"WWW-Authenticate": 'Bearer realm="kuayu"'})
