"""``kuayu domain``: domains that ``kuayu up`` runs, one that runs wherever this command does, and links between them.

1. Inventories: which devices a domain has, in a small TOML file.
"""

import json
import logging
import os
import re
import shlex
import signal
import socket
import time
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kuayu.cli import data_directory
from kuayu.cli.data_directory import DataDirectory, DomainEntry, engine_options
from kuayu.cli.decisions import check_url, content_of, listed
from kuayu.cli.terminal import USAGE, Token, console, errors, fail, plain_table, read_rate, read_size, scaled
from kuayu.engine.holdings import Pools
from kuayu_schemas import schema
from kuayu_schemas.models import AcceleratorKind, Device, Link, LinkRecord, Node

FORM = 'a table for each kind of accelerator: [pools.a800], and in it a line for each node: "gy-001" = 8'
DEVICE_FORM = (
    'what a kind is: [devices.a800], and in it kind = "gpu", vendor = "NVIDIA", model = "A800", memory = "80GiB"'
)
ADDRESS_FORM = 'by which nodes of other domains reach a node: [addresses], and in it "gy-001" = "10.0.0.1"'
MAX_NODE_DEVICES = 1_000_000
"""Of a node; more is taken for a slip."""

MAX_REGISTERED = 1_024
"""Devices of a node that can be registered; the standard has no more."""

MEMBERS = {"pools", "devices", "addresses"}
UNKNOWN_VENDOR = "unknown"


def read_inventory(source: str) -> Pools:
    """Devices of each node, by kind of accelerator.

    Args:
        source: Name of a TOML file, or - for the standard input.

    Raises:
        typer.Exit: It cannot be read, or is no inventory.
    """
    pools: Pools = _read(source)["pools"]
    return pools


def read_nodes(source: str, domain: str) -> tuple[list[Node], dict[str, str]]:
    """Nodes of a domain as they are registered, and the addresses by which nodes of other domains reach them.

    Args:
        source: Name of a TOML file, or - for the standard input.
        domain: The domain.

    Raises:
        typer.Exit: It cannot be read, or is no inventory.
    """
    value = _read(source)
    described = value.get("devices", {})
    devices: dict[str, list[Device]] = {}
    for kind, nodes in value["pools"].items():
        said = described.get(kind, {})
        memory = said.get("memory")
        for node, count in nodes.items():
            own = devices.setdefault(node, [])
            own += [
                Device(
                    id=str(number),
                    kind=AcceleratorKind(said.get("kind", "gpu")),
                    vendor=said.get("vendor", UNKNOWN_VENDOR),
                    model=said.get("model", kind),
                    memory_capacity=read_size(memory) if isinstance(memory, str) else memory,
                )
                for number in range(len(own), len(own) + count)
            ]
    if large := [node for node, own in devices.items() if len(own) > MAX_REGISTERED]:
        raise fail(f"{source}: {large[0]} has more than {MAX_REGISTERED} devices", "split it into several nodes", USAGE)
    addresses: dict[str, str] = value.get("addresses", {})
    return [Node(id=node, domain=domain, devices=own) for node, own in devices.items()], addresses


def _read(source: str) -> dict[str, Any]:
    content, name = content_of(source, "inventory", "TOML"), "the standard input" if source == "-" else source
    try:
        value = tomllib.loads(content.decode())
    except ValueError as error:
        raise fail(f"{name} is not TOML: {error}", FORM, USAGE) from error
    if not value.keys() <= MEMBERS or not isinstance(value.get("pools"), dict) or not value["pools"]:
        members = ", ".join(sorted(MEMBERS - {"pools"}))
        raise fail(f"{name} is not an inventory: it must have pools, and apart from them only {members}", FORM, USAGE)
    faults = [fault for kind, nodes in value["pools"].items() for fault in _faults(kind, nodes)]
    if faults:
        raise fail(listed(f"{name} is not an inventory", faults), FORM, USAGE)
    faults = list(_device_faults(value.get("devices", {}), set(value["pools"])))
    if faults:
        raise fail(listed(f"{name} is not an inventory", faults), DEVICE_FORM, USAGE)
    faults = list(
        _address_faults(value.get("addresses", {}), {node for pool in value["pools"].values() for node in pool})
    )
    if faults:
        raise fail(listed(f"{name} is not an inventory", faults), ADDRESS_FORM, USAGE)
    return value


