"""How long a training stands still when a process is killed: `kuayu live` beside torchft, on one host in one run.

    python tests/benchmarks/interruptions.py [--domains N] [--kills N] [--silence MS] [--seed N] [--json FILE]

Both train the same model on the same batches, a process for each domain, and sum the same integers, so that the curves
have to be the same; the exit status is 1 where they are not. Both are treated alike: once all domains are there and 15
steps were made, one that is drawn is killed with SIGKILL, and is started anew a second after the first new step without
it. Nothing stands by. *Interruption* is the longest time without a step that had not been made before, from the diaries
of the workers, of those that fall at least in part between the kill and the new start (*lost*), and between that and
the last new step before the next kill (*back*). So one more is killed than counts: what follows the last kill is cut
short by the end of the training.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kuayu.live.findings import TOLERANCE, Entry, diaries
from kuayu.live.plan import HUBS, Settings
from kuayu.live.run import LIFT_S, PAUSE_S, SETTLED_STEPS, Run
from kuayu.live.supervisor import Kind

PATIENCE_S = 120.0
"""Seconds without a step after which a training is taken to be over."""

POLL_S = 0.05
JOIN_MS = 10_000
"""Milliseconds that the lighthouse waits for others at the beginning."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker that was killed.

    Attributes:
        killed_at: When, by the steady clock.
        restarted_at: When its domain was started anew.
    """

    killed_at: float
    restarted_at: float


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """A training whose workers were killed.

    Attributes:
        name: Of what trained.
        entries: What its workers wrote down.
        kills: In their order.
    """

    name: str
    entries: list[Entry]
    kills: list[Kill]

    @property
    def losses(self) -> dict[int, set[float]]:
        """All losses that were written down for each step."""
        result: dict[int, set[float]] = defaultdict(set)
        for entry in self.entries:
            result[entry.step].add(entry.loss)
        return result

    def new_steps(self) -> list[float]:
        """When each step was made for the first time, in their order."""
        first: dict[int, float] = {}
        for entry in self.entries:
            first[entry.step] = min(entry.written_at, first.get(entry.step, entry.written_at))
        return sorted(first.values())

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without a new step, of those that fall at least in part between two instants.

        Raises:
            SystemExit: There is none.
        """
        pairs = itertools.pairwise(self.new_steps())
        gaps = [after - before for before, after in pairs if before < end and after > begin]
        if not gaps:
            raise SystemExit(f"{self.name}: no new step where one was due, from {begin:.2f} to {end:.2f} s")
        return max(gaps)

    def figures(self) -> dict[str, list[float]]:
        """Interruptions by all kills but the last, each in seconds; and the usual time of a step.

        A gap in which the next worker is killed is that one's: a domain is back until the last new step before.
        """
        lost, back, new_steps = [], [], self.new_steps()
        for kill, next_kill in itertools.pairwise(self.kills):
            lost.append(self.longest_gap(kill.killed_at, kill.restarted_at))
            end = max(step for step in new_steps if step <= next_kill.killed_at)
            back.append(self.longest_gap(kill.restarted_at, end))
        gaps = [after - before for before, after in itertools.pairwise(new_steps)]
        return {"lost": lost, "back": back, "step": [statistics.median(gaps)]}


def train_kuayu(settings: Settings, kills: int, folder: Path) -> TrainingRecord:
    """Train under the control plane of `kuayu live`, and kill so many workers, one after the other."""
    run = Run(settings, folder, [Kind.kill] * kills, lambda _: None)
    run.go()
    record = TrainingRecord("kuayu live", diaries(folder), [])
    for incident in run.timeline.incidents:
        assert incident.lifted is not None, f"{incident.worker} was not started anew"
        record.kills.append(Kill(incident.injected_at, incident.lifted))
    return record


