"""The report laid beside the register: what every rendering starts from.

1. **Tables** of checks are laid out: every row as long as the longest, columns of figures told from columns of words.
2. **Reasons.** A report keeps a reason as it was judged, with figures as they are computed, since whoever judges again
   has to come to the same bytes: ``0.35 1 against at_least 0.4``. Here the figures in it are written as the tables
   write them: ``35 % against at least 40 %``. The unit ``1`` of UCUM says that a figure has no dimension, and is never
   printed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from kuayu_conformance.claims import EXCLUDED_BECAUSE, LEFT_TO_LONGER_RUNS
from kuayu_conformance.rendering.chart import Chart, chart, figure_unit
from kuayu_conformance.rendering.figures import Unit, unit_of
from kuayu_conformance.rendering.plot import Plot, plots
from kuayu_conformance.rendering.words import (
    COMPARISONS,
    EXCLUDED,
    STATES,
    UNASKED,
    UNTESTED,
    Words,
)
from kuayu_schemas.models import (
    ConformanceReport,
    ReportTable,
    Requirement,
    RequirementRegister,
    RequirementResult,
    Threshold,
)
from kuayu_schemas.registers import withdrawn

_FIGURE = re.compile(r"(?=.*\d)[\d\s.,+\-−–±~≈<>≤≥%‰/…×·^()\[\]eE⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")  # no letters but those of an exponent
_BLANK = frozenset({"", "-", "–", "—", "n/a"})

_NUMBER = r"-?(?:\d\S*|inf)"
_COMPARED = re.compile(
    rf"(?:(?P<other>other )?bound (?P<bound>{_NUMBER}) does not: )?"
    rf"(?P<estimate>{_NUMBER}) \S+ against (?P<side>{'|'.join(COMPARISONS)}) (?P<limit>{_NUMBER})"
)
"""How a judgement words a figure that does not pass (:mod:`kuayu_conformance.run.judgement`)."""

_JUDGED = frozenset({"pass", "fail", "inconclusive", "harness-error"})
_ASIDE = frozenset({"not-applicable", "not-supported"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; ``figure`` where its column holds figures, which stand flush right."""

    text: str
    figure: bool


@dataclass(frozen=True, slots=True)
class Table:
    """What is shown: heading and rows are of one length."""

    title: str
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(shown: ReportTable) -> Table:
    """Lay out a table; rows that are too short are filled, and what is too long keeps its cells under no heading."""
    width = max([len(shown.columns), *(len(row.cells) for row in shown.rows)])
    head, *rows = [cells + [""] * (width - len(cells)) for cells in (shown.columns, *(row.cells for row in shown.rows))]
    figures = [_holds_figures([row[column] for row in rows]) for column in range(width)]
    return Table(shown.title, _cells(head, figures), tuple(_cells(row, figures) for row in rows))


def _cells(texts: list[str], figures: list[bool]) -> tuple[Cell, ...]:
    return tuple(Cell(text, figure) for text, figure in zip(texts, figures, strict=True))


def _holds_figures(column: list[str]) -> bool:
    said = [text for text in map(str.strip, column) if text not in _BLANK]
    return bool(said) and all(map(_FIGURE.fullmatch, said))


def reason_of(result: RequirementResult) -> str | None:
    """Why a result is what it is; None where it does not say."""
    threshold = result.threshold
    if not result.reason or threshold is None:
        return result.reason
    return _COMPARED.sub(lambda match: _worded(match, result, threshold), result.reason)


def _worded(match: re.Match[str], result: RequirementResult, threshold: Threshold) -> str:
    """The same comparison, in the unit that the figure is shown in elsewhere."""
    figures = {name: match[name] for name in ("bound", "estimate", "limit") if match[name]}
    try:
        values = {name: float(figure) for name, figure in figures.items()}
    except ValueError:  # no judgement of ours
        return match[0]
    if result.estimate is not None:  # what is compared is written with six digits, and the report has them all
        values |= {"estimate": result.estimate, "limit": threshold.value}
        if "bound" in values and not match["other"] and result.bound is not None:
            values["bound"] = result.bound
    finite = [value for value in values.values() if isfinite(value)]
    unit = unit_of(threshold.unit, finite) if result.estimate is None else figure_unit(result)
    shown = {name: _shown(unit, value, finite) for name, value in values.items()}
    compared = f"{shown['estimate']} against {COMPARISONS[match['side']].en} {shown['limit']}"
    return f"{match['other'] or ''}bound {shown['bound']} does not: {compared}" if "bound" in shown else compared


def _shown(unit: Unit, value: float, others: list[float]) -> str:
    return unit.text(value, apart_from=others) if isfinite(value) else f"{value:g}"


