"""`kuayu hold` as operators run it: a process that holds devices as a service asks, over kill -9, and with mistakes."""

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Program, run, running
from service.conftest import Service, StartService

from kuayu.client import Client
from kuayu_schemas.models import Allocation, AllocationPhase, AllocationRecord

PATIENCE_S = 30.0

INVENTORY = """
[pools.a800]
"gy-001" = 8
"gy-002" = 8

[pools.910b]
gy-003 = 4
"""

Hold = Callable[..., Program]


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    file = tmp_path / "inventory.toml"
    file.write_text(INVENTORY, encoding="utf-8")
    return file


@pytest.fixture
def hold(inventory: Path, tmp_path: Path) -> Iterator[Hold]:
    """Starts the command for a domain; what still runs in the end is killed."""
    with contextlib.ExitStack() as started:

        def start(url: str, domain: str, *options: str) -> Program:
            where = ("--url", url, "--domain", domain, "--journal", tmp_path / f"{domain}.json")
            command = running("hold", inventory, *where, *options, no_proxy="127.0.0.1", COLUMNS="160")
            return started.enter_context(command)

        yield start


def ended(process: Program) -> tuple[int, str, str]:
    """Status, output and errors of a process that ends by itself."""
    out, errors = process.communicate(timeout=PATIENCE_S)
    return process.wait(), out, errors


def stopped(process: Program, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    return ended(process)


def wanted(name: str, domain: str, devices: int, accelerator: str = "a800") -> Allocation:
    share: dict[str, Any] = {"domain": domain, "accelerator": accelerator, "devices": devices}
    return Allocation.model_validate(
        {
            "id": name,
            "job": f"job-of-{name}",
            "revision": {"epoch": "e", "number": 1},
            "placement": {"shares": [share], "split_mode": "none"},
            "patience": PATIENCE_S,
        }
    )


def settled(client: Client, name: str, phase: AllocationPhase) -> AllocationRecord:
    deadline = time.monotonic() + PATIENCE_S
    while (record := client.allocation(name)).phase is not phase:
        assert time.monotonic() < deadline, record
        time.sleep(0.05)
    return record


def held(record: AllocationRecord) -> list[tuple[str, int]]:
    assert record.held is not None
    return [(each.node, each.devices) for each in record.held.shares[0].nodes or ()]


def test_devices_are_held_over_kill_9_and_given_back(shared: Service, hold: Hold) -> None:
    process = hold(shared.url, "h-x")
    with Client(shared.url) as client:
        client.put_allocation(wanted("hold-a", "h-x", 12))
        assert held(settled(client, "hold-a", AllocationPhase.committed)) == [("gy-001", 8), ("gy-002", 4)]
        client.put_allocation(wanted("hold-b", "h-x", 8))
        refused = settled(client, "hold-b", AllocationPhase.refused)
        assert "4 devices of a800 are free, of 8" in (refused.reason or "")
        stopped(process, signal.SIGKILL)
        process = hold(shared.url, "h-x", "--json")
        client.put_allocation(wanted("hold-c", "h-x", 4, "910b"))
        assert held(settled(client, "hold-c", AllocationPhase.committed)) == [("gy-003", 4)]
        client.delete_allocation("hold-a")
        settled(client, "hold-a", AllocationPhase.released)
        began = time.monotonic()
        status, out, errors = stopped(process)
    assert time.monotonic() - began < 10  # though the service would let it wait for longer
    assert status == 0
    changes = [json.loads(line) for line in out.splitlines()]
    assert [(each["change"], each["job"]) for each in changes] == [
        ("taken", "job-of-hold-a"),
        ("taken", "job-of-hold-c"),
        ("given_back", "job-of-hold-a"),
    ]
    assert changes[0]["nodes"] == [{"node": "gy-001", "devices": 8}, {"node": "gy-002", "devices": 4}]
    assert changes[0]["accelerator"] == "a800"
    assert f"kuayu hold for h-x at {shared.url}: 16 of a800 on 2 nodes, 4 of 910b on 1 nodes" in errors
    assert "4 devices are held or promised" in errors


def test_what_happens_is_told_in_lines(shared: Service, hold: Hold) -> None:
    process = hold(shared.url, "h-y")
    with Client(shared.url) as client:
        client.put_allocation(wanted("hold-d", "h-y", 9))
        settled(client, "hold-d", AllocationPhase.committed)
    status, out, _ = stopped(process, signal.SIGINT)
    assert (status, out) == (0, "taken for job-of-hold-d: a800, 8 on gy-001, 1 on gy-002\n")


def test_a_service_that_is_away_is_waited_for(start_service: StartService, hold: Hold) -> None:
    service = start_service()
    service.stop()
    process = hold(service.url, "h-x")
    while "again in" not in process.stderr.readline():
        assert process.poll() is None
    service.start()
    with Client(service.url) as client:
        client.put_allocation(wanted("a", "h-x", 8))
        settled(client, "a", AllocationPhase.committed)
    assert stopped(process)[0] == 0


def test_a_token_that_is_unknown_ends_it(start_service: StartService, hold: Hold) -> None:
    service = start_service("--token", "blue=one")
    status, _, errors = ended(hold(service.url, "h-x", "--token", "two"))
    assert status == 1
    assert "hint" in errors
    process = hold(service.url, "h-x", "--token", "one")
    with Client(service.url, token="one") as client:  # noqa: S106 - of this test
        client.put_allocation(wanted("a", "h-x", 8))
        settled(client, "a", AllocationPhase.committed)
    assert stopped(process)[0] == 0


def test_two_do_not_share_a_journal(shared: Service, hold: Hold) -> None:
    first = hold(shared.url, "h-z")
    assert "kuayu hold" in first.stderr.readline()
    status, _, errors = ended(hold(shared.url, "h-z"))
    assert status == 1
    assert "another controller has the journal" in errors
    assert stopped(first)[0] == 0


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("pools", "is not TOML"),
        ("[nodes]\na = 1", "must have pools, and"),
        ("pools = 3", "must have pools, and"),
        ("[pools.a800]", "pools.a800 holds no nodes"),
        ('[pools."a 800"]\nm = 8', "is not a valid identifier"),
        ('[pools.a800]\n"m/1" = 8', "pools.a800.m/1 is not a valid identifier"),
        ("[pools.a800]\nm = 0", "pools.a800.m = 0 is no number of devices"),
        ("[pools.a800]\nm = true", "pools.a800.m = True is no number of devices"),
        ('[pools.a800]\nm = "8"', "pools.a800.m = '8' is no number of devices"),
    ],
)
def test_inventories_that_are_none_are_told(content: str, cause: str, inventory: Path) -> None:
    inventory.write_text(content, encoding="utf-8")
    where = ("--url", "http://127.0.0.1:1", "--domain", "h-x", "--journal", inventory.parent / "h-x.json")
    done = run("hold", inventory, *where, COLUMNS="160")
    assert done.returncode == 2
    assert cause in done.stderr
    assert "[pools.a800]" in done.stderr


