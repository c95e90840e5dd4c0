"""Bearer tokens → tenants, roles and names.

1. A file of tokens holds one in each line: ``TENANT=TOKEN``, or ``TENANT=sha256:HEX`` with the SHA-256 of the token, so
   that who reads the file has none; then, as may be, ``role=ROLE``, ``domain=DOMAIN`` (of the role domain alone),
   ``account=ACCOUNT`` (of the role tenant alone, once for each that it is bound to), ``name=NAME`` (what the audit log
   calls it) and ``expires=INSTANT``. It is read again when it changes (:mod:`kuayu.service.settings`). Tokens are
   random, so that a fast hash is enough (NIST SP 800-63B, 5.1.2.2: of look-up secrets with 112 bits or more).
2. Whom a request speaks for. A bearer token is looked for among those of the operator first; one that is not there and
   has the form of a JSON Web Token is the issuer's affair, where there is one (:mod:`kuayu.service.token_issuer`). What
   a role may call is the subject of :mod:`kuayu.service.access`. Refusals are those of RFC 6750, 3.
"""

import hashlib
import hmac
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from fastapi import Request
from typing_extensions import override

from kuayu.service.problems import Place, ProblemException
from kuayu.service.settings import SOLE_TENANT, OperatorFile, Settings

HASHED = re.compile(r"sha256:[0-9a-f]{64}")
IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Names of domains and of tokens, as type Identifier has them."""

ACTING_FOR = "kuayu-tenant"
"""Header in which an operator names the tenant that a request is for."""

GROUP_MAY_READ, EVERYBODY_MAY_READ = 0o040, 0o004
"""Bits of a file's mode."""


class Role(StrEnum):
    """What somebody is to the service."""

    VIEWER = "viewer"
    """Reads what is its tenant's."""

    TENANT = "tenant"
    """Reads and writes what is its tenant's."""

    DOMAIN = "domain"
    """Does what the agent of one domain does, for that domain alone."""

    OPERATOR = "operator"
    """Administers all tenants."""


ROLES = {**{role.value: role for role in Role}, "reader": Role.VIEWER, "writer": Role.TENANT}
"""Roles as a file of tokens may name them; the last two are names from before there were four."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is good for.

    Attributes:
        tenant: Whom it speaks for.
        role: What it may do.
        domain: The only domain that it speaks for; None where it speaks for all of the tenant's.
        accounts: The only accounts that it submits and calls off jobs for; None where it is bound to none.
        name: What it is called where who did something is kept; empty where it has no name.
        expires: Unix seconds from which it is none any more.
    """

    tenant: str
    role: Role = Role.TENANT
    domain: str | None = None
    accounts: frozenset[str] | None = None
    name: str = ""
    expires: float = float("inf")


class TokenFile(OperatorFile):
    """The tokens in a file.

    Args:
        path: The file.

    Raises:
        OperatorFileError: It cannot be read, or a line of it.

    Attributes:
        in_the_clear: How many stand there as they are.
        exposed: Whether others than its owner and a group of this process may read it. Credentials of systemd and
            volumes of Kubernetes are readable by such a group (``LoadCredential=``, ``fsGroup``).
    """

    what = "tokens"

    def __init__(self, path: Path) -> None:
        self._grants: Mapping[str, Grant] = {}
        self.in_the_clear = 0
        self.exposed = False
        super().__init__(path)

    @property
    def tenants(self) -> set[str]:
        """All whom a token speaks for."""
        return {grant.tenant for grant in self._grants.values()}

    def find(self, token: str) -> Grant | None:
        """What a token is good for, or None where it is none. The time that takes tells nothing but of its hash."""
        return self._grants.get(hash_of(token))

    @property
    @override
    def count(self) -> int:
        return len(self._grants)

    @override
    def _take(self, lines: Sequence[tuple[int, str]], status: os.stat_result) -> None:
        grants: dict[str, Grant] = {}
        in_the_clear = 0
        for number, line in lines:
            try:
                secret, grant = _entry(line)
            except ValueError as error:
                raise self._wrong(number, error) from error
            hashed = secret if HASHED.fullmatch(secret) else hash_of(secret)
            if not grant.name:
                grant = replace(grant, name=f"line-{number}")
            if hashed in grants and replace(grants[hashed], name="") != replace(grant, name=""):
                raise self._wrong(number, "the same token stands in another line")
            grants.setdefault(hashed, grant)
            in_the_clear += hashed != secret
        self._grants, self.in_the_clear = grants, in_the_clear
        mode, own = status.st_mode, {os.getegid(), *os.getgroups()}
        self.exposed = bool(mode & EVERYBODY_MAY_READ or (mode & GROUP_MAY_READ and status.st_gid not in own))


