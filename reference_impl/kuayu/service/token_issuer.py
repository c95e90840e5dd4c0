"""An issuer of tokens: its public keys, and its JSON Web Tokens → tenants, roles and names.

1. Which keys are used. A key is good for one algorithm alone (RFC 8725, 3.1): RSA of 2 048 bits or more for RS256,
   P-256 for ES256 (RFC 7518, 3.3 and 3.4), Ed25519 for EdDSA (RFC 8037). Symmetric, private and other keys are left
   out, and so are those that say that they are for something else.
2. Where they come from: a JSON Web Key Set (RFC 7517). A file is read again when it changes. A URL is fetched every
   five minutes, and once more when a token names a key that is unknown, with at least a minute between two attempts.
   Where neither is given the issuer's own metadata name the URL, each time anew (OpenID Connect Discovery 1.0, 3
   and 4): they have to be of that issuer to the letter (4.3), and the URL one that may be fetched from. What comes is
   bounded in time and size, redirects are not followed, and what cannot be used leaves the keys from before in place,
   for a day.
3. What is a token (RFC 7519, OpenID Connect, RFC 9068). Signed by a key of the issuer, with the algorithm of that key
   and no other (RFC 8725, 3.1 and 3.2); of this issuer, for this audience, valid now but for the leeway, and with
   ``exp``, ``iss``, ``aud`` and ``sub``. What its head says of where keys are (``jku``, ``x5u``, ``jwk``, ``x5c``) is
   not looked at. Nothing is said of claims before the signature holds.
4. Whom it speaks for. Claims name tenant, roles and domain; of several roles the one that may most counts. A token
   without a tenant or a role of this service is none of it. Where the operator says which claim names accounts, a token
   of the role tenant has to state it: the accounts that it is bound to, or :data:`ALL_ACCOUNTS`. One that lacks it, as
   where an issuer leaves out what is empty, is not to be good for more than others.
5. Tokens that were good are remembered by their SHA-256, so that a signature is computed once; not beyond the end of
   their time, nor beyond a change of the keys.
"""

import asyncio
import hashlib
import ipaddress
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from kuayu.service.auth import IDENTIFIER, ROLES, Grant, Role, hash_of, unauthorised
from kuayu.service.problems import ProblemException