def limit_of(threshold: Threshold, *others: Threshold | None) -> str:
    """A threshold in words, such as ``at least 40 %``, in a unit that suits ``others`` too."""
    unit = unit_of(threshold.unit, [threshold.value, *(other.value for other in others if other)])
    return f"{COMPARISONS[threshold.comparison].en} {unit.text(threshold.value)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A requirement, and what the run found for it.

    Attributes:
        id: Identifier of the requirement.
        profile: Profile that it belongs to.
        title: Short name; its identifier where the register does not know it.
        state: Verdict, or ``untested``, ``unasked`` or ``excluded`` (:mod:`.words`).
        requirement: Row of the register; None where the register does not know it.
        result: What was found; None where the report says nothing.
        chart: Drawing of its figure; None where there is none.
    """

    id: str
    profile: str
    title: Words
    state: str
    requirement: Requirement | None
    result: RequirementResult | None
    chart: Chart | None

    @property
    def number(self) -> str:
        """What is left of the identifier when its profile is known."""
        return self.id.removeprefix(f"{self.profile}-") or self.id

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Pictures beside the verdict."""
        return plots((self.result and self.result.plots) or ())

    @property
    def tables(self) -> tuple[Table, ...]:
        """Further figures, printed and not judged."""
        return tuple(map(table, (self.result and self.result.tables) or ()))

    @property
    def result_reason(self) -> str | None:
        """Why the result is so, with figures as tables show them; None where it does not say."""
        return reason_of(self.result) if self.result else None

    @property
    def reason(self) -> Words | None:
        """Why nothing was judged; None where something was, or where it was tried (the result then says more)."""
        if self.state == UNTESTED and self.requirement and self.requirement.unchecked_because_en:
            because = self.requirement
            return Words(because.unchecked_because_en or "", because.unchecked_because_zh or "")
        if self.state == EXCLUDED and self.result and self.result.reason:
            why = self.result.reason.removeprefix(EXCLUDED_BECAUSE)
            return Words(self.result.reason, f"已排除：{why}")
        if self.state in _ASIDE:
            return Words(self.result.reason, self.result.reason) if self.result and self.result.reason else None
        return None


@dataclass(frozen=True, slots=True)
class Group:
    """The requirements of one profile."""

    profile: str
    name: Words
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The report by profile, in the order of the register; what the register does not know comes last."""

    report: ConformanceReport
    groups: tuple[Group, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All requirements."""
        return tuple(entry for group in self.groups for entry in group.entries)

    def in_state(self, *states: str) -> tuple[Entry, ...]:
        """Requirements in some states, state by state."""
        return tuple(entry for state in states for entry in self.entries if entry.state == state)

    @property
    def left_to_longer_runs(self) -> tuple[Entry, ...]:
        """Requirements that a smoke run has no time for."""
        return tuple(entry for entry in self.entries if entry.result and entry.result.reason == LEFT_TO_LONGER_RUNS)

    def counted(self, *states: str) -> int:
        """How many of the requirements that the exit code counts are in some states, or in any where none is named."""
        return sum(result.required and (not states or result.verdict in states) for result in self.report.results)


def view_of(report: ConformanceReport, register: RequirementRegister) -> View:
    """Lay the report beside the register."""
    known = {requirement.id: requirement for requirement in register.requirements}
    results = {result.requirement: result for result in report.results}
    strangers = (name for name in results if name not in known)
    entries = [_entry(name, known.get(name), results.get(name)) for name in (*known, *strangers)]
    names: dict[str, Words] = {row.profile: Words(row.name_en, row.name_zh) for row in register.profiles}
    profiles = dict.fromkeys([*names, *(entry.profile for entry in entries)])
    groups = (_group(profile, names.get(profile, Words(profile, profile)), entries) for profile in profiles)
    return View(report, tuple(group for group in groups if group.entries))


def _group(profile: str, name: Words, entries: Iterable[Entry]) -> Group:
    return Group(profile, name, tuple(entry for entry in entries if entry.profile == profile))


def _entry(name: str, requirement: Requirement | None, result: RequirementResult | None) -> Entry:
    return Entry(
        id=name,
        profile=requirement.profile if requirement else name.partition("-")[0],
        title=Words(requirement.title_en, requirement.title_zh) if requirement else _title_of_stranger(name),
        state=_state(requirement, result),
        requirement=requirement,
        result=result,
        chart=chart(result) if result else None,
    )


def _title_of_stranger(name: str) -> Words:
    """Title of what the register does not have: what is withdrawn keeps its own, anything else has its name alone."""
    gone = withdrawn().get(name)
    if gone is None:
        return Words(name, name)
    instead = ", ".join(gone.replaced_by)
    return Words(
        f"{gone.title_en} (withdrawn{f'; {instead}' if instead else ''})",
        f"{gone.title_zh}（已撤销{f'，由 {instead} 取代' if instead else ''}）",
    )


def _state(requirement: Requirement | None, result: RequirementResult | None) -> str:
    verdict = result.verdict if result else UNASKED
    untested = requirement is not None and requirement.check is None and verdict not in _JUDGED
    if untested or verdict not in STATES:
        return UNTESTED
    excluded = result is not None and verdict == "not-applicable" and (result.reason or "").startswith(EXCLUDED_BECAUSE)
    return EXCLUDED if excluded else verdict