def _faults(kind: str, nodes: Any) -> list[str]:
    """What is wrong with a pool, a line each."""
    if not isinstance(nodes, dict) or not nodes:
        return [f"pools.{kind} holds no nodes"]
    if _is_no_name(kind):
        return [f"pools.{kind} is not a valid identifier"]
    nameless = [f"pools.{kind}.{node} is not a valid identifier" for node in nodes if _is_no_name(node)]
    wrong = [
        f"pools.{kind}.{node} = {devices!r} is no number of devices"
        for node, devices in nodes.items()
        if type(devices) is not int or not 0 < devices <= MAX_NODE_DEVICES
    ]
    return nameless + wrong


def _device_faults(described: Any, kinds: set[str]) -> list[str]:
    """What is wrong with what is said of kinds of devices, a line each."""
    if not isinstance(described, dict):
        return ["devices is no table"]
    faults = []
    for kind, said in described.items():
        if kind not in kinds:
            faults.append(f"devices.{kind}: there is no pools.{kind}")
        elif not isinstance(said, dict):
            faults.append(f"devices.{kind} is no table")
        else:
            faults += [f"devices.{kind}.{fault}" for fault in _description_faults(said)]
    return faults


def _description_faults(said: dict[str, Any]) -> list[str]:
    unknown = [f"{name} is no member" for name in said if name not in {"kind", "vendor", "model", "memory"}]
    kinds = [kind.value for kind in AcceleratorKind if kind is not AcceleratorKind.unknown]
    if said.get("kind", kinds[0]) not in kinds:
        unknown.append(f"kind = {said['kind']!r} is none of {', '.join(kinds)}")
    unknown += [f"{name} is no text" for name in ("vendor", "model") if not isinstance(said.get(name, ""), str)]
    memory = said.get("memory", 0)
    try:
        if isinstance(memory, str):
            read_size(memory)
        elif isinstance(memory, bool) or not isinstance(memory, int | float) or memory < 0:
            unknown.append(f"memory = {memory!r} is no size")
    except ValueError as error:
        unknown.append(f"memory = {memory!r}: {error}")
    return unknown


def _address_faults(addresses: Any, nodes: set[str]) -> list[str]:
    """What is wrong with addresses, a line each."""
    if not isinstance(addresses, dict):
        return ["addresses is no table"]
    return [
        f"addresses.{node} is no node of a pool" if node not in nodes else f"addresses.{node} is no text"
        for node, address in addresses.items()
        if node not in nodes or not isinstance(address, str)
    ]


def _is_no_name(text: str) -> bool:
    return bool(schema.errors("NodeShare", {"node": text, "devices": 1}))


if TYPE_CHECKING:
    from kuayu.client import Client
    from kuayu.engine.controller import DomainController
    from kuayu.engine.domain import DomainSettings
    from kuayu.engine.runs.protocol import Engine

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Domains that run jobs: add them to kuayu up, run one from inside, or register links between them.",
)

LOCAL = "local"
PRIVATE = 0o077
MAX_NAME = 128
"""Characters of an identifier."""

MAX_DEVICES = 1_024

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the domain.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="Option of the engine; may be repeated.")
]
Inventory = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="TOML file with nodes and devices, as for kuayu hold; this host by default."),
]
Devices = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=MAX_DEVICES,
        help="Devices that the processors of this host count as, where it has no accelerator; one for each two.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST", help="Name or address by which nodes of other domains reach this host."),
]
Shared = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder that all nodes reach by the same path, for runs and their steps."),
]


