"""What this host and captured pages of exporters are taken for: nodes that nothing is wrong with.

    PYTHONPATH=tests nice python tests/benchmarks/replay_host.py [--minutes 30] [--load] [--json FILE]

A service in a process of its own is told of this host once a second and, as another node, once in ten, with what
``kuayu collect`` reads; and once a second of each captured page that ships with the suite, for a node of its own and
unchanged, as an exporter shows gauges that stand still. ``--load`` keeps every processor busy in every second minute.
Printed: how often each node was looked at, about once a second, and seen in each state, and why; at the end, how often
each was falsely shown in trouble. The exit status is 1 where one was ever shown degraded, straggling, faulty or offline
without having reported so itself.
"""

import argparse
import json
import multiprocessing
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.resources import files
from multiprocessing.synchronize import Event
from pathlib import Path

import httpx
import psutil
import yaml
from serving import say, serving, sqlite_files

from kuayu.engine.host import Host
from kuayu_conformance.exporters.player import PlayedExporter

WRONG = {"degraded", "straggling", "faulty", "offline"}
REPORTED = "reported as "
"""How reasons begin that repeat what a node itself reported."""

HOST, SELDOM = "host", "host-seldom"
RARELY = 10
"""Seconds between samples of the node that reports seldom."""

MINUTE = 60


def captured() -> dict[str, str]:
    """Captured pages by exporter."""
    folder = files("kuayu_conformance.exporters") / "captures"
    rows = yaml.safe_load((folder / "provenance.yaml").read_text("utf-8"))["captures"]
    return {row["exporter"]: (folder / row["file"]).read_text("utf-8") for row in rows}


def register(client: httpx.Client, host: Host, pages: dict[str, str]) -> None:
    """Register a domain with all nodes."""
    client.put("/v1/domains/here", json={"id": "here"}).raise_for_status()
    for name in (HOST, SELDOM):
        client.put(f"/v1/nodes/{name}", content=host.node(name, "here").model_dump_json(exclude_none=True),
                   headers={"Content-Type": "application/json"}).raise_for_status()  # fmt: skip
    for name in pages:
        devices = [
            {"id": each, "kind": "gpu", "vendor": "captured", "model": name}
            for each in PlayedExporter(name, random.Random(1)).devices
        ]
        client.put(f"/v1/nodes/{name}", json={"id": name, "domain": "here", "devices": devices}).raise_for_status()


def send(client: httpx.Client, hosts: dict[str, Host], pages: dict[str, str], *, seldom: bool) -> None:
    """Send what is due; of the node that reports seldom too, where it is its turn."""
    for name, host in hosts.items():
        if name == HOST or seldom:
            samples = [json.loads(each.model_dump_json(exclude_none=True)) for each in host.samples(name)]
            client.post("/v1/samples", json={"mode": "per_item", "samples": samples}).raise_for_status()
    for name, page in pages.items():
        client.post("/v1/expositions", params={"node": name, "exporter": name}, content=page.encode(),
                    headers={"Content-Type": "text/plain; version=0.0.4"}).raise_for_status()  # fmt: skip


@contextmanager
def burners() -> Iterator[Event]:
    """Processes that keep every processor busy while the event is set."""
    context = multiprocessing.get_context("spawn")
    burning = context.Event()
    processes = [context.Process(target=burn, args=(burning,), daemon=True) for _ in range(psutil.cpu_count() or 1)]
    for each in processes:
        each.start()
    try:
        yield burning
    finally:
        for each in processes:
            each.terminate()


def burn(burning: Event) -> None:
    """Compute while the event is set, and wait otherwise."""
    while burning.wait():
        sum(number * number for number in range(100_000))


def watch(url: str, seconds: int, *, load: bool) -> tuple[dict[str, Counter[tuple[str, str]]], list[float]]:
    """How often each node was seen in each state, with the reason, and the load of this host, over so many seconds."""
    loads: list[float] = []
    turns = -1
    found: dict[str, Counter[tuple[str, str]]] = {}
    hosts, pages = {HOST: Host.local(), SELDOM: Host.local()}, captured()
    with httpx.Client(base_url=url, timeout=30) as client, burners() as burning:
        register(client, hosts[HOST], pages)
        began = time.monotonic()
        while (second := int(time.monotonic() - began)) < seconds:
            if load and second // MINUTE % 2:
                burning.set()
            else:
                burning.clear()
            turn = second // RARELY  # counted, for on a busy machine whole seconds are passed over
            send(client, hosts, pages, seldom=turn > turns)
            turns = turn
            loads.append(psutil.getloadavg()[0])
            for row in client.get("/v1/graph").raise_for_status().json()["nodes"]:
                found.setdefault(row["id"], Counter())[row["state"], row.get("because", "")] += 1
            with suppress(ValueError):
                time.sleep(began + second + 1 - time.monotonic())
    return found, loads


def false_states(found: dict[str, Counter[tuple[str, str]]]) -> dict[str, int]:
    """How often each node was seen in trouble without having reported so itself; nodes that never were are left out."""
    false: Counter[str] = Counter()
    for name, shown in found.items():
        for (state, reason), seen in shown.items():
            if state in WRONG and not reason.startswith(REPORTED):
                false[name] += seen
    return dict(false)


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seconds", type=int, help="in place of --minutes")
    parser.add_argument("--load", action="store_true", help="keep all processors busy in every second minute")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else the service and what keeps processors busy go on
    seconds = round(asked.minutes * MINUTE) if asked.seconds is None else asked.seconds
    with sqlite_files() as new, serving(new()) as url:
        found, loads = watch(url, seconds, load=asked.load)
    wrongly = {name: false_states(found).get(name, 0) for name in sorted(found)}
    false = sum(wrongly.values())
    seen_as: dict[str, dict[str, int]] = {}
    for name, shown in sorted(found.items()):
        for (state, reason), seen in shown.most_common():
            wrong = state in WRONG and not reason.startswith(REPORTED)
            seen_as.setdefault(name, {})[f"{state}: {reason}" if reason else state] = seen
            say(f"{name:24}{state:12}{seen:6d}  {reason}{'   <- false' if wrong else ''}")
    for name, seen in wrongly.items():
        say(f"{name:24}{seen:6d} false")
    say(f"{false} false states seen of {len(wrongly)} nodes in {seconds} s, at a load of {statistics.fmean(loads):.1f}")
    if asked.json:
        machine = {
            "processors": psutil.cpu_count(),
            "mean load over a minute": round(statistics.fmean(loads), 1),
            "least": round(min(loads), 1),
            "greatest": round(max(loads), 1),
        }
        request = {"seconds": seconds, "load": asked.load, "date": datetime.now(UTC).date().isoformat()}
        figures = {"false states seen": false, "false states by node": wrongly, "seen, about once a second": seen_as}
        asked.json.write_text(json.dumps({"figures": figures, "machine": machine, "request": request}, indent=1) + "\n")
    sys.exit(1 if false else 0)


if __name__ == "__main__":
    main()
