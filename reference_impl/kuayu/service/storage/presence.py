"""Whether the database can be used now: it may be away, slow or full, or not be the one that was opened.

What the service holds in memory follows from what it has read and written. So once the database is not as it was left,
going on would mean to show what is not so: the service then begins anew, under another epoch where something was lost.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from kuayu.service.problems import ProblemException

logger = logging.getLogger(__name__)

RETRY_AFTER = 2.0
"""Seconds after which who was turned away may try again."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The database is not as it was left.

    Attributes:
        cause: How that was noticed, in words.
        lost: Whether what was acknowledged may be missing, so that the epoch is to be renewed.
    """

    cause: str
    lost: bool


class DoubtError(Exception):
    """The database is not as it was left, so that nothing may be written."""

    def __init__(self, cause: str, *, lost: bool) -> None:
        super().__init__(cause)
        self.doubt = Doubt(cause, lost)


class HeldError(Exception):
    """Another service has the database open; the message says which."""


class Presence:
    """Whether the database can be used. Any thread may ask and tell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._absence: str | None = None
        self._doubt: Doubt | None = None
        self._follower: Callable[[], object] | None = None

    @property
    def doubt(self) -> Doubt | None:
        """Why the service has to begin anew, or None. Once there is a doubt it stays."""
        return self._doubt

    @property
    def absence(self) -> str | None:
        """Why the database cannot be used now, in words, or None."""
        doubt = self._doubt
        return self._absence if doubt is None else f"{doubt.cause}; the service begins anew"

    def check(self) -> None:
        """Turn away whoever needs the database while it cannot be used.

        Raises:
            ProblemException: overloaded.
        """
        absence = self.absence
        if absence is not None:
            raise unavailable(absence)

    def failed(self, error: Exception) -> ProblemException:
        """Note that the database did not do what was asked of it; what to answer because of that."""
        cause = words(error)
        with self._lock:
            doubted = isinstance(error, DoubtError) and self._doubt is None
            new = doubted or (self._doubt is None and self._absence is None)
            if isinstance(error, DoubtError):
                self._doubt = self._doubt or error.doubt
            else:
                self._absence = cause
            follower = self._follower if doubted else None
        if follower is not None:
            follower()
        if new:
            logger.error("%s; until that is over requests that need it are turned away", cause)
        return unavailable(self.absence or cause)

    def follow(self, follower: Callable[[], object]) -> None:
        """Have somebody called once there is a doubt, in whichever thread finds it; the last one who asks."""
        with self._lock:
            self._follower = follower
            doubted = self._doubt is not None
        if doubted:
            follower()

    def present(self) -> None:
        """Note that it has carried out what was asked of it."""
        with self._lock:
            before, self._absence = self._absence, None
        if before is not None:
            logger.warning("the database can be used again")


def unavailable(absence: str) -> ProblemException:
    """The answer while the database cannot be used."""
    return ProblemException("overloaded", absence, retry_after=RETRY_AFTER)


def is_absence(error: BaseException) -> bool:
    """Whether an exception tells that the database cannot be used, rather than that a statement is wrong."""
    if isinstance(error, PoolTimeoutError | DoubtError | HeldError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        # SQLite says of a damaged file that it is a DatabaseError, and of a wrong statement an OperationalError.
        narrow = type(error.orig) in {sqlite3.OperationalError, sqlite3.DatabaseError}
        return narrow and getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) != sqlite3.SQLITE_ERROR
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def words(error: BaseException) -> str:
    """What is the matter, in a line."""
    if isinstance(error, DoubtError | HeldError):
        return str(error)
    if isinstance(error, TimeoutError | PoolTimeoutError):
        return "the database does not answer in time"
    cause = str(getattr(error, "orig", None) or error).strip()
    return f"the database cannot be used: {cause.splitlines()[0] if cause else type(error).__name__}"
