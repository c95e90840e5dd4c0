"""How fast samples are taken in: the raw store and the service over HTTP, one after the other in the same run.

    python tests/benchmarks/ingest.py [--rows N] [--batch N …] [--devices N] [--repeat N] [--json FILE]

Raw store: one process, the service's own SQLite file and table, ``executemany`` of wide rows, one transaction a batch.
HTTP: `kuayu serve` in one process, clients on four connections in another, the same rows as JSON, every batch
acknowledged. Both are repeated in turn and the medians compared; afterwards the rows are counted in the file.
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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx

from kuayu.service import instants
from kuayu.service.storage.database import open_database
from kuayu.service.storage.tables import MEASURES
from kuayu_schemas.models import Durability

DEVICES = 100
"""How many devices report unless told otherwise. The fewer, the more neighbours in the table a batch has."""

CONNECTIONS = 4
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
            **{name: chance.random() for name in REPORTED},
        }
        for row in range(rows)
    ]


def raw_store(samples: list[Sample], batch: int, folder: Path) -> float:
    """Rows in a second that SQLite takes from one process."""
    file = folder / "raw.db"
    open_database(f"sqlite:///{file}", Durability.process).close()
    columns = ("subject_no", "observed", "received", "sequence", *MEASURES)
    merged = ", ".join(f"{name} = coalesce(sample.{name}, excluded.{name})" for name in MEASURES)
    statement = (
        f"INSERT INTO sample ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "  # noqa: S608
        f"ON CONFLICT (subject_no, observed) DO UPDATE SET {merged}"
    )
    rows = [
        (int(sample["device"]), instants.to_milliseconds(sample["observed_at"]), 0, 0, *map(sample.get, MEASURES))
        for sample in samples
    ]
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint=16000")
    began = time.perf_counter()
    for start in range(0, len(rows), batch):
        connection.execute("BEGIN")
        connection.executemany(statement, rows[start : start + batch])
        connection.execute("COMMIT")
    taken = time.perf_counter() - began
    connection.close()
    return len(rows) / taken


def over_http(samples: list[Sample], batch: int, folder: Path) -> float:
    """Rows in a second that the service acknowledges."""
    file = folder / "http.db"
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


def compare(rows: int, batch: int, repeat: int, devices: int) -> dict[str, float]:
    """Measure both in turn, several times, and compare the medians."""
    raw: list[float] = []
    http: list[float] = []
    for turn in range(repeat):
        samples = make_samples(rows, devices, turn)
        for measure, rates in ((raw_store, raw), (over_http, http)):
            with tempfile.TemporaryDirectory() as folder:
                rates.append(measure(samples, batch, Path(folder)))
    found = {"raw": statistics.median(raw), "http": statistics.median(http)}
    return {"batch": batch, **found, "ratio": found["http"] / found["raw"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    packages = ["kuayu", "fastapi", "jsonschema-rs", "orjson", "uvicorn"]
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
    say(f"{'batch':>8}{'raw rows/s':>14}{'HTTP rows/s':>14}{'ratio':>8}")
    for batch in options.batch:
        found = compare(options.rows, batch, options.repeat, options.devices)
        report["results"].append(found)
        say(f"{batch:>8}{found['raw']:>14,.0f}{found['http']:>14,.0f}{found['ratio']:>8.2f}")
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
