"""`kuayu beat`, `kuayu hold` and `kuayu faults` together: a node dies and comes back, and a log tells of another."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import TYPED, Started, prefork_server, run
from service.conftest import Service, StartService

from kuayu.client import Client
from kuayu_schemas.models import Fault, FaultKind, FaultState

PATIENCE_S = 60.0
LEARNT_S = 5.0
"""Time in which a service learns how often a node beats."""

INVENTORY = "[pools.a800]\ngy-1 = 2\ngy-2 = 2\n"
Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands whose output goes to a file of the name that is given first; they end with the test."""
    started: list[Started] = []

    def start(name: str, *arguments: str) -> Started:
        with (tmp_path / name).open("ab") as output, Path(os.devnull).open("r+b") as nothing:
            started.append(prefork_server(TYPED).start(arguments, [nothing, output, nothing]))
        return started[-1]

    yield start
    for each in started:
        each.send_signal(signal.SIGKILL)
        each.wait()


@pytest.fixture
def service(start_service: StartService) -> Service:
    """A service that knows two nodes of one domain."""
    service = start_service()
    for node in ("gy-1", "gy-2"):
        service.register(node, domain="guiyang")
    return service


def beat(start: Start, service: Service, node: str, *options: str) -> Started:
    return start("beats", "beat", "--node", node, "--url", service.url, *options)


def told(client: Client, kind: FaultKind, state: FaultState) -> Fault:
    """The one fault of the service, when it has come to be so."""
    deadline = time.monotonic() + PATIENCE_S
    while [(each.kind, each.state) for each in client.faults()] != [(kind, state)]:
        assert time.monotonic() < deadline, list(client.faults())
        time.sleep(0.05)
    [fault] = client.faults()
    return fault


def listed(service: Service, *options: str) -> list[dict[str, Any]]:
    done = run("faults", "--url", service.url, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def until_it_holds(file: Path, word: str) -> list[dict[str, Any]]:
    """Changes that a domain told of, when one of the kind is among them."""
    deadline = time.monotonic() + PATIENCE_S
    while f'"{word}"' not in file.read_text("utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def until_answered(client: Client, domain: str) -> None:
    """Wait until a domain has answered all actions: it says what it does, and only then sends the result."""
    deadline = time.monotonic() + PATIENCE_S
    while left := client.open_actions(domain):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.slow
def test_a_node_that_is_killed_is_fenced_until_it_is_back(service: Service, start: Start, tmp_path: Path) -> None:
    (tmp_path / "guiyang.toml").write_text(INVENTORY, encoding="utf-8")
    where = ["--journal", str(tmp_path / "journal"), "--url", service.url, "--domain", "guiyang", "--json"]
    start("held", "hold", str(tmp_path / "guiyang.toml"), *where)
    beat(start, service, "gy-1")
    killed = beat(start, service, "gy-2")
    with Client(service.url) as client:
        time.sleep(LEARNT_S)
        assert list(client.faults()) == []
        killed.send_signal(signal.SIGKILL)
        dead = told(client, FaultKind.node_dead, FaultState.open)
        assert (dead.node, dead.domain) == ("gy-2", "guiyang")
        [fenced] = until_it_holds(tmp_path / "held", "fenced")
        assert (fenced["nodes"], [fenced["action"]]) == ([{"node": "gy-2", "devices": 2}], dead.actions)
        assert [each["id"] for each in listed(service, "--domain", "guiyang")] == [dead.id]
        beat(start, service, "gy-2")
        cleared = told(client, FaultKind.node_dead, FaultState.cleared)
        assert (cleared.id, cleared.actions[:1]) == (dead.id, dead.actions)
        assert [each["change"] for each in until_it_holds(tmp_path / "held", "lifted")] == ["fenced", "lifted"]
        until_answered(client, "guiyang")
    assert listed(service) == []
    assert [each["id"] for each in listed(service, "--all")] == [dead.id]


def test_a_line_of_a_log_makes_a_node_that_lives_be_fenced(service: Service, start: Start, tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_text("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n", encoding="utf-8")
    beat(start, service, "gy-1", "--log", str(log))
    with Client(service.url) as client:
        time.sleep(LEARNT_S)
        assert list(client.faults()) == []  # that line was there before
        with log.open("a", encoding="utf-8") as file:
            file.write("NVRM: Xid (PCI:0000:3b:00): 13, pid=1, Graphics Exception\n")  # the fault of a program
            file.write("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n")
        failing = told(client, FaultKind.node_failing, FaultState.open)
        assert (failing.node, failing.code) == ("gy-1", "xid.79")
        assert [(each.kind.value, each.id) for each in client.open_actions("guiyang")] == [
            ("fence", failing.actions[0])
        ]
