"""How long a training stands still when a process is killed: `kuayu live` beside torchft, on one host in one run.

    PYTHONPATH=tests python tests/benchmarks/interruptions.py [--domains N] [--kills N] [--silence MS] [--seed N]
                                                              [--json FILE]

Both train the same model on the same batches, a process for each domain, and sum the same integers, so that the curves
have to be the same; the exit status is 1 where they are not. Both are struck alike: once all domains are there and 15
steps were made, one that is drawn is killed with SIGKILL, and is started anew a second after the first new step without
it. Nothing stands by. *Interruption* is the longest time without a step that had not been made before, from the diaries
of the workers: between the kill and the new start (*lost*), and from then to the next kill (*back*).

torchft (https://github.com/pytorch/torchft, BSD) keeps a quorum by heartbeats to its lighthouse and heals who comes
back from a peer; here with gloo, a synchronous quorum, and as many milliseconds of silence, of a worker and within an
exchange, as `--silence` says (of a worker, its own default is 5 000). It is no part of the lock: `pip install torchft`,
and without it this says so and ends with 3.
"""

import argparse
import importlib.util
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from kuayu.live.findings import TOLERANCE, Entry, diaries
from kuayu.live.plan import HUBS, Settings
from kuayu.live.run import LAST_STEPS, LIFT_S, PAUSE_S, SETTLED_STEPS, Run
from kuayu.live.supervisor import Kind

PATIENCE_S = 120.0
"""Seconds without a step after which a training is taken to be over."""

LOOK_S = 0.05
JOIN_MS = 10_000
"""Milliseconds that the lighthouse waits for others at the beginning."""


@dataclass(frozen=True, slots=True)
class Strike:
    """A worker that was killed.

    Attributes:
        at: When, by the steady clock.
        again: When its domain was started anew.
    """

    at: float
    again: float


@dataclass(slots=True)
class Trained:
    """A training that was struck.

    Attributes:
        entries: What its workers wrote down.
        strikes: Kills, in their order.
    """

    entries: list[Entry]
    strikes: list[Strike] = field(default_factory=list)

    @property
    def losses(self) -> dict[int, float]:
        """The loss of each step."""
        return {entry.step: entry.loss for entry in self.entries}

    def frontier(self) -> list[float]:
        """When each step was made for the first time, in their order."""
        first: dict[int, float] = {}
        for entry in self.entries:
            first[entry.step] = min(entry.written_at, first.get(entry.step, entry.written_at))
        return sorted(first.values())

    def longest(self, begin: float, end: float) -> float:
        """The longest time without a new step, of those that end within a stretch of time."""
        pairs = itertools.pairwise(self.frontier())
        return max((after - before for before, after in pairs if begin < after <= end), default=0.0)

    def figures(self) -> dict[str, list[float]]:
        """Interruptions, each in seconds; and the usual time of a step."""
        ends = [*(strike.at for strike in self.strikes[1:]), float("inf")]
        gaps = [after - before for before, after in itertools.pairwise(self.frontier())]
        return {
            "lost": [self.longest(strike.at, strike.again) for strike in self.strikes],
            "back": [self.longest(strike.again, end) for strike, end in zip(self.strikes, ends, strict=True)],
            "step": [statistics.median(gaps)],
        }


def own(settings: Settings, kills: int, folder: Path) -> Trained:
    """Train under the control plane of `kuayu live`."""
    run = Run(settings, folder, [Kind.kill] * kills, lambda _: None)
    run.go()
    strikes = [Strike(each.injected_at, each.lifted or each.injected_at) for each in run.timeline.incidents]
    return Trained(diaries(folder), strikes)


