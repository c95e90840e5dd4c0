"""What all commands share of the terminal: errors with a hint, quantities, tables.

1. Quantities as people read and write them.
2. The table that all commands print.
"""

import re
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

USAGE = 2
"""Exit status of a command that was not called rightly."""

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Token = Annotated[
    str | None, typer.Option(metavar="T", envvar="KUAYU_TOKEN", help="Bearer token, where the service asks for one.")
]


def fail(cause: str, hint: str, code: int = 1) -> typer.Exit:
    """Print a cause and a hint; the exit to raise."""
    errors.print(f"[bold red]error[/] {escape(cause)}\n[dim]hint[/]  {escape(hint)}")
    return typer.Exit(code)


MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
STEPS = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

SIZES = {
    "B": 1.0,
    **{f"{prefix}B": 1000.0**power for power, prefix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T", "P", "E"), 1)},
}
"""Bytes of each unit: decimal prefixes of the SI, binary ones of IEC 80000-13."""

RATES = {"bit/s": 1.0, **{f"{prefix}bit/s": 1000.0**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)}}
"""Bits a second of each unit, with decimal prefixes of the SI."""

SPANS = {"ms": 1e-3, "s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY}
"""Seconds of each unit (SI, and units that may be used with it)."""

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?bit/s)")
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def scaled(value: float, unit: str = "") -> str:
    """Three digits with a decimal prefix, such as ``1.75 GB``."""
    for size, prefix in STEPS:
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def span(seconds: float) -> str:
    """A length of time in the unit that suits it, with three digits."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.3g} s"


def within(low: float, high: float) -> str:
    """By which factor the ends of an interval are off its middle, such as ``×/÷ 1.25``; nothing where it is a point."""
    return f"×/÷ {(high / low) ** 0.5:.3g}" if 0 < low < high else ""


def read_size(text: str) -> float:
    """Bytes of a size such as ``40GiB``, ``1.5 TB`` or ``1000``.

    Raises:
        ValueError: It is none; the message says how it could be written.
    """
    result = _PART.fullmatch(text)
    if result is None:
        raise ValueError("write it as a number and a unit, such as 40GiB or 1.5TB")
    unit = result[2] or "B"
    if unit in SIZES:
        return float(result[1]) * SIZES[unit]
    letter = unit[0].upper()
    if letter in "KMGTPE":
        decimal = f"{result[1]}{letter.replace('K', 'k')}B"
        raise ValueError(f"{unit} is no unit: write {decimal} (powers of 1000) or {result[1]}{letter}iB (of 1024)")
    raise ValueError(f"{unit} is no unit of size: units are {', '.join(SIZES)}")


def read_rate(text: str) -> float:
    """Bits a second of a rate such as ``10Gbit/s``.

    Raises:
        ValueError: It is none; the message says how it could be written.
    """
    result = _RATE.fullmatch(text.strip())
    if result is None:
        raise ValueError(f"write it as a number and a unit, such as 10Gbit/s; units are {', '.join(RATES)}")
    return float(result[1]) * RATES[result[2]]


def read_span(text: str) -> float:
    """Seconds of a length of time such as ``90s``, ``2h``, ``1h 30min`` or ``45``.

    Raises:
        ValueError: It is none; the message says how it could be written.
    """
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError("write it as a number and a unit, such as 90s, 2h or 1h 30min")
    if len(parts) == 1 and not parts[0][2]:
        return float(parts[0][1])
    total = 0.0
    for part in parts:
        if part[2] not in SPANS:
            raise ValueError(f"{part[2] or part[1]!r} is no unit of time: units are {', '.join(SPANS)}")
        total += float(part[1]) * SPANS[part[2]]
    return total


def plain_table(*headings: str) -> Table:
    """A table without lines; a heading that begins with ``>`` has its column aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading.startswith(">")
        table.add_column(heading.removeprefix(">"), justify="right" if right else "left")
    return table
