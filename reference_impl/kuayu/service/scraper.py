"""Fetches exporters' pages by itself: one task for each target, first at once and then every period."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from kuayu.service import instants, unpacking
from kuayu.service.allowlist import AllowList, Destination, NotAllowedError
from kuayu.service.backlog import Backlog
from kuayu.service.lanes import Lane
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings

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
    """How the last scrape of a target went; the instant in milliseconds."""

    state: str = "pending"
    at: int | None = None
    problem: Mapping[str, Any] | None = None
    warnings: Warnings = ()

    def to_wire(self) -> dict[str, Any]:
        """The members that class ScrapeTargetRecord has for it."""
        wire: dict[str, Any] = {"state": self.state}
        if self.at is not None:
            wire["last_scrape_at"] = instants.to_text(self.at)
        if self.problem is not None:
            wire["last_problem"] = self.problem
        if self.warnings:
            wire["last_warnings"] = list(self.warnings)
        return wire


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
        self._client = httpx.AsyncClient(
            timeout=settings.scrape_timeout,
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
        at = instants.now()
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
            return Status("failed", at, error.to_wire())
        except NotAllowedError as error:
            return Status("failed", at, ProblemException("target-not-allowed", str(error)).to_wire())
        except TimeoutError:
            slow = f"no whole page within {self._settings.scrape_timeout:g} s"
            return Status("failed", at, ProblemException("scrape-failed", slow).to_wire())
        except (ScrapeError, httpx.HTTPError, httpx.InvalidURL, UnicodeDecodeError) as error:
            return Status("failed", at, ProblemException("scrape-failed", _words(error)).to_wire())
        except Exception as error:
            logger.exception("scraping %s", target.name)
            return Status("failed", at, ProblemException("internal", type(error).__name__).to_wire())
        return Status("succeeded", at, warnings=warnings)

    async def _open(self, url: str) -> httpx.Response:
        """Ask for a page at the very address that the allow-list approved; redirects are not followed."""
        request = self._request(url, await self.allowed.check(url))
        return await self._client.send(request, stream=True)

    async def _read(self, response: httpx.Response) -> str:
        """Read a page, as far as it may be long."""
        try:
            if response.status_code != httpx.codes.OK:
                raise ScrapeError(f"the exporter answered {response.status_code}")
            page = unpacking.Page(response.headers.get("content-encoding", ""), self._settings.max_body)
            async for chunk in response.aiter_raw():
                page.add(chunk)
            body = page.whole()
        except unpacking.UnpackingError as error:
            raise ScrapeError(str(error)) from error
        return body.decode("utf-8")

    def _request(self, url: str, destination: Destination) -> httpx.Request:
        parsed = httpx.URL(url)
        return self._client.build_request(
            "GET",
            parsed.copy_with(host=destination.address),
            headers={"Host": parsed.netloc.decode("ascii")},
            extensions={"sni_hostname": destination.host},
        )


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:500]
