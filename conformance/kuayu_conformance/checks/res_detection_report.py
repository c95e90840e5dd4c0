"""Figures of RES-001 and RES-002 from an account, with the parts, tables and pictures that stand beside them."""

from collections.abc import Iterator, Sequence

from kuayu_conformance.checks.res_detection_scores import NEVER, Account, Outcome
from kuayu_conformance.checks.sch_tables import NONE, lines, table
from kuayu_conformance.findings import Claim, Figure, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound, quantile, quantile_upper_bound
from kuayu_conformance.testbed.heartbeats import World
from kuayu_conformance.testbed.heartbeats.values import CAUSES, KINDS
from kuayu_schemas.models import ReportPlot, ReportTable

RECOGNISED, RESPONDED = "RES-001", "RES-002"

QUANTILE = 0.99
MOST_MISSES = 8
LIMIT = 3.0
"""Seconds after which a response is named as a miss, the first of them (RES-002); judged by the register alone."""

_DAY = 86_400.0
_POINTS = 100


def recognised(world: World, found: Account, waited: float) -> Figure:
    """RES-001: share of what was recognised among incidents and false alarms."""
    hits, total = _hits(found.outcomes), len(found.outcomes) + len(found.wrong)
    days = len(world.nodes) * world.scale.seconds / _DAY
    return Figure(
        RECOGNISED,
        hits / total,
        proportion_lower_bound(hits, total),
        total,
        f"recognised share of {len(found.outcomes)} incidents and {len(found.wrong)} false alarms, exact one-sided "
        f"95 % lower bound (Clopper-Pearson); {len(found.wrong) / days:.2f} false alarms for each node and day, over "
        f"{days:.2f} of these; the suite's own world waited {waited:.1f} s for it to keep up. Parts: by kind of fault",
        list(_shares(found)),
        [*_unrecognised(found)][:MOST_MISSES],
        [_by_kind(found), _by_cause(found)],
        [_distribution("Time until a fault was told", {kind: _told(found, kind) for kind in KINDS})],
    )


def responded(found: Account) -> Figure:
    """RES-002: 99th percentile of the time from a fault until its actions can be fetched."""
    its = [each for each in found.outcomes if each.responded_s is not None]
    seconds = [_ended(each.responded_s) for each in its]
    never = sum(each >= NEVER for each in seconds)
    kinds = [kind for kind in KINDS if any(each.incident.kind == kind for each in its)]
    by_kind = {kind: [_ended(each.responded_s) for each in its if each.incident.kind == kind] for kind in kinds}
    apart = {
        "until told": [_ended(each.told_s) for each in its],
        "from there until it can be fetched": [each.acting_s for each in its if each.acting_s is not None],
    }
    return Figure(
        RESPONDED,
        quantile(seconds, QUANTILE),
        min(NEVER, quantile_upper_bound(seconds, QUANTILE)),
        len(seconds),
        f"99th percentile of the time from a fault until its actions can be fetched, one-sided 95 % upper bound by "
        f"order statistics; {never} of {len(seconds)} had none within 10 s and count as {NEVER:.0f} s. Parts: by kind, "
        "and the time until a fault is told and from there on apart",
        [
            PartFigure(name, quantile(row, QUANTILE), _bound(row), len(row))
            for name, row in (by_kind | apart).items()
            if row
        ],
        [*_late(its)][:MOST_MISSES],
        [_times("Time until actions could be fetched, s", by_kind | apart)],
        [_distribution("Time until actions could be fetched", by_kind)],
    )


def _hits(outcomes: Sequence[Outcome]) -> int:
    return sum(each.telling is not None for each in outcomes)


def _ended(seconds: float | None) -> float:
    return NEVER if seconds is None else min(NEVER, seconds)


def _bound(seconds: Sequence[float]) -> float | None:
    """Upper bound of the percentile; None where there are too few for one."""
    bound = quantile_upper_bound(seconds, QUANTILE)
    return bound if bound <= NEVER else None


