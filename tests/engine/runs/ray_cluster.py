"""A Ray cluster on this host: a head and several nodes, each with its own name and devices that are counted only."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

PATIENCE_S = 120.0
OBJECT_STORE_BYTES = 80_000_000
"""Little more than the least that Ray takes."""

ATTEMPTS = 8
"""How often a node is started. On a busy host its raylet gives up: it waits 15 s for the ports of its agents, and no
setting changes that (https://github.com/ray-project/ray/issues/65983)."""


class RayCluster:
    """Head and nodes, each a ``ray start`` that stays in the foreground.

    Args:
        nodes: Devices of each node.

    Attributes:
        address: Of the cluster.
    """

    def __init__(self, nodes: Mapping[str, int]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ray"))  # paths of sockets are short
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._devices = dict(nodes)
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        try:
            said = self._start(
                "head", "--head", f"--port={port}", f"--temp-dir={self._folder}", "--include-dashboard=false"
            )
            [self.address] = re.findall(r"--address='(.*)'", said)
            for name in nodes:
                self.start(name)
        except BaseException:
            self.close()
            raise

    def start(self, name: str) -> None:
        """Start a node, anew where it was killed."""
        devices = [f"--num-gpus={self._devices[name]}", f"--labels=kuayu.dev/node={name}", f"--node-name={name}"]
        self._start(name, f"--address={self.address}", *devices)

    def kill(self, name: str) -> None:
        """Kill what makes a node of Ray, as if by accident; what it runs is left to itself."""
        process = self._nodes.pop(name)
        for each in [*psutil.Process(process.pid).children(), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End all of it."""
        for process in self._nodes.values():
            _end(process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, name: str, *arguments: str) -> str:
        """Start what makes a node; what it says."""
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1"]
        command += [f"--object-store-memory={OBJECT_STORE_BYTES}", "--disable-usage-stats", *arguments]
        # Without tokens, even where Ray has left one in the home directory, as it does whenever it starts by itself.
        settings = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_AUTH_MODE": "disabled"}
        environment = {**os.environ, **settings}
        log = self._folder / f"{name}.log"
        for _ in range(ATTEMPTS):
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
            self._nodes[name] = process
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                if "Ray runtime started" in log.read_text():
                    return log.read_text()
                if process.poll() is not None or "Exception: " in log.read_text():
                    break
                time.sleep(0.1)
            _end(process)
        raise AssertionError(log.read_text())


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and all below it."""
    below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    for each in [process, *below]:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()
