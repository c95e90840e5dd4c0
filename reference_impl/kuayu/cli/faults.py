"""``kuayu faults``: what is wrong, as far as a service can tell, as a table or as it comes and goes.

1. Faults as tables and lines for people.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape

from kuayu.cli.data_directory import DEFAULT, Data, Token, Url, connected
from kuayu.cli.terminal import plain_table
from kuayu_schemas.models import Fault, FaultKind, FaultState

STYLES = {
    FaultKind.node_dead: "bold red",
    FaultKind.node_failing: "red",
    FaultKind.domain_unreachable: "bold red",
    FaultKind.job_hung: "magenta",
    FaultKind.rank_straggling: "yellow",
    FaultKind.identity_conflict: "bold yellow",
}
MAX_CLEARED_FAULTS = 10_000
"""Cleared faults that a picture remembers."""

console = Console(highlight=False)


class Picture:
    """Faults that are followed, each as it was heard of last.

    Args:
        cleared: Whether those that are over are shown too.
    """

    def __init__(self, *, cleared: bool) -> None:
        self._cleared = cleared
        self._faults: dict[str, Fault] = {}

    def take(self, fault: Fault) -> bool:
        """Take a fault as it is now; tells whether that is news."""
        if self._faults.get(fault.id) == fault:
            return False
        self._faults.pop(fault.id, None)
        self._faults[fault.id] = fault
        over = [name for name, entry in self._faults.items() if entry.state is FaultState.cleared]
        for name in over[:-MAX_CLEARED_FAULTS]:
            del self._faults[name]
        return True

    def shown(self) -> list[Fault]:
        """Those that are to be shown."""
        return [fault for fault in self._faults.values() if self._cleared or fault.state is FaultState.open]


def table(faults: Sequence[Fault], *, cleared: bool) -> Group:
    """Faults, the oldest first; with ``cleared`` also how long they lasted."""
    lasted = [">lasted"] if cleared else []
    rows = plain_table("kind", "about", "since", ">told", *lasted, "because, and the actions asked for")
    for column in rows.columns[:-1]:
        column.no_wrap = True
    rows.columns[-1].overflow = "fold"
    for fault in sorted(faults, key=lambda entry: (entry.since, entry.id)):
        style = STYLES.get(fault.kind, "") if fault.state is FaultState.open else "dim"
        rows.add_row(
            *(f"[{style}]{fault.kind}[/]" if style else str(fault.kind), escape(about(fault)), _at(fault.since)),
            f"{(fault.told_at - fault.since).total_seconds():.1f} s",
            *([_lasted(fault)] if cleared else []),
            escape("\n".join([_because(fault), *fault.actions])),
        )
    standing = sum(entry.state is FaultState.open for entry in faults)
    counted = "no fault is open" if not standing else f"{standing} fault{' is' if standing == 1 else 's are'} open"
    over = len(faults) - standing
    return Group(*([rows] if faults else []), f"{counted}, {over} cleared" if cleared else counted)


def line(fault: Fault) -> str:
    """What a change says."""
    if fault.cleared_at is not None:
        return f"{_at(fault.cleared_at)} cleared {fault.kind} {about(fault)} after {_lasted(fault)}"
    actions = f"; {', '.join(fault.actions)}" if fault.actions else ""
    return f"{_at(fault.told_at)} open {fault.kind} {about(fault)} since {_at(fault.since)}: {_because(fault)}{actions}"


def about(fault: Fault) -> str:
    """What a fault is about."""
    if fault.rank is not None:
        where = f" on {fault.node}" if fault.node else ""
        return f"rank {fault.rank} of {fault.job}{where}"
    of = f" in {fault.domain}" if fault.node and fault.domain else ""
    return f"{fault.node or fault.job or fault.domain}{of}"


def _because(fault: Fault) -> str:
    return f"{fault.code}: {fault.because}" if fault.code and fault.code not in fault.because else fault.because


def _lasted(fault: Fault) -> str:
    """How long a fault was there; a dash while it lasts."""
    return "–" if fault.cleared_at is None else f"{(fault.cleared_at - fault.since).total_seconds():.1f} s"


def _at(moment: datetime) -> str:
    """An instant: the time of a day, and the day where that is not today."""
    form = "%H:%M:%SZ" if moment.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%SZ"
    return f"{moment.astimezone(UTC):{form}}"


if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuayu_schemas.models import Fault


def faults(
    *,
    url: Url = None,
    domain: Annotated[
        str | None, typer.Option(metavar="ID", help="Only faults of this domain and of its nodes; all by default.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show cleared faults, at least those of the last hour.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Follow changes as they come, until Ctrl+C.")] = False,
    token: Token = None,
    data: Data = DEFAULT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list of faults, and with --follow a line for each change.")
    ] = False,
) -> None:
    """Show what is wrong with nodes, domains and jobs, as far as a service can tell.

    SINCE is from when on it is taken to last, TOLD how long after that the service had come to its verdict. ACTIONS are
    what it has asked domains to do because of it, by their names.
    """
    from kuayu_schemas.models import FaultState

    with connected(url, token, data) as client:
        if follow:
            news = (fault for fault in client.follow_faults() if domain in {None, fault.domain})
            with suppress(KeyboardInterrupt):
                _follow(news, everything=everything, as_json=as_json)
        else:
            state = None if everything else FaultState.open
            _show(list(client.faults(domain=domain, state=state)), everything=everything, as_json=as_json)


def _show(faults: "list[Fault]", *, everything: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([entry.to_wire() for entry in faults], ensure_ascii=False, indent=2))
    else:
        console.print(table(faults, cleared=everything))


def _follow(news: "Iterator[Fault]", *, everything: bool, as_json: bool) -> None:
    """Show what comes: a table that changes on a terminal, a line for each change elsewhere."""
    from rich.live import Live

    picture = Picture(cleared=everything)
    if not console.is_terminal or as_json:
        for new in news:
            if picture.take(new):
                typer.echo(new.to_json() if as_json else line(new))
        return
    with Live(table([], cleared=everything), console=console, screen=True, auto_refresh=False) as live:
        for new in news:
            if picture.take(new):
                live.update(table(picture.shown(), cleared=everything), refresh=True)
