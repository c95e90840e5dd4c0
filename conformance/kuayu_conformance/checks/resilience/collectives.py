"""The collective follows the network (RES-010).

Links between domains change; the target is asked every minute, with what was measured until then, and told what
is in use. What it chooses is carried out on what links carry next, switches included. Steps are counted in parts of
those of one who always has the quickest for nothing.

1. Whether a choice of a collective is whole, and what is to be carried out of it (RES-010).
2. What became of a window of collectives, and how it compares.
3. Tables, parts and a plot that stand beside the throughput of chosen collectives.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import is_answer, lines, percent, revision, table
from kuayu_conformance.checks.resilience.resilience_requests import COLLECTIVES
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_conformance.testbed.collectives import (
    COUNT,
    FAMILIES,
    HIERARCHICAL,
    INTERVAL,
    LOW,
    METHODS,
    RING,
    Course,
    Method,
    World,
    baselines,
    draw,
    turned,
)
from kuayu_schemas.models import ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

KNOWN = (RING, HIERARCHICAL, LOW)


def chosen_way(
    body: "documents.CollectiveRequest", choice: "documents.CollectiveChoice"
) -> tuple[Method | None, tuple[int, ...]]:
    """What was chosen, as the testbed has it; nothing where it cannot be carried out."""
    if any(_not_to_be_done(body, choice)):
        return None, ()
    return Method(choice["collective"], int(choice["period"])), _places(body, choice["order"])


def faults(body: "documents.CollectiveRequest", choice: "documents.CollectiveChoice") -> tuple[str, ...]:
    """What is wrong with an answer that the schema allows, in words."""
    return (*_not_to_be_done(body, choice), *_untold(body, choice))


def _not_to_be_done(body: "documents.CollectiveRequest", choice: "documents.CollectiveChoice") -> Iterator[str]:
    collective, period = choice["collective"], choice["period"]
    if collective not in KNOWN:
        yield f"{collective} is no collective of the clause"
    elif period != 1 and collective != LOW:
        yield f"a period of {period} with {collective}"
    if sorted(choice["order"]) != sorted(body["domains"]):
        yield f"the order {choice['order']} is none of the domains {body['domains']}"


def _untold(body: "documents.CollectiveRequest", choice: "documents.CollectiveChoice") -> Iterator[str]:
    if choice["revision"] != body["revision"]:
        yield f"the revision is {choice['revision']}, that of the request {body['revision']}"
    chosen = (choice["collective"], choice["period"])
    if chosen not in [(candidate["collective"], candidate["period"]) for candidate in choice["candidates"]]:
        yield f"{chosen[0]} with a period of {chosen[1]} is chosen and not among the candidates"
    used = body.get("in_use")
    if not used and choice["switched"]:
        yield "switched is True, and nothing is in use"
    if used and sorted(choice["order"]) == sorted(used["order"]):
        same = chosen == (used["collective"], used["period"])
        same = same and turned(_places(body, choice["order"])) == turned(_places(body, used["order"]))
        if choice["switched"] is same:
            yield f"switched is {choice['switched']}, and it is {'the same as' if same else 'another than'} that in use"


def _places(body: "documents.CollectiveRequest", order: list[str]) -> tuple[int, ...]:
    return tuple(body["domains"].index(name) for name in order)


@dataclass(frozen=True)
class Window:
    """A window under the target and under others; steps a second, interval by interval.

    Attributes:
        family: Which links it has.
        chosen: Under the target, less what switches took.
        fixed: Of each fixed way.
        quickest: Of one who always has the quickest for nothing.
        first: Place of the way that was quickest by the first measurement.
        switches: How often the target switched.
        changes: How often to another collective or period, not only to another order.
        faults: What is wrong with answers.
        shown: The first answer with a fault.
    """

    family: str
    chosen: tuple[float, ...]
    fixed: tuple[tuple[float, ...], ...]
    quickest: tuple[float, ...]
    first: int
    switches: int
    changes: int
    faults: tuple[str, ...] = ()
    shown: Answer | None = None

    @property
    def share(self) -> float:
        """Steps under the target in parts of those of the quickest."""
        return fsum(self.chosen) / fsum(self.quickest)

    @property
    def shares(self) -> tuple[float, ...]:
        """Likewise of the fixed ones."""
        return tuple(fsum(rates) / fsum(self.quickest) for rates in self.fixed)


def best_fixed(windows: Sequence[Window]) -> int:
    """Place of the fixed way that is best over windows together."""
    means = [fmean(column) for column in zip(*(window.shares for window in windows), strict=True)]
    return means.index(max(means))


def leads(windows: Sequence[Window], fixed: int) -> list[float]:
    """By how much the target does better than a fixed way, window by window."""
    return [window.share - window.shares[fixed] for window in windows]


def gains_over_first(windows: Sequence[Window]) -> list[float]:
    """By how much it does better than what was quickest by the first measurement, window by window."""
    return [window.share - window.shares[window.first] for window in windows]


_ALL = "all"


def parts(windows: Sequence[Window], fixed: int) -> list[PartFigure]:
    """The lead over a fixed way, and over what was quickest at first, by family."""
    figures = []
    for name, of in (("", lambda entry: leads(entry, fixed)), (", over the first", gains_over_first)):
        for family, item in _by_family(windows)[:-1]:
            values, label = of(item), f"{family}{name}"
            bound = mean_lower_bound([[lead] for lead in values], label) if len(values) > 1 else None
            figures.append(PartFigure(label, fmean(values), bound, len(values)))
    return figures


def exhibits(windows: Sequence[Window], fixed: int) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    return [_beside(windows, fixed), _fixed(windows)], [_picture(max(windows, key=lambda entry: entry.switches), fixed)]


def _by_family(windows: Sequence[Window]) -> list[tuple[str, list[Window]]]:
    """Windows of each family, and all of them at last."""
    families = dict.fromkeys(window.family for window in windows)
    groups = [(family, [window for window in windows if window.family == family]) for family in families]
    return [*groups, (_ALL, list(windows))]


def _beside(windows: Sequence[Window], fixed: int) -> ReportTable:
    rows = []
    for label, entry in _by_family(windows):
        own = best_fixed(entry)
        hours = sum(len(window.chosen) for window in entry) * INTERVAL / 3600.0
        shares = [
            fmean(window.share for window in entry),
            fmean(window.shares[fixed] for window in entry),
            fmean(window.shares[own] for window in entry),
            fmean(window.shares[window.first] for window in entry),
            fmean(max(window.shares) for window in entry),
        ]
        shown = [percent(share) for share in shares]
        shown[2] = f"{shown[2]} ({METHODS[own].name})"
        switches = [f"{sum(counted) / hours:.1f}" for counted in _counted(entry)]
        rows.append([label, str(len(entry)), *shown, *switches])
    columns = (
        "links|windows|chosen|best fixed of all windows|best fixed of these|quickest by the first measurement, kept"
    )
    columns += "|best of each window in hindsight|switches an hour|to another collective or period"
    return table("Steps in parts of those of one who always has the quickest for nothing", columns, rows)


def _counted(windows: Sequence[Window]) -> tuple[list[int], list[int]]:
    return [window.switches for window in windows], [window.changes for window in windows]


def _fixed(windows: Sequence[Window]) -> ReportTable:
    rows = []
    for label, entry in _by_family(windows):
        means = (fmean(column) for column in zip(*(window.shares for window in entry), strict=True))
        rows.append([label, *map(percent, means)])
    columns = "|".join(("links", *(method.name for method in METHODS)))
    return table("Steps of fixed collectives, likewise", columns, rows)


def _picture(window: Window, fixed: int) -> ReportPlot:
    """The window with the most switches."""
    courses = {"chosen, switches included": window.chosen, f"fixed: {METHODS[fixed].name}": window.fixed[fixed]}
    points = {
        label: [
            (place * INTERVAL / 60.0, 100.0 * entry / most)
            for place, (entry, most) in enumerate(zip(rates, window.quickest, strict=True))
        ]
        for label, rates in courses.items()
    }
    title = f"Steps a second, {window.family}, the window with the most switches: {window.switches}"
    return lines(title, "minutes", "% of the quickest", points)


REQUIREMENT = "RES-010"


@dataclass(frozen=True)
class Extent:
    """How much is asked: windows of each family, and intervals of each."""

    windows: int
    intervals: int


QUICK, FULL = Extent(16, COUNT // 2), Extent(48, COUNT)
"""Quick windows are as many as a simple chooser needs to show for sure that it gains by following the network."""


@dataclass(frozen=True)
class CollectiveWindows:
    """What became of windows.

    Attributes:
        windows: Those that were carried out to their end.
        refused: The first answer that is no choice; nothing is asked after it.
    """

    windows: tuple[Window, ...]
    refused: Answer | None = None


def observe(episode: Episode) -> CollectiveWindows:
    """Carry out windows of all families, one after the other."""
    extent = FULL if episode.settings.full else QUICK
    seed = f"{episode.random.random()}"
    drawn = [(number, family) for number in range(extent.windows) for family in FAMILIES]
    windows: list[Window] = []
    for done, (number, family) in enumerate(drawn):
        episode.passed(done, len(drawn))
        outcome = _once(episode, family, number, f"{seed} {number}", extent.intervals)
        if isinstance(outcome, Answer):
            return CollectiveWindows(tuple(windows), outcome)
        windows.append(outcome)
    return CollectiveWindows(tuple(windows))


def _once(episode: Episode, family: str, number: int, seed: str, intervals: int) -> Window | Answer:
    """A window; one whose answers are all whole need not be carried out again to judge its record."""
    naming = episode.salted(seed) if episode.settings.salt else ""
    episode.keep_truth(lambda: _carried(draw(family, seed, intervals, naming)))
    known: Window | None = episode.again((family, number))
    if known is not None:
        return known
    with episode.segment((family, number)) as segment:
        window = _window(episode, draw(family, seed, intervals, naming))
        if isinstance(window, Window) and not window.faults:
            segment.keep(window)
    return window


def _carried(world: World) -> dict[str, object]:
    """What links carry in a window, which requests tell only with noise, and of the past."""
    return {"family": world.family, "domains": list(world.domains), "carried": world.window.tolist()}


def _window(episode: Episode, world: World) -> Window | Answer:
    """A window carried out, or the answer that is no choice."""
    course = Course(world)
    wrong: list[str] = []
    shown: Answer | None = None
    for _ in range(world.count):
        body = course.request(revision(episode.random))
        answer = episode.ask_patiently("POST", COLLECTIVES, body)
        if not is_answer(COLLECTIVES, answer):
            return answer
        deviations = faults(body, answer.json)
        wrong += deviations
        shown = shown or (answer if deviations else None)
        course.go_on(*chosen_way(body, answer.json))
    others = baselines(world)
    return Window(
        world.family,
        tuple(entry * (1.0 - lost) for entry, lost in zip(course.rates, course.paused, strict=True)),
        tuple(tuple(column) for column in others.fixed.T.tolist()),
        tuple(others.quickest.tolist()),
        others.first,
        course.switches,
        course.changes,
        tuple(wrong),
        shown,
    )


def judge(observation: CollectiveWindows) -> Iterable[Finding]:
    """Answers are whole, the collective changes, and is no slower than what is kept."""
    if observation.refused is not None:
        expected = "every question is answered by a choice of a collective"
        yield Claim(REQUIREMENT, expected, False, observation.refused.brief, observation.refused)
    windows = observation.windows
    for window in windows:
        expected = f"every answer of a window is whole ({window.family})"
        observed = f"{len(window.faults)} faults, the first: {window.faults[0]}" if window.faults else "all are"
        yield holds(REQUIREMENT, not window.faults, expected, observed, window.shown)
    if not windows:
        return
    changes = sum(window.changes for window in windows)
    expected = "in some window another collective or period is chosen than that in use"
    yield holds(REQUIREMENT, changes > 0, expected, f"{changes} times in {len(windows)} windows")
    yield _figure(windows)


def _figure(windows: Sequence[Window]) -> Figure:
    fixed = best_fixed(windows)
    over = {"fixed": leads(windows, fixed), "kept": gains_over_first(windows)}
    tables, plots = exhibits(windows, fixed)
    return Figure(
        REQUIREMENT,
        min(fmean(values) for values in over.values()),
        min(mean_lower_bound(_rounds(values), f"{REQUIREMENT} {name}") for name, values in over.items()),
        len(windows),
        "steps under the target less those of a collective that is kept, in parts of those of one who always has the "
        f"quickest for nothing; kept is the one that is best over all windows ({METHODS[fixed].name}), or that which "
        "is quickest by the first measurement of a window, whichever leaves less. Mean over windows, one-sided 95 % "
        "bootstrap bound over rounds of a window of each family. Parts: over the best of all, then over the first",
        parts(windows, fixed),
        list(_misses(windows, over["kept"])),
        tables,
        plots,
    )


def _rounds(leads: Sequence[float]) -> list[Sequence[float]]:
    """Windows as they were drawn: one of each family, then another one of each."""
    return [leads[first : first + len(FAMILIES)] for first in range(0, len(leads), len(FAMILIES))]


def _misses(windows: Sequence[Window], leads: Sequence[float]) -> Iterable[Claim]:
    """Windows in which the one that was quickest at first was quicker, the worst first."""
    for lead, window in sorted(zip(leads, windows, strict=True), key=lambda pair: pair[0])[:3]:
        if lead < 0.0:
            words = f"{-100 * lead:.2f} % of the steps of the quickest fewer, after {window.switches} switches"
            yield holds(REQUIREMENT, False, f"as many steps as by what was quickest at first ({window.family})", words)


CHECK = Check("res_collectives", (REQUIREMENT,), observe, judge, heavy=True)
