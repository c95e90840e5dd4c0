"""How fast the compiled world of scheduling is, all of it by one command, beside aims and peers.

    python tests/benchmarks/speed.py [--only PART ...] [--seed WORDS] [--rounds N] [--json FILE]
        [--gavel DIR] [--sia DIR] [--peer-python PYTHON]

writes ``build/speed.json``, anew after every figure, and prints a table. One process on one core; what is measured is
its own processor time, the best of some rounds, since what else the machine does takes cache and clock from it even so.
The machine's load beside it is written down. What is compiled has been loaded before anything is measured.

1. ``decisions``: a day in the judge's reference cell (``checks.scheduling.cells.FULL``) under the compiled rule, at 0.8
   and at twice the capacity. An internal decision is one job that the rule looks at: all its candidates are found and
   scored, and it starts, waits with or without a reservation, or has others make room. Time in which the world goes on
   is counted.
2. ``asked``: questions that ``VectorSchedulingEnv`` asks in 32 worlds side by side, the rule's first candidate being
   answered; scenarios are prepared beforehand. ``reference``: the same asked one by one by ``SchedulingEnv``, which
   decides by the reference itself.
3. ``scenario``: milliseconds until a scenario to learn in is drawn, the mean of twelve.
4. ``engine``: simulated jobs a second under B1 in growing federations at load 0.7; a job counts when it has finished,
   jobs are submitted for the hours that are stated and played out for as long again. ``growth`` is the exponent of
   processor time over finished jobs, by least squares on logarithms: one is linear.

5. ``peers``: simulators of others in the same run, each by its own program with its own jobs, where clones of them are
   given (``--gavel``, ``--sia``) and a Python that has what they need (``--peer-python``; theirs are cvxpy with ECOS,
   CBC and GLPK, matrix-completion, scikit-learn, grpcio-tools for Gavel's stubs, pandas below 2, pymoo below 0.5 and
   rich for Sia's). Processor time of
   their processes is counted, start and imports with it. They decide every round by a linear programme where their
   policy is one, which is their point; Gavel's FIFO does not.

What stands in the column of peers was measured beforehand, on another day: the simulator of Gavel
(stanford-futuredata/gavel) plays 28 to 194 simulated jobs a second at low load and 3 to 33 with 2 500 active jobs, that
of Sia (siasosp23/artifacts) 0.5 to 6, and the environment of sustain-cluster (HewlettPackard/sustain-cluster) takes
7 000 to 22 000 decisions a second. The workload of the last is no part of its repository, so that it is not among 5.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures are stated for

import numpy as np
import psutil

from kuayu_conformance.checks.scheduling.cells import FULL
from kuayu_conformance.testbed.scheduling.baselines import HomeBackfill
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.scenarios import Timing, scenario
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.workload import draw
from kuayu_training.scheduling.core.player import CompiledRule
from kuayu_training.scheduling.env import SchedulingEnv
from kuayu_training.scheduling.scenarios import drawn
from kuayu_training.scheduling.vector import VectorSchedulingEnv

OUT = Path(__file__).parents[2] / "build/speed.json"
COMMAND = "python tests/benchmarks/speed.py"
HOUR = 3600.0
LOADS = (0.8, 2.0)
WORLDS, STEPS = 32, 200
SINGLE_STEPS, DRAWN = 300, 12
SCALES = ((5, 200, 12), (16, 160, 12), (32, 156, 12), (64, 156, 16))
"""Domains, nodes of a domain on average, and hours of submissions; the last has 10 000 nodes and 100 000 jobs."""

SIMULATORS = "Gavel 28–194 (3–33 with 2 500 active jobs), Sia 0.5–6"
ENVIRONMENT = "sustain-cluster 7 000–22 000"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that was measured.

    Attributes:
        part: Which part of the measurement.
        name: What it is of.
        unit: Its unit.
        value: The best of the rounds.
        seconds: Processor seconds of that round.
        aim: What it should be, if an aim is stated.
        peers: What peers reach.
        amounts: How much the round got done, by name.
    """

    part: str
    name: str
    unit: str
    value: float
    seconds: float
    aim: float | None
    peers: str
    amounts: dict[str, float]

    @property
    def met(self) -> bool | None:
        """Whether it is as good as its aim; None without one."""
        if self.aim is None:
            return None
        return self.value <= self.aim if self.unit in {"ms", "exponent"} else self.value >= self.aim


def best(rounds: int, work: Callable[[], Any], prepare: Callable[[], Any] | None = None) -> tuple[float, Any]:
    """Processor seconds of the fastest of some rounds after one that is not counted, and what the last came to."""
    seconds, result = [], None
    for _ in range(rounds + 1):
        arguments = () if prepare is None else (prepare(),)
        began = time.process_time()
        result = work(*arguments)
        seconds.append(time.process_time() - began)
    return min(seconds[1:]), result


