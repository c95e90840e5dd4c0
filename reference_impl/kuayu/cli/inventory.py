"""Inventories: which devices a domain has, in a small TOML file."""

import tomllib
from typing import Any

from kuayu.cli.documents import content_of, listed
from kuayu.cli.probe import USAGE, fail
from kuayu.engine.holdings import Pools
from kuayu_schemas import schema

FORM = 'a table for each kind of accelerator: [pools.a800], and in it a line for each node: "gy-001" = 8'
MOST_DEVICES = 1_000_000
"""Of a node; more is taken for a slip."""


def read_inventory(source: str) -> Pools:
    """Devices of each node, by kind of accelerator.

    Args:
        source: Name of a TOML file, or - for the standard input.

    Raises:
        typer.Exit: It cannot be read, or is no inventory.
    """
    content, name = content_of(source, "inventory"), "the standard input" if source == "-" else source
    try:
        value = tomllib.loads(content.decode())
    except ValueError as error:
        raise fail(f"{name} is no TOML: {error}", FORM, USAGE) from error
    if value.keys() != {"pools"} or not isinstance(value["pools"], dict) or not value["pools"]:
        raise fail(f"{name} is no inventory: it has to hold pools and nothing else", FORM, USAGE)
    faults = [fault for kind, nodes in value["pools"].items() for fault in _faults(kind, nodes)]
    if faults:
        raise fail(listed(f"{name} is no inventory", faults), FORM, USAGE)
    pools: Pools = value["pools"]
    return pools


def _faults(kind: str, nodes: Any) -> list[str]:
    """What is wrong with a pool, a line each."""
    if not isinstance(nodes, dict) or not nodes:
        return [f"pools.{kind} holds no nodes"]
    if _is_no_name(kind):
        return [f"pools.{kind} is no identifier"]
    nameless = [f"pools.{kind}.{node} is no identifier" for node in nodes if _is_no_name(node)]
    wrong = [
        f"pools.{kind}.{node} = {devices!r} is no number of devices"
        for node, devices in nodes.items()
        if type(devices) is not int or not 0 < devices <= MOST_DEVICES
    ]
    return nameless + wrong


def _is_no_name(text: str) -> bool:
    return bool(schema.errors("NodeShare", {"node": text, "devices": 1}))
