"""Inventories: which nodes a domain has, what their devices are, and by which addresses others reach them."""

from pathlib import Path

import pytest
import typer

from kuayu.cli.domain import read_inventory, read_nodes
from kuayu.engine.domain import pools_of

WHOLE = """
[pools.a800]
"gy-001" = 8
"gy-002" = 4

[pools.910b]
"gy-002" = 2

[devices.a800]
kind = "gpu"
vendor = "NVIDIA"
model = "A800"
memory = "80GiB"

[addresses]
"gy-001" = "10.0.0.1"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "nodes.toml"


def test_nodes_are_registered_with_all_their_devices(file: Path) -> None:
    file.write_text(WHOLE, encoding="utf-8")
    nodes, addresses = read_nodes(str(file), "guiyang")
    assert [(node.id, node.domain, len(node.devices or ())) for node in nodes] == [
        ("gy-001", "guiyang", 8),
        ("gy-002", "guiyang", 6),
    ]
    assert [device.id for device in nodes[1].devices or ()] == ["0", "1", "2", "3", "4", "5"]
    first, last = (nodes[1].devices or ())[0], (nodes[1].devices or ())[-1]
    assert (first.vendor, first.model, first.memory_capacity) == ("NVIDIA", "A800", 80 * 2**30)
    assert (last.vendor, last.model, last.memory_capacity) == ("unknown", "910b", None)
    assert addresses == {"gy-001": "10.0.0.1"}


def test_a_domain_calls_its_devices_as_whoever_reads_the_registration(file: Path) -> None:
    file.write_text(WHOLE, encoding="utf-8")
    nodes, _ = read_nodes(str(file), "guiyang")
    assert pools_of(nodes) == {"nvidia-a800": {"gy-001": 8, "gy-002": 4}, "unknown-910b": {"gy-002": 2}}


def test_whoever_only_holds_reads_the_same_file(file: Path) -> None:
    file.write_text(WHOLE, encoding="utf-8")
    assert read_inventory(str(file)) == {"a800": {"gy-001": 8, "gy-002": 4}, "910b": {"gy-002": 2}}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[colour]", "apart from them only addresses, devices"),
        ("[devices.h100]\nkind = 'gpu'", "devices.h100: there is no pools.h100"),
        ("[devices.a800]\nkind = 'gpus'", "devices.a800.kind = 'gpus' is none of gpu, npu"),
        ("[devices.a800]\nmemory = '80G'", "write 80GB (powers of 1000) or 80GiB (of 1024)"),
        ("[devices.a800]\nmemory = -1", "devices.a800.memory = -1 is no size"),
        ("[devices.a800]\nmodel = 800", "devices.a800.model is no text"),
        ("[devices.a800]\nspeed = 3", "devices.a800.speed is no member"),
        ("[addresses]\n'gy-009' = '10.0.0.9'", "addresses.gy-009 is no node of a pool"),
        ("[addresses]\n'gy-001' = 7", "addresses.gy-001 is no text"),
    ],
)
def test_slips_are_told(file: Path, capsys: pytest.CaptureFixture[str], more: str, told: str) -> None:
    file.write_text(f"[pools.a800]\n'gy-001' = 8\n{more}\n", encoding="utf-8")
    with pytest.raises(typer.Exit):
        read_nodes(str(file), "guiyang")
    assert told in " ".join(capsys.readouterr().err.split())
