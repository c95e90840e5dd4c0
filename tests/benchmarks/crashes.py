"""Crashes of the service and of its database while clients write: is every acknowledged write still there?

    PYTHONPATH=tests python tests/benchmarks/crashes.py [--rounds N] [--jobs N] [--durability D] [--seed N] [--json F]

`kuayu serve` runs in a process of its own, once on SQLite and twice on a PostgreSQL that was started for it. Four
clients write samples and domains and keep a ledger of what was acknowledged. At random instants the service is killed
with SIGKILL, or PostgreSQL is stopped at once (`pg_ctl stop -m immediate`); then everything is read back and held
against the ledger. The exit status is 1 where an acknowledged write is lost, whether or not the epoch said so: no crash
that is played here is one of the host, so that either durability promises to survive it.

With `--jobs N` no samples are written: so many jobs run in four domains that are played, whose own ledger says what
ran, and in every second round the processes die that decide instead (`tests/service/jobs/job_ledger.py`). The exit
status is 1 where an acknowledged job is lost or does not succeed, or one runs twice or beside what it holds.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from service import crashes, postgres_server
from service.conftest import Service
from service.crashes import Round
from service.jobs import job_ledger

PATIENCE_SECONDS = 300.0
"""Seconds after the last crash in which all jobs have to succeed."""

console = Console(highlight=False, soft_wrap=True)


@contextmanager
def sqlite(folder: Path, options: list[str]) -> Iterator[tuple[Service, Callable[[Service], None]]]:
    """A service on SQLite that is killed."""
    yield Service(f"sqlite:///{folder / 'kuayu.db'}", *options, spawns=True), crashes.kill_service


@contextmanager
def postgres(_: Path, options: list[str]) -> Iterator[tuple[Service, Callable[[Service], None]]]:
    """A service on PostgreSQL that is killed."""
    with postgres_server.running() as server:
        yield Service(server.url, *options, spawns=True), crashes.kill_service


@contextmanager
def stopped_postgres(_: Path, options: list[str]) -> Iterator[tuple[Service, Callable[[Service], None]]]:
    """A service on a PostgreSQL that is stopped at once."""
    with postgres_server.running() as server:
        yield Service(server.url, *options, spawns=True), crashes.crash_postgres(server)


CRASHES = {
    "kill -9 of the service, SQLite": sqlite,
    "kill -9 of the service, PostgreSQL": postgres,
    "immediate stop of PostgreSQL": stopped_postgres,
}


def main() -> int:
    """Run all; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--durability", choices=["process", "host"], default="process")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, help="run jobs in place of writing samples")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.jobs is not None:
        return run_jobs(given)
    found = {}
    for name, setting in CRASHES.items():
        options = ["--durability", given.durability]
        with tempfile.TemporaryDirectory() as folder, setting(Path(folder), options) as (service, crash):
            service.start()
            try:
                played = list(crashes.rounds(service, crash, given.rounds, given.seed))
            finally:
                service.stop()
                service.client.close()
        found[name] = played
        console.print(f"{name}: {summary(played)}")
    if given.json is not None:
        figures = {name: [asdict(played) for played in rounds] for name, rounds in found.items()}
        given.json.write_text(json.dumps({**circumstances(given), "rounds": figures}, indent=1) + "\n")
    return int(any(played.lost for rounds in found.values() for played in rounds))


def circumstances(given: argparse.Namespace) -> dict[str, Any]:
    """By which command, when, from which seed, at what load (as it ended) and with what durability all was played."""
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    command = f"PYTHONPATH=tests python tests/benchmarks/crashes.py {' '.join(sys.argv[1:])}".rstrip()
    return {
        "command": command,
        "date": date,
        "seed": given.seed,
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "durability": given.durability,
    }


def run_jobs(given: argparse.Namespace) -> int:
    """Run jobs through crashes of all kinds; the exit status."""
    found = {}
    for name, setting in CRASHES.items():
        options = ["--durability", given.durability]
        with tempfile.TemporaryDirectory() as folder, setting(Path(folder), options) as (service, crash):
            service.start()
            try:
                ways = (crash, job_ledger.kill_decisions)
                outcome = job_ledger.play(
                    service, ways, jobs=given.jobs, rounds=given.rounds, patience=PATIENCE_SECONDS, seed=given.seed
                )
            finally:
                service.stop()
                service.client.close()
        found[name] = outcome
        console.print(
            f"{name}: {outcome.crashes} crashes in {outcome.seconds:.0f} s, {outcome.jobs} jobs acknowledged, "
            f"{outcome.known} known to have succeeded, "
            f"{len(outcome.lost)} lost, {len(outcome.unfinished)} unfinished, {outcome.restarts} attempts begun again, "
            f"{len(outcome.wrong)} done that must not be: {'; '.join(outcome.wrong) or 'nothing'}"
        )
    if given.json is not None:
        figures = {name: asdict(outcome) for name, outcome in found.items()}
        given.json.write_text(json.dumps({**circumstances(given), "jobs": figures}, indent=1) + "\n")
    return int(any(each.lost or each.unfinished or each.wrong or each.known < each.jobs for each in found.values()))


def summary(played: list[Round]) -> str:
    """What came of the rounds, in words."""
    return (
        f"{len(played)} rounds, {sum(each.acknowledged for each in played)} writes acknowledged, "
        f"{sum(each.lost for each in played)} lost in {sum(bool(each.lost) for each in played)} rounds, "
        f"{sum(each.silent for each in played)} of these under the same epoch; "
        f"{sum(each.renewed for each in played)} epochs renewed"
    )


if __name__ == "__main__":
    sys.exit(main())
