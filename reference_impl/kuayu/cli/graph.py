"""``kuayu graph``: the resource graph of a service as tables, or its changes as they come.

1. The resource graph as tables and lines for people.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from kuayu.cli.data_directory import DEFAULT, Data, Token, Url, connected
from kuayu.picture import GraphPicture
from kuayu_schemas.models import (
    DomainVertex,
    GraphChange,
    LinkState,
    LinkVertex,
    NodeVertex,
    OperatingState,
    Provenance,
    ResourceGraph,
    StateCounts,
)

STYLES = {
    OperatingState.idle: "dim",
    OperatingState.busy: "green",
    OperatingState.degraded: "yellow",
    OperatingState.straggling: "magenta",
    OperatingState.faulty: "bold red",
    OperatingState.offline: "red",
    OperatingState.unknown: "dim italic",
}
LINK_STYLES = {
    LinkState.up: "green",
    LinkState.degraded: "yellow",
    LinkState.down: "bold red",
    LinkState.unknown: "dim",
}
SCALES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))

console = Console(highlight=False)


def tables(picture: GraphPicture) -> Group:
    """All of a picture."""
    parts = [_domains(picture)]
    if picture.nodes:
        parts.append(_nodes(picture))
    if picture.links:
        parts.append(_links(picture))
    revision = picture.revision
    foot = f"[dim]revision {revision.epoch}:{revision.number}[/]" if revision else ""
    return Group(*(entry for part in parts for entry in (part, "")), foot)


def lines(before: GraphPicture, news: ResourceGraph | GraphChange) -> Iterator[str]:
    """What news say beyond what was known, a line for each vertex."""
    if isinstance(news, ResourceGraph):
        yield f"{news.taken_at:%H:%M:%S} {len(news.domains)} domains, {len(news.nodes)} nodes, {len(news.links)} links"
    clock = f"{news.taken_at if isinstance(news, ResourceGraph) else news.changed_at:%H:%M:%S}"
    for domain in news.domains:
        yield f"{clock} domain {escape(domain.id)}: {_counted(domain)}"
    for node in news.nodes:
        existing = before.nodes.get(node.id)
        former = f"{existing.state} → " if existing and existing.state != node.state else ""
        why = f" ({escape(node.because)})" if node.because else ""
        yield f"{clock} node {escape(node.id)}: {former}{_styled(node)}{why}"
    for link in news.links:
        yield f"{clock} link {escape(link.id)}: {', '.join(_quality(link))}"
    if isinstance(news, GraphChange):
        for vertex in news.gone:
            yield f"{clock} {vertex.kind} {escape(vertex.id)}: gone"


def _domains(picture: GraphPicture) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("domain", overflow="fold")
    for heading in (*StateCounts.model_fields, "devices", "in use"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    for _, domain in sorted(picture.domains.items()):
        name = escape(domain.id) if domain.reachable else f"{escape(domain.id)} [red]not reachable[/]"
        counts = [_count(OperatingState(state), getattr(domain.nodes, state)) for state in StateCounts.model_fields]
        use = domain.accelerator_utilisation
        table.add_row(name, *counts, str(domain.devices), "" if use is None else f"{use:.0%}")
    return table


def _nodes(picture: GraphPicture) -> Table:
    table = Table("node", "state", "since", "sure", "because", box=None, pad_edge=False, header_style="bold")
    for _, node in sorted(picture.nodes.items()):
        sure = "" if node.confidence is None else f"{node.confidence:.0%}"
        since = f"{node.since:%Y-%m-%d %H:%M:%S}"
        table.add_row(escape(node.id), _styled(node), since, sure, escape(node.because or ""))
    return table


def _links(picture: GraphPicture) -> Table:
    table = Table("link", "from", "to", "state", box=None, pad_edge=False, header_style="bold")
    for heading in ("bandwidth", "round trip", "loss"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for _, link in sorted(picture.links.items()):
        state, bandwidth, round_trip, loss, provenance = _quality(link)
        table.add_row(
            *(escape(link.id), escape(link.source), escape(link.destination)),
            *(state, bandwidth, round_trip, loss, f"[dim]{provenance}[/]"),
        )
    return table


def _quality(link: LinkVertex) -> tuple[str, str, str, str, str]:
    """State, bandwidth, round-trip time, loss, and how they came about."""
    style = LINK_STYLES[link.state]
    bandwidth, round_trip, loss = link.inter_domain_bandwidth, link.round_trip_time, link.packet_loss
    return (
        f"[{style}]{link.state}[/]",
        "–" if bandwidth is None else _scaled(bandwidth),
        "–" if round_trip is None else f"{round_trip * 1e3:.3g} ms",
        "–" if loss is None else f"{loss:.2%}",
        "" if link.provenance is Provenance.unknown else str(link.provenance),
    )


def _scaled(bandwidth: float) -> str:
    for factor, unit in SCALES:
        if bandwidth >= factor:
            return f"{bandwidth / factor:.4g} {unit}"
    return f"{bandwidth:.4g} bit/s"


def _count(state: OperatingState, number: int) -> str:
    return f"[{STYLES[state]}]{number}[/]" if number else "[dim]·[/]"


def _counted(domain: DomainVertex) -> str:
    states = [state for state in StateCounts.model_fields if getattr(domain.nodes, state)]
    report = ", ".join(f"{getattr(domain.nodes, state)} {state}" for state in states) or "no nodes"
    return report if domain.reachable else f"{report}; not reachable"


def _styled(node: NodeVertex) -> str:
    return f"[{STYLES[node.state]}]{node.state}[/]"


if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuayu_schemas.models import GraphChange, ResourceGraph


def graph(
    *,
    url: Url = None,
    domain: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this domain, with each of its nodes; all domains by default.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Follow changes as they come, until Ctrl+C.")] = False,
    token: Token = None,
    data: Data = DEFAULT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the graph with all nodes; with --follow, one line per change.")
    ] = False,
) -> None:
    """Show the resource graph of a service: domains with their nodes by state, and the links between them."""
    nodes = as_json or domain is not None
    with connected(url, token, data, missing="kuayu graph without --domain shows which domains there are") as client:
        if follow:
            with suppress(KeyboardInterrupt):
                _follow(client.follow_graph(nodes=nodes, domain=domain), as_json=as_json)
        else:
            _show(client.graph(nodes=nodes, domain=domain), as_json=as_json)


def _show(graph: "ResourceGraph", *, as_json: bool) -> None:
    from kuayu.picture import GraphPicture

    if as_json:
        typer.echo(graph.model_dump_json(indent=2))
        return
    picture = GraphPicture()
    picture.take(graph)
    console.print(tables(picture))


def _follow(news: "Iterator[ResourceGraph | GraphChange]", *, as_json: bool) -> None:
    """Show what comes: tables that change on a terminal, a line for each thing that changes elsewhere."""
    from rich.live import Live

    from kuayu.picture import GraphPicture

    picture = GraphPicture()
    if as_json:
        for new in news:
            typer.echo(new.to_json())
    elif console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for new in news:
                picture.take(new)
                live.update(tables(picture), refresh=True)
    else:
        for new in news:
            for line in lines(picture, new):
                console.print(line, soft_wrap=True)
            picture.take(new)
