"""Rate limits: how fast requests of one sender may come, and how fast tokens may be guessed from one address.

1. Who sends. The accounts that a token is bound to, where it is bound to some; else the token. A request without a
   valid token counts for its address: of IPv6 the first 64 bits, those of its subnet (RFC 4291, 2.5.1). Behind a
   proxy that is what the proxy has written last into ``X-Forwarded-For``; elsewhere nobody is believed who writes
   one. Where no tokens are asked for the service is there for this host alone, and nothing is limited.
2. How fast. Each sender has a token bucket (Turner, "New Directions in Communications", IEEE Communications Magazine
   24(10), 1986): so many requests a second, and a burst. It is kept as the instant at which it will be full again,
   which is one number (the virtual scheduling algorithm of ITU-T I.371). A request that comes faster is answered with
   ``rate-limited`` and ``Retry-After`` (RFC 6585, 4) before anything else is done for it.
3. What keeps domains alive has a bucket of its own, as large as the other: heartbeats, log lines, faults, reports of
   runs, and actions, by which nodes are fenced, with their results. So whoever asks for too much else is not taken
   for dead.
4. Guesses. A token that is unknown counts against its address, the same one only once: an agent whose token was taken
   out asks again and again, and guesses nothing. Once an address has guessed too often, no token of it is looked at
   that was not good there before, so that who shares an address with a guesser goes on.
5. Whoever is turned away is in the audit log once in :data:`REPEATED_SECONDS`, by name or by address, and each guess
   is as long as they do not come faster than :data:`AUDITED_GUESSES`. Of tokens nothing is kept but a keyed digest,
   in memory.
"""

import hashlib
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from starlette.datastructures import Headers
from starlette.types import Scope

from kuayu.service.problems import ProblemException

if TYPE_CHECKING:
    from prometheus_client import Counter

    from kuayu.service.auth import Grant
    from kuayu.service.settings import Settings

MIN_RETRY_SECONDS = 1.0
"""Seconds that a sender is asked to wait at least; ``Retry-After`` has whole ones."""

MAX_SENDERS = 65_536
"""Senders that are remembered; whoever has sent nothing for longest is forgotten first, and has a full bucket then."""

MAX_DIGESTS = 65_536
"""Tokens that are remembered as good, and as unknown."""

SUBNET_BITS = 64
"""Leading bits of an IPv6 address that are those of a subnet."""

REPEATED_SECONDS = 60.0
"""Seconds after which it is said again that a sender is turned away."""

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How fast something may come.

    Attributes:
        rate: How many a second.
        burst: How many at once, after a pause.
    """

    rate: float
    burst: float


BURST_SECONDS = 5.0
"""Seconds of requests at the full rate that may come at once, where nothing else is said."""

AUDITED_GUESSES = RateLimit(10.0, 1_000.0)
"""How fast the audit log takes guesses, of all addresses."""


class Recent(Generic[KeyT]):
    """Keys that were noted last, each with a number.

    Args:
        most: How many are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[KeyT, float] = OrderedDict()

    def get(self, key: KeyT) -> float:
        """Its number; minus infinity where it is not remembered."""
        return self._values.get(key, -math.inf)

    def note(self, key: KeyT, value: float = 0.0) -> None:
        """Remember it."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def __contains__(self, key: KeyT) -> bool:
        """Whether it is remembered."""
        return key in self._values


class TokenBuckets(Generic[KeyT]):
    """A token bucket for each key.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full = Recent[KeyT](MAX_SENDERS)

    def wait(self, key: KeyT, limit: RateLimit) -> float:
        """Seconds until one may be taken; zero or less where it may be now."""
        now = self._clock()
        return self._full_at(key, limit, now) + (1 - limit.burst) / limit.rate - now

    def take(self, key: KeyT, limit: RateLimit) -> float:
        """Take one where there is one; seconds until there is one, zero where it was taken."""
        now = self._clock()
        full = self._full_at(key, limit, now)
        wait = full + (1 - limit.burst) / limit.rate - now
        if wait > 0:
            return wait
        self._full.note(key, full + 1 / limit.rate)
        return 0.0

    def _full_at(self, key: KeyT, limit: RateLimit, now: float) -> float:
        """When it will be full; one that was emptied under a lower limit is empty now, and fills at the new rate."""
        full, latest = max(now, self._full.get(key)), now + limit.burst / limit.rate
        if full <= latest:
            return full
        self._full.note(key, latest)
        return latest


