"""The resource graph as tables and lines for people."""

from collections.abc import Iterator

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

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
    return Group(*(each for part in parts for each in (part, "")), foot)


def lines(before: GraphPicture, news: ResourceGraph | GraphChange) -> Iterator[str]:
    """What news say beyond what was known, a line for each vertex."""
    if isinstance(news, ResourceGraph):
        yield f"{news.taken_at:%H:%M:%S} {len(news.domains)} domains, {len(news.nodes)} nodes, {len(news.links)} links"
    at = f"{news.taken_at if isinstance(news, ResourceGraph) else news.changed_at:%H:%M:%S}"
    for domain in news.domains:
        yield f"{at} domain {escape(domain.id)}: {_counted(domain)}"
    for node in news.nodes:
        held = before.nodes.get(node.id)
        former = f"{held.state} → " if held and held.state != node.state else ""
        why = f" ({escape(node.because)})" if node.because else ""
        yield f"{at} node {escape(node.id)}: {former}{_styled(node)}{why}"
    for link in news.links:
        yield f"{at} link {escape(link.id)}: {', '.join(_quality(link))}"
    if isinstance(news, GraphChange):
        for vertex in news.gone:
            yield f"{at} {vertex.kind} {escape(vertex.id)}: gone"


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
    told = ", ".join(f"{getattr(domain.nodes, state)} {state}" for state in states) or "no nodes"
    return told if domain.reachable else f"{told}; not reachable"


def _styled(node: NodeVertex) -> str:
    return f"[{STYLES[node.state]}]{node.state}[/]"
