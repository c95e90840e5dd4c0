"""Gains over single-domain scheduling as the tables of a report tell them, by policy and place."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kuayu_schemas.models import ConformanceReport, ReportTable

SERVICE, AGAINST, BOUND = "service", "B1", "B5 bound"
POOL = "B5 pool"
"""No policy, but B3 where all devices are in one place."""
PLAIN = ("B3", "B3c", "B4")

AT_REFERENCE = re.compile(r"(Training periods|Service) at the reference load: jobs from (\S+), ")
"""Titles of the tables of all policies, by where jobs come from."""
LARGE = "of eight devices or more"
"""Stands in the title of a table of large jobs alone; before method 2.0 they stood beside all in one table."""
HIGHEST = "Highest load"
"""How the title of the table begins that tells what each policy sustains."""
_FAMILIES = "Training period by family"
_CURVE = re.compile(r"Over the (.+), against B1(?:; (.+))?")


@dataclass(frozen=True)
class Gains:
    """Parts by which training periods are shorter than under B1 somewhere.

    Attributes:
        where: Where, in the words of the report.
        large: Whether only jobs of at least eight devices count.
        by: Gain by policy.
    """

    where: str
    large: bool
    by: Mapping[str, float]

    @property
    def plainest(self) -> str:
        """The plain policy that gains most."""
        return max((name for name in PLAIN if name in self.by), key=self.by.__getitem__)

    @property
    def lead(self) -> float:
        """By how much that one gains more than the service; cells hold tenths of per cents."""
        return round(self.by[self.plainest] - self.by[SERVICE], 4)


@dataclass(frozen=True)
class Curve:
    """Gains along what is moved.

    Attributes:
        label: What is moved.
        vanishing: Where the gain has to vanish; empty where nobody says so.
        points: Gains at its values.
    """

    label: str
    vanishing: str
    points: tuple[Gains, ...]


def at_reference(report: ConformanceReport) -> Iterator[Gains]:
    """Gains of all policies at the reference load, by where jobs come from; of all jobs, then of large ones."""
    for shown in tables(report, "SCH-003"):
        if (found := AT_REFERENCE.match(shown.title)) and found[1] == "Training periods":
            columns = columns_of(shown, "less than B1")
            groups = (False, True) if len(columns) > 1 else (LARGE in shown.title,)
            for large, column in zip(groups, columns, strict=True):
                gains = {row.cells[0]: share(row.cells[column]) for row in shown.rows if row.cells[0] != BOUND}
                yield Gains(found[2], large, _known(gains))


def by_family(report: ConformanceReport) -> Iterator[Gains]:
    """Gains by family; those of B3, B3c, B4 and the service."""
    for shown in tables(report, "SCH-003"):
        if shown.title.startswith(_FAMILIES):
            for row in shown.rows:
                named = zip(shown.columns, row.cells, strict=True)
                gains = {head.removesuffix(" less by"): share(cell) for head, cell in named if head.endswith("less by")}
                yield Gains(row.cells[0], False, _known(gains))


def by_curve(report: ConformanceReport) -> Iterator[Curve]:
    """Gains along each thing that was moved; those of B3, B3c and the service."""
    for shown in tables(report, "SCH-003"):
        if found := _CURVE.fullmatch(shown.title):
            yield Curve(found[1], found[2] or "", tuple(_at_values(shown)))


def _at_values(shown: ReportTable) -> Iterator[Gains]:
    for row in shown.rows:
        named = zip(shown.columns, row.cells, strict=True)
        gains = {head.partition(":")[0]: share(cell) for head, cell in named if head.endswith(": period less by")}
        yield Gains(row.cells[0], False, _known(gains))


def share(cell: str) -> float | None:
    """A cell that holds per cents; None where it holds a dash."""
    return float(cell.removesuffix(" %").replace("−", "-")) / 100 if cell.endswith(" %") else None


def tables(report: ConformanceReport, requirement: str) -> Sequence[ReportTable]:
    """Tables of a requirement."""
    return [each for result in report.results if result.requirement == requirement for each in result.tables or ()]


def columns_of(shown: ReportTable, head: str) -> list[int]:
    """Places of the columns under a heading, which several may share."""
    return [place for place, each in enumerate(shown.columns) if each == head]


def _known(gains: Mapping[str, float | None]) -> dict[str, float]:
    return {name: gain for name, gain in gains.items() if gain is not None}