@app.command()
def add(
    *,
    name: Name,
    local: Annotated[bool, typer.Option("--local", help="Processes of this host.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="A Slurm cluster that this host submits to.")] = False,
    ray: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Ray cluster, as ray://HOST:10001.")] = None,
    kubeconfig: Annotated[str | None, typer.Option(metavar="FILE", help="A Kubernetes cluster.")] = None,
    ssh: Annotated[
        str | None, typer.Option(metavar="HOST", help="Another host; prints the command to type there.")
    ] = None,
    option: Options = None,
    inventory: Inventory = None,
    devices: Devices = None,
    address: Address = None,
    shared: Shared = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Add a domain, which a running kuayu up takes up at once, and every later one.

    Say what runs its jobs by one of --local, --slurm, --ray, --kubeconfig and --ssh. A cluster's nodes and devices
    stand in an inventory. What an engine needs is told by kuayu engine check.
    """
    os.umask(PRIVATE)
    chosen = {LOCAL: local, "slurm": slurm, "ray": ray, "kubernetes": kubeconfig, "ssh": ssh}
    given = [engine for engine, value in chosen.items() if value]
    if len(given) != 1:
        hint = "give one of --local, --slurm, --ray ADDRESS, --kubeconfig FILE and --ssh HOST"
        raise fail(f"it takes one engine, and there are {len(given)}", hint, USAGE)
    check_domain(name)
    [engine] = given
    directory = DataDirectory(data)
    if ssh is not None:
        _tell_ssh(name, ssh, directory)
    options = _pairs(option)
    options |= {"address": str(ray)} if ray is not None else {}
    options |= {"kubeconfig": str(Path(kubeconfig).expanduser().absolute())} if kubeconfig is not None else {}
    known = directory.entries()
    if name in known:
        raise fail(f"there is a domain {name}", f"kuayu domain remove {name}, or choose another name", USAGE)
    entry = DomainEntry(
        engine=engine,
        options=options,
        devices=devices,
        address=address,
        inventory=None if inventory is None else str(Path(inventory).expanduser().absolute()),
        shared=None if shared is None else str(_folder(shared)),
    )
    _check_entry(name, entry, known, directory)
    try:
        directory.make()
        directory.add(name, entry)
    except OSError as error:
        raise fail(f"cannot write {directory.domains}: {error.strerror}", "name a folder with --data") from error
    when = "kuayu up takes it up now" if directory.is_up else "it runs from the next kuayu up on"
    typer.echo(f"domain {name}, engine {engine}: {when}")


@app.command(name="list")
def show(data: data_directory.Data = data_directory.DEFAULT) -> None:
    """List the domains that kuayu up runs."""
    directory = DataDirectory(data)
    entries, running = directory.entries(), directory.running()
    if not entries:
        typer.echo(f"no domain is added in {data}; kuayu up adds this host")
        return
    table = plain_table("domain", "engine", "runs", "nodes")
    for name, entry in entries.items():
        table.add_row(name, entry.engine, "yes" if name in running else "no", entry.inventory or "this host")
    console.print(table)


@app.command()
def remove(name: Name, data: data_directory.Data = data_directory.DEFAULT) -> None:
    """Remove a domain; a running kuayu up ends what runs there.

    Its nodes stay registered with the service, and count as dead when they are silent.
    """
    directory = DataDirectory(data)
    if name not in directory.entries():
        known = ", ".join(directory.entries()) or "none"
        raise fail(f"there is no domain {name} in {data}", f"there are: {known}", USAGE)
    directory.remove(name)
    after = "; kuayu up ends what runs there" if directory.is_up else ""
    typer.echo(f"domain {name} is removed{after}")


@app.command()
def link(
    *,
    source: Annotated[str, typer.Argument(metavar="FROM", help="Domain where it begins.")],
    destination: Annotated[str, typer.Argument(metavar="TO", help="Domain where it ends.")],
    capacity: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="What it carries, as 10Gbit/s; what telemetry says of it prevails."),
    ] = None,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Register a link between two domains: over links, and over no others, jobs are spread and data move.

    The way back is taken to be like it, unless it is registered too. What else was registered of it stays.
    """
    from kuayu.cli.data_directory import connected
    from kuayu.client import NotFoundError

    name = f"{source}-{destination}"
    for end in (source, destination):
        check_domain(end)
    if source == destination:
        raise fail(f"a link begins and ends in {source}", "name two domains", USAGE)
    otherwise = "register it by PUT /v1/links/ID under a name of its own"
    if len(name) > MAX_NAME:
        raise fail(f"the link would be called {name}, and {MAX_NAME} characters are the most", otherwise, USAGE)
    try:
        known_rate = {} if capacity is None else {"capacity": read_rate(capacity)}
    except ValueError as error:
        raise fail(
            f"--capacity {capacity}: {error}", "kuayu domain link EAST WEST --capacity 10Gbit/s", USAGE
        ) from error
    with connected(url, token, data) as client:
        try:
            known = client.link(name).to_wire()
        except NotFoundError:
            known = {}
        if known and (known["source"], known["destination"]) != (source, destination):
            cause = f"the link {name} leads from {known['source']} to {known['destination']}"
            raise fail(cause, otherwise, USAGE)
        members = {member: value for member, value in known.items() if member in Link.model_fields}
        body = {**members, "id": name, "source": source, "destination": destination, **known_rate}
        added = {source, destination} & DataDirectory(data).entries().keys()
        record = _registered(client, Link.model_validate_json(json.dumps(body)), added)
    rate = "whose capacity nobody states" if record.capacity is None else scaled(record.capacity, "bit/s")
    typer.echo(f"link {record.id} from {record.source} to {record.destination}, {rate}")


LINK_PATIENCE_SECONDS = 60.0
"""For which a link waits for a domain that was just added: it is registered when its process is there."""


def _registered(client: "Client", link: Link, added: Collection[str]) -> "LinkRecord":
    """The link as the service has it, once domains that were added are known to it.

    Raises:
        ClientError: It does not know a domain, in time if it was added, or refuses the link.
    """
    from kuayu.client import RefusedError

    deadline = time.monotonic() + (LINK_PATIENCE_SECONDS if added else 0.0)
    waits = False
    while True:
        try:
            return client.put_link(link)
        except RefusedError as error:
            if error.name != "unknown-reference" or time.monotonic() >= deadline:
                raise
        if not waits:
            errors.print(f"[dim]waits until {' and '.join(sorted(added))} can be linked[/]")
        waits = True
        time.sleep(0.5)


@app.command()
def run(
    *,
    domain: Annotated[str, typer.Option(metavar="NAME", help="Name of the domain.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the service; /v1 lies under it.")],
    engine: Annotated[str, typer.Option(metavar="NAME", help="What runs jobs: local, slurm, ray, kubernetes.")] = LOCAL,
    option: Options = None,
    directory: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the domain keeps what it needs; kuayu-domains/NAME by default."),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with what is prepared, allocated and run; in DIR by default."),
    ] = None,
    inventory: Inventory = None,
    devices: Devices = None,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Name of this host as a node; DOMAIN.HOSTNAME by default.")
    ] = None,
    address: Address = None,
    shared: Shared = None,
    leave_running: Annotated[
        bool, typer.Option("--leave-running", help="Let runs continue when this command ends.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
    confirm_leases: Annotated[bool, typer.Option("--confirm-leases", hidden=True)] = False,
    token: Token = None,
) -> None:
    """Run a domain: hold devices, start and stop jobs, and tell how they are, all as a service asks.

    It dials out, so that nothing has to be let in. Without an inventory this host is its one node, which sends signs of
    life and telemetry too. It outlives kill -9 and restarts: what runs is found again. Told to end, it ends all runs,
    and the service starts their jobs again elsewhere or later; told so a second time, it leaves them.
    """
    from kuayu.engine.domain import DomainSettings

    os.umask(PRIVATE)
    check_domain(domain)
    check_url(url)
    logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    place = (directory or Path("kuayu-domains") / domain).absolute()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"cannot make {place}: {error.strerror}", "name a folder with --directory") from error
    if engine == LOCAL and inventory is not None:
        raise fail("the engine local runs on this host alone", "leave --inventory out, or name another engine", USAGE)
    if engine != LOCAL and inventory is None:
        raise fail(f"the engine {engine} runs on a cluster", "name its nodes with --inventory FILE", USAGE)
    nodes = _of_host(domain, node, devices, address) if inventory is None else _of_inventory(inventory, domain, address)
    reached = place if shared is None else _folder(shared)
    if shared is not None or engine == LOCAL:
        nodes["steps"] = reached / "steps"
    journal_file = journal or place / "journal.json"
    settings = DomainSettings(url, token, domain, journal=journal_file, confirm_leases=confirm_leases, **nodes)
    _run(settings, _engine(engine, reached / "engine", _pairs(option), settings), leave_running, as_json=as_json)


def _run(settings: "DomainSettings", engine: "Engine", leave_running: bool, *, as_json: bool) -> None:  # noqa: FBT001
    """Run a domain until SIGTERM or SIGINT."""
    from kuayu.cli.hold import Lines, run_controller
    from kuayu.client import ClientError
    from kuayu.engine.domain import RunningDomain, pools_of
    from kuayu.engine.holdings import JournalError
    from kuayu.engine.runs.protocol import EngineError

    def control(controller: "DomainController") -> None:
        kinds = ", ".join(
            f"{sum(nodes.values())} of {kind} on {len(nodes)} nodes" for kind, nodes in pools_of(settings.nodes).items()
        )
        typer.echo(f"kuayu domain {settings.domain} at {settings.url}: {kinds}; engine {engine.name}", err=True)
        run_controller(controller)

    try:
        with RunningDomain(settings, engine, Lines(as_json=as_json)) as running:
            running.run(control)
            live = [record.name for record in running.runner.records if not record.over]
            if live and not leave_running:
                typer.echo(f"{len(live)} runs are ended; once more, and they go on", err=True)
                if not running.end_runs("its domain was shut down", _told_again()):
                    typer.echo("what was not ended goes on, and is found again at the next start", err=True)
            elif live:
                typer.echo(f"{len(live)} runs go on, and are found again at the next start", err=True)
    except (JournalError, ClientError, EngineError) as error:
        raise fail(error.cause, error.hint) from error


def _told_again() -> Any:
    """Gives whether SIGTERM or SIGINT has come since."""
    report: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: report.append(which))
    return lambda: bool(report)