logger = logging.getLogger(__name__)


ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""Algorithm by type and curve of a key."""

PUBLIC_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}

MIN_RSA_BITS = 2_048
MAX_BYTES = 256 * 1024
MAX_KEYS = 100
MAX_KID = 256
"""Characters of the identifier of a key."""

METADATA = "/.well-known/openid-configuration"
"""Where the metadata of an issuer are, beneath its name."""

TIMEOUT_S = 5.0
"""Seconds that a fetch may take in all, however it comes."""

PERIOD_S = 300.0
MIN_INTERVAL_S = 60.0
"""Seconds between the beginnings of two fetches, at least."""

MAX_AGE_S = 86_400.0
"""Seconds for which keys are used that could not be fetched again."""

LOOK_S = 1.0
"""Seconds between two looks at whether something is to be done."""


class KeySetError(ValueError):
    """There is no set of keys, or none that can be used; the message says why and holds nothing of its content."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key.

    Attributes:
        algorithm: The only one that it is used with.
        public: As ``cryptography`` has it.
    """

    algorithm: str
    public: Any


KeySet = Mapping[tuple[str | None, str], Key]
"""Keys by identifier and algorithm; without identifier, the only key of the algorithm."""


def parse_key_set(data: bytes) -> KeySet:
    """Read a JSON Web Key Set.

    Raises:
        KeySetError: It is none, or has no key that can be used.
    """
    try:
        listed = orjson.loads(data)["keys"]
    except (ValueError, TypeError, KeyError):
        raise KeySetError("it is no JSON Web Key Set") from None
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise KeySetError(f"it has no list of at most {MAX_KEYS} keys")
    named = [(item.get("kid"), key) for item in listed if isinstance(item, dict) and (key := _key(item))]
    if not named:
        raise KeySetError("it has no public key for RS256, ES256 or EdDSA")
    keys: dict[tuple[str | None, str], Key] = {}
    for kid, key in named:
        keys.setdefault((kid, key.algorithm), key)
    for algorithm in set(ALGORITHMS.values()):
        of_algorithm = [key for _, key in named if key.algorithm == algorithm]
        keys.pop((None, algorithm), None)
        if len(of_algorithm) == 1:
            keys[None, algorithm] = of_algorithm[0]
    return keys


def _key(item: Mapping[str, Any]) -> Key | None:
    """A key, or None where it is none that is used."""
    kind, curve, kid = item.get("kty"), item.get("crv"), item.get("kid")
    if not isinstance(kind, str) or not (curve is None or isinstance(curve, str)):
        return None
    algorithm = ALGORITHMS.get((kind, curve))
    operations = item.get("key_ops", ["verify"])
    if (
        algorithm is None
        or item.get("alg", algorithm) != algorithm
        or item.get("use", "sig") != "sig"
        or not isinstance(operations, list)
        or "verify" not in operations
        or "d" in item
        or not (kid is None or (isinstance(kid, str) and len(kid) <= MAX_KID))
    ):
        return None
    public = {"kty": kind, **{member: item.get(member) for member in PUBLIC_MEMBERS[kind]}}
    try:
        read = jwt.PyJWK(public, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if isinstance(read, RSAPublicKey) and read.key_size < MIN_RSA_BITS:
        return None
    return Key(algorithm, read)


class KeyStore:
    """The keys of an issuer, as far as they are known.

    Args:
        source: Path of a file, or URL: of HTTPS, or of HTTP on this host. None for the URL that the issuer names.
        issuer: Its name, which is a URL of the same kinds where there is no source.

    Raises:
        KeySetError: The source cannot be one, or the file not be read.

    Attributes:
        changes: How often the keys have become others.
    """

    def __init__(self, source: str | None, issuer: str = "") -> None:
        self.changes = 0
        self._issuer = issuer
        self._keys: KeySet = {}
        self._file: Path | None = None
        self._state: object = None
        self._url = ""
        self._began = float("-inf")
        self._succeeded = float("-inf")
        self._failing = False
        self._fetching = asyncio.Lock()
        if source is None:
            _check_url(issuer)
        elif "://" in source:
            _check_url(source)
            self._url = source
        else:
            self._file = Path(source)
            self._read()

    @property
    def known(self) -> bool:
        """Whether there are keys at all that may be used."""
        return bool(self._keys) and not self._outdated

    def find(self, kid: str | None, algorithm: str) -> Key | None:
        """The key of this name for this algorithm."""
        return None if self._outdated else self._keys.get((kid, algorithm))

    async def refresh(self, missing: Callable[[], bool]) -> None:
        """Fetch the keys because some are missing, unless that was tried less than a minute ago.

        Args:
            missing: Whether they still are: another request may have had them fetched meanwhile.
        """
        if self._file is None and missing() and (self._may_fetch or self._fetching.locked()):
            async with self._fetching:
                if self._may_fetch and missing():
                    await self._fetch()

    async def follow(self) -> None:
        """Keep the keys up to date until cancelled."""
        while True:
            if self._file is not None:
                await asyncio.to_thread(self._read_again)
            elif self._may_fetch and (self._failing or _now() - self._succeeded >= PERIOD_S):
                async with self._fetching:
                    await self._fetch()
            await asyncio.sleep(LOOK_S)

    @property
    def _outdated(self) -> bool:
        return self._file is None and _now() - self._succeeded > MAX_AGE_S

    @property
    def _may_fetch(self) -> bool:
        return _now() - self._began >= MIN_INTERVAL_S

    async def _fetch(self) -> None:
        self._began = _now()
        try:
            self._take(parse_key_set(await _fetched(self._url or await _discovered(self._issuer))))
        except (KeySetError, httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            if not self._failing:
                cause = error if isinstance(error, KeySetError) else type(error).__name__
                logger.warning("cannot fetch keys of tokens from %s: %s; those from before hold", self._shown, cause)
            self._failing = True
            return
        if self._failing:
            logger.info("the keys of tokens come again from %s", self._shown)
        self._failing = False
        self._succeeded = _now()

    @property
    def _shown(self) -> str:
        return (self._url or self._issuer).partition("?")[0]

    def _take(self, keys: KeySet) -> None:
        self._keys = keys
        self.changes += 1

    def _read(self) -> None:
        """Read the file if it has changed.

        Raises:
            KeySetError: It cannot be read, or used.
        """
        assert self._file is not None
        try:
            status = self._file.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            if state == self._state:
                return
            if status.st_size > MAX_BYTES:
                raise KeySetError(f"it has more than {MAX_BYTES} bytes")
            data = self._file.read_bytes()
        except OSError as error:
            raise KeySetError(f"it cannot be read: {error.strerror}") from error
        self._state = state
        self._take(parse_key_set(data))

    def _read_again(self) -> None:
        try:
            self._read()
        except KeySetError as error:
            if not self._failing:
                logger.error("the keys in %s: %s; those from before hold", self._file, error)  # noqa: TRY400
            self._failing = True
        else:
            self._failing = False


async def _discovered(issuer: str) -> str:
    """The URL of its keys that an issuer names.

    Raises:
        KeySetError: It names none, or none that may be fetched from, or is another one.
        httpx.HTTPError: There is no answer.
        TimeoutError: It takes too long.
    """
    try:
        metadata = orjson.loads(await _fetched(issuer.rstrip("/") + METADATA))
        named, url = metadata["issuer"], metadata["jwks_uri"]
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, KeySetError):
            raise
        raise KeySetError("its metadata name no issuer or no jwks_uri") from None
    if named != issuer or not isinstance(url, str):
        raise KeySetError("its metadata are of another issuer, to the letter")
    _check_url(url)
    return url


async def _fetched(url: str) -> bytes:
    """What is at a URL.

    Raises:
        KeySetError: It is too large, packed, or not there.
        httpx.HTTPError: There is no answer.
        TimeoutError: It takes too long.
    """
    headers = {"Accept": "application/jwk-set+json, application/json", "Accept-Encoding": "identity"}
    async with (
        asyncio.timeout(TIMEOUT_S),
        httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, headers=headers) as client,
        client.stream("GET", url) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            raise KeySetError(f"the answer is {answer.status_code}")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise KeySetError("the answer is packed")
        data = bytearray()
        async for piece in answer.aiter_raw():
            data += piece
            if len(data) > MAX_BYTES:
                raise KeySetError(f"the answer has more than {MAX_BYTES} bytes")
    return bytes(data)


def _check_url(url: str) -> None:
    """See whether keys may be fetched from a URL.

    Raises:
        KeySetError: They may not.
    """
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        host = parts.hostname or ""
    except (ValueError, httpx.InvalidURL):
        raise KeySetError("it is no URL") from None
    if parts.username is not None or parts.password is not None:
        raise KeySetError("the URL holds a name or password")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and _is_local(host))):
        raise KeySetError("keys are fetched by HTTPS; by HTTP from this host alone")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_now = time.monotonic


JWT = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
"""What a signed token looks like (RFC 7515, 3.1): its head is an object of JSON."""

MAX_HEAD = 8_192
"""Characters of the head of a token; some issuers put certificates there."""

TYPES = {"jwt", "at+jwt", "application/at+jwt"}
"""What tokens may say that they are (RFC 8725, 3.11)."""

REQUIRED = ("exp", "iss", "aud", "sub")

SUBJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@|:-]{0,127}")
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
        if not SUBJECT_NAME.fullmatch(subject):
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
        value: Any = claims
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value


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
