"""Bearer tokens → tenants, and what each token may do.

A file of tokens holds one in each line: ``TENANT=TOKEN``, or ``TENANT=sha256:HEX`` with the SHA-256 of the token, so
that who reads the file has none; then, as may be, ``role=reader`` (it may only read) and ``expires=INSTANT``. A line
that begins with ``#`` is a remark. The file is read again when it changes. Tokens are random, so that a fast hash is
enough (NIST SP 800-63B, 5.1.2.2: of look-up secrets with 112 bits or more).
"""

import hashlib
import hmac
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fastapi import Request

from kuayu.service.problems import ProblemException
from kuayu.service.settings import SOLE_TENANT, Settings

logger = logging.getLogger(__name__)

HASHED = re.compile(r"sha256:[0-9a-f]{64}")
READING = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""

OTHERS_MAY_READ = 0o044
"""Bits of a file's mode by which its group and everybody may read it."""


class TokenFileError(ValueError):
    """The file cannot be used; the message says why and in which line."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is good for.

    Attributes:
        tenant: Whom it speaks for.
        reads_only: Whether it may only read.
        expires: Unix seconds from which it is none any more.
    """

    tenant: str
    reads_only: bool = False
    expires: float = float("inf")


class TokenFile:
    """The tokens in a file.

    Args:
        path: The file.

    Raises:
        TokenFileError: It cannot be read, or a line of it.

    Attributes:
        in_the_clear: How many stand there as they are.
        exposed: Whether others than its owner may read it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: object = None
        self._grants: Mapping[str, Grant] = {}
        self.in_the_clear = 0
        self.exposed = False
        self.read()

    @property
    def tenants(self) -> set[str]:
        """All whom a token speaks for."""
        return {grant.tenant for grant in self._grants.values()}

    def find(self, token: str) -> Grant | None:
        """What a token is good for, or None where it is none. The time that takes tells nothing but of its hash."""
        return self._grants.get(hash_of(token))

    def read(self) -> bool:
        """Read the file if it has changed; what it held before stays where it cannot be used.

        Returns:
            Whether it was read.

        Raises:
            TokenFileError: It cannot be read, or a line of it.
        """
        try:
            status = self._path.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
            if state == self._state:
                return False
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(f"cannot read the tokens in {self._path}: {error}") from error
        self._state = state
        grants: dict[str, Grant] = {}
        in_the_clear = 0
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                secret, grant = _entry(line)
            except ValueError as error:
                raise TokenFileError(f"{self._path}, line {number}: {error}") from error
            hashed = secret if HASHED.fullmatch(secret) else hash_of(secret)
            if grants.setdefault(hashed, grant) != grant:
                raise TokenFileError(f"{self._path}, line {number}: the same token stands in another line")
            in_the_clear += hashed != secret
        self._grants, self.in_the_clear = grants, in_the_clear
        self.exposed = bool(status.st_mode & OTHERS_MAY_READ)
        return True

    def read_again(self) -> None:
        """Read the file if it has changed, and log what came of it."""
        try:
            if self.read():
                logger.info("read %d tokens from %s", len(self._grants), self._path)
        except TokenFileError as error:
            logger.error("%s; the tokens from before still hold", error)  # noqa: TRY400 - the cause is all there is


def hash_of(token: str) -> str:
    """A token as a file is to hold it."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def tenant_of(request: Request, settings: Settings) -> str:
    """Tenant that a request speaks for.

    Raises:
        ProblemException: unauthorised.
    """
    if not settings.asks_for_tokens:
        return SOLE_TENANT
    scheme, _, stated = request.headers.get("authorization", "").partition(" ")
    detail = "the token is unknown" if stated else "the request has no bearer token"
    if scheme.lower() == "bearer":
        grant = _grant(stated.strip(), settings)
        if grant is not None and grant.expires <= time.time():
            detail = "the token has expired"
        elif grant is not None and grant.reads_only and request.method not in READING:
            detail = "the token may only read"
        elif grant is not None:
            return grant.tenant
    raise ProblemException("unauthorised", detail, headers={"WWW-Authenticate": 'Bearer realm="kuayu"'})


def _grant(given: str, settings: Settings) -> Grant | None:
    # Every token is compared, each in constant time, so that the time taken tells nothing of any of them.
    tenants = [
        tenant
        for token, tenant in settings.tokens.items()
        if hmac.compare_digest(token.encode(), given.encode()) and token  # one that is empty is none
    ]
    if tenants:
        return Grant(tenants[0])
    return settings.token_file.find(given) if settings.token_file is not None and given else None


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
    reads_only, expires = False, float("inf")
    for other in others:
        match other.partition("="):
            case ("role", "=", "reader"):
                reads_only = True
            case ("role", "=", "writer"):
                pass
            case ("expires", "=", text):
                moment = datetime.fromisoformat(text)
                if moment.tzinfo is None:
                    raise ValueError(f"{text} has no time zone; write it as 2027-01-01T00:00:00Z")
                expires = moment.timestamp()
            case _:
                raise ValueError(f"after the token stand role=reader, role=writer or expires=INSTANT, not {other!r}")
    return secret, Grant(tenant, reads_only, expires)
