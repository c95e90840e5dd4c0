"""How fast samples are taken in: the raw store and the service over HTTP, one after the other in the same run.

    python tests/benchmarks/ingest.py [--rows N] [--batch N …] [--devices N] [--repeat N] [--json FILE]

Raw store: one process that does nothing else, the service's own SQLite file and table, the same rows and the same rule
for repetitions, ten thousand rows a transaction, in two ways; the faster is the limit. HTTP: `kuayu serve` in one
process, clients on sixteen connections in another, the same rows as JSON, every batch acknowledged, and the rows
counted in the file afterwards. All are repeated in turn and the medians compared.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import httpx

from kuayu.service import instants
from kuayu.service.storage.database import open_database
from kuayu_schemas.models import Durability

DEVICES = 100
"""How many devices report unless told otherwise. The fewer, the more neighbours in the table a batch has."""

CONNECTIONS = 16
TRANSACTION, ROWS_AT_ONCE = 10_000, 512
"""Rows of a transaction and of a statement of the raw store."""

REPORTED = (
    "matrix_pipe_activity",
    "power",
    "accelerator_memory_used",
    "memory_bandwidth_utilisation",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "accelerator_utilisation",
    "faults",
)
"""What a device reports at each instant: the dynamic measures of a common accelerator."""

Sample = dict[str, Any]


def make_samples(rows: int, devices: int, seed: int) -> list[Sample]:
    """Samples of so many devices, instant after instant, the newest of them now."""
    chance = random.Random(seed)
    beginning = instants.now() - rows // devices * 1000
    return [
        {
            "subject": "node",
            "subject_kind": "device",
            "device": str(row % devices),
            "observed_at": instants.to_text(beginning + row // devices * 1000),
            **{name: round(chance.random(), 4) for name in REPORTED},
        }
        for row in range(rows)
    ]


def row_by_row(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Put rows into the table with executemany."""
    connection.executemany(_statement(1), rows)


def many_at_once(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Put rows into the table with statements of hundreds of rows, as the service does."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        connection.execute(_statement(len(part)), list(chain.from_iterable(part)))


def _statement(rows: int) -> str:
    columns = ("subject_no", "observed", "received", "sequence", *REPORTED)
    merged = ", ".join(f"{name} = coalesce(sample.{name}, excluded.{name})" for name in REPORTED)
    marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    return (
        f"INSERT INTO sample ({', '.join(columns)}) VALUES {marks} "  # noqa: S608 - names of our own
        f"ON CONFLICT (subject_no, observed) DO UPDATE SET {merged}"
    )


def raw_store(samples: list[Sample], way: Callable[[sqlite3.Connection, list[tuple[Any, ...]]], None]) -> float:
    """Rows in a second that SQLite takes from one process that has nothing else to do."""
    rows = [
        (int(sample["device"]), instants.to_milliseconds(sample["observed_at"]), 0, 0, *map(sample.get, REPORTED))
        for sample in samples
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "raw.db"
        open_database(f"sqlite:///{file}", Durability.process).close()
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint=16000")
        began = time.perf_counter()
        for start in range(0, len(rows), TRANSACTION):
            connection.execute("BEGIN")
            way(connection, rows[start : start + TRANSACTION])
            connection.execute("COMMIT")
        taken = time.perf_counter() - began
        connection.close()
    return len(rows) / taken


def over_http(samples: list[Sample], batch: int) -> float:
    """Rows in a second that the service acknowledges."""
    with tempfile.TemporaryDirectory() as folder:
        return _over_http(samples, batch, Path(folder) / "http.db")


def _over_http(samples: list[Sample], batch: int, file: Path) -> float:
    batches = [samples[start : start + batch] for start in range(0, len(samples), batch)]
    bodies = [json.dumps({"mode": "per_item", "samples": part}, separators=(",", ":")).encode() for part in batches]
    with _serving(file) as url:
        _register(url, 1 + max(int(sample["device"]) for sample in samples))
        port = int(url.rpartition(":")[2])
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            taken: float = pool.apply(send_all, (port, bodies))
    with sqlite3.connect(file) as connection:
        (held,) = connection.execute("SELECT count(*) FROM sample").fetchone()
    connection.close()
    if held != len(samples):
        raise SystemExit(f"{held} rows are held, {len(samples)} were acknowledged")
    return len(samples) / taken


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
        began = time.perf_counter()
        await asyncio.gather(*(connection(queue) for _ in range(CONNECTIONS)))
        return time.perf_counter() - began

    return asyncio.run(run())


@contextmanager
def _serving(file: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from kuayu.cli import main; main()", "serve", "--log-level", "warning"]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--database", f"sqlite:///{file}"], stdout=subprocess.DEVNULL, env=os.environ
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                httpx.get(f"{url}/v1/health")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def _register(url: str, count: int) -> None:
    devices = [{"id": str(n), "kind": "gpu", "vendor": "Example", "model": "Example"} for n in range(count)]
    httpx.put(f"{url}/v1/domains/domain", json={"id": "domain"}).raise_for_status()
    node = {"id": "node", "domain": "domain", "devices": devices}
    httpx.put(f"{url}/v1/nodes/node", json=node).raise_for_status()


def compare(rows: int, batches: list[int], repeat: int, devices: int) -> dict[str, float]:
    """Measure each way in turn, several times; medians by name, in rows a second."""
    found: dict[str, list[float]] = {}
    for turn in range(repeat):
        samples = make_samples(rows, devices, turn)
        for way in (row_by_row, many_at_once):
            found.setdefault(f"raw store, {way.__name__.replace('_', ' ')}", []).append(raw_store(samples, way))
        for batch in batches:
            found.setdefault(f"HTTP, batches of {batch}", []).append(over_http(samples, batch))
    return {name: statistics.median(rates) for name, rates in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    packages = ["fastapi", "jsonschema-rs", "orjson", "uvicorn"]
    report: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _version(name) for name in packages},
        "processors": os.cpu_count(),
        "rows": options.rows,
        "devices": options.devices,
        "results": [],
    }
    say(", ".join(f"{name} {found}" for name, found in report["packages"].items()))
    say(f"{report['date']}  Python {report['python']}  SQLite {report['sqlite']}  {report['processors']} processors")
    rates = compare(options.rows, options.batch, options.repeat, options.devices)
    limit = max(rate for name, rate in rates.items() if name.startswith("raw"))
    for name, rate in rates.items():
        report["results"].append({"way": name, "rows_per_second": round(rate), "of_limit": round(rate / limit, 3)})
        say(f"{name:28}{rate:>12,.0f} rows/s {rate / limit:>8.0%} of the raw store's limit")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
