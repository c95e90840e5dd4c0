"""The shell scripts by which Slurm carries out a run, for POSIX sh, so that nodes need nothing of this project.

===============  =======================================================================================================
``batch.sh``     on the first node: sees that it is the only job of its run, starts all ranks with srun, writes ``exit``
``rank.sh``      each process: finds its rank by node and local number, writes its output to ``out/RANK``, and where it
                 fails, to ``first`` if it is the first one
``sweep.sh``     each node: kills what ranks have left; only where Slurm itself does not know all that they started
===============  =======================================================================================================

1. All texts of a run (command, environment, directories, names of nodes) are quoted by :func:`shlex.quote`, and stand
   where the shell takes a word; nothing of a run is evaluated.
2. A run is begun once, also where it was submitted twice or Slurm requeues it: whoever makes the link ``claim`` first
   (link(2) is atomic, also on NFS) carries it out, all others end at once. The same holds for ``first``.
3. Ranks are known by node, not by Slurm's order of tasks: those of the first placement come first, whatever order Slurm
   gives its nodes, and also in heterogeneous jobs, where nodes have unlike numbers of devices.
4. The shell around a process stays until that has ended, whatever signals both are sent, so that an exit code is
   written. A shell says a signal as 128 and its number.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kuayu.engine.runs.devices import DEVICES_VARIABLE, HIGHEST_PORT, LOWEST_PORT
from kuayu.engine.runs.protocol import Run, environment
from kuayu.engine.runs.supervisor import RUN_DIRECTORY

BATCH, RANK, SWEEP = "batch.sh", "rank.sh", "sweep.sh"
OUTPUTS, EXITS = "out", "exits"
CLAIM_FILE, FIRST_FILE, EXIT_FILE = "claim", "first", "exit"

_SIGNALS = "HUP INT TERM USR1 USR2 ALRM"
_SWEEPS = 20
_ROUNDS = 12
_SWEEPING = ("--overlap", "--immediate=10", "--kill-on-bad-exit=0")
"""A sweep takes no processor of its own, which Slurm may not have back yet. What kills ranks may kill a sweep as well,
and a controller that has just been started knows no nodes for a while: so it is tried again, for two minutes."""


@dataclass(frozen=True, slots=True)
class Component:
    """Nodes of a run that are alike: Slurm asks the same of all nodes of a job, or of a component of one.

    Attributes:
        nodes: Their names.
        processes: On each.
        resource: What each node gives, as ``--gres`` takes it; None for processors alone.
    """

    nodes: Sequence[str]
    processes: int
    resource: str | None

    @property
    def layout(self) -> list[str]:
        """How many nodes and tasks, as options of sbatch and srun alike."""
        tasks = len(self.nodes) * self.processes
        return [f"--nodes={len(self.nodes)}", f"--ntasks={tasks}", f"--ntasks-per-node={self.processes}"]


def write_scripts(
    run: Run, directory: Path, work: Path, components: Sequence[Component], address: str, *, sweep: bool
) -> None:
    """Write the scripts of a run into its directory.

    Args:
        run: The run.
        directory: The run's own, on every node.
        work: Where processes begin.
        components: Its nodes.
        address: Where processes meet, if the run names none.
        sweep: Whether what ranks have left is to be looked for.

    Raises:
        OSError: They cannot be written.
    """
    for name in (OUTPUTS, EXITS, "claims"):
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    scripts = {
        BATCH: _batch(run, directory, components, sweep=sweep),
        RANK: _rank(run, directory, work, address),
        SWEEP: _sweep(directory),
    }
    for name, text in scripts.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")


def _batch(run: Run, directory: Path, components: Sequence[Component], *, sweep: bool) -> str:
    port = str(run.rendezvous.port or f"$(({LOWEST_PORT} + SLURM_JOB_ID % {HIGHEST_PORT - LOWEST_PORT + 1}))")
    sweeping = _srun(components, SWEEP, _SWEEPING, each_node=True) if sweep else ":"
    return f"""#!/bin/sh
# A run of kuayu; see kuayu/engine/runs/slurm_scripts.py.
umask 077
cd {shlex.quote(str(directory))} || exit 1
if [ -e stop.json ]; then
    echo "kuayu: this run was stopped before it began"
    exit 0
