"""An outage between an aggregator and its service, with kill -9 of either: is every acknowledged sample held once?

    PYTHONPATH=tests python tests/benchmarks/outage.py [--seconds S] [--rate N] [--nodes N] [--kills N] [--seed N]
        [--json FILE] [--folder DIR]

`kuayu serve` on SQLite and `kuayu agent` run in processes of their own. Nodes send small batches to the agent, each
under a key until it is acknowledged, and keep a ledger. After a calm beginning the service is killed with SIGKILL and
stays away for the outage, in which the agent is killed and restarted at random instants. When the service is back, both
are killed in turn while the backlog is handed over. At the end every sample is read back from the service and held
against the ledger. The catch-up time goes from the first answer of the service after the outage until nothing in the
spool is older than a few seconds; the kills and restarts of both sides lie within it. The exit status is 1 unless each
acknowledged sample is held exactly once and nothing else is.
"""

import argparse
import json
import os
import platform
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
from engine.agent_process import AgentProcess
from engine.ledger import Comparison, Sender, compare
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from service.conftest import Service

CALM_S = 5.0
"""Seconds before the outage, and at least as many after it."""
BATCH = 10
FRESH_S = 5.0
"""Age of the oldest spooled sample from which the agent counts as having caught up."""
PATIENCE_S = 1800.0
WATCH_S = 0.25

console = Console(highlight=False, soft_wrap=True)


@dataclass(slots=True)
class Cost:
    """What the agent took of the host, over all its lives.

    Attributes:
        processor_s: Seconds of processor time, by life; what a life took in its last quarter of a second is missing.
        starting_s: Seconds of them until it answered for the first time, by life.
        resident_bytes: Most resident memory.
        spooled_samples: Most samples in the spool.
        spool_bytes: Largest size of the spool's files.
    """

    processor_s: dict[int, float] = field(default_factory=dict)
    starting_s: dict[int, float] = field(default_factory=dict)
    resident_bytes: int = 0
    spooled_samples: int = 0
    spool_bytes: int = 0


class Watch:
    """Reads the agent's cost again and again, in a thread of its own."""

    def __init__(self, agent: AgentProcess, spool: Path) -> None:
        self.cost = Cost()
        self._agent, self._spool = agent, spool
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.started()

    def started(self) -> None:
        """The agent has just begun to answer."""
        assert self._agent.process is not None
        times = psutil.Process(self._agent.process.pid).cpu_times()
        self.cost.starting_s[self._agent.process.pid] = times.user + times.system

    def stop(self) -> Cost:
        """The cost in the end."""
        self._stopping.set()
        self._thread.join()
        return self.cost

    def _run(self) -> None:
        while not self._stopping.wait(WATCH_S):
            running = self._agent.process
            if running is None:
                continue
            try:
                process = psutil.Process(running.pid)
                times, memory = process.cpu_times(), process.memory_info()
            except psutil.Error:
                continue
            self.cost.processor_s[running.pid] = times.user + times.system
            self.cost.resident_bytes = max(self.cost.resident_bytes, memory.rss)
            sizes = (file.stat().st_size for file in self._spool.parent.glob(self._spool.name + "*"))
            self.cost.spool_bytes = max(self.cost.spool_bytes, sum(sizes))


