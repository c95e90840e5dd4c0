"""The collective follows the network (RES-010).

Links between domains change; the target is asked every minute, with what was measured until then, and told what
is in use. What it chooses is carried out on what links carry next, switches included. Steps are counted in parts of
those of one who always has the quickest for nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_collectives_report import exhibits, parts
from kuayu_conformance.checks.res_collectives_scores import Window, best_fixed, kept, leads
from kuayu_conformance.checks.res_collectives_whole import faults, way
from kuayu_conformance.checks.res_fixtures import COLLECTIVES, Json, is_answer, revision
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, holds
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_conformance.testbed.transfers.collectives import WAYS
from kuayu_conformance.testbed.transfers.collectives_run import Course, opponents
from kuayu_conformance.testbed.transfers.collectives_world import COUNT, FAMILIES, World, draw

REQUIREMENT = "RES-010"


@dataclass(frozen=True)
class Extent:
    """How much is asked: windows of each family, and intervals of each."""

    windows: int
    intervals: int


QUICK, FULL = Extent(16, COUNT // 2), Extent(48, COUNT)
"""Quick windows are as many as a simple chooser needs to show for sure that it gains by following the network."""


@dataclass(frozen=True)
class Observation:
    """What became of windows.

    Attributes:
        windows: Those that were carried out to their end.
        refused: The first answer that is no choice; nothing is asked after it.
    """

    windows: tuple[Window, ...]
    refused: Answer | None = None


def observe(episode: Episode) -> Observation:
    """Carry out windows of all families, one after the other."""
    extent = FULL if episode.settings.full else QUICK
    seed = f"{episode.random.random()}"
    drawn = [(number, family) for number in range(extent.windows) for family in FAMILIES]
    windows: list[Window] = []
    for done, (number, family) in enumerate(drawn):
        episode.passed(done, len(drawn))
        found = _once(episode, family, number, f"{seed} {number}", extent.intervals)
        if isinstance(found, Answer):
            return Observation(tuple(windows), found)
        windows.append(found)
    return Observation(tuple(windows))


def _once(episode: Episode, family: str, number: int, seed: str, intervals: int) -> Window | Answer:
    """A window; one whose answers are all whole need not be carried out again to judge its record."""
    naming = episode.salted(seed) if episode.settings.salt else ""
    episode.keep_truth(lambda: _carried(draw(family, seed, intervals, naming)))
    known: Window | None = episode.again((family, number))
    if known is not None:
        return known
    with episode.stretch((family, number)) as stretch:
        found = _window(episode, draw(family, seed, intervals, naming))
        if isinstance(found, Window) and not found.faults:
            stretch.keep(found)
    return found


def _carried(world: World) -> Json:
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
        found = faults(body, answer.json)
        wrong += found
        shown = shown or (answer if found else None)
        course.go_on(*way(body, answer.json))
    others = opponents(world)
    return Window(
        world.family,
        tuple(each * (1.0 - lost) for each, lost in zip(course.rates, course.paused, strict=True)),
        tuple(tuple(column) for column in others.fixed.T.tolist()),
        tuple(others.quickest.tolist()),
        others.first,
        course.switches,
        course.changes,
        tuple(wrong),
        shown,
    )


def judge(observation: Observation) -> Iterable[Finding]:
    """Answers are whole, the collective changes, and is no slower than what is kept."""
    if observation.refused is not None:
        expected = "every question is answered by a choice of a collective"
        yield Claim(REQUIREMENT, expected, False, observation.refused.brief, observation.refused)
    windows = observation.windows
    for window in windows:
        expected = f"every answer of a window is whole ({window.family})"
        found = f"{len(window.faults)} faults, the first: {window.faults[0]}" if window.faults else "all are"
        yield holds(REQUIREMENT, not window.faults, expected, found, window.shown)
    if not windows:
        return
    changes = sum(window.changes for window in windows)
    expected = "in some window another collective or period is chosen than that in use"
    yield holds(REQUIREMENT, changes > 0, expected, f"{changes} times in {len(windows)} windows")
    yield _figure(windows)


def _figure(windows: Sequence[Window]) -> Figure:
    fixed = best_fixed(windows)
    over = {"fixed": leads(windows, fixed), "kept": kept(windows)}
    tables, plots = exhibits(windows, fixed)
    return Figure(
        REQUIREMENT,
        min(fmean(found) for found in over.values()),
        min(mean_lower_bound(_rounds(found), f"{REQUIREMENT} {name}") for name, found in over.items()),
        len(windows),
        "steps under the target less those of a collective that is kept, in parts of those of one who always has the "
        f"quickest for nothing; kept is the one that is best over all windows ({WAYS[fixed].name}), or that which is "
        "quickest by the first measurement of a window, whichever leaves less. Mean over windows, one-sided 95 % "
        "bootstrap bound over rounds of a window of each family. Parts: over the best of all, then over the first",
        parts(windows, fixed),
        list(_misses(windows, over["kept"])),
        tables,
        plots,
    )


def _rounds(found: Sequence[float]) -> list[Sequence[float]]:
    """Windows as they were drawn: one of each family, then another one of each."""
    return [found[first : first + len(FAMILIES)] for first in range(0, len(found), len(FAMILIES))]


def _misses(windows: Sequence[Window], found: Sequence[float]) -> Iterable[Claim]:
    """Windows in which the one that was quickest at first was quicker, the worst first."""
    for lead, window in sorted(zip(found, windows, strict=True), key=lambda pair: pair[0])[:3]:
        if lead < 0.0:
            words = f"{-100 * lead:.2f} % of the steps of the quickest fewer, after {window.switches} switches"
            yield holds(REQUIREMENT, False, f"as many steps as by what was quickest at first ({window.family})", words)


CHECK = Check("res_collectives", (REQUIREMENT,), observe, judge, heavy=True)