class Torchft:
    """A training of torchft with its lighthouse.

    Args:
        settings: Of the run.
        silence: Milliseconds without a heartbeat after which somebody is gone.
        folder: Where workers write.
    """

    def __init__(self, settings: Settings, silence: int, folder: Path) -> None:
        self._settings, self._folder, self._silence = settings, folder, silence
        with (folder / "lighthouse.errors").open("wb") as errors:
            command = [sys.executable, __file__, "--lighthouse", str(silence)]
            self._lighthouse = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        assert self._lighthouse.stdout is not None
        self._address = self._lighthouse.stdout.readline().decode().strip()
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._started: Counter[str] = Counter()
        self._random = random.Random(settings.seed)

    def train(self, kills: int) -> Trained:
        """Train, and kill so many workers, one after the other."""
        strikes: list[Strike] = []
        try:
            for domain in self._settings.names:
                self._start(domain)
            for _ in range(kills):
                self._settle()
                time.sleep(self._random.uniform(*PAUSE_S))
                strikes.append(self._strike())
            self._settle()
            self._await(self._step() + LAST_STEPS)
        finally:
            for process in (*self._workers.values(), self._lighthouse):
                process.kill()
                process.wait()
        return Trained(diaries(self._folder), strikes)

    def _start(self, domain: str) -> None:
        self._started[domain] += 1
        name = f"{domain}-{self._started[domain]}"
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **one, "TORCHFT_LIGHTHOUSE": self._address}
        where = [name, str(self._folder), self._settings.to_json(), str(self._silence)]
        command = [sys.executable, __file__, "--worker", *where]
        with (self._folder / f"{name}.errors").open("wb") as errors:
            self._workers[domain] = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)

    def _strike(self) -> Strike:
        victim, before, at = self._random.choice(self._settings.names), self._step(), time.monotonic()
        self._workers[victim].send_signal(signal.SIGKILL)
        self._workers[victim].wait()
        self._await(before + 1, since=at)
        time.sleep(LIFT_S)
        self._start(victim)
        return Strike(at, time.monotonic())

    def _step(self) -> int:
        return max((entry.step for entry in diaries(self._folder)), default=0)

    def _settle(self) -> None:
        """Wait until all domains have made 15 steps together."""
        names = {f"{domain}-{self._started[domain]}" for domain in self._settings.names}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            made = Counter(entry.worker for entry in diaries(self._folder) if entry.worker in names)
            if names <= made.keys() and min(made.values()) >= SETTLED_STEPS:
                return
            self._look(deadline)

    def _await(self, step: int, since: float = 0.0) -> None:
        """Wait until a step was made, at an instant or later."""
        deadline = time.monotonic() + PATIENCE_S
        while not any(entry.step >= step and entry.written_at > since for entry in diaries(self._folder)):
            self._look(deadline)

    def _look(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            said = [file.read_text("utf-8", "replace")[-1000:] for file in sorted(self._folder.glob("*.errors"))]
            raise SystemExit("torchft makes no step any more\n" + "\n".join(said))
        time.sleep(LOOK_S)


def watch(silence: int) -> None:
    """The lighthouse: tells where it is, and goes on until it is killed."""
    from torchft.coordination import LighthouseServer

    lighthouse = LighthouseServer("127.0.0.1:0", 1, JOIN_MS, None, silence)
    print(lighthouse.address(), flush=True)
    threading.Event().wait()


def work(name: str, folder: Path, settings: Settings, silence: int) -> None:
    """A worker of torchft: the same model, batches and optimiser as those of `kuayu live`."""
    import numpy as np
    import torch
    from torch import distributed
    from torchft import Manager, ProcessGroupGloo

    from kuayu.live.checkpoint import Moments, advance, rank_slice
    from kuayu.live.model import SCALE, Model

    model = Model(settings.seed, settings.parts)
    values = model.start()
    state: dict[str, Any] = {"values": values, "moments": Moments.none(values.size)}

    def kept() -> dict[str, Any]:
        rows = np.stack([state["values"], state["moments"].first, state["moments"].second])
        return {"rows": torch.from_numpy(rows.copy())}

    def take(given: dict[str, Any]) -> None:
        rows = given["rows"].numpy().copy()
        state.update(values=rows[0], moments=Moments(rows[1], rows[2]))

    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(milliseconds=silence)),
        load_state_dict=take,
        state_dict=kept,
        min_replica_size=1,
        use_async_quorum=False,  # who comes back takes no step before it has the state
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=store.port,
        replica_id=name,
        hostname="127.0.0.1",
    )
    with (folder / f"{name}.steps").open("w", buffering=1, encoding="ascii") as diary:
        while True:
            manager.start_quorum()
            step, rank, world = manager.current_step() + 1, manager.participating_rank(), manager.num_participants()
            sums = np.zeros(values.size + 1, dtype=np.int64)  # the last one is the loss
            model.load(state["values"])
            for part in range(settings.parts)[rank_slice(rank or 0, world, settings.parts)]:
                more = model.gradient(step, part)
                sums[:-1] += more.values
                sums[-1] += more.loss
            total = torch.from_numpy(sums)
            manager.allreduce(total, reduce_op=distributed.ReduceOp.SUM).wait()
            if not manager.should_commit():
                continue
            gradient = (total.numpy()[:-1] / SCALE).astype(np.float32)
            state["values"] = advance(state["values"], state["moments"], gradient, step)
            diary.write(f"{time.monotonic():.6f} {world} {step} {int(total[-1]) / SCALE!r}\n")


def show(name: str, figures: dict[str, list[float]]) -> None:
    """A line for each figure."""
    for what in ("lost", "back"):
        some = sorted(figures[what])
        print(f"{name:11} {what}: median {statistics.median(some):.2f} s, most {some[-1]:.2f} s, of {len(some)}")
    print(f"{name:11} a step: {figures['step'][0] * 1000:.1f} ms")


def main(arguments: Sequence[str]) -> int:
    """Compare and print."""
    if arguments[:1] == ["--worker"]:
        name, folder, text, silence = arguments[1:]
        work(name, Path(folder), Settings.of_json(text), int(silence))
    if arguments[:1] == ["--lighthouse"]:
        watch(int(arguments[1]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=5, choices=range(3, len(HUBS)))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--silence", type=int, default=5_000, help="milliseconds, as torchft's own default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("torchft") is None:
        print("torchft is not installed: pip install torchft", file=sys.stderr)
        return 3
    settings = Settings(seed=options.seed, domains=options.domains, spares=0)
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="kuayu-") as first,
        tempfile.TemporaryDirectory(prefix="torchft-") as second,
    ):
        trained = {
            "kuayu live": own(settings, options.kills, Path(first)),
            "torchft": Torchft(settings, options.silence, Path(second)).train(options.kills),
        }
    figures = {name: each.figures() for name, each in trained.items()}
    for name, each in figures.items():
        show(name, each)
    one, other = (each.losses for each in trained.values())
    shared = one.keys() & other.keys()
    furthest = max(abs(one[step] - other[step]) for step in shared)
    print(f"curves      {len(shared)} steps, largest difference {furthest:.3g} nats; load {load:.1f} before")
    if options.json is not None:
        given = {name: value for name, value in vars(options).items() if name != "json"}
        strikes = {name: [asdict(strike) for strike in each.strikes] for name, each in trained.items()}
        content = {"options": given, "load": load, "figures": figures, "strikes": strikes, "difference": furthest}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return int(furthest > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
