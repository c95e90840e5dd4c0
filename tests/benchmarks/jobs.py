"""How fast jobs are taken in durably, and how fast a queue of them is placed and started through eight domains.

    python tests/benchmarks/jobs.py [--database sqlite|postgresql|both] [--queued N] [--dispatched N] [--seconds S]
                                    [--durability D] [--connections N] [--seed N] [--json FILE]

`kuayu serve` in one process, clients in another. *Submissions*: eight domains are registered that ask for nothing yet;
jobs of one to eight devices are put on 32 connections, each acknowledged before the next, until N are queued; all are
counted afterwards. *Dispatches*: then the domains ask, reserve, start what they are told to, report that it runs (from
then on a job counts as dispatched) and at once that it has succeeded, until so many were dispatched or the time is
over. No job may be started twice. The share of deciding is the time that passes of the control loop spent in it, from
`kuayu_job_pass_seconds`, of the time from the first question of a domain to the last dispatch; processors' time is that
of the service and its workers. Beside other work rates say little: the load is kept with them.

Peers, by their own words: MultiKueue 1.3 jobs/s across clusters; in one cluster Kueue 42 jobs/s, Gödel 1 000 pods/s.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvloop
from serving import DATABASES, Service, databases, say, service

DOMAINS = tuple(f"d{number}" for number in range(8))
NODES = 16
DEVICES = 8
POSTS_PER_DOMAIN = 8
"""Connections on which a domain answers."""

GRANTED = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
PASS_SECONDS = re.compile(r'^kuayu_job_pass_seconds_(sum|count)\{part="(\w+)"\} (\S+)$', re.MULTILINE)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Submissions:
    """Jobs that were acknowledged.

    Attributes:
        jobs: How many.
        rate: In a second.
        processor: Milliseconds of processors for one, of the service.
        worst: Longest time until one was acknowledged, in seconds.
    """

    jobs: int
    rate: float
    processor: float
    worst: float


@dataclass(frozen=True, slots=True)
class Dispatches:
    """Jobs that were placed and started.

    Attributes:
        jobs: How many.
        rate: In a second, from the domains' first question to the last of them.
        later: The same of their second half.
        processor: Milliseconds of processors for one, of the service.
        passes: Of the control loop.
        shares: Parts of a pass, of all the time.
    """

    jobs: int
    rate: float
    later: float
    processor: float
    passes: int
    shares: dict[str, float]


@dataclass(slots=True)
class Started:
    """What the domains have done.

    Attributes:
        began: When they first asked, on a steady clock.
        at: When each job was dispatched.
        starts: How often each was started.
    """

    began: float = 0.0
    at: list[float] = field(default_factory=list)
    starts: Counter[str] = field(default_factory=Counter)


class Connection:
    """A connection of HTTP that persists, without what costs the client's time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, Any]:
        """Status and body of an answer."""
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        kept = self._streams is not None
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            if not kept:
                raise
            self.close()  # the service closes connections that are idle
            return await self.ask(method, path, body)
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(answer[9:12]), json.loads(await reader.readexactly(length))

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def jobs_of(count: int, seed: int) -> list[Json]:
    """Jobs of unlike sizes, priorities and lengths."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        devices = chance.choices((1, 2, 4, 8), (8, 4, 2, 1))[0]
        expected = chance.choice((300.0, 900.0, 3600.0))
        found.append(
            {
                "id": f"job-{number}",
                "workload": {"command": ["python", "train.py"]},
                "devices": {"minimum": devices, "maximum": devices},
                "duration": {"expected": expected, "low": expected / 2, "high": expected * 2, "coverage": 0.8},
                "priority": chance.choice((0, 0, 0, 5)),
            }
        )
    return found


def submit_all(port: int, jobs: list[Json], connections: int) -> tuple[float, float]:
    """Submit jobs, each connection one after the other; seconds in all, and the longest of one."""

    async def submit(queue: "list[Json]", slowest: list[float]) -> None:
        connection = Connection(port)
        while queue:
            job, began = queue.pop(), time.perf_counter()
            status, answer = await connection.ask("PUT", f"/v1/jobs/{job['id']}", job)
            if status != httpx.codes.CREATED:
                raise SystemExit(f"refused: {answer}")
            slowest[0] = max(slowest[0], time.perf_counter() - began)
        connection.close()

    async def run() -> tuple[float, float]:
        queue, slowest, began = jobs[::-1], [0.0], time.perf_counter()
        await asyncio.gather(*(submit(queue, slowest) for _ in range(connections)))
        return time.perf_counter() - began, slowest[0]

    return uvloop.run(run())


def play_domains(port: int, wanted: int, seconds: float) -> Started:
    """Play the domains until so many jobs were dispatched or the time is over."""
    started = Started()

    async def run() -> None:
        over = asyncio.Event()
        started.began = time.perf_counter()
        playing = [asyncio.create_task(_play(name, port, started, wanted, over)) for name in DOMAINS]
        done, _ = await asyncio.wait(
            [asyncio.create_task(over.wait()), *playing], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        for task in done:
            task.result()

    uvloop.run(run())
    return started


async def _play(domain: str, port: int, started: Started, wanted: int, over: asyncio.Event) -> None:
    """A domain that asks, and answers on some connections at once."""
    asking = Connection(port)
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(POSTS_PER_DOMAIN):
        free.put_nowait(Connection(port))
    in_hand: dict[str, asyncio.Task[None]] = {}

    async def carry_out(action: Json) -> None:
        connection = await free.get()
        try:
            await _carry_out(connection, domain, action, started)
        finally:
            free.put_nowait(connection)
        if len(started.at) >= wanted:
            over.set()

    while True:
        status, answer = await asking.ask("GET", f"/v1/actions?domain={domain}&wait=5")
        if status != httpx.codes.OK:
            raise SystemExit(f"refused: {answer}")
        for action in answer["items"]:
            if action["id"] + action["phase"] not in in_hand:
                in_hand[action["id"] + action["phase"]] = asyncio.create_task(carry_out(action))
        # Answers are asked for once some are given: else the same would be read again and again.
        running = [task for task in in_hand.values() if not task.done()]
        if running:
            await asyncio.wait(running)
        for task in in_hand.values():
            task.result()
        in_hand.clear()


async def _carry_out(connection: Connection, domain: str, action: Json, started: Started) -> None:
    result: Json = {
        "action": action["id"],
        "phase": action["phase"],
        "outcome": GRANTED[action["phase"]],
        "at": _instant(),
    }
    if action["phase"] == "prepare":
        result |= {"expires_at": _instant(60), "nodes": action["nodes"]}
    status, answer = await connection.ask("POST", "/v1/action-results", result)
    if status != httpx.codes.OK:
        raise SystemExit(f"refused: {answer}")
    if action["kind"] != "start":
        return
    started.starts[action["job"]] += 1
    for state in ("running", "succeeded"):
        report = {"job": action["job"], "attempt": action["run"]["attempt"], "domain": domain, "state": state}
        status, answer = await connection.ask("POST", "/v1/run-reports", {**report, "at": _instant()})
        if status != httpx.codes.OK:
            raise SystemExit(f"refused: {answer}")
        if state == "running":
            started.at.append(time.perf_counter())


def _instant(seconds: float = 0.0) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def register(url: str) -> None:
    """Register the domains and their nodes."""
    with httpx.Client(base_url=url) as client:
        devices = [{"id": str(n), "kind": "gpu", "vendor": "Example", "model": "Example"} for n in range(DEVICES)]
        for domain in DOMAINS:
            client.put(f"/v1/domains/{domain}", json={"id": domain}).raise_for_status()
            for number in range(NODES):
                name = f"{domain}-n{number}"
                node = {"id": name, "domain": domain, "devices": devices}
                client.put(f"/v1/nodes/{name}", json=node).raise_for_status()


def waiting(url: str) -> int:
    """How many jobs are queued, as the listing says."""
    with httpx.Client(base_url=url) as client:
        count, query = 0, {"limit": "1000"}
        while True:
            page = client.get("/v1/jobs", params=query).raise_for_status().json()
            count += sum(item["state"] == "queued" for item in page["items"])
            if "next_cursor" not in page:
                return count
            query["cursor"] = page["next_cursor"]


def pass_seconds(url: str) -> tuple[Counter[str], int]:
    """Seconds of the parts of passes so far, and how many were made."""
    found = PASS_SECONDS.findall(httpx.get(f"{url}/metrics").raise_for_status().text)
    sums = Counter({part: float(value) for what, part, value in found if what == "sum"})
    return sums, max((int(float(value)) for what, _, value in found if what == "count"), default=0)


def await_decisions(url: str) -> None:
    """Wait until the process is there that decides: to start it takes seconds, and is no part of a dispatch."""
    while "decide" not in pass_seconds(url)[0]:
        time.sleep(0.1)


def measure(served: Service, options: argparse.Namespace) -> tuple[Submissions, Dispatches]:
    """Submit jobs to a service, and have them dispatched."""
    port = int(served.url.rpartition(":")[2])
    register(served.url)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        before = served.processor_seconds()
        jobs = jobs_of(options.queued, options.seed)
        seconds, worst = pool.apply(submit_all, (port, jobs, options.connections))
        processor = (served.processor_seconds() - before) / len(jobs) * 1000
        submissions = Submissions(len(jobs), round(len(jobs) / seconds, 1), round(processor, 2), round(worst, 3))
        if (queued := waiting(served.url)) != len(jobs):
            raise SystemExit(f"{queued} jobs are queued, {len(jobs)} were acknowledged")
        await_decisions(served.url)
        before, (parts, passes) = served.processor_seconds(), pass_seconds(served.url)
        wanted = min(options.dispatched, options.queued)
        started: Started = pool.apply(play_domains, (port, wanted, options.seconds))
        processor = served.processor_seconds() - before
        parts_after, passes_after = pass_seconds(served.url)
    if any(count > 1 for count in started.starts.values()):
        raise SystemExit("a job was started twice")
    if not started.at:
        raise SystemExit("no job was dispatched")
    last, middle = started.at[-1], started.at[len(started.at) // 2]
    elapsed = last - started.began
    later = (len(started.at) - len(started.at) // 2 - 1) / (last - middle) if last > middle else 0.0
    return submissions, Dispatches(
        len(started.at),
        round(len(started.at) / elapsed, 1),
        round(later, 1),
        round(processor / len(started.at) * 1000, 2),
        passes_after - passes,
        {part: round(seconds / elapsed, 3) for part, seconds in sorted((parts_after - parts).items())},
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--queued", type=int, default=2_000, help="jobs that are queued; 50 000 is what peers are at")
    parser.add_argument("--dispatched", type=int, default=1_000, help="jobs after which dispatching ends")
    parser.add_argument("--seconds", type=float, default=40.0, help="after which it ends in any case")
    parser.add_argument("--durability", choices=["process", "host"], default="host")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for kind in DATABASES if options.database == "both" else (options.database,):
        with databases(kind) as new, service(new(), options=("--durability", options.durability)) as served:
            load = os.getloadavg()[0]
            submissions, dispatches = measure(served, options)
        say(
            f"{kind:11} {submissions.rate:7.1f} submissions/s ({submissions.processor:.2f} ms of processors each, "
            f"the longest {submissions.worst:.2f} s), {options.queued} queued, durability {options.durability}"
        )
        shares = ", ".join(f"{part} {share:.0%}" for part, share in dispatches.shares.items())
        say(
            f"{kind:11} {dispatches.rate:7.1f} dispatches/s ({dispatches.later:.1f} in the second half, "
            f"{dispatches.processor:.2f} ms of processors each) of {dispatches.jobs}, {dispatches.passes} passes: "
            f"{shares} of the time; load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
        )
        results.append(
            {
                "database": kind,
                "load": [round(load, 2), round(os.getloadavg()[0], 2)],
                "submissions": asdict(submissions),
                "dispatches": asdict(dispatches),
            }
        )
    if options.json is not None:
        given = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
        figures = {"options": given, "processors": os.cpu_count(), "aims": {"submissions": 500, "dispatches": 100}}
        options.json.write_text(json.dumps({**figures, "results": results}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
