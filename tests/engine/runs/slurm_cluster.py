"""A cluster of Slurm on this host: munged, slurmctld, and several slurmd, each a node of its own, in one directory.

All of it is real, from the distribution's packages (``apt-get install slurm-wlm munge``; tried with 22.05 of
Debian 12), and runs as whoever runs the tests. Devices are character files that every host has. Processes are tracked
by ``proctrack/linuxproc``, which needs no cgroup, and loses what leaves its session: so the engine has to find it.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from service.conftest import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
NODES = ("n1", "n2", "n3")
DEVICES = ("/dev/null", "/dev/zero")
"""What stands for the two devices of each node."""

PATIENCE_S = 120.0
SBIN = "/usr/sbin:/usr/local/sbin"
MISSING = "needs Slurm: apt-get install slurm-wlm munge"


def skip_without_slurm() -> None:
    """Skip where a program of Slurm is missing; who has it runs these tests by naming their file."""
    path = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
    if missing := [program for program in PROGRAMS if shutil.which(program, path=path) is None]:
        pytest.skip(f"{MISSING} ({', '.join(missing)} missing)")


class SlurmCluster:
    """A cluster with three nodes of two devices each.

    Args:
        directory: Of the cluster; its path has to be short, for it holds sockets.

    Attributes:
        conf: Its slurm.conf.
        environment: Variables by which commands of Slurm find it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.conf = directory / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        self.environment["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Write its configuration, start all daemons, and wait until all nodes are idle."""
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o600)
        for number, device in enumerate(DEVICES):
            (self.directory / f"gpu{number}").symlink_to(device)
        for name in ("state", *(f"spool/{node}" for node in NODES)):
            (self.directory / name).mkdir(parents=True)
        self.conf.write_text(self._configuration())
        gres = f"Name=gpu File={self.directory}/gpu[0-{len(DEVICES) - 1}]"
        (self.directory / "gres.conf").write_text(f"AutoDetect=off\nNodeName={','.join(NODES)} {gres}\n")
        files = {name: self.directory / f"munge.{name}" for name in ("key", "socket", "pid", "log", "seed")}
        options = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        munge = [f"--{option}={files[name]}" for option, name in options.items()]
        self._start("munged", "munged", "--foreground", "--force", "--num-threads=1", *munge)
        self._until(files["socket"].exists, "munged does not begin")
        self.start_controller()
        for node in NODES:
            self._start(node, "slurmd", "-D", "-f", str(self.conf), "-N", node)
        self._until(self._is_idle, "the nodes do not come up")

    def start_controller(self) -> None:
        """Start slurmctld, the first time or again."""
        self._start("slurmctld", "slurmctld", "-D", "-f", str(self.conf))
        self._until(lambda: self._succeeds("scontrol", "ping"), "slurmctld does not answer")

    def send(self, daemon: str, number: signal.Signals) -> None:
        """Send a daemon a signal, and wait for its end if it ends by it."""
        self.daemons[daemon].send_signal(number)
        if number in {signal.SIGTERM, signal.SIGKILL}:
            self.daemons[daemon].wait(PATIENCE_S)

    def kill(self, node: str) -> None:
        """Kill a node with all that runs on it, and do not wait until Slurm gives it up."""
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                of_node = process.environ().get("SLURMD_NODENAME") == node
                if of_node and process.environ().get("SLURM_CONF") == str(self.conf):
                    process.kill()

    def call(self, *command: str) -> str:
        """What a command of Slurm prints about this cluster."""
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S
        ).stdout

    def jobs(self) -> list[str]:
        """Names of all jobs that it knows."""
        return self.call("squeue", "--states=all", "--noheader", "--format=%j").split()

    def stop(self) -> None:
        """Cancel what runs, and end all daemons."""
        with contextlib.suppress(subprocess.SubprocessError):
            self.call("scancel", f"--user={getpass.getuser()}")
            deadline = time.monotonic() + PATIENCE_S
            while self.call("squeue", "--noheader").strip() and time.monotonic() < deadline:
                time.sleep(0.2)
        for daemon in reversed(self.daemons.values()):
            daemon.send_signal(signal.SIGCONT)
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(30.0)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _configuration(self) -> str:
        host, user = socket.gethostname(), getpass.getuser()
        settings: Mapping[str, str | int] = {
            "ClusterName": "kuayu",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": free_port(),
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.directory}/munge.socket",
            "CredType": "cred/munge",
            "StateSaveLocation": f"{self.directory}/state",
            "SlurmdSpoolDir": f"{self.directory}/spool/%n",
            "SlurmctldPidFile": f"{self.directory}/slurmctld.pid",
            "SlurmdPidFile": f"{self.directory}/%n.pid",
            "SlurmctldLogFile": f"{self.directory}/slurmctld.log",
            "SlurmdLogFile": f"{self.directory}/%n.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "SwitchType": "switch/none",
            "MpiDefault": "none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "SchedulerParameters": "bf_interval=1,sched_min_interval=100000",
            "SlurmdParameters": "config_overrides",
            "ReturnToService": 2,
            "SlurmdTimeout": 30,  # nodes are asked three times as often whether they live
            "KillWait": 5,
            "MinJobAge": 300,
            "GresTypes": "gpu",
        }
        node = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=1 Gres=gpu:{len(DEVICES)} State=UNKNOWN"
        nodes = [f"NodeName={name} Port={free_port()} {node}" for name in NODES]
        lines = [f"{name}={value}" for name, value in settings.items()]
        return "\n".join([*lines, *nodes, "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP", ""])

    def _start(self, name: str, *command: str) -> None:
        with (self.directory / f"{name}.out").open("ab") as output:
            self.daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _is_idle(self) -> bool:
        return self.call("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(NODES)

    def _succeeds(self, *command: str) -> bool:
        try:
            return "is UP" in self.call(*command)
        except subprocess.SubprocessError:
            return False

    def _until(self, reached: "object", what: str) -> None:
        assert callable(reached)
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            for name, daemon in self.daemons.items():
                said = (self.directory / f"{name}.out").read_text("utf-8", "replace")
                assert daemon.poll() is None, f"{name} has ended: {said}"
            assert time.monotonic() < deadline, what
            time.sleep(0.1)
