"""How fast samples are taken in: each raw store and the service over HTTP, one after the other in the same run.

    python tests/benchmarks/ingest.py [--database sqlite|postgresql|both] [--rows N] [--batch N …] [--devices N]
                                      [--repeat N] [--seed N] [--json FILE]

Raw store: see raw_stores.py; the fastest way that is as durable as the service is the limit. HTTP: `kuayu serve` in
one process that has settled, clients on sixteen connections in another, the same rows as JSON, every batch
acknowledged, and the rows counted in the database afterwards. All are repeated in turn, and the share of the limit is
taken in each turn. Beside other work a rate says little, and the time of processors (of the store, and of the service
with its sessions) more.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import raw_stores
import uvloop
from ingest_samples import REPORTED, Sample, make_samples
from serving import (
    DATABASES,
    NewDatabase,
    Speed,
    Stopwatch,
    databases,
    plain,
    processes_behind,
    say,
    serving,
    versions,
    wait_until_settled,
)
from sqlalchemy import create_engine, text

from kuayu.service import instants

DEVICES = 100
"""How many devices report unless told otherwise. The fewer, the more neighbours in the table a batch has."""

CONNECTIONS = 16


def raw_store(kind: str, new: NewDatabase, samples: list[Sample]) -> Iterator[tuple[str, Speed]]:
    """How fast a database takes rows in each way."""
    rows = [
        (int(sample["device"]), instants.to_milliseconds(sample["observed_at"]), 0, 0, *map(sample.get, REPORTED))
        for sample in samples
    ]
    rates = raw_stores.sqlite_rates if kind == "sqlite" else raw_stores.postgresql_rates
    yield from rates(new, rows, REPORTED)


def over_http(database: str, samples: list[Sample], batch: int) -> Speed:
    """How fast the service acknowledges rows."""
    batches = [samples[start : start + batch] for start in range(0, len(samples), batch)]
    bodies = [json.dumps({"mode": "per_item", "samples": part}, separators=(",", ":")).encode() for part in batches]
    with serving(database) as url:
        _register(url, 1 + max(int(sample["device"]) for sample in samples))
        port = int(url.rpartition(":")[2])
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            behind = processes_behind(database)
            wait_until_settled(psutil.Process(behind[0]))
            stopwatch = Stopwatch(*behind)
            taken: float = pool.apply(send_all, (port, bodies))
            speed = replace(stopwatch.speed(len(samples)), rate=len(samples) / taken)
    engine = create_engine(database)
    with engine.connect() as connection:
        held = connection.execute(text("SELECT count(*) FROM sample")).scalar_one()
    engine.dispose()
    if held != len(samples):
        raise SystemExit(f"{held} rows are held, {len(samples)} were acknowledged")
    return speed


def send_all(port: int, bodies: list[bytes]) -> float:
    """Send all bodies on a few connections; seconds from the first byte to the last answer."""

    async def connection(queue: Iterator[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in queue:
            head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(b"POST /v1/samples HTTP/1.1\r\n" + head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            result = json.loads(await reader.readexactly(length))
            if not answer.startswith(b"HTTP/1.1 200") or result["rejected"]:
                raise SystemExit(f"refused: {result}")
        writer.close()

    async def run() -> float:
        queue = iter(bodies)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(connection(queue) for _ in range(CONNECTIONS)))
        return loop.time() - began

    return uvloop.run(run())


def _register(url: str, count: int) -> None:
    devices = [{"id": str(n), "kind": "gpu", "vendor": "Example", "model": "Example"} for n in range(count)]
    httpx.put(f"{url}/v1/domains/domain", json={"id": "domain"}).raise_for_status()
    node = {"id": "node", "domain": "domain", "devices": devices}
    httpx.put(f"{url}/v1/nodes/node", json=node).raise_for_status()


def compare(kind: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure each way in turn, several times; medians in rows a second, and what they are of the limit."""
    turns: list[dict[str, Speed]] = []
    with databases(kind) as new:
        for turn in range(options.repeat):
            samples = make_samples(options.rows, options.devices, options.seed + turn)
            found = {f"raw store, {way}": speed for way, speed in raw_store(kind, new, samples)}
            for batch in options.batch:
                found[f"HTTP, batches of {batch}"] = over_http(new(), samples, batch)
            turns.append(found)
    raw = [[speed.rate for way, speed in turn.items() if way.startswith("raw") and speed.durable] for turn in turns]
    limits = list(map(max, raw))
    rows = []
    for way in turns[0]:
        shares = [turn[way].rate / limit for turn, limit in zip(turns, limits, strict=True)]
        row = {
            "way": way,
            "rows_per_second": round(statistics.median(turn[way].rate for turn in turns)),
            "of_limit": round(statistics.median(shares), 3),
            "shares": [round(share, 3) for share in shares],
            "processor_microseconds": round(statistics.median(turn[way].processor for turn in turns), 2),
        }
        each = " ".join(f"{share:.0%}" for share in shares)
        say(
            f"{kind:12}{way:36}{row['rows_per_second']:>10,} rows/s {row['of_limit']:>6.0%} of the limit ({each})"
            f" {row['processor_microseconds']:>7.2f} us of processors for a row"
        )
        rows.append(row)
    return rows


def postgresql_version() -> str:
    """Version of the PostgreSQL that is measured."""
    import psycopg

    with databases("postgresql") as new, psycopg.connect(plain(new())) as connection:
        return f"{connection.info.server_version // 10_000}.{connection.info.server_version % 10_000}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first turn; each other one takes the next")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    kinds = DATABASES if options.database == "both" else (options.database,)
    report: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": versions("fastapi", "jsonschema-rs", "msgspec", "orjson", "psycopg", "uvicorn"),
        "processors": os.cpu_count(),
        "rows": options.rows,
        "devices": options.devices,
        "seed": options.seed,
        "repeat": options.repeat,
    }
    say(", ".join(f"{name} {found}" for name, found in report["packages"].items()))
    say(f"{report['date']}  Python {report['python']}  SQLite {report['sqlite']}  {report['processors']} processors")
    if "sqlite" in kinds:
        report["results"] = compare("sqlite", options)
    if "postgresql" in kinds:
        report["postgresql"] = {"version": postgresql_version(), "results": compare("postgresql", options)}
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
