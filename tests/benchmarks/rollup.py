"""What it costs to roll samples up, and how long a month of 10 000 nodes takes to answer.

    python tests/benchmarks/rollup.py [--nodes N] [--days N] [--month] [--queries N] [--folder DIR] [--json FILE]

First a slice, real throughout: so many nodes for so many days at 15 s, written by the service's own storage into SQLite
and then rolled up and deleted by it as fast as it goes, by one thread. From it follow, by the formulas that are
printed, what 10 000 nodes need; that is projected, not measured.

Then, with --month, a database with what 10 000 nodes leave of 30 days, rolled up, and before it the newest 7 days of
100 of them as samples. The rolled-up rows are packed from generated readings by the service's own code; there are 500
different ones of each measure, drawn at random, since it is their number and size that count. `kuayu serve` answers
series of a month at 3600 s from it, one request after another: first after the file was put out of the page cache, each
of another node, then once more.
"""

import argparse
import contextlib
import json
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
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from kuayu.service import instants, maintenance
from kuayu.service.storage import blocks, rollup
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.resources import DOMAIN, NODE, Catalogue, Kind, PutResource, Scope
from kuayu.service.storage.rollup import BLOCK, FINEST, Steps, pack
from kuayu.service.storage.writer import Transaction
from kuayu_schemas.models import Durability

NODES, PERIOD, MONTH = 10_000, 15, 30
"""What is claimed: nodes, seconds between their samples, days."""

DAY = 86_400_000
RAW_NODES, RAW_DAYS = 100, 7
DIFFERENT = 500
TRANSACTION = 10_000
MOST_BYTES = 15e9
"""What the month may take; nothing is written where a trial says that it would be more."""

Figures = dict[str, Any]
Readings = dict[str, Callable[[np.random.Generator, int], npt.NDArray[Any]]]

READINGS: Readings = {
    "matrix_pipe_activity": lambda chance, n: chance.integers(0, 1000, n) / 1000,
    "power": lambda chance, n: np.rint(chance.normal(2800.0, 300.0, n).clip(0) * 1000) / 1000,
    "accelerator_memory_used": lambda chance, n: chance.integers(0, 640_000, n) * 2.0**20,
    "memory_bandwidth_utilisation": lambda chance, n: chance.integers(0, 100, n) / 100,
    "scale_out_transmit_flow": lambda chance, n: chance.integers(0, 10**12, n) / PERIOD,
    "scale_out_receive_flow": lambda chance, n: chance.integers(0, 10**12, n) / PERIOD,
    "accelerator_utilisation": lambda chance, n: chance.integers(0, 100, n) / 100,
    "faults": lambda chance, n: (chance.random(n) < 0.001).astype(float),
}
"""What a node reports, in the resolution of exporters, without any likeness between neighbours in time: shares in
percent or per mille, watts in thousandths, bytes in MiB, and flows that are differences of counters over the period."""

MEASURES = tuple(READINGS)


def the_slice(folder: Path, nodes: int, days: int) -> Figures:
    """Fill, roll up and delete; measure all three."""
    file = folder / "slice.db"
    database = open_database(f"sqlite:///{file}", Durability.process)
    begin = instants.now() // DAY * DAY - days * DAY
    names = [f"n{number}" for number in range(nodes)]
    numbers = register(database, names)
    began = time.perf_counter()
    rows = fill(database, [numbers[name] for name in names], begin, days * DAY)
    filled = time.perf_counter() - began
    raw = size(file, "sample")
    say(f"{rows:,} samples of {nodes} nodes written in {filled:.0f} s, {raw / rows:.0f} bytes each")
    rolling = roll_up(database, begin + days * DAY)
    packed, kept = size(file, "rollup"), entries(file, "rollup")
    say(f"rolled up at {rows / rolling['seconds']:,.0f} rows/s, {packed / rows:.1f} bytes for each sample")
    deleting = forget(database, begin + days * DAY)
    say(f"deleted at {rows / deleting['seconds']:,.0f} rows/s")
    database.close()
    assert entries(file, "sample") == 0
    processor = (rolling["processor_seconds"] + deleting["processor_seconds"]) / rows
    per_day = NODES * DAY / 1000 / PERIOD
    return {
        "nodes": nodes,
        "days": days,
        "samples": rows,
        "bytes_per_sample": round(raw / rows, 1),
        "rolled_bytes_per_sample": round(packed / rows, 2),
        "rolled_bytes_per_row": round(packed / kept, 1),
        "rolled_rows": kept,
        "roll_up": rolling | {"rows_per_second": round(rows / rolling["seconds"])},
        "delete": deleting | {"rows_per_second": round(rows / deleting["seconds"])},
        "projected": {
            "formula": "nodes × 86 400 / period × days × bytes per sample; share = samples/s × processor seconds each",
            "processor_share": round(per_day * processor / 86_400, 4),
            "month_of_samples_bytes": round(per_day * MONTH * raw / rows),
            "month_rolled_up_bytes": round(per_day * MONTH * packed / rows),
        },
    }