class Experiment:
    """The processes and what was done to them."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(options.seed)
        self.service = Service(f"sqlite:///{folder / 'kuayu.db'}", spawns=True)
        self.spool = folder / "spool.db"
        self.agent = AgentProcess(self.service.url, self.spool)
        period = options.nodes / options.rate
        names = (f"node-{number}" for number in range(options.nodes))
        self.senders = [Sender(self.agent.url, name, period, BATCH) for name in names]
        self.kills: Counter[str] = Counter()
        self.received = 0.0

    def start(self) -> None:
        """Start the processes and the nodes."""
        self.service.start()
        self.agent.start()
        self.watch = Watch(self.agent, self.spool)
        for sender in self.senders:
            self.service.register(sender.node)
            sender.start()

    def close(self) -> None:
        """End all processes."""
        self.agent.close()
        self.service.client.close()
        if self.service.process is not None and self.service.process.poll() is None:
            self.service.stop()

    def kill_agent(self) -> None:
        """Kill the agent and start it again."""
        self.agent.stop(signal.SIGKILL)
        self.kills["agent"] += 1
        self.agent.start()
        self.watch.started()

    def kill_service(self) -> None:
        """Kill the service and start it again."""
        self.service.stop(signal.SIGKILL)
        self.kills["service"] += 1
        self.service.start()

    def acknowledged(self) -> int:
        """Samples in the ledgers."""
        return sum(len(sender.acknowledged) for sender in self.senders)

    def outage(self, show: "Show") -> None:
        """The service is away; the agent dies at random instants."""
        self.service.stop(signal.SIGKILL)
        self.kills["service"] += 1
        began = time.monotonic()
        ends = began + self.options.seconds
        margin = 0.1 * self.options.seconds
        instants = sorted(self.chance.uniform(began + margin, ends - margin) for _ in range(self.options.kills))
        while (now := time.monotonic()) < ends:
            if instants and now >= instants[0]:
                instants.pop(0)
                self.kill_agent()
            show(f"outage, {self.acknowledged():,} acknowledged", (now - began) / self.options.seconds)
            time.sleep(min(0.5, max(0.0, ends - time.monotonic())))
        self.watch.cost.spooled_samples = round(self.agent.figures()["spooled_samples"])

    def catch_up(self, show: "Show") -> float:
        """The service is back, and both sides die in turn; seconds until the backlog is gone."""
        self.service.start()
        began, backlog = time.monotonic(), max(1, self.watch.cost.spooled_samples)
        for _ in range(self.options.kills):
            time.sleep(self.chance.uniform(0.1, 2.0))
            self.kill_agent()
            time.sleep(self.chance.uniform(0.1, 2.0))
            self.kill_service()
        while time.monotonic() - began < PATIENCE_S:
            figures = self.agent.figures()
            waiting = figures["spooled_samples"]
            show(f"catching up, {waiting:,.0f} wait", max(0.0, 1 - waiting / backlog))
            if figures["up"] and figures["oldest_seconds"] < FRESH_S and waiting < self.options.rate * FRESH_S:
                return time.monotonic() - began
            time.sleep(0.2)
        raise SystemExit("the agent did not catch up")

    def end(self) -> Comparison:
        """Stop the nodes, wait until the spool is empty, read everything back."""
        for sender in self.senders:
            sender.stop()
        deadline = time.monotonic() + PATIENCE_S
        while self.agent.figures()["spooled_samples"]:
            if time.monotonic() > deadline:
                raise SystemExit("the spool did not become empty")
            time.sleep(0.1)
        return compare(self.senders, self.service.client)


class Show:
    """A bar on the terminal; elsewhere a line now and then."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("", total=1.0)
        self._said = float("-inf")

    def __call__(self, words: str, share: float) -> None:
        """Say how far it is."""
        self._bar.update(self._task, description=words, completed=share)
        if not console.is_terminal and time.monotonic() - self._said > 30:
            self._said = time.monotonic()
            console.print(f"{datetime.now(UTC):%H:%M:%S}Z {words}")


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Do the experiment; its figures."""
    experiment = Experiment(folder, options)
    columns = (TextColumn("[bold]outage[/]"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            show = Show(bar)
            began = time.monotonic()
            experiment.start()
            show("calm", 0.0)
            time.sleep(CALM_S)
            experiment.outage(show)
            caught_up = experiment.catch_up(show)
            time.sleep(CALM_S)
            show("reading back", 1.0)
            found = experiment.end()
            lasted = time.monotonic() - began
        cost = experiment.watch.stop()
    finally:
        experiment.close()
    starting = sum(cost.starting_s.values())
    processor = max(0.0, sum(cost.processor_s.values()) - starting)
    failures = sum((sender.failures for sender in experiment.senders), Counter[str]())
    return {
        "ledger": asdict(found) | {"exact": found.exact},
        "kills": dict(experiment.kills),
        "attempts_not_acknowledged": dict(failures),
        "seconds": round(lasted, 1),
        "catch_up_s": round(caught_up, 1),
        "backlog_samples": cost.spooled_samples,
        "agent": {
            "processor_s": round(processor, 1),
            "start_processor_s": round(starting / len(cost.starting_s), 2),
            "processor_us_per_sample": round(1e6 * processor / max(1, found.acknowledged), 1),
            "processor_share": round(processor / lasted, 4),
            "resident_mib": round(cost.resident_bytes / 2**20, 1),
            "spool_mib": round(cost.spool_bytes / 2**20, 1),
        },
    }


def main() -> None:
    """Measure, print, and fail unless the ledger is right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="length of the outage")
    parser.add_argument("--rate", type=float, default=500.0, help="samples in a second, all nodes together")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--kills", type=int, default=4, help="kills of the agent in the outage, and of each side after")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--folder", type=Path, help="where database, spool and logs are kept; a temporary one else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        figures = run(options, folder)
    report: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "processors": os.cpu_count(),
        "options": {name: getattr(options, name) for name in ("seconds", "rate", "nodes", "kills", "seed")},
        **figures,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    ledger, agent = report["ledger"], report["agent"]
    console.print(
        f"ledger    {ledger['acknowledged']:,} acknowledged, {ledger['held']:,} held,"
        f" {ledger['lost']} lost, {ledger['altered']} altered, {ledger['doubled']} doubled\n"
        f"outage    {options.seconds:.0f} s, {report['backlog_samples']:,} samples waited at its end;"
        f" kills: agent {report['kills']['agent']}, service {report['kills']['service']}\n"
        f"catch-up  {report['catch_up_s']} s\n"
        f"agent     {agent['processor_us_per_sample']} µs of a processor a sample, {agent['processor_share']:.1%}"
        f" of one, and {agent['start_processor_s']} s of it for each start;"
        f" {agent['resident_mib']} MiB resident, spool {agent['spool_mib']} MiB"
    )
    sys.exit(0 if ledger["exact"] else 1)


if __name__ == "__main__":
    try:
        main()
    except httpx.HTTPError as error:
        sys.exit(f"error {error}")