def _of(found: Account, kind: str) -> tuple[list[Outcome], int]:
    """Outcomes and false alarms of a kind."""
    its = [each for each in found.outcomes if each.incident.kind == kind]
    return its, sum(each.subject[0] == kind for each in found.wrong)


def _told(found: Account, kind: str) -> list[float]:
    return [_ended(each.told_s) for each in _of(found, kind)[0]]


def _shares(found: Account) -> Iterator[PartFigure]:
    for kind in KINDS:
        its, wrong = _of(found, kind)
        total = len(its) + wrong
        if total:
            yield PartFigure(kind, _hits(its) / total, proportion_lower_bound(_hits(its), total), total)


def _unrecognised(found: Account) -> Iterator[Claim]:
    """What was told and not so, and what was so and not told."""
    for wrong in found.wrong:
        what = " ".join(wrong.subject)
        yield holds(RECOGNISED, False, "only what is so is told", f"{what} was told as {wrong.fault}, and was not so")
    for each in found.outcomes:
        if each.telling is None:
            its = each.incident
            expected = f"{' '.join(its.subject)} is told ({its.cause}, from second {its.at:.1f} on)"
            yield holds(RECOGNISED, False, expected, "it was not")


def _late(its: Sequence[Outcome]) -> Iterator[Claim]:
    for each in sorted(its, key=lambda row: -_ended(row.responded_s)):
        seconds, incident = _ended(each.responded_s), each.incident
        if seconds > LIMIT:
            told = "never told" if each.telling is None else f"told after {each.told_s:.1f} s"
            done = "no action in time" if seconds >= NEVER else f"an action after {seconds:.1f} s"
            expected = (
                f"{' '.join(incident.subject)} ({incident.cause}, from second {incident.at:.1f} on) is responded to"
            )
            yield holds(RESPONDED, False, expected, f"{told}, {done}")


def _by_kind(found: Account) -> ReportTable:
    rows = []
    for kind in KINDS:
        its, wrong = _of(found, kind)
        rows.append([kind, *_counts(its), str(wrong), *_brief([_ended(each.told_s) for each in its])])
    wrong = len(found.wrong)
    rows.append(
        ["all", *_counts(found.outcomes), str(wrong), *_brief([_ended(each.told_s) for each in found.outcomes])]
    )
    columns = "kind|incidents|recognised|told after 10 s|false alarms|until told, p50, s|p99, s"
    title = f"Faults by kind; {found.repeated} were told again while they lasted"
    return table(title, columns, rows)


def _by_cause(found: Account) -> ReportTable:
    rows = []
    for cause in CAUSES:
        its = [each for each in found.outcomes if each.incident.cause == cause]
        if its:
            rows.append([cause, *_counts(its), *_brief([_ended(each.told_s) for each in its])])
    return table("Faults by what happened", "cause|incidents|recognised|told after 10 s|p50, s|p99, s", rows)


def _counts(its: Sequence[Outcome]) -> list[str]:
    late = sum(10.0 < each.told_s < NEVER for each in its)
    return [str(len(its)), str(_hits(its)), str(late)]


def _times(title: str, rows: dict[str, list[float]]) -> ReportTable:
    shown = [[name, str(len(its)), *_brief(its)] for name, its in rows.items()]
    return table(title, "what|n|p50, s|p99, s", shown)


def _brief(seconds: Sequence[float]) -> list[str]:
    """Median and 99th percentile as cells."""
    if not seconds:
        return [NONE, NONE]
    shown = [quantile(seconds, q) for q in (0.5, QUANTILE)]
    return ["never" if value >= NEVER else f"{value:.2f}" for value in shown]


def _distribution(title: str, rows: dict[str, list[float]]) -> ReportPlot:
    """Share that was there after so many seconds, a line for each kind."""
    shares = [number / _POINTS for number in range(1, _POINTS + 1)]
    points = {
        kind: [(0.0, 0.0), *((at, 100.0 * q) for q in shares if (at := quantile(its, q)) < NEVER)]
        for kind, its in rows.items()
        if its
    }
    return lines(title, "seconds", "% of incidents", points)