@pytest.mark.parametrize(
    ("url", "domain", "journal", "status", "cause"),
    [
        ("127.0.0.1:1", "x", "held.json", 2, "is not an http or https URL"),
        ("http://127.0.0.1:1", "x/y", "held.json", 2, "--domain is not a valid identifier"),
        ("http://127.0.0.1:1", "x", "nowhere/held.json", 1, "cannot write"),
        ("http://127.0.0.1:1", "x", "inventory.toml", 1, "cannot read"),
    ],
)
def test_options_that_are_wrong_are_told(
    url: str, domain: str, journal: str, status: int, cause: str, inventory: Path
) -> None:
    where = ("--url", url, "--domain", domain, "--journal", inventory.parent / journal)
    done = run("hold", inventory, *where, COLUMNS="160")
    assert done.returncode == status
    assert cause in done.stderr
    assert "hint" in done.stderr


def test_a_lease_is_kept_while_nobody_answers(start_service: StartService, hold: Hold) -> None:
    service = start_service()
    process = hold(service.url, "h-x")
    with Client(service.url) as client:
        client.put_allocation(wanted("a", "h-x", 8).model_copy(update={"lease": 1.0}))
        settled(client, "a", AllocationPhase.committed)
        time.sleep(2)
        assert client.allocation("a").phase is AllocationPhase.committed  # it asks often enough
        service.stop(signal.SIGKILL)
        assert process.stdout.readline() == "taken for job-of-a: a800, 8 on gy-001\n"
        assert process.stdout.readline() == "given back for job-of-a: a800, 8 on gy-001\n"
        service.start()
        released = settled(client, "a", AllocationPhase.released)
        assert released.reason == "h-x let go without being asked"
    status, _, errors = stopped(process)
    assert status == 0
    assert "let go of job-of-a: no answer of the service for 1 s" in errors
