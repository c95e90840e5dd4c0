"""JSON Web Tokens of an issuer (RFC 7519, OpenID Connect, RFC 9068) → tenants, roles and names.

1. What is a token. Signed by a key of the issuer, with the algorithm of that key and no other (RFC 8725, 3.1 and 3.2);
   of this issuer, for this audience, valid now but for the leeway, and with ``exp``, ``iss``, ``aud`` and ``sub``. What
   its head says of where keys are (``jku``, ``x5u``, ``jwk``, ``x5c``) is not looked at. Nothing is said of claims
   before the signature holds.
2. Whom it speaks for. Claims name tenant, roles and domain; of several roles the one that may most counts. A token
   without a tenant or a role of this service is none of it. Where the operator says which claim names accounts, a token
   of the role tenant has to state it: the accounts that it is bound to, or :data:`ALL_ACCOUNTS`. One that lacks it, as
   where an issuer leaves out what is empty, is not to be good for more than others.
3. Tokens that were good are remembered by their SHA-256, so that a signature is computed once; not beyond the end of
   their time, nor beyond a change of the keys.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

from kuayu.service.auth import IDENTIFIER, ROLES, Grant, Role, hash_of, unauthorised
from kuayu.service.key_sets import ALGORITHMS, MAX_KID, KeyStore
from kuayu.service.problems import ProblemException

JWT = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
"""What a signed token looks like (RFC 7515, 3.1): its head is an object of JSON."""

MAX_HEAD = 8_192
"""Characters of the head of a token; some issuers put certificates there."""

TYPES = {"jwt", "at+jwt", "application/at+jwt"}
"""What tokens may say that they are (RFC 8725, 3.11)."""

REQUIRED = ("exp", "iss", "aud", "sub")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@|:-]{0,127}")
"""Subjects that the audit log shows as they are."""

BY_RIGHTS = (Role.OPERATOR, Role.TENANT, Role.DOMAIN, Role.VIEWER)

MAX_REMEMBERED = 4_096

UNREADABLE = (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a token may end in, whatever stands in it."""

CLAIMS = {"tenant": "tenant", "role": "roles", "domain": "domain"}
"""Claims that are read, by what they say, where the operator names no others."""

ACCOUNT = "account"
"""What a claim says that names accounts; there is none unless the operator names it."""

ALL_ACCOUNTS = "*"
"""Stands in such a claim for all accounts of the tenant."""