def decisions(seed: str, rounds: int) -> Iterator[Figure]:
    """Internal decisions a second of the compiled rule."""
    for load in LOADS:
        world = scenario(replace(FULL.reference("fitted"), load=load), Timing(0.0, 24 * HOUR, 0.0), seed)

        def prepare(world: Any = world) -> tuple[CompiledWorld, CompiledRule]:
            compiled, rule = world.world(), CompiledRule()
            rule.meet(compiled)
            return compiled, rule

        def play_day(pair: tuple[CompiledWorld, CompiledRule]) -> Any:
            play(*pair, 24 * HOUR)
            assert pair[1].tables is not None
            return pair[1].tables.epoch[0]

        seconds, epoch = best(rounds, play_day, prepare)
        amounts = {name: float(epoch[name]) for name in ("attempts", "candidates", "decisions", "steps")}
        name = f"internal decisions at {load:g} of the capacity"
        yield Figure("decisions", name, "1/s", amounts["attempts"] / seconds, seconds, 500_000.0, "", amounts)


def asked(seed: str, rounds: int) -> Iterator[Figure]:
    """Asked decisions a second of the vectorised environment."""
    env = VectorSchedulingEnv(WORLDS, seed, reused=WORLDS)
    env.prepare()
    env.reset(seed=0)
    first = np.zeros(WORLDS, dtype=np.int64)

    def answer() -> None:
        for _ in range(STEPS):
            env.step(first)

    looked = env.looked
    seconds, _ = best(rounds, answer)
    amounts = {
        "worlds": float(WORLDS),
        "questions": float(WORLDS * STEPS),
        "internal decisions": (env.looked - looked) / (rounds + 1),
    }
    name = f"asked decisions, {WORLDS} worlds side by side"
    yield Figure("asked", name, "1/s", WORLDS * STEPS / seconds, seconds, 20_000.0, ENVIRONMENT, amounts)


def reference(seed: str, rounds: int) -> Iterator[Figure]:
    """Asked decisions a second of the environment that decides by the reference itself; resets are not counted."""
    env = SchedulingEnv(purpose=f"benchmark {seed}")
    env.reset()
    seconds, taken = 0.0, 0
    while taken < SINGLE_STEPS * rounds:
        began = time.process_time()
        ended = env.step(np.int64(0))[2]
        seconds, taken = seconds + time.process_time() - began, taken + 1
        if ended:
            env.reset()
    env.close()
    name = "asked decisions, one by one through the reference"
    yield Figure("reference", name, "1/s", taken / seconds, seconds, None, ENVIRONMENT, {"questions": float(taken)})


def drawing(seed: str, rounds: int) -> Iterator[Figure]:
    """Milliseconds until a scenario to learn in is drawn."""
    seconds, jobs = best(rounds, lambda: sum(len(drawn(seed, number).workload.jobs) for number in range(DRAWN)))
    amounts = {"scenarios": float(DRAWN), "jobs": float(jobs)}
    yield Figure("scenario", "drawing a scenario to learn in", "ms", 1e3 * seconds / DRAWN, seconds, 20.0, "", amounts)


def engine(seed: str, rounds: int) -> Iterator[Figure]:
    """Simulated jobs a second under B1, and how processor time grows with jobs."""
    finished, spent = [], []
    for sites, nodes, hours in SCALES:
        topology = build("balanced", sites, seed, nodes=nodes)
        workload = draw("balanced", topology.sites, 0.7, hours * HOUR, seed, devices=topology.devices)
        law = PublishedLaw.of(topology)

        def run(world: CompiledWorld, hours: int = hours) -> CompiledWorld:
            play(world, HomeBackfill(), 2 * hours * HOUR)
            return world

        parts = (topology, workload, law, seed)
        seconds, world = best(min(rounds, 2), run, lambda parts=parts: CompiledWorld(*parts))  # type: ignore[misc]
        done = sum(record.finished < np.inf for record in world.outcome().jobs)
        finished.append(done)
        spent.append(seconds)
        aim = {SCALES[0][0]: 5_000.0, SCALES[-1][0]: 1_000.0}.get(sites)
        name = f"simulated jobs, {sites} domains, {sites * nodes} nodes, {len(workload.jobs)} jobs"
        amounts = {"jobs": float(len(workload.jobs)), "finished": float(done)}
        yield Figure("engine", name, "1/s", done / seconds, seconds, aim, SIMULATORS, amounts)
    exponent = float(np.polyfit(np.log(finished), np.log(spent), 1)[0])
    amounts = {"scales": float(len(SCALES))}
    yield Figure("engine", "growth of processor time over jobs", "exponent", exponent, sum(spent), 1.2, "", amounts)


GAVEL_JOBS, GAVEL_GAP_SECONDS = 200, 3600
"""Jobs of Gavel's measured window, and seconds between two on average: low load for its 108 devices."""
GAVEL_POLICIES = {"fifo_perf": "FIFO", "max_min_fairness_perf": "max-min fairness, a linear programme a round"}
SIA_WORKLOAD = "workloads/philly/workload-1.csv"
SIA_ROUNDS = {"gavel": 360, "sia": 60}
"""Seconds of a round, as its own experiments have them."""