def _of_inventory(inventory: str, domain: str, address: str | None) -> dict[str, Any]:
    """What of the settings of a domain follows from an inventory."""
    nodes, addresses = read_nodes(inventory, domain)
    if address is not None and len(nodes) > 1:
        hint = 'give each its own in the inventory: [addresses], and in it "gy-001" = "10.0.0.1"'
        raise fail("--address names one host, and the inventory has several", hint, USAGE)
    return {"nodes": nodes, "addresses": addresses if address is None else {nodes[0].id: address}}


def _of_host(domain: str, node: str | None, devices: int | None, address: str | None) -> dict[str, Any]:
    """What of the settings of a domain follows from this host."""
    from kuayu.engine.host import Host, usual_parts

    host = Host.local(devices or usual_parts())
    if devices is not None and host.nvidia is not None:
        hint = "leave --devices out; CUDA_VISIBLE_DEVICES says which of them are given out"
        raise fail("this host has accelerators, and these are its devices", hint, USAGE)
    name = node or host_node(domain)
    if schema_faults(name):
        raise fail(f"--node {name!r} is not a valid identifier", "letters, digits and ._- only, at most 128", USAGE)
    addresses = {} if address is None else {name: address}
    return {"nodes": [host.node(name, domain)], "addresses": addresses, "host": host, "host_node": name}


