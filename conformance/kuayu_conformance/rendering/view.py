"""The report laid beside the register: what every rendering starts from."""

from collections.abc import Iterable
from dataclasses import dataclass

from kuayu_conformance.claims import EXCLUDED_BECAUSE, LEFT_TO_LONGER_RUNS
from kuayu_conformance.rendering.chart import Chart, chart
from kuayu_conformance.rendering.plot import Plot, plots
from kuayu_conformance.rendering.reasons import reason_of
from kuayu_conformance.rendering.table import Table, table
from kuayu_conformance.rendering.words import (
    EXCLUDED,
    STATES,
    UNASKED,
    UNTESTED,
    Words,
)
from kuayu_schemas.models import ConformanceReport, Requirement, RequirementRegister, RequirementResult
from kuayu_schemas.registers import withdrawn

_JUDGED = frozenset({"pass", "fail", "inconclusive", "harness-error"})
_ASIDE = frozenset({"not-applicable", "not-supported"})


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
