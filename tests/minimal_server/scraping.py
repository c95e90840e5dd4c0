"""Exporters' pages that the service fetches by itself (feature scrape)."""

import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from minimal_server.aggregation import Aggregation
from minimal_server.core import Json, Refusal, Tenant, instant, wrong_body

PERIOD, TIME_LIMIT, SIZE_LIMIT = 5.0, 5.0, 4 << 20
"""Seconds between scrapes where the target does not say, seconds that one may take, bytes that a page may have."""


class Scraping(Aggregation):
    """Targets, each with a thread of its own."""

    push: Callable[[Tenant, str, bytes], None]
    """Takes a page as if it had been pushed to that path; raises :class:`Refusal`."""

    serving = False
    """Whether targets are scraped; not while the journal is being replayed."""

    def check_references(self, tenant: Tenant, kind: str, body: Json) -> None:
        """Beside what every kind asks: the exporter is of the collection map, the address of the allow-list."""
        super().check_references(tenant, kind, body)
        if kind == "scrape-targets":
            if body["exporter"] not in {row["id"] for row in self.indicators["exporters"]}:
                raise wrong_body("unknown-exporter", "/exporter", "the collection map does not name this exporter")
            if not self.may_scrape(body["url"]):
                raise wrong_body("target-not-allowed", "/url", "the operator has not allowed this address")

    def may_scrape(self, url: str) -> bool:
        """Whether a page may be fetched from there: over HTTP, from an allowed host or network."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and any(_is_in(host, allowed) for allowed in self.allowed)

    def shown(self, tenant: Tenant, kind: str, record: Json) -> Json:
        """A target's record says how its last scrape went."""
        if kind != "scrape-targets":
            return record
        return {**record, **tenant.scrapes.get(record["id"], {"state": "pending"})}

    def changed(self, tenant: Tenant, kind: str, name: str) -> None:
        """A target that was changed is scraped at once, one that was deleted no more."""
        if kind == "scrape-targets":
            tenant.scrapes.pop(name, None)
            self.watch(tenant, name)

    def watch(self, tenant: Tenant, name: str) -> None:
        """Scrape a target from now on, while its record stays as it is."""
        record = self.held(tenant, "scrape-targets").get(name)
        if record is not None and self.serving:
            threading.Thread(target=self.scrape_forever, args=(tenant, record), daemon=True).start()

    def begin(self) -> None:
        """Scrape every target that there is."""
        self.serving = True
        for tenant in self.tenants.values():
            for name in self.held(tenant, "scrape-targets"):
                self.watch(tenant, name)

    def period(self, target: Json) -> float:
        """Seconds between scrapes of a target."""
        return float(target.get("period", PERIOD))

    def scrape_forever(self, tenant: Tenant, target: Json) -> None:
        """Scrape a target at once and then every period."""
        due = time.monotonic()
        while self.held(tenant, "scrape-targets").get(target["id"]) is target:
            outcome = self.scrape(tenant, target)
            if self.held(tenant, "scrape-targets").get(target["id"]) is target:
                tenant.scrapes[target["id"]] = outcome
            due = max(due + self.period(target), time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def scrape(self, tenant: Tenant, target: Json) -> Json:
        """Fetch a page and take it; how that went."""
        when = {"last_scrape_at": instant(self.read_clock())}
        try:
            page = fetch(target["url"])
            self.push(tenant, f"/v1/expositions?node={target['node']}&exporter={target['exporter']}", page)
        except Refusal as refusal:
            return {**when, "state": "failed", "last_problem": self.problem(refusal)}
        except (OSError, HTTPException, ValueError) as error:
            nothing = Refusal("scrape-failed", f"no page came: {error or type(error).__name__}")
            return {**when, "state": "failed", "last_problem": self.problem(nothing)}
        return {**when, "state": "succeeded"}


def _is_in(host: str, allowed: str) -> bool:
    try:
        return ip_address(host) in ip_network(allowed, strict=False)
    except ValueError:
        return host == allowed.lower()


def fetch(url: str) -> bytes:
    """The page at an address that may be scraped; redirects are not followed.

    Raises:
        OSError, HTTPException, ValueError: No page came; the message says why.
    """
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIME_LIMIT)
    deadline = time.monotonic() + TIME_LIMIT
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"Accept": "text/plain; version=0.0.4"})
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        page = b""
        while chunk := response.read1(65536):
            page += chunk
            if len(page) > SIZE_LIMIT or time.monotonic() > deadline:
                raise ValueError(f"longer than {SIZE_LIMIT} bytes or {TIME_LIMIT} s")
        return page
    finally:
        connection.close()
