"""How long questions take on a full database: a day of a thousand nodes at 15 s, asked over HTTP.

    python tests/benchmarks/queries.py [--database sqlite|postgresql|both] [--nodes N] [--hours N] [--period S]
                                       [--questions N] [--seed N] [--json FILE]

The database is filled through the service's own storage, not over HTTP. Then `kuayu serve` answers one client that
asks one question after another, each kind of question in turn, about nodes and instants drawn by chance.
"""

import argparse
import json
import os
import platform
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from serving import DATABASES, databases, say, serving, versions
from sqlalchemy import select

from kuayu.service import instants
from kuayu.service.storage import blocks
from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.database import open_database
from kuayu.service.storage.tables import meta, subject
from kuayu_schemas.models import Durability

DOMAIN_SIZE = 200
"""Nodes of a domain."""

DYNAMIC = (
    "accelerator_memory_used",
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "memory_bandwidth_utilisation",
    "power",
    "scale_out_receive_flow",
    "scale_out_transmit_flow",
    "storage_read_flow",
)
"""What a node reports each time."""

LASTING = ("scale_out_bandwidth", "storage_throughput")
"""What a node reports when it was probed."""

PROBED = 6 * 3600
"""Seconds between probes."""

ROWS_OF_A_COMMIT = 20_000
HOUR = 3_600_000
NOT_FOUND, METHOD_NOT_ALLOWED = 404, 405