class DiaryReader:
    """Diaries of workers as they are written: each is read on from where it was left.

    Attributes:
        steps: Steps that each worker has written down.
        last: The greatest of all steps.

    Args:
        folder: Where workers write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: Counter[Path] = Counter()
        self.steps: Counter[str] = Counter()
        self.last = 0

    def read(self) -> list[Entry]:
        """What was written since the call before; a last line that its writer did not finish is left for the next."""
        entries = []
        for file in sorted(self._folder.glob("*.steps")):
            with file.open("rb") as diary:
                diary.seek(self._offsets[file])
                text, newline, _ = diary.read().rpartition(b"\n")
            self._offsets[file] += len(text) + len(newline)
            for line in text.splitlines():
                instant, generation, step, loss = line.split()
                entries.append(Entry(file.stem, float(instant), int(generation), int(step), float(loss)))
        self.steps.update(entry.worker for entry in entries)
        self.last = max([self.last, *(entry.step for entry in entries)])
        return entries


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
        self._starts: Counter[str] = Counter()
        self._diaries = DiaryReader(folder)
        self._random = random.Random(settings.seed)

    def train(self, kills: int) -> TrainingRecord:
        """Train, and kill so many workers, one after the other."""
        record = TrainingRecord("torchft", [], [])
        try:
            for domain in self._settings.names:
                self._start(domain)
            for _ in range(kills):
                self._settle()
                time.sleep(self._random.uniform(*PAUSE_S))
                record.kills.append(self._kill())
        finally:
            for process in (*self._workers.values(), self._lighthouse):
                process.kill()
                process.wait()
        record.entries.extend(diaries(self._folder))
        return record

    def _start(self, domain: str) -> None:
        self._starts[domain] += 1
        name = f"{domain}-{self._starts[domain]}"
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **one_thread, "TORCHFT_LIGHTHOUSE": self._address}
        arguments = [name, str(self._folder), self._settings.to_json(), str(self._silence)]
        command = [sys.executable, __file__, "--worker", *arguments]
        with (self._folder / f"{name}.errors").open("wb") as errors:
            self._workers[domain] = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)

    def _kill(self) -> Kill:
        """Kill a worker, and start its domain anew a second after the first new step without it."""
        domain = self._random.choice(self._settings.names)
        self._diaries.read()
        last, domains, killed_at = self._diaries.last, len(self._settings.names), time.monotonic()
        self._workers[domain].send_signal(signal.SIGKILL)
        self._workers[domain].wait()
        self._await(
            lambda entries: any(
                entry.step > last and entry.written_at > killed_at and entry.generation < domains for entry in entries
            )
        )
        time.sleep(LIFT_S)
        self._start(domain)
        return Kill(killed_at, time.monotonic())

    def _settle(self) -> None:
        """Wait until all domains have made 15 steps together."""
        names = [f"{domain}-{self._starts[domain]}" for domain in self._settings.names]
        self._await(lambda _: min(self._diaries.steps[name] for name in names) >= SETTLED_STEPS)

    def _await(self, reached: Callable[[list[Entry]], bool]) -> None:
        """Wait until something holds, given the entries since the last look."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached(self._diaries.read()):
            if time.monotonic() > deadline:
                logs = [file.read_text("utf-8", "replace")[-1000:] for file in sorted(self._folder.glob("*.errors"))]
                raise SystemExit("torchft makes no step any more\n" + "\n".join(logs))
            time.sleep(POLL_S)


def run_lighthouse(silence: int) -> None:
    """The lighthouse: tells where it is, and goes on until it is killed."""
    from torchft.coordination import LighthouseServer

    lighthouse = LighthouseServer("127.0.0.1:0", 1, JOIN_MS, None, silence)
    print(lighthouse.address(), flush=True)
    threading.Event().wait()


def run_worker(name: str, folder: Path, settings: Settings, silence: int) -> None:
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

    def state_rows() -> dict[str, Any]:
        rows = np.stack([state["values"], state["moments"].first, state["moments"].second])
        return {"rows": torch.from_numpy(rows.copy())}

    def load_rows(content: dict[str, Any]) -> None:
        rows = content["rows"].numpy().copy()
        state.update(values=rows[0], moments=Moments(rows[1], rows[2]))

    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(milliseconds=silence)),
        load_state_dict=load_rows,
        state_dict=state_rows,
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


def print_figures(name: str, figures: dict[str, list[float]]) -> None:
    """A line for each figure."""
    for window in ("lost", "back"):
        gaps = sorted(figures[window])
        print(f"{name:11} {window}: median {statistics.median(gaps):.2f} s, most {gaps[-1]:.2f} s, of {len(gaps)}")
    print(f"{name:11} a step: {figures['step'][0] * 1000:.1f} ms")


def compare_curves(records: Sequence[TrainingRecord]) -> tuple[int, float]:
    """How many steps all trainings have made, and the largest difference of two losses of one step, whoever made it."""
    curves = [record.losses for record in records]
    losses: dict[int, set[float]] = defaultdict(set)
    for step, values in itertools.chain.from_iterable(curve.items() for curve in curves):
        losses[step] |= values
    shared = [step for step in losses if all(step in curve for curve in curves)]
    return len(shared), max((max(values) - min(values) for values in losses.values()), default=0.0)


def main(arguments: Sequence[str]) -> int:
    """Compare and print."""
    if arguments[:1] == ["--worker"]:
        name, folder, text, silence = arguments[1:]
        run_worker(name, Path(folder), Settings.of_json(text), int(silence))
    if arguments[:1] == ["--lighthouse"]:
        run_lighthouse(int(arguments[1]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=5, choices=range(3, len(HUBS)))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--silence", type=int, default=5_000, help="milliseconds, as torchft's own default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.kills < 1:
        parser.error("--kills is 1 or more")
    if importlib.util.find_spec("torchft") is None:
        print("torchft is not installed: pip install torchft", file=sys.stderr)
        return 3
    settings = Settings(seed=options.seed, domains=options.domains, spares=0)
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="kuayu-") as kuayu_folder,
        tempfile.TemporaryDirectory(prefix="torchft-") as torchft_folder,
    ):
        records = [
            train_kuayu(settings, options.kills + 1, Path(kuayu_folder)),
            Torchft(settings, options.silence, Path(torchft_folder)).train(options.kills + 1),
        ]
    figures = {record.name: record.figures() for record in records}
    for name, values in figures.items():
        print_figures(name, values)
    shared, difference = compare_curves(records)
    print(f"curves      {shared} steps, largest difference {difference:.3g} nats; load {load:.1f} before")
    if options.json is not None:
        content = {
            "options": {name: value for name, value in vars(options).items() if name != "json"},
            "load": load,
            "figures": figures,
            "kills": {record.name: [asdict(kill) for kill in record.kills] for record in records},
            "shared": shared,
            "difference": difference,
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return int(not shared or difference > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
