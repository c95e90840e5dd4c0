"""How many lines a second one core reads: ordinary logs with faults in them, and hostile ones.

``python tests/benchmarks/logs.py [--lines N] [--json FILE]`` makes logs of known forms from a seed, reads them as
``kuayu diagnose`` does, and prints lines a second and the most memory that the process has held, the logs included.
Where KUAYU_DATA names the public data, the lines of nine real systems are read too, once, with no template known
before. A hostile log has lines that are all different words, faults in every line, one endless line, or bytes that are
no text.
"""

import argparse
import csv
import gzip
import json
import os
import random
import resource
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kuayu.resilience.logs.reader import LogReader

PIECE = 1 << 20
HEADER = "Nov {day:2d} {hour:02d}:{minute:02d}:{second:02d} gpu{host:04d} "

ORDINARY = (
    "kernel: [{a}.{b}] nvidia-uvm: Loaded the UVM driver, major device number {c}.",
    "systemd[1]: Started Session {a} of User user{c}.",
    "sshd[{a}]: Accepted publickey for user{c} from 10.{d}.{e}.{f} port {b} ssh2",
    "kubelet[{a}]: I1122 10:00:00.{b} {a} kubelet.go:{c}] Sync loop: pod job-{d}-{e} is running",
    "python[{a}]: step {b} loss {c}.{d} tokens/s {a}",
    "slurmd[{a}]: launch task StepId={b}.{c} request from UID:{d} GID:{e}",
    "kernel: [{a}.{b}] nfs: server 10.{d}.{e}.{f} OK",
    'dockerd[{a}]: time=now level=info msg="container {b} started" image={c}',
)

FAULTS = (
    "kernel: [{a}.{b}] NVRM: Xid (PCI:0000:{d:02x}:00): 79, pid={c}, GPU has fallen off the bus.",
    "kernel: [{a}.{b}] NVRM: Xid (PCI:0000:{d:02x}:00): 31, pid={c}, name=python, Ch {e}",
    "kernel: [{a}.{b}] mlx5_core 0000:{d:02x}:00.0 ens{e}: Link down",
    "python[{a}]: [Rank {c}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={b})",
)


def known(chance: random.Random, faults: float) -> Iterator[str]:
    """Lines of known forms, a share of them faults."""
    while True:
        form = chance.choice(FAULTS if chance.random() < faults else ORDINARY)
        whole = {name: chance.randrange(1_000_000) for name in "abc"} | {name: chance.randrange(250) for name in "def"}
        times = {"day": chance.randrange(1, 29), "hour": chance.randrange(24), "host": chance.randrange(1000)}
        minutes = {"minute": chance.randrange(60), "second": chance.randrange(60)}
        yield (HEADER + form).format(**whole, **times, **minutes)


def different(chance: random.Random) -> Iterator[str]:
    """Lines of words that have not been there before."""
    while True:
        yield " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(8))


def joined(lines: Iterator[str], count: int) -> bytes:
    """So many lines."""
    return "".join(next(lines) + "\n" for _ in range(count)).encode()


def logs(seed: int, lines: int) -> dict[str, Callable[[], bytes]]:
    """Makers of the logs, by name."""
    chance = random.Random(seed)
    return {
        "ordinary, 1 % faults": lambda: joined(known(chance, 0.01), lines),
        "ordinary, no faults": lambda: joined(known(chance, 0.0), lines),
        "hostile: nothing but faults": lambda: joined(known(chance, 1.0), lines // 4),
        "hostile: all lines different": lambda: joined(different(chance), lines // 20),
        "hostile: one line": lambda: (
            b"Link down, NVRM: Xid (PCI:0000:3b:00): 79, not responding " * (lines // 5) + b"\n"
        ),
        "hostile: no text": lambda: chance.randbytes(lines * 40),
    }


def real(data: Path) -> bytes:
    """Messages of the nine systems, in turn."""
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = sorted(csv.DictReader(text), key=lambda row: (int(row["line"]), row["system"]))
    return "".join(" ".join(row["content"].split()) + "\n" for row in rows).encode()


def measure(log: bytes, *, unusual: bool) -> dict[str, Any]:
    """Seconds, lines and bytes a second, verdicts."""
    reader, told = LogReader(unusual=unusual), 0
    begun = time.process_time()
    for start in range(0, len(log), PIECE):
        told += len(reader.take(log[start : start + PIECE]))
    told += len(reader.end())
    spent = time.process_time() - begun
    return {
        "lines": reader.lines,
        "bytes": reader.bytes,
        "seconds": spent,
        "lines_per_second": reader.lines / spent,
        "bytes_per_second": reader.bytes / spent,
        "verdicts": told,
        "templates": len(reader.miner.templates()),
        "unmined": reader.miner.unmined,
        "most_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    """Make each log, read it, print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the ordinary logs")
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with logs/ in it")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    made, rows = logs(options.seed, options.lines), []
    if options.data is not None:
        made = {"real, nine systems": lambda: real(options.data)} | made
    for name, make in made.items():
        log = make()
        rows += [{"log": name, "unusual": unusual} | measure(log, unusual=unusual) for unusual in (False, True)]
    table = Table(
        "log", "templates mined", "lines", "lines/s", "MB/s", "verdicts", "templates", "unmined", "memory, MB"
    )
    for row in rows:
        table.add_row(
            row["log"],
            "yes" if row["unusual"] else "no",
            f"{row['lines']:,}",
            f"{row['lines_per_second']:,.0f}",
            f"{row['bytes_per_second'] / 1e6:.1f}",
            f"{row['verdicts']:,}",
            f"{row['templates']:,}",
            f"{row['unmined']:,}",
            f"{row['most_memory'] / 1e6:.0f}",
        )
    Console(width=120).print(table)
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