def fill(database: Database, numbers: Sequence[int], begin: int, length: int) -> int:
    """Write samples as they come: all nodes at one instant, then all at the next."""
    chance, rows = np.random.default_rng(1), 0
    at_once = max(1, TRANSACTION // len(numbers))
    moments = range(begin, begin + length, PERIOD * 1000)
    for start in range(0, len(moments), at_once):
        some = moments[start : start + at_once]
        n = len(some) * len(numbers)
        table = np.empty((n, 2 + len(MEASURES)), object)
        table[:, 0] = list(numbers) * len(some)
        table[:, 1] = np.repeat(np.array(some, object), len(numbers))
        for place, draw in enumerate(READINGS.values()):
            table[:, 2 + place] = draw(chance, n).tolist()
        with database.write.begin() as connection:
            blocks.write(connection, [Block.of_rows(MEASURES, table.tolist())], begin + length, 1)
        rows += n
    return rows


def roll_up(database: Database, now: int) -> Figures:
    """Roll up all that is older than now, piece by piece."""
    held: list[float] = []
    began, processor = time.perf_counter(), time.process_time()
    while True:
        with database.read.connect() as connection, connection.begin():
            piece = rollup.next_advance(connection, now + rollup.ROLLUP_MARGIN_MILLISECONDS, 0, 400 * DAY)
        if piece is None:
            break
        held.append(apply(database, piece))
    return taken(began, processor, held)


def forget(database: Database, before: int) -> Figures:
    """Delete all samples before an instant, piece by piece."""
    held: list[float] = []
    began, processor, after = time.perf_counter(), time.process_time(), 0
    while True:
        with database.read.connect() as connection:
            subjects = list(connection.execute(maintenance.with_old_samples(before, after)).scalars())
        if not subjects:
            return taken(began, processor, held)
        while subjects:
            since = time.perf_counter()
            with database.write.begin() as connection:
                after = maintenance.ForgetSamples(subjects, before).apply(Transaction(connection, 0)).result
            held.append(time.perf_counter() - since)
            subjects = [number for number in subjects if number > after]


def apply(database: Database, piece: rollup.Advance) -> float:
    """Write a piece; seconds for which it held the writer."""
    since = time.perf_counter()
    with database.write.begin() as connection:
        piece.apply(Transaction(connection, 0))
    return time.perf_counter() - since


def taken(began: float, processor: float, held: Sequence[float]) -> Figures:
    """Figures of what was done piece by piece."""
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "pieces": len(held),
        "writer_held_p99_s": round(float(np.quantile(held, 0.99)), 4),
        "writer_held_longest_s": round(max(held), 4),
    }