def _engine(name: str, place: Path, given: Mapping[str, str], settings: "DomainSettings") -> "Engine":
    """The engine of a domain.

    Raises:
        typer.Exit: It cannot be had.
    """
    from kuayu.engine.runs import registry
    from kuayu.engine.runs.protocol import EngineError

    options = engine_options(name, given)
    if name == LOCAL and "nodes" not in options:
        options["nodes"] = {node.id: len(node.devices or ()) for node in settings.nodes}
    try:
        return registry.find(name, place, **options)
    except EngineError as error:
        raise fail(error.cause, error.hint) from error


def _check_entry(name: str, entry: DomainEntry, known: Mapping[str, DomainEntry], directory: DataDirectory) -> None:
    """Hold a new entry against what there is.

    Raises:
        typer.Exit: It could not be run.
    """
    from kuayu.engine.runs import registry
    from kuayu.engine.runs.protocol import EngineError

    if entry.engine == LOCAL:
        from kuayu.engine.host import NvidiaAccelerators

        others = [other for other, item in known.items() if item.engine == LOCAL]
        if others and NvidiaAccelerators.find() is not None:
            hint = "a host's accelerators are one domain's; leave it, or remove the other one"
            raise fail(f"the accelerators of this host are domain {others[0]}'s", hint, USAGE)
        if entry.inventory is not None:
            raise fail("the engine local runs on this host alone", "leave --inventory out", USAGE)
    elif entry.inventory is None:
        form = "[pools.a800], and in it a line for each node"
        raise fail(
            f"the engine {entry.engine} runs on a cluster", f"name its nodes with --inventory FILE: {form}", USAGE
        )
    else:
        read_nodes(entry.inventory, name)
    options = engine_options(entry.engine, entry.options)
    try:
        place = directory.domains / name if entry.shared is None else Path(entry.shared)
        findings = registry.find(entry.engine, place / "engine", **options).check()
    except EngineError as error:
        raise fail(f"domain {name} could not run jobs: {error.cause}", error.hint) from error
    missing = [finding for finding in findings if not finding.present]
    for finding in missing:
        errors.print(f"[yellow]missing[/] {finding.subject}: {finding.detail}; {finding.hint}")
    if missing and entry.engine != LOCAL:
        raise fail(f"domain {name} could not run jobs", "fix what is missing, and add the domain again")