fi
echo "$SLURM_JOB_ID" >"claims/$SLURM_JOB_ID"
if ! command -p ln "claims/$SLURM_JOB_ID" {CLAIM_FILE} 2>/dev/null; then
    echo "kuayu: this run was begun before, by job $(cat {CLAIM_FILE})"
    exit 1
fi
trap : {_SIGNALS}
KUAYU_MASTER_PORT={port}
export KUAYU_MASTER_PORT
if [ -n "$SLURM_CPUS_PER_TASK" ]; then
    export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"  # srun has not taken it from sbatch since 22.05
fi
{_srun(components, RANK, ["--kill-on-bad-exit=1"])}
code=$?
for attempt in $(seq {_ROUNDS}); do
    {sweeping} && break
done
echo "$code" >{EXIT_FILE}.new && command -p mv {EXIT_FILE}.new {EXIT_FILE}
exit "$code"
"""


def _srun(components: Sequence[Component], script_file: str, options: Sequence[str], *, each_node: bool = False) -> str:
    """One step over all components, whose tasks run a script."""
    parts = []
    for number, component in enumerate(components):
        layout = component.layout
        if each_node:
            layout = [f"--nodes={len(component.nodes)}", f"--ntasks={len(component.nodes)}", "--ntasks-per-node=1"]
        group = [f"--het-group={number}"] if len(components) > 1 else []
        parts.append([*group, *layout, *options, "--input=none", "/bin/sh", script_file])
    return "srun " + " : ".join(shlex.join(part) for part in parts)


def _rank(run: Run, directory: Path, work: Path, address: str) -> str:
    meeting, first, cases = run.rendezvous, 0, []
    for placement in run.placements:
        count = run.processes_per_node or placement.devices
        cases.append(f"    {shlex.quote(placement.node)}) kuayu_first={first}; kuayu_count={count} ;;")
        first += count
    own = {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}
    fixed = {name: value for name, value in environment(run, 0, 0, 0).items() if name not in own}
    fixed = {"PYTHONUNBUFFERED": "1"} | fixed | {"MASTER_ADDR": address, RUN_DIRECTORY: str(directory)}
    variables = [shlex.quote(f"{name}={value}") for name, value in fixed.items()]
    variables += ['"RANK=$kuayu_rank"', '"LOCAL_RANK=$SLURM_LOCALID"', '"LOCAL_WORLD_SIZE=$kuayu_count"']
    variables += ['"MASTER_PORT=$KUAYU_MASTER_PORT"', f'${{SLURM_STEP_GPUS:+"{DEVICES_VARIABLE}=$SLURM_STEP_GPUS"}}']
    return f"""#!/bin/sh
# One process of a run of kuayu; see kuayu/engine/runs/slurm_scripts.py.
cd {shlex.quote(str(directory))} || exit 1
case "$SLURMD_NODENAME" in
{chr(10).join(cases)}
    *) echo "kuayu: node $SLURMD_NODENAME is none of this run" >&2; exit 1 ;;
esac
kuayu_place=$((kuayu_first + SLURM_LOCALID))
kuayu_rank=$(({meeting.rank_offset} + kuayu_place))
exec >"{OUTPUTS}/$kuayu_place" 2>&1 </dev/null
trap : {_SIGNALS}
(
    cd {shlex.quote(str(work))} || exit 1
    exec /usr/bin/env {" ".join(variables)} {shlex.join(run.command)}
)
code=$?
if [ "$code" -ne 0 ]; then
    echo "$kuayu_rank $code" >"{EXITS}/$kuayu_place"
    command -p ln "{EXITS}/$kuayu_place" {FIRST_FILE} 2>/dev/null
fi
exit "$code"
"""


def _sweep(directory: Path) -> str:
    variable = shlex.quote(f"{RUN_DIRECTORY}={directory}")
    return f"""#!/bin/sh
# Kills what the ranks of a run have left on this node; see kuayu/engine/runs/slurm_scripts.py.
for attempt in $(seq {_SWEEPS}); do
    pids=$(grep -lszFx {variable} /proc/[0-9]*/environ | cut -d / -f 3)
    [ -n "$pids" ] || exit 0
    kill -9 $pids 2>/dev/null
    sleep 0.2 || sleep 1
done
exit 1
"""
