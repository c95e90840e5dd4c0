"""What the resource graph costs and how soon it shows a change, while all nodes report once a second.

    python tests/benchmarks/graph.py [--scale DOMAINSxNODES …] [--seconds N] [--seed N] [--json FILE]

`kuayu serve` runs in one process on a file of SQLite, aggregators in another: one for each domain, which sends the
samples of all nodes of its domain once a second over a connection of its own. A third reads the stream. Ten times a
second the health of one node is reported anew; the delay is from sending that until the stream shows the node's new
state. CPU is user and system time of the service and its workers over the time measured, 1 being one core. Times of
ticks and of recognition are read off the service's own histograms, as straight lines between their limits.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil

from kuayu.client.connection import read_events
from kuayu.service import instants

WARM_UP = 15
"""Seconds before anything is measured."""

CHANGES_PER_SECOND = 10
DEVICES = 8
SNAPSHOTS = 10

REPORTED = ("matrix_pipe_activity", "memory_bandwidth_utilisation", "accelerator_utilisation")
MEMBERS = {
    "power": 3000.0,
    "accelerator_memory_used": 4e11,
    "scale_out_transmit_flow": 2e10,
    "scale_out_receive_flow": 2e10,
    "storage_read_flow": 1e8,
    "faults": 0.0,
    "allocatable_share": 0.0,
}


def node(number: int) -> str:
    """Name of a node."""
    return f"node-{number:05}"


def register(url: str, domains: int, nodes: int) -> None:
    """Register domains, nodes and families of eight nodes, on several connections."""
    with httpx.Client(base_url=url) as client:
        for number in range(domains):
            place = {"latitude": 20 + number % 25, "longitude": 80 + number % 40}
            client.put(f"/v1/domains/d{number}", json={"id": f"d{number}", "location": place}).raise_for_status()
        for number in range(0, nodes, 8):
            urn = f"urn:kuayu:family:bench:{number}"
            members = [f"urn:kuayu:node:bench:{each}" for each in range(number, min(number + 8, nodes))]
            client.put(f"/v1/compute-identifiers/{urn}", json={"urn": urn, "members": members}).raise_for_status()

    async def register_nodes() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:

            async def one(number: int) -> None:
                devices = [
                    {"id": str(each), "kind": "gpu", "vendor": "Example", "model": "Example"} for each in range(DEVICES)
                ]
                urn = f"urn:kuayu:node:bench:{number}"
                body = {"id": node(number), "domain": f"d{number % domains}", "devices": devices}
                answer = await client.put(f"/v1/nodes/{node(number)}", json=body | {"compute_identifier": urn})
                answer.raise_for_status()

            for start in range(0, nodes, 32):
                await asyncio.gather(*(one(number) for number in range(start, min(start + 32, nodes))))

    asyncio.run(register_nodes())


def report(port: int, domains: int, nodes: int, seed: int, stopped: Event) -> None:
    """Be the aggregators of all domains until told to stop."""
    chance = random.Random(seed)

    def batch(domain: int) -> bytes:
        at = instants.to_text(instants.now())
        samples: list[dict[str, Any]] = [
            {"subject": node(number), "subject_kind": "node", "observed_at": at}
            | MEMBERS
            | {name: round(0.8 + chance.random() / 10, 4) for name in REPORTED}
            for number in range(domain, nodes, domains)
        ]
        return orjson.dumps({"mode": "per_item", "samples": samples})

    async def aggregator(domain: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(chance.random())
        due = time.monotonic()
        while not stopped.is_set():
            body = batch(domain)
            head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(b"POST /v1/samples HTTP/1.1\r\n" + head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", answer)[1])  # type: ignore[index]
            result = orjson.loads(await reader.readexactly(length))
            if result["rejected"]:
                raise SystemExit(f"samples were rejected: {result['rejected'][0]}")
            due += 1.0
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(aggregator(domain) for domain in range(domains)))

    asyncio.run(all_of_them())


class Watch:
    """Reads the stream and notes when each node was shown in which state."""

    def __init__(self, url: str) -> None:
        self.seen: dict[tuple[str, str], float] = {}
        self.bytes = 0
        self.events = 0
        self._url = url
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with httpx.stream("GET", f"{self._url}/v1/graph/events", timeout=None) as response:  # noqa: S113 - a stream
            for event in read_events(self._counted(response.iter_raw())):
                now = time.monotonic()
                self.events += 1
                for vertex in orjson.loads(event.data)["nodes"]:
                    self.seen.setdefault((vertex["id"], vertex["state"]), now)

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.bytes += len(chunk)
            yield chunk


def delays(url: str, watch: Watch, nodes: int, seconds: int, seed: int) -> list[float]:
    """Seconds from reporting the health of a node until the stream shows it; infinite where it never does."""
    chance = random.Random(seed)
    chosen = chance.sample(range(nodes), min(nodes, seconds * CHANGES_PER_SECOND))
    sent: dict[str, float] = {}
    with httpx.Client(base_url=url, timeout=60) as client:
        due = time.monotonic()
        for number in chosen:
            time.sleep(max(0.0, due - time.monotonic()))
            due += chance.expovariate(CHANGES_PER_SECOND)
            sample = {"subject": node(number), "subject_kind": "node", "observed_at": instants.to_text(instants.now())}
            body = {"mode": "per_item", "samples": [sample | {"health_state": "faulty"}]}
            sent[node(number)] = time.monotonic()
            client.post("/v1/samples", json=body).raise_for_status()
    time.sleep(10)
    return [watch.seen.get((name, "faulty"), float("inf")) - at for name, at in sent.items()]


def snapshots(url: str) -> tuple[float, int, float]:
    """Seconds of a whole snapshot (median), its bytes, and seconds of one of domains."""
    with httpx.Client(base_url=url, timeout=60) as client:

        def timed(**query: str) -> tuple[float, int]:
            began = time.monotonic()
            answer = client.get("/v1/graph", params=query).raise_for_status()
            return time.monotonic() - began, len(answer.content)

        whole = []
        for _ in range(SNAPSHOTS):
            time.sleep(0.5)  # for the graph to have changed
            whole.append(timed())
        narrow = [timed(detail="domains")[0] for _ in range(SNAPSHOTS)]
    return statistics.median(seconds for seconds, _ in whole), whole[-1][1], statistics.median(narrow)


def histogram(page: str, name: str) -> dict[float, float]:
    """Cumulative counts of a histogram by upper limit."""
    found = re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\S+)$', page, re.MULTILINE)
    return {float(limit): float(count) for limit, count in found}


def quantile(before: Mapping[float, float], after: Mapping[float, float], share: float) -> float:
    """Quantile of what was counted in between; infinite beyond the last limit."""
    counts = {limit: after[limit] - before.get(limit, 0.0) for limit in after}
    wanted, lower, below = share * max(counts.values()), 0.0, 0.0
    for limit, count in sorted(counts.items()):
        if count >= wanted:
            return lower + (limit - lower) * (wanted - below) / (count - below) if count > below else lower
        lower, below = limit, count
    return float("inf")


@contextmanager
def serving(file: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The service in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from kuayu.cli import main; main()"
    options = ("serve", "--port", str(port), "--database", f"sqlite:///{file}", "--log-level", "warning")
    with subprocess.Popen((sys.executable, "-c", code, *options), stdout=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx.get(f"{url}/v1/health").raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.1)
        try:
            yield url, psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def spent(process: psutil.Process) -> float:
    """CPU seconds of a process and its children."""
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True)))


def measure(domains: int, nodes: int, seconds: int, seed: int) -> dict[str, Any]:
    """All figures at one scale."""
    context = multiprocessing.get_context("spawn")
    stopped = context.Event()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "graph.db") as (url, process):
        began = time.monotonic()
        register(url, domains, nodes)
        registered = time.monotonic() - began
        arguments = (int(url.rpartition(":")[2]), domains, nodes, seed, stopped)
        aggregators = context.Process(target=report, args=arguments)
        aggregators.start()
        time.sleep(WARM_UP)
        watch = Watch(url)
        time.sleep(1)
        page, cpu, began = httpx.get(f"{url}/metrics").text, spent(process), time.monotonic()
        taken, events = watch.bytes, watch.events
        waited = sorted(delays(url, watch, nodes, seconds, seed))
        length = time.monotonic() - began
        after, cpu = httpx.get(f"{url}/metrics").text, (spent(process) - cpu) / length
        stream, events = (watch.bytes - taken) / length, watch.events - events
        whole, size, narrow = snapshots(url)
        memory = process.memory_info().rss
        graph = httpx.get(f"{url}/v1/graph", params={"detail": "domains"}).json()
        stopped.set()
        aggregators.join(30)
    tick, recognition = ("kuayu_graph_tick_seconds", "kuayu_graph_recognition_seconds")
    counts = [domain["nodes"] for domain in graph["domains"]]
    return {
        "domains": domains,
        "nodes": nodes,
        "seconds": round(length, 1),
        "registration_s": round(registered, 1),
        "states": {state: sum(each[state] for each in counts) for state in counts[0]},
        "changes": len(waited),
        "delay_p50_s": round(waited[len(waited) // 2], 3),
        "delay_p99_s": round(waited[min(len(waited) - 1, int(0.99 * len(waited)))], 3),
        "delay_worst_s": round(waited[-1], 3),
        **{
            f"{name}_p{round(100 * share)}_s": round(quantile(histogram(page, each), histogram(after, each), share), 4)
            for name, each in (("tick", tick), ("recognition", recognition))
            for share in (0.5, 0.99)
        },
        "cpu_cores": round(cpu, 3),
        "rss_mib": round(memory / 2**20),
        "stream_kib_per_s": round(stream / 1024, 1),
        "events_per_s": round(events / length, 2),
        "snapshot_s": round(whole, 4),
        "snapshot_mib": round(size / 2**20, 2),
        "snapshot_of_domains_s": round(narrow, 4),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", nargs="+", default=["5x1000", "64x10000"], help="domains x nodes in all of them")
    parser.add_argument("--seconds", type=int, default=40, help="how long changes are reported")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    report: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "seed": options.seed,
        "results": [],
    }
    for scale in options.scale:
        domains, nodes = map(int, scale.split("x"))
        found = measure(domains, nodes, options.seconds, options.seed)
        report["results"].append(found | {"load": os.getloadavg()[0]})
        sys.stdout.write("\n".join(f"{name:24}{value}" for name, value in report["results"][-1].items()) + "\n\n")
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
