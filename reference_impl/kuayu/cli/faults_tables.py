"""Faults as tables and lines for people."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.markup import escape

from kuayu.cli.tables import plain_table
from kuayu_schemas.models import Fault, FaultKind, FaultState

STYLES = {
    FaultKind.node_dead: "bold red",
    FaultKind.node_failing: "red",
    FaultKind.domain_unreachable: "bold red",
    FaultKind.job_hung: "magenta",
    FaultKind.rank_straggling: "yellow",
}
HELD = 10_000
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
        over = [name for name, each in self._faults.items() if each.state is FaultState.cleared]
        for name in over[:-HELD]:
            del self._faults[name]
        return True

    def shown(self) -> list[Fault]:
        """Those that are to be shown."""
        return [each for each in self._faults.values() if self._cleared or each.state is FaultState.open]


def table(faults: Sequence[Fault], *, cleared: bool) -> Group:
    """Faults, the oldest first; with ``cleared`` also how long they lasted."""
    lasted = [">lasted"] if cleared else []
    rows = plain_table("kind", "about", "since", ">told", *lasted, "because, and the actions asked for")
    for column in rows.columns[:-1]:
        column.no_wrap = True
    rows.columns[-1].overflow = "fold"
    for fault in sorted(faults, key=lambda each: (each.since, each.id)):
        style = STYLES.get(fault.kind, "") if fault.state is FaultState.open else "dim"
        rows.add_row(
            *(f"[{style}]{fault.kind}[/]" if style else str(fault.kind), escape(about(fault)), _at(fault.since)),
            f"{(fault.told_at - fault.since).total_seconds():.1f} s",
            *([_lasted(fault)] if cleared else []),
            escape("\n".join([_because(fault), *fault.actions])),
        )
    standing = sum(each.state is FaultState.open for each in faults)
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
