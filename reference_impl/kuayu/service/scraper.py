"""The scraper: fetches exporters' pages from allowed hosts, and keeps those that cannot be written yet.

1. Which hosts may be scraped. A host that is listed by name is trusted by name. Any other is resolved, and only
   addresses within the listed networks will do. Whoever connects must connect to the address that was checked here: a
   name that is resolved twice may give two answers.
2. Pages that were fetched while they could not be written: kept for a while, the oldest given up first.
3. Fetches exporters' pages by itself: one task for each target, first at once and then every period.
"""

import asyncio
import ipaddress
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kuayu.service import instants, requests
from kuayu.service.concurrency import Lane
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings

if TYPE_CHECKING:
    import httpx

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"http": 80, "https": 443}


class NotAllowedError(Exception):
    """The target is not one that the operator allows, or is none at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A target that is allowed, with the address to connect to."""

    host: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """Hosts and networks that an operator allows."""

    hosts: frozenset[str]
    networks: tuple[Network, ...]

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowList":
        """Read hosts (``exporter.example``), addresses and CIDRs (``10.0.0.0/8``).

        Raises:
            ValueError: An entry looks like a network but is none.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                if "/" in entry or not entry.strip():
                    raise
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    async def check(self, url: str) -> Destination:
        """Resolve a URL's host to an address that may be connected to.

        Raises:
            NotAllowedError: There is none.
        """
        host, port = _host_and_port(url)
        addresses = await _resolve(host, port)
        if host not in self.hosts:
            addresses = [address for address in addresses if self._holds(address)]
        if not addresses:
            raise NotAllowedError(f"{host!r} is not among the hosts that the operator of this service allows")
        return Destination(host, port, addresses[0])

    def _holds(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        mapped = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(mapped in network for network in self.networks)


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NotAllowedError(f"{url!r} is not a URL: {error}") from error
    if parts.scheme not in PORTS or not host:
        raise NotAllowedError("only http://HOST/… and https://HOST/… can be scraped")
    if parts.username is not None:
        raise NotAllowedError("the URL of a target holds no credentials")
    return host.lower().rstrip("."), port or PORTS[parts.scheme]


async def _resolve(host: str, port: int) -> list[str]:
    """Addresses of a host; none where the name is unknown."""
    try:
        result = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in result]


MAX_BACKLOG_PAGES = 120
"""Pages of a target that are kept at most; at a period of a second these are two minutes."""

MAX_BACKLOG_CHARACTERS = 64 * 1024 * 1024
"""Characters of all pages that are kept at most."""

Key = tuple[str, str]
Write = Callable[[str, int], Awaitable[Sequence[Mapping[str, Any]]]]
"""Writes a page that was received at an instant in milliseconds; gives what is to be known of it."""


class Backlog:
    """Pages by target, in order. For the event loop alone."""

    def __init__(self) -> None:
        self._pages: dict[Key, deque[tuple[str, int]]] = {}
        self._characters = 0

    async def hand_over(self, key: Key, page: str, received: int, write: Write) -> Sequence[Mapping[str, Any]]:
        """Write what was kept of a target, and then a page.

        Raises:
            ProblemException: overloaded, where it was kept; anything else where it is wrong.
        """
        pages = self._pages.setdefault(key, deque())
        pages.append((page, received))
        self._characters += len(page)
        while len(pages) > MAX_BACKLOG_PAGES or (self._characters > MAX_BACKLOG_CHARACTERS and len(pages) > 1):
            self._drop(pages)
        warnings: Sequence[Mapping[str, Any]] = ()
        while pages:
            try:
                warnings = await write(*pages[0])
            except ProblemException as problem:
                if problem.name == "overloaded" and self._pages.get(key) is pages:
                    raise
                self._drop(pages)
                if not pages:
                    raise
            except BaseException:
                self._drop(pages)
                raise
            else:
                self._drop(pages)
        if self._pages.get(key) is pages:
            del self._pages[key]
        return warnings

    def forget(self, key: Key) -> None:
        """Give up what is kept of a target."""
        pages = self._pages.pop(key, deque())
        while pages:
            self._drop(pages)

    def _drop(self, pages: "deque[tuple[str, int]]") -> None:
        if pages:
            self._characters -= len(pages.popleft()[0])


logger = logging.getLogger(__name__)

ACCEPT = "text/plain;version=0.0.4;charset=utf-8, text/plain;q=0.5"

PAGES = 32
"""Pages that are in hand at once."""

Warnings = Sequence[Mapping[str, Any]]
"""What is to be known of a page, each of class PageWarning."""

Ingest = Callable[["Target", str, int], Awaitable[Warnings]]
"""What is done with a page that was received at an instant in milliseconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """A scrape target, as it was registered."""

    tenant: str
    name: str
    node: str
    exporter: str
    url: str
    period: float


@dataclass(frozen=True, slots=True)
class Status:
    """How the last scrape of a target went; ``scraped`` in milliseconds."""

    state: str = "pending"
    scraped: int | None = None
    problem: Mapping[str, Any] | None = None
    warnings: Warnings = ()

    def to_wire(self) -> dict[str, Any]:
        """The members that class ScrapeTargetRecord has for it."""
        document: dict[str, Any] = {"state": self.state}
        if self.scraped is not None:
            document["last_scrape_at"] = instants.to_text(self.scraped)
        if self.problem is not None:
            document["last_problem"] = self.problem
        if self.warnings:
            document["last_warnings"] = list(self.warnings)
        return document