def _tell_ssh(name: str, host: str, directory: DataDirectory) -> None:
    """Say how a host that is reached by SSH becomes a domain: this program starts nothing over SSH by itself.

    Raises:
        typer.Exit: Always.
    """
    known = directory.connection()
    url = known[0] if known else data_directory.DEFAULT_URL
    port = url.rpartition(":")[2]
    inside = f"kuayu domain run --domain {name} --url http://127.0.0.1:{port}"
    tunnel = f"ssh -t -R {port}:127.0.0.1:{port} {shlex.quote(host)} {inside}"
    hint = f"{tunnel}, with KUAYU_TOKEN set there; that host needs kuayu too"
    raise fail("kuayu starts nothing over SSH by itself; a domain dials out", hint, USAGE)


def check_domain(name: str) -> None:
    """Hold the name of a domain to its form.

    Raises:
        typer.Exit: It is no name.
    """
    if schema_faults(name):
        raise fail(f"{name!r} is not a valid name of a domain", "letters, digits and ._- only, at most 128", USAGE)


def schema_faults(name: str) -> list[Any]:
    """What is wrong with an identifier."""
    from kuayu_schemas import schema

    return list(schema.errors("Domain", {"id": name}))


def host_node(domain: str) -> str:
    """Name of this host as a node of a domain; the same host can be in several."""
    host = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname()).strip("-._") or "host"
    return f"{domain}.{host}"[:MAX_NAME]


def _folder(name: str) -> Path:
    return Path(name).expanduser().absolute()


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = {}
    for entry in given or ():
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise fail(f"--option {entry}: there is no value", "write it as --option KEY=VALUE", USAGE)
        pairs[key] = value
    return pairs