class RateLimitedError(ProblemException):
    """A sender sends too fast.

    Attributes:
        first: Whether that is to be kept in the audit log: it was not said for a while.
    """

    def __init__(self, detail: str, wait: float, *, first: bool) -> None:
        super().__init__("rate-limited", detail, retry_after=max(MIN_RETRY_SECONDS, wait))
        self.first = first


class RateLimits:
    """The limits of a service. For the event loop alone.

    Args:
        settings: What the operator set.
        refusals: Counts requests that are turned away, by the limit.
        clock: Seconds that never go back.
    """

    def __init__(self, settings: "Settings", refusals: "Counter", clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._refusals = refusals
        self._clock = clock
        self._requests = TokenBuckets[tuple[str, ...]](clock)
        self._guesses = TokenBuckets[str](clock)
        self._audited = TokenBuckets[None](clock)
        self._secret = secrets.token_bytes(32)
        self._good, self._unknown = (Recent[bytes](MAX_DIGESTS) for _ in range(2))
        self._reported = Recent[tuple[str, ...]](MAX_SENDERS)

    def check_sender(self, grant: "Grant", *, urgent: bool) -> None:
        """Count a request of a known sender.

        Args:
            grant: What its token is good for.
            urgent: Whether it is one that keeps a domain alive.

        Raises:
            RateLimitedError: It comes too fast.
        """
        sender = sorted(grant.accounts) if grant.accounts is not None else ["", grant.name]
        self._check((grant.tenant, *sender), self._limit_of(grant), "urgent" if urgent else "sender")

    def check_address(self, address: str) -> None:
        """Count a request of which nobody knows who sends it.

        Raises:
            RateLimitedError: It comes too fast.
        """
        self._check((address,), self._settings.request_limit, "address")

    def check_guess(self, address: str, secret: str) -> None:
        """See whether a token may be looked at.

        Raises:
            RateLimitedError: Too many that are unknown have come from its address.
        """
        limit = self._settings.guess_limit
        if limit is None or (wait := self._guesses.wait(address, limit)) <= 0:
            return
        if self._digest(address, secret) not in self._good:
            detail = "too many unknown tokens have come from this address"
            raise self._refused(("guess", address), "guess", detail, wait)

    def note_good(self, address: str, secret: str) -> None:
        """A token was good."""
        if self._settings.guess_limit is not None:
            self._good.note(self._digest(address, secret))

    def note_guess(self, address: str, secret: str) -> bool:
        """A token was unknown; whether that is to be kept in the audit log."""
        if (limit := self._settings.guess_limit) is None:
            return False
        digest = self._digest(address, secret)
        known = digest in self._unknown
        self._unknown.note(digest)
        if known:
            return False
        self._guesses.take(address, limit)
        return self._audited.take(None, AUDITED_GUESSES) <= 0

    def address_of(self, scope: Scope) -> str:
        """Address that a request counts for."""
        client = scope.get("client")
        stated = client[0] if client else ""
        if self._settings.behind_proxy:
            lines = Headers(scope=scope).getlist("x-forwarded-for")
            stated = lines[-1].rpartition(",")[2].strip() if lines else stated
        try:
            address = ipaddress.ip_address(stated)
        except ValueError:
            return client[0] if client else ""
        if isinstance(address, ipaddress.IPv4Address):
            return str(address)
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), SUBNET_BITS), strict=False))

    def _limit_of(self, grant: "Grant") -> RateLimit | None:
        """The most generous of what was set for the accounts of a token, else what holds for all."""
        stated = self._settings.accounts
        if stated is not None and grant.accounts is not None:
            rules = stated.of(grant.tenant)
            limits = [rules[name].limit for name in grant.accounts if name in rules]
            own = [limit for limit in limits if limit is not None]
            if own:
                return max(own, key=lambda limit: limit.rate)
        return self._settings.request_limit

    def _check(self, sender: tuple[str, ...], limit: RateLimit | None, kind: str) -> None:
        if limit is not None and self._settings.asks_for_tokens:
            wait = self._requests.take((kind, *sender), limit)
            if wait > 0:
                detail = f"requests come faster than {limit.rate:g} a second, beyond {limit.burst:g} at once"
                raise self._refused((kind, *sender), kind, detail, wait)

    def _refused(self, sender: tuple[str, ...], kind: str, detail: str, wait: float) -> RateLimitedError:
        self._refusals.labels(kind).inc()
        now = self._clock()
        first = self._reported.get(sender) <= now - REPEATED_SECONDS
        if first:
            self._reported.note(sender, now)
        return RateLimitedError(detail, wait, first=first)

    def _digest(self, address: str, secret: str) -> bytes:
        return hashlib.blake2b(f"{address}\0{secret}".encode(), key=self._secret, digest_size=16).digest()