@dataclass(frozen=True, slots=True)
class World:
    """What the database holds.

    Attributes:
        nodes: Names of the nodes.
        domains: Names of the domains.
        since: First instant, in milliseconds.
        until: Last instant.
        period: Milliseconds between samples of a node.
    """

    nodes: list[str]
    domains: list[str]
    since: int
    until: int
    period: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> "World":
        """The world that the options ask for; it ends now."""
        until = instants.now() // 1000 * 1000
        nodes = [f"n{number:05}" for number in range(options.nodes)]
        domains = [f"d{number:03}" for number in range(-(-options.nodes // DOMAIN_SIZE))]
        return cls(nodes, domains, until - round(options.hours * HOUR), until, round(options.period * 1000))

    @property
    def moments(self) -> range:
        """Instants of the samples; the first comes one period after the beginning."""
        return range(self.since + self.period, self.until + 1, self.period)


def register(url: str, world: World) -> None:
    """Register all domains and nodes."""
    with httpx.Client(base_url=url) as client:
        for name in world.domains:
            client.put(f"/v1/domains/{name}", json={"id": name}).raise_for_status()
        for number, name in enumerate(world.nodes):
            node = {"id": name, "domain": world.domains[number // DOMAIN_SIZE], "devices": []}
            client.put(f"/v1/nodes/{name}", json=node).raise_for_status()


def fill(database: str, world: World, chance: random.Random) -> float:
    """Write a sample of each node at each instant; seconds that it took."""
    opened = open_database(database, Durability.process)
    with opened.write.begin() as connection:
        rows = connection.execute(select(subject.c.id, subject.c.no).where(subject.c.kind == "node"))
        numbers = {row.id: row.no for row in rows}
    order = [numbers[name] for name in world.nodes]
    values = [[round(chance.random(), 4) for _ in DYNAMIC] for _ in range(997)]
    at_once = max(1, ROWS_OF_A_COMMIT // len(order))
    began = time.perf_counter()
    with Progress(transient=True) as progress:
        task = progress.add_task("fill", total=len(world.moments))
        for start in range(0, len(world.moments), at_once):
            moments = world.moments[start : start + at_once]
            arrivals = [Arrival(list(_blocks(order, moment, world, values)), moment) for moment in moments]
            with opened.write.begin() as connection:
                sequence = int(connection.execute(select(meta.c.value).where(meta.c.name == "sequence")).scalar_one())
                connection.execute(meta.update().where(meta.c.name == "sequence").values(value=str(sequence + 1)))
                blocks.write_all(connection, arrivals, sequence + 1)
            progress.advance(task, len(moments))
    took = time.perf_counter() - began
    opened.close()
    return took


def _blocks(numbers: list[int], moment: int, world: World, values: list[list[float]]) -> Iterator[Block]:
    step = (moment - world.since) // world.period
    rows = ((number, moment, *values[(step * 31 + number) % len(values)]) for number in numbers)
    yield Block.of_rows(DYNAMIC, rows)
    if (moment - world.since) % (PROBED * 1000) == world.period:
        yield Block.of_rows(LASTING, [(number, moment, 1e10, 2e9) for number in numbers])


class Questions:
    """What is asked, and the client that asks."""

    def __init__(self, client: httpx.Client, world: World, chance: random.Random) -> None:
        self._client = client
        self._world = world
        self._chance = chance

    def all(self) -> dict[str, Callable[[], None]]:
        """Each kind of question by its name."""
        nodes, domains = self._world.nodes, self._world.domains
        return {
            "indicators of a node, now": partial(self._report, "nodes", nodes),
            "indicators of a node, then": partial(self._report, "nodes", nodes, then=True),
            f"indicators of a domain of {min(DOMAIN_SIZE, len(nodes))} nodes, now": partial(
                self._report, "domains", domains[:1]
            ),
            f"indicators of a domain of {min(DOMAIN_SIZE, len(nodes))} nodes, then": partial(
                self._report, "domains", domains[:1], then=True
            ),
            "a page of 1000 samples": self._page,
            "an hour of a node, page by page": self._walk,
            "series of an hour, steps of 60 s": partial(self._series, HOUR, 60),
            "series of the whole time, steps of 300 s": partial(self._series, None, 300),
        }

    def keep_fresh(self) -> None:
        """Have all nodes report now, as they would: without it their newest values would soon be stale."""
        self._client.post("/v1/samples", json={"mode": "per_item", "samples": self._now()}).raise_for_status()

    def _now(self) -> list[dict[str, Any]]:
        now = instants.to_text(instants.now())
        return [
            {"subject": name, "subject_kind": "node", "observed_at": now, **dict.fromkeys(DYNAMIC, 0.5)}
            for name in self._world.nodes[:10_000]
        ]

    def _report(self, kind: str, names: list[str], *, then: bool = False) -> None:
        query = {"at": instants.to_text(self._moment(0))} if then else {}
        answer = self._client.get(f"/v1/{kind}/{self._chance.choice(names)}/indicators", params=query)
        if len(answer.raise_for_status().json()["values"]) < len(DYNAMIC):
            raise SystemExit(f"too few values: {answer.text}")

    def _page(self) -> None:
        since = self._moment(1000 * self._world.period)
        page = self._ask("/v1/samples", **self._of_a_node(since, self._world.until), limit="1000")
        if not page["items"]:
            raise SystemExit("an empty page")

    def _walk(self) -> None:
        since = self._moment(HOUR)
        query = self._of_a_node(since, since + HOUR)
        page = self._ask("/v1/samples", **query)
        while "next_cursor" in page:
            page = self._ask("/v1/samples", **query, cursor=page["next_cursor"])

    def _series(self, length: int | None, step: int) -> None:
        world = self._world
        since = world.since if length is None else self._moment(length)
        until = world.until if length is None else since + length
        self._ask("/v1/series", **self._of_a_node(since, until), measure="power", step=str(step))

    def _of_a_node(self, since: int, until: int) -> dict[str, str]:
        return {
            "subject": self._chance.choice(self._world.nodes),
            "subject_kind": "node",
            "from": instants.to_text(since),
            "to": instants.to_text(until),
        }

    def _moment(self, before_the_end: int) -> int:
        """An instant at which all nodes have reported, and so long before the last one where the time allows it."""
        earliest = min(self._world.since + 2 * self._world.period, self._world.until)
        return self._chance.randint(earliest, max(earliest, self._world.until - before_the_end))

    def _ask(self, path: str, **query: str) -> Any:
        return self._client.get(path, params=query).raise_for_status().json()


def measure(url: str, world: World, questions: int, chance: random.Random) -> list[dict[str, Any]]:
    """Ask each kind of question so often; what each kind took, in milliseconds."""
    found: list[dict[str, Any]] = []
    with httpx.Client(base_url=url, timeout=60) as client:
        asked = Questions(client, world, chance)
        for name, ask in asked.all().items():
            asked.keep_fresh()
            try:
                ask()
            except httpx.HTTPStatusError as error:
                if error.response.status_code not in {NOT_FOUND, METHOD_NOT_ALLOWED}:
                    raise
                say(f"{name}: the service has no such operation")
                continue
            taken = sorted(_milliseconds(ask) for _ in range(questions))
            found.append(
                {
                    "question": name,
                    "p50_ms": round(statistics.median(taken), 2),
                    "p99_ms": round(taken[min(len(taken) - 1, round(0.99 * len(taken)))], 2),
                    "most_ms": round(taken[-1], 2),
                }
            )
    return found


def _milliseconds(ask: Callable[[], None]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1000


def run(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fill a database and ask."""
    chance = random.Random(options.seed)
    with databases(kind) as new:
        database = new()
        world = World.of(options)
        with serving(database) as url:
            register(url, world)
        seconds = fill(database, world, chance)
        rows = len(world.moments) * len(world.nodes)
        say(f"{kind}: {rows:,} samples in {seconds:.0f} s, {rows / seconds:,.0f} a second")
        with serving(database) as url:
            results = measure(url, world, options.questions, chance)
    table = Table("question", "p50 ms", "p99 ms", "most ms", title=f"{kind}, {rows:,} samples")
    for found in results:
        table.add_row(found["question"], *(f"{found[name]:.1f}" for name in ("p50_ms", "p99_ms", "most_ms")))
    Console().print(table)
    return {"samples": rows, "filled_in_s": round(seconds, 1), "results": results}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--period", type=float, default=15, help="seconds between samples of a node")
    parser.add_argument("--questions", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    report: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": versions("fastapi", "orjson", "psycopg", "sqlalchemy", "uvicorn"),
        "processors": os.cpu_count(),
        **{name: getattr(options, name) for name in ("nodes", "hours", "period", "questions", "seed")},
        "databases": {},
    }
    for kind in DATABASES if options.database == "both" else (options.database,):
        report["databases"][kind] = run(kind, options)
        if options.json:
            options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