@dataclass(frozen=True, slots=True)
class Peers:
    """Where others' simulators lie.

    Attributes:
        python: Interpreter that has what they need.
        gavel: Clone of stanford-futuredata/gavel, with its stubs made (``make`` in ``scheduler``).
        sia: Clone of siasosp23/artifacts.
    """

    python: str
    gavel: Path | None
    sia: Path | None

    def figures(self) -> Iterator[Figure]:
        """Simulated jobs a second of each that is there."""
        if self.gavel is not None:
            for policy, label in GAVEL_POLICIES.items():
                program = ["scripts/drivers/simulate_scheduler_with_generated_jobs.py", "-c", "36:36:36", "-p", policy]
                program += ["-l", str(GAVEL_GAP_SECONDS), "-s", "0", "-e", str(GAVEL_JOBS), "--seed", "1", "-m"]
                name = f"Gavel's simulator, 108 devices, {GAVEL_JOBS} jobs, one an hour, {label}"
                yield self._figure(name, self.gavel / "scheduler", program, GAVEL_JOBS)
        if self.sia is not None:
            folder = self.sia / "sia-simulator"
            jobs = len((folder / SIA_WORKLOAD).read_text("utf-8").splitlines()) - 1
            for policy, period in SIA_ROUNDS.items():
                program = ["multi_simulator.py", SIA_WORKLOAD, f"--policy={policy}", f"--interval={period}"]
                if policy == "sia":
                    program += ["--policy_p_val=-0.5", "--mip_lambda_a=0.01", "--mip_lambda_n=1.1"]
                    program += ["--project_throughput", "--share_max_replicas"]
                with TemporaryDirectory() as output:
                    name = f"Sia's simulator, its first Philly workload of {jobs} jobs, policy {policy}"
                    yield self._figure(name, folder, [*program, f"--output={output}/log"], jobs)

    def _figure(self, name: str, folder: Path, program: Sequence[str], jobs: int) -> Figure:
        """What a program of theirs took.

        Raises:
            SystemExit: It ended with an error; what it said last is printed.
        """
        before = os.times()
        ran = subprocess.run([self.python, *program], cwd=folder, capture_output=True, text=True, check=False)
        after = os.times()
        if ran.returncode:
            raise SystemExit(f"{folder}: {program[0]} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
        seconds = after.children_user - before.children_user + after.children_system - before.children_system
        return Figure("peers", name, "1/s", jobs / seconds, seconds, None, "", {"jobs": float(jobs)})


PARTS: dict[str, Callable[[str, int], Iterator[Figure]]] = {
    "decisions": decisions,
    "asked": asked,
    "reference": reference,
    "scenario": drawing,
    "engine": engine,
}


def machine() -> dict[str, Any]:
    """What of a machine explains its speed."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "processor": next(models, platform.processor()),
        "cores": psutil.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def table(figures: Sequence[Figure]) -> str:
    """A table in Markdown."""
    rows = ["| figure | measured | aim | met | peers |", "|---|---|---|---|---|"]
    for figure in figures:
        shown = f"{figure.value:,.0f} {figure.unit}" if figure.value >= 100.0 else f"{figure.value:.3g} {figure.unit}"
        aim = "" if figure.aim is None else f"{'≤' if figure.unit in {'ms', 'exponent'} else '≥'} {figure.aim:,g}"
        met = {None: "", True: "yes", False: "no"}[figure.met]
        rows.append(f"| {figure.name} | {shown} | {aim} | {met} | {figure.peers} |")
    return "\n".join(rows)


def main() -> None:
    """Measure, print the table, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts, all by default")
    parser.add_argument("--seed", default="speed")
    parser.add_argument("--rounds", type=int, default=5, help="of each part, the best of which counts")
    parser.add_argument("--json", type=Path, default=OUT)
    parser.add_argument("--gavel", type=Path, help="clone of stanford-futuredata/gavel, to be measured beside")
    parser.add_argument("--sia", type=Path, help="clone of siasosp23/artifacts, to be measured beside")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has what peers need")
    options = parser.parse_args()
    peers = Peers(options.peer_python, options.gavel, options.sia)
    only = "" if len(options.only) == len(PARTS) else f" --only {' '.join(options.only)}"
    figures: list[Figure] = []
    loads = [os.getloadavg()[0]]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    given = "".join(f" --{name} DIR" for name in ("gavel", "sia") if getattr(options, name))
    for part in (*options.only, "peers"):
        for figure in peers.figures() if part == "peers" else PARTS[part](options.seed, options.rounds):
            figures.append(figure)
            loads.append(os.getloadavg()[0])
            made = {
                "command": f"{COMMAND} --seed {options.seed} --rounds {options.rounds}{only}{given}",
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "seed": options.seed,
                "machine": machine(),
                "load": [round(min(loads), 1), round(max(loads), 1)],
                "processor seconds": round(time.process_time(), 1),
                "figures": [{**asdict(row), "met": row.met} for row in figures],
            }
            options.json.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(table(figures))


if __name__ == "__main__":
    main()
