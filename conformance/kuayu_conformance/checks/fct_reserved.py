"""Reservations asked for at instants of worlds, and what the tenants came to need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kuayu_conformance.checks.fct_bounds import gathered, ratio_bounds
from kuayu_conformance.checks.fct_fixtures import RESERVATIONS, is_answer
from kuayu_conformance.checks.fct_origins import Size, worlds
from kuayu_conformance.checks.sch_tables import percent, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.demand.wire import Subject, past, reservation_request, values
from kuayu_conformance.testbed.demand.world import STEP, World
from kuayu_schemas.models import ReportTable

HORIZON = 3_600.0
PROMISES = (0.05, 0.1, 0.2)
"""Shares of cases in which tenants may come to need more; each tenant of a world has one."""


@dataclass(frozen=True, slots=True)
class ReservedRow:
    """A reservation and what came.

    Attributes:
        world: Number of the world.
        day: Day of the world.
        promised: Share of cases in which more may be needed.
        reserved: Devices.
        needed: Most that were demanded at once until the horizon.
        seen: Most that were demanded in the series of the request.
        last: What was demanded when it was asked.
    """

    world: int
    day: int
    promised: float
    reserved: float
    needed: float
    seen: float
    last: float

    @property
    def block(self) -> tuple[int, int]:
        """What is drawn as one: a day of a world."""
        return self.world, self.day


def observe_reserved(episode: Episode, size: Size) -> tuple[tuple[ReservedRow, ...], int]:
    """Reservations for all tenants of worlds, and how many questions were not answered."""
    rows: list[ReservedRow] = []
    unanswered = 0
    for number, its, names, steps in worlds(episode, size):
        about = [Subject(domain, tenant) for domain, of in enumerate(its.domains) for tenant in range(len(of.tenants))]
        promises = _promises(episode.random, len(about))
        for step in steps:
            request = reservation_request(its, names, step, about, HORIZON, promises)
            answer = episode.ask_patiently("POST", RESERVATIONS, request)
            told = answer.json["reservations"] if is_answer(RESERVATIONS, answer) else []
            if [each["series"] for each in told] != [each["id"] for each in request["series"]]:
                unanswered += 1
                continue
            devices = [float(each["devices"]) for each in told]
            rows += _rows(its, number, step, list(zip(about, promises, devices, strict=True)))
    return tuple(rows), unanswered


def _promises(chance: Random, count: int) -> list[float]:
    return [chance.choice(PROMISES) for _ in range(count)]


def _rows(its: World, number: int, step: int, told: Sequence[tuple[Subject, float, float]]) -> Iterator[ReservedRow]:
    ahead = int(HORIZON / STEP)
    for subject, promised, devices in told:
        series = values(its, subject)
        needed = series[step + 1 : step + ahead + 1].max()
        seen = series[max(0, step - past(subject)) : step + 1].max()
        day = int(step * STEP // 86_400.0)
        yield ReservedRow(number, day, promised, devices, float(needed), float(seen), float(series[step]))


def reserved_table(rows: Sequence[ReservedRow]) -> ReportTable:
    """Violations and devices by promise, beside two rules that anybody can follow."""
    cells = []
    for promised in sorted({row.promised for row in rows}):
        its = [row for row in rows if row.promised == promised]
        for label in ("service", "the most that was seen", "last value"):
            of = [_by(label, row) for row in its]
            totals = gathered((row.block, float(row.needed > had), 1.0) for row, had in zip(its, of, strict=True))
            share = sum(row.needed > had for row, had in zip(its, of, strict=True)) / len(its)
            low, high = ratio_bounds(totals, f"{label} {promised}")
            needed = sum(row.needed for row in its) or 1.0
            shown = [percent(share), f"{percent(low)} to {percent(high)}", f"{sum(of) / needed:.3f}"]
            cells.append([percent(promised), label, str(len(its)), *shown])
    title = "Reservations for an hour: cases in which more is needed, and devices reserved over the most needed"
    return table(title, "promised|rule|cases|more is needed|5-95 %|reserved over needed", cells)


def _by(label: str, row: ReservedRow) -> float:
    return {"service": row.reserved, "the most that was seen": row.seen, "last value": row.last}[label]