def hash_of(token: str) -> str:
    """A token as a file is to hold it."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


ANYONE = Grant(SOLE_TENANT, Role.OPERATOR, name="anyone")
"""Whoever sends a request where no token is asked for."""


def identify(request: Request, settings: Settings) -> Grant:
    """What the token of a request is good for.

    Raises:
        ProblemException: unauthorised; overloaded, as long as the keys of an issuer are not known.
    """
    if not settings.asks_for_tokens:
        return ANYONE
    secret = bearer(request)
    if not secret:
        raise ProblemException("unauthorised", "the request has no bearer token", headers={CHALLENGE: BEARER})
    grant = _grant(secret, settings)
    if grant is None:
        raise unauthorised("the token is unknown")
    if grant.expires <= time.time():
        raise unauthorised("the token has expired")
    return grant


def acting(request: Request, grant: Grant, settings: Settings) -> Grant:
    """The same for the tenant that a request names, which only operators may name.

    Raises:
        ProblemException: forbidden, or invalid-parameter where there is no such tenant.
    """
    named = request.headers.get(ACTING_FOR)
    if named is None or named == grant.tenant or not settings.asks_for_tokens:
        return grant
    if grant.role is not Role.OPERATOR:
        raise ProblemException("forbidden", "the token speaks for its own tenant alone")
    if not (named in settings.tenants or (settings.issuer is not None and IDENTIFIER.fullmatch(named))):
        detail = "no token is of that tenant"
        raise ProblemException("invalid-parameter", detail, [Place(detail, parameter="Kuayu-Tenant")])
    return replace(grant, tenant=named)


def bearer(request: Request) -> str:
    """The bearer token of a request; empty where it has none."""
    scheme, _, stated = request.headers.get("authorization", "").partition(" ")
    return stated.strip() if scheme.lower() == "bearer" else ""


CHALLENGE = "WWW-Authenticate"
BEARER = 'Bearer realm="kuayu"'


def unauthorised(detail: str) -> ProblemException:
    """The token of a request is none. The detail goes into a header: it is ASCII without quotes, and nothing of it."""
    stated = f'{BEARER}, error="invalid_token", error_description="{detail}"'
    return ProblemException("unauthorised", detail, headers={CHALLENGE: stated})


def _grant(given: str, settings: Settings) -> Grant | None:
    # Every token is compared, each in constant time, so that the time taken tells nothing of any of them.
    matches = [
        Grant(tenant, name=f"token-{number}")
        for number, (token, tenant) in enumerate(settings.tokens.items(), start=1)
        if hmac.compare_digest(token.encode(), given.encode()) and token  # one that is empty is none
    ]
    if matches:
        return matches[0]
    in_file = settings.token_file.find(given) if settings.token_file is not None else None
    if in_file is None and settings.issuer is not None and settings.issuer.recognises(given):
        return settings.issuer.verify(given)
    return in_file


def _entry(line: str) -> tuple[str, Grant]:
    """Secret and grant of a line.

    Raises:
        ValueError: It is none; the message says why.
    """
    first, *others = line.split()
    tenant, separator, secret = first.partition("=")
    if not (tenant and separator and secret):
        raise ValueError("a token is given as TENANT=TOKEN")
    if secret.startswith("sha256:") and not HASHED.fullmatch(secret):
        raise ValueError("after sha256: stand 64 hexadecimal digits in lower case")
    grant = Grant(tenant)
    for other in others:
        grant = _with_option(grant, other)
    if (grant.role is Role.DOMAIN) != (grant.domain is not None):
        raise ValueError("role=domain and domain=DOMAIN stand together")
    if grant.role is not Role.TENANT and grant.accounts is not None:
        raise ValueError(f"account=ACCOUNT is for tokens that submit jobs, role=tenant, and this one is {grant.role}")
    return secret, grant


def _with_option(grant: Grant, option: str) -> Grant:
    """A grant with what stands behind its token.

    Raises:
        ValueError: It is nothing that may stand there; the message says why.
    """
    match option.partition("="):
        case ("role", "=", role) if role in ROLES:
            return replace(grant, role=ROLES[role])
        case ("domain", "=", domain) if IDENTIFIER.fullmatch(domain):
            return replace(grant, domain=domain)
        case ("account", "=", account) if IDENTIFIER.fullmatch(account):
            return replace(grant, accounts=(grant.accounts or frozenset()) | {account})
        case ("name", "=", name) if IDENTIFIER.fullmatch(name):
            return replace(grant, name=name)
        case ("expires", "=", text):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                raise ValueError(f"{text} has no time zone; write it as 2027-01-01T00:00:00Z")
            return replace(grant, expires=moment.timestamp())
    options = (*(f"role={role}" for role in ROLES), "domain=DOMAIN", "account=ACCOUNT", "name=NAME")
    raise ValueError(f"after the token stand {', '.join(options)} or expires=INSTANT, not {option!r}")
