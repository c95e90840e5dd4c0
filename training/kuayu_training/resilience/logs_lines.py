"""Judge the catalogue of log faults by lists of lines: ``python -m kuayu_training.resilience.logs_lines [--misses]``.

``lines/held_out.yaml`` was written down before the catalogue's patterns were, ``lines/collected.yaml`` is what they
were made with, and ``lines/later.yaml`` was sought out afterwards among rarer forms, to widen them. A line is right
where a verdict says what to do and of what, as its list does. After the lines of ``lines/calm.yaml`` nothing may be
drained, and for most of them nothing be done at all.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from kuayu.resilience.logs.reader import LogReader
from kuayu.resilience.logs.recogniser import Follows, Verdict

LISTS = ("held_out", "collected", "later")


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or lines that belong together, with the right verdict.

    Attributes:
        follows: What may follow by it.
        about: What it may be about.
    """

    text: str
    follows: frozenset[str]
    about: frozenset[str]

    def is_recognised_by(self, verdicts: list[Verdict]) -> bool:
        """Whether one of the verdicts is right."""
        return any(verdict.follows in self.follows and verdict.about in self.about for verdict in verdicts)


def faulty(name: str) -> list[Line]:
    """Lines of a list of faults."""
    return [
        Line(text, _either(follows), _either(about)) for group in _read(name) for follows, about, text in group["lines"]
    ]


def calm() -> Iterator[tuple[str, Follows]]:
    """Calm lines, each with what may follow at most."""
    for group in _read("calm"):
        for text in group.get("never", ()):
            yield text, Follows.WATCH
        for text in group.get("no_drain", ()):
            yield text, Follows.RESTART


def verdicts(text: str) -> list[Verdict]:
    """What a log of these lines alone tells, without what is only unusual."""
    reader = LogReader(unusual=False)
    return reader.take(text.encode()) + reader.end()


def judged() -> dict[str, Any]:
    """Lines, misses and wrong actions of each list."""
    results: dict[str, Any] = {}
    for name in LISTS:
        lines = faulty(name)
        misses = [line.text for line in lines if not line.is_recognised_by(verdicts(line.text))]
        results[name] = {"lines": len(lines), "told": len(lines) - len(misses), "misses": misses}
    order = list(Follows)
    rows = [
        (text, most, max((order.index(verdict.follows) for verdict in verdicts(text)), default=0))
        for text, most in calm()
    ]
    results["calm"] = {
        "lines": len(rows),
        "drains": [text for text, _, place in rows if order[place] is Follows.DRAIN],
        "too_much": [text for text, most, place in rows if place > order.index(most)],
    }
    return results


def _read(name: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = yaml.safe_load((files(__package__) / "lines" / f"{name}.yaml").read_text("utf-8"))
    return read


def _either(names: str | list[str]) -> frozenset[str]:
    return frozenset([names] if isinstance(names, str) else names)


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.resilience.logs_lines", description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print the lines that are judged wrongly too")
    misses = parser.parse_args().misses
    results = judged()
    table = Table("list", "lines", "told rightly", "recall")
    for name in LISTS:
        row = results[name]
        table.add_row(name, str(row["lines"]), str(row["told"]), f"{row['told'] / row['lines']:.1%}")
    lines, recognised = (sum(results[name][key] for name in LISTS) for key in ("lines", "told"))
    table.add_row("all", str(lines), str(recognised), f"{recognised / lines:.1%}")
    console = Console(width=160, highlight=False, markup=False)
    console.print(table)
    quiet = results["calm"]
    console.print(
        f"calm: {quiet['lines']} lines, {len(quiet['drains'])} drained, {len(quiet['too_much'])} with too much"
    )
    if misses:
        for text in [*(text for name in LISTS for text in results[name]["misses"]), *quiet["too_much"]]:
            console.print(text, soft_wrap=True)


if __name__ == "__main__":
    main()