class ScrapeError(Exception):
    """The exporter did not give a page; the message says how."""


class Scraper:
    """All scrape targets and their tasks. Lives in the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics, ingest: Ingest) -> None:
        self.allowed = AllowList.parse(settings.scrape_allow)
        self._settings = settings
        self._metrics = metrics
        self._ingest = ingest
        self._targets: dict[tuple[str, str], Target] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._statuses: dict[tuple[str, str], Status] = {}
        self._backlog = Backlog()
        self._pages = Lane(PAGES, settings.share(PAGES), 1 << 30)

    @cached_property
    def _client(self) -> "httpx.AsyncClient":
        """Made for the first page: a service that scrapes nothing need not load a client and whom it trusts."""
        import httpx

        return httpx.AsyncClient(
            timeout=self._settings.scrape_timeout,
            trust_env=False,
            headers={"Accept": ACCEPT, "Accept-Encoding": "gzip", "User-Agent": "kuayu"},
        )

    def start(self, target: Target) -> None:
        """Scrape a target from now on; one of the same name is replaced."""
        self.stop(target.tenant, target.name)
        key = (target.tenant, target.name)
        self._targets[key] = target
        self._statuses[key] = Status()
        self._tasks[key] = asyncio.create_task(self._keep_scraping(target), name=f"scrape {target.name}")

    def stop(self, tenant: str, name: str) -> None:
        """Scrape a target no longer."""
        self._targets.pop((tenant, name), None)
        self._statuses.pop((tenant, name), None)
        self._backlog.forget((tenant, name))
        task = self._tasks.pop((tenant, name), None)
        if task is not None:
            task.cancel()

    def target(self, tenant: str, name: str) -> Target | None:
        """A target that is being scraped."""
        return self._targets.get((tenant, name))

    def status(self, tenant: str, name: str) -> Status:
        """How the last scrape of a target went."""
        return self._statuses.get((tenant, name), Status())

    async def close(self) -> None:
        """End all tasks."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if "_client" in vars(self):
            await self._client.aclose()

    async def _keep_scraping(self, target: Target) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            status = await self._scrape(target)
            self._statuses[target.tenant, target.name] = status
            self._metrics.scrapes.labels(status.state).inc()
            due = max(due + target.period, clock())
            await asyncio.sleep(due - clock())

    async def _scrape(self, target: Target) -> Status:
        """Scrape once. Whatever goes wrong becomes the target's status and stops neither it nor any other."""
        import httpx

        instant = instants.now()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._settings.scrape_timeout):
                    response = await self._open(target.url)
                    stack.push_async_callback(response.aclose)
                    # Not before: an exporter that does not answer takes no place.
                    await stack.enter_async_context(self._pages.place(target.tenant))
                    page = await self._read(response)
                key, write = (target.tenant, target.name), partial(self._ingest, target)
                # What cannot be written now, since the database is away, is written with one of the next pages.
                warnings = await self._backlog.hand_over(key, page, instants.now(), write)
        except ProblemException as error:
            return Status("failed", instant, error.to_wire())
        except NotAllowedError as error:
            return Status("failed", instant, ProblemException("target-not-allowed", str(error)).to_wire())
        except TimeoutError:
            slow = f"no whole page within {self._settings.scrape_timeout:g} s"
            return Status("failed", instant, ProblemException("scrape-failed", slow).to_wire())
        except (ScrapeError, httpx.HTTPError, httpx.InvalidURL, UnicodeDecodeError) as error:
            return Status("failed", instant, ProblemException("scrape-failed", _words(error)).to_wire())
        except Exception as error:
            logger.exception("scraping %s", target.name)
            return Status("failed", instant, ProblemException("internal", type(error).__name__).to_wire())
        return Status("succeeded", instant, warnings=warnings)

    async def _open(self, url: str) -> "httpx.Response":
        """Ask for a page at the very address that the allow-list approved; redirects are not followed."""
        request = self._request(url, await self.allowed.check(url))
        return await self._client.send(request, stream=True)

    async def _read(self, response: "httpx.Response") -> str:
        """Read a page, as far as it may be long."""
        try:
            if response.status_code != HTTPStatus.OK:
                raise ScrapeError(f"the exporter answered {response.status_code}")
            page = requests.Page(response.headers.get("content-encoding", ""), self._settings.max_body)
            async for chunk in response.aiter_raw():
                page.add(chunk)
            body = page.whole()
        except requests.UnpackingError as error:
            raise ScrapeError(str(error)) from error
        return body.decode("utf-8")

    def _request(self, url: str, destination: Destination) -> "httpx.Request":
        import httpx

        parsed = httpx.URL(url)
        return self._client.build_request(
            "GET",
            parsed.copy_with(host=destination.address),
            headers={"Host": parsed.netloc.decode("ascii")},
            extensions={"sni_hostname": destination.host},
        )


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:500]