@dataclass(slots=True)
class TokenIssuer:
    """Verifies the tokens of an issuer.

    Attributes:
        name: Claim ``iss`` of its tokens.
        audience: One of their ``aud``.
        keys: Its public keys.
        claims: Names of claims, as :data:`CLAIMS` has them, and of :data:`ACCOUNT` as may be. A name that no claim has
            is taken apart at its dots, for claims within claims.
        leeway: Seconds by which clocks may differ.
    """

    name: str
    audience: str
    keys: KeyStore
    claims: Mapping[str, str] = field(default_factory=lambda: CLAIMS)
    leeway: float = 30.0
    _remembered: OrderedDict[str, Grant] = field(default_factory=OrderedDict)
    _changes: int = 0

    async def prepare(self, token: str) -> None:
        """Have the keys fetched where a token needs one that is unknown; once a minute at most."""
        if self.recognises(token) and not self._lookup(token):
            await self.keys.refresh(lambda: self._needs_key(token))

    def recognises(self, token: str) -> bool:
        """Whether a bearer token has the form of a JSON Web Token."""
        return JWT.fullmatch(token) is not None

    def verify(self, token: str) -> Grant:
        """Whom a token speaks for.

        Raises:
            ProblemException: unauthorised; overloaded, as long as the issuer's keys are not known.
        """
        remembered = self._lookup(token)
        if remembered is not None:
            return remembered
        try:
            head = _head(token)
            key = self.keys.find(head.kid, head.algorithm)
        except UNREADABLE:
            raise unauthorised("the token is not one that can be verified") from None
        if key is None:
            if not self.keys.known:
                detail = "the keys of the issuer of tokens are not known yet"
                raise ProblemException("overloaded", detail, retry_after=10)
            raise unauthorised("the token is signed by a key that is unknown")
        try:
            claims = jwt.decode(
                token,
                key.public,
                algorithms=[key.algorithm],
                audience=self.audience,
                issuer=self.name,
                leeway=self.leeway,
                options={"require": list(REQUIRED)},
            )
            grant = self._grant(claims)
        except UNREADABLE as error:
            raise unauthorised(_cause(error)) from None
        self._remembered[hash_of(token)] = grant
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return grant

    def _lookup(self, token: str) -> Grant | None:
        if self._changes != self.keys.changes or not self.keys.known:
            self._remembered.clear()
            self._changes = self.keys.changes
        return self._remembered.get(hash_of(token))

    def _needs_key(self, token: str) -> bool:
        try:
            head = _head(token)
        except UNREADABLE:
            return False
        return self.keys.find(head.kid, head.algorithm) is None

    def _grant(self, claims: Mapping[str, Any]) -> Grant:
        """Whom claims speak for that were verified.

        Raises:
            _ClaimError: They do not say.
        """
        tenant = self._identifier(claims, "tenant")
        roles = {ROLES[name] for name in self._names(claims, "role") & ROLES.keys()}
        if not roles:
            raise _ClaimError("the token names no role of this service")
        role = next(role for role in BY_RIGHTS if role in roles)
        domain = self._identifier(claims, "domain") if role is Role.DOMAIN else None
        accounts = self._accounts(claims) if role is Role.TENANT and ACCOUNT in self.claims else None
        subject = claims["sub"]
        if not NAME.fullmatch(subject):
            subject = hashlib.sha256(subject.encode()).hexdigest()[:16]
        return Grant(tenant, role, domain, accounts, f"jwt:{subject}", float(claims["exp"]) + self.leeway)

    def _accounts(self, claims: Mapping[str, Any]) -> frozenset[str] | None:
        names = self._names(claims, ACCOUNT)
        if ALL_ACCOUNTS in names:
            return None
        if not names or not all(map(IDENTIFIER.fullmatch, names)):
            raise _ClaimError("the token names no account as this service has it")
        return frozenset(names)

    def _names(self, claims: Mapping[str, Any], what: str) -> set[str]:
        """Names in a claim, which stand as a text or as a list."""
        stated = self._claim(claims, what)
        stated = stated.split() if isinstance(stated, str) else stated
        return {name for name in stated if isinstance(name, str)} if isinstance(stated, list) else set()

    def _identifier(self, claims: Mapping[str, Any], what: str) -> str:
        stated = self._claim(claims, what)
        if not isinstance(stated, str) or not IDENTIFIER.fullmatch(stated):
            raise _ClaimError(f"the token names no {what} as this service has it")
        return stated

    def _claim(self, claims: Mapping[str, Any], what: str) -> Any:
        name = self.claims[what]
        if name in claims:
            return claims[name]
        found: Any = claims
        for step in name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return found


def read_claims(entries: list[str]) -> Mapping[str, str]:
    """Names of claims, of which each stands as ``tenant=CLAIM``, ``role=CLAIM``, ``domain=CLAIM`` or ``account=CLAIM``.

    Raises:
        ValueError: One stands otherwise.
    """
    claims, known = dict(CLAIMS), (*CLAIMS, ACCOUNT)
    for entry in entries:
        what, _, name = entry.partition("=")
        if what not in known or not name:
            raise ValueError(f"a claim is given as {', '.join(f'{claim}=CLAIM' for claim in known)}, not {entry!r}")
        claims[what] = name
    return claims


class _ClaimError(ValueError):
    """Claims of a token that is one do not say what they have to; the message holds nothing of them."""


@dataclass(frozen=True, slots=True)
class _Head:
    algorithm: str
    kid: str | None


def _head(token: str) -> _Head:
    """What a token says of the key that it is signed by. Nothing of it is trusted.

    Raises:
        One of :data:`UNREADABLE`.
    """
    if len(token.partition(".")[0]) > MAX_HEAD:
        raise ValueError("the head is too long")
    head = jwt.get_unverified_header(token)
    algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "JWT")
    if algorithm not in ALGORITHMS.values() or not (kid is None or (isinstance(kid, str) and len(kid) <= MAX_KID)):
        raise ValueError("the algorithm or the name of the key is none that is used")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise ValueError("it is a token for something else")
    return _Head(str(algorithm), kid)


def _cause(error: Exception) -> str:
    """Why a token is none, in words that hold nothing of it."""
    match error:
        case _ClaimError():
            return str(error)
        case jwt.ExpiredSignatureError():
            return "the token has expired"
        case jwt.ImmatureSignatureError():
            return "the token is not valid yet"
        case jwt.InvalidAudienceError():
            return "the token is for another audience"
        case jwt.InvalidIssuerError():
            return "the token is of another issuer"
        case jwt.MissingRequiredClaimError(claim=claim) if claim in REQUIRED:
            return f"the token lacks the claim {claim}"
        case jwt.InvalidSignatureError():
            return "the signature of the token does not hold"
    return "the token is not one that can be verified"