def the_month(folder: Path, queries: int, bytes_per_row: float) -> Figures:
    """Fill a month of all nodes, serve it, and ask for it."""
    expected = NODES * MONTH * (DAY // BLOCK) * len(MEASURES) * bytes_per_row
    if expected > MOST_BYTES:
        return {"left_out": f"{expected / 1e9:.0f} GB would be needed"}
    file = folder / "month.db"
    database = open_database(f"sqlite:///{file}", Durability.process)
    rolled_until = (instants.now() - RAW_DAYS * DAY) // DAY * DAY
    names = [f"n{number:05}" for number in range(NODES)]
    numbers = register(database, names)
    began = time.perf_counter()
    rows = fill_rolled(file, [numbers[name] for name in names], rolled_until - MONTH * DAY)
    apply(database, rollup.Advance((), rollup.Frontier(rolled_until, 0, rolled_until - MONTH * DAY)))
    say(f"{rows:,} rolled-up rows written in {time.perf_counter() - began:.0f} s")
    samples = fill(database, [numbers[name] for name in names[:RAW_NODES]], rolled_until, RAW_DAYS * DAY)
    database.close()
    found: Figures = {
        "nodes": NODES,
        "days": MONTH,
        "rolled_rows": rows,
        "rolled_bytes": size(file, "rollup"),
        "samples": samples,
        "file_bytes": file.stat().st_size,
    }
    say(f"{found['rolled_bytes'] / 1e9:.2f} GB rolled up, the file has {found['file_bytes'] / 1e9:.2f} GB")
    rolled, mixed = names[RAW_NODES:], names[:RAW_NODES]
    beginnings = {"rolled up": rolled_until - MONTH * DAY, "newest 7 days as samples": rolled_until - 23 * DAY}
    for what, among in (("rolled up", rolled), ("newest 7 days as samples", mixed)):
        asked = random.Random(2).sample(among, min(queries, len(among)))
        for cache in ("out of the page cache", "again"):
            if cache != "again":
                evict(file)
            with served(file) as url:
                figures = ask(url, asked, beginnings[what])
            say(f"{what}, {cache}: p50 {figures['p50_s'] * 1e3:.1f} ms, p99 {figures['p99_s'] * 1e3:.1f} ms")
            found[f"query, {what}, {cache}"] = figures
    return found


def fill_rolled(file: Path, numbers: Sequence[int], begin: int) -> int:
    """Write what is rolled up of a month, day after day as it would come, which is what decides how full pages are."""
    drawn = random.Random(3)
    different = {measure: packed_readings(measure) for measure in MEASURES}
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA cache_size=-1000000")
    statement = "INSERT INTO rollup (subject_no, measure, start, packed) VALUES (?, ?, ?, ?)"
    for day in range(MONTH):
        starts = range(begin + day * DAY, begin + (day + 1) * DAY, BLOCK)
        connection.execute("BEGIN")
        connection.executemany(
            statement,
            (
                (number, measure, start, drawn.choice(different[measure]))
                for number in numbers
                for measure in sorted(MEASURES)
                for start in starts
            ),
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return len(numbers) * MONTH * len(range(0, DAY, BLOCK)) * len(MEASURES)


def packed_readings(measure: str) -> list[bytes]:
    """Blocks of generated readings, packed as the service packs them; none depends on where its block begins."""
    chance, each = np.random.default_rng(4), FINEST // 1000 // PERIOD
    start = np.arange(0, BLOCK, FINEST, dtype=np.int64)
    packed = []
    for _ in range(DIFFERENT):
        values = READINGS[measure](chance, len(start) * each).reshape(len(start), each)
        count = np.full(len(start), each, np.int64)
        packed.append(pack(Steps(start, count, values.mean(1), values.min(1), values.max(1)), 0))
    return packed


def ask(url: str, names: Sequence[str], since: int) -> Figures:
    """Ask for a month of each node, one after the other."""
    drawn, taken_s, points = random.Random(5), [], 0
    query = {"subject_kind": "node", "step": "3600"}
    query |= {"from": instants.to_text(since), "to": instants.to_text(since + MONTH * DAY)}
    with httpx.Client(base_url=url, timeout=60) as client:
        client.get("/v1/health")
        for name in names:
            began = time.perf_counter()
            answer = client.get("/v1/series", params=query | {"subject": name, "measure": drawn.choice(MEASURES)})
            taken_s.append(time.perf_counter() - began)
            points += len(answer.raise_for_status().json()["points"])
    assert points == len(names) * MONTH * 24
    return {
        "queries": len(names),
        "p50_s": round(statistics.median(taken_s), 5),
        "p99_s": round(float(np.quantile(taken_s, 0.99)), 5),
        "longest_s": round(max(taken_s), 5),
    }


@contextlib.contextmanager
def served(file: Path) -> Iterator[str]:
    """Serve a database in a process of its own; yields the URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = "from kuayu.cli import main; main()"
    options = ["--log-level", "error", "--port", str(port), "--database", f"sqlite:///{file}"]
    process = subprocess.Popen([sys.executable, "-c", program, "serve", *options], stdout=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/v1/health")
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def register(database: Database, names: Sequence[str]) -> dict[str, int]:
    """Register a domain with nodes; numbers of the nodes."""
    catalogue = Catalogue()
    scope = Scope("default", database.epoch, catalogue)
    bodies: list[tuple[Kind, dict[str, Any]]] = [(DOMAIN, {"id": "d"})]
    bodies += [(NODE, {"id": name, "domain": "d"}) for name in names]
    with database.write.begin() as connection:
        transaction = Transaction(connection, 0)
        for kind, body in bodies:
            outcome = PutResource(scope, kind, body["id"], body, None).apply(transaction)
            if outcome.committed is not None:
                outcome.committed()
        transaction.finish()
    return {name: catalogue.of("default")["node", name, None] for name in names}


def evict(file: Path) -> None:
    """Put a file out of the page cache; what is not written back yet stays."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def size(file: Path, table: str) -> int:
    """Bytes of the pages of a table."""
    found: int = _look(file, "SELECT sum(pgsize) FROM dbstat WHERE name = ?", table)
    return found


def entries(file: Path, table: str) -> int:
    """Rows of a table."""
    found: int = _look(file, f"SELECT count(*) FROM {table}")  # noqa: S608 - a name of our own
    return found


def _look(file: Path, query: str, *values: str) -> Any:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return connection.execute(query, values).fetchone()[0]


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S}  {line}\n")
    sys.stdout.flush()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=500, help="nodes of the slice")
    parser.add_argument("--days", type=int, default=2, help="days of the slice")
    parser.add_argument("--month", action="store_true", help="fill and ask for the month too")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where the databases lie meanwhile")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    report: Figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "processors": os.cpu_count(),
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report["slice"] = the_slice(Path(folder), options.nodes, options.days)
        if options.month:
            report["month"] = the_month(Path(folder), options.queries, report["slice"]["rolled_bytes_per_row"])
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
