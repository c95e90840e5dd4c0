"""Accuracy of data against a known truth, through the traps of real life (MET-003)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, pages
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.exporters.player import NODE, Cell, Page, PlayedExporter, played_exporters
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import proportion_lower_bound

TRAPS = ("plain", "reset", "repeat", "disorder", "gap", "skew")
"""What is done to the pages of an episode; each trap with each exporter is one stratum."""

CELLS_SMOKE, CELLS_QUICK, CELLS_FULL = 236, 450, 3000
"""Values of a stratum at least: 236 support 98 % with one wrong, 450 with three; 3000 support 99.9 % with none
(Clopper-Pearson)."""

STEP, SKEW = 15.0, 3600.0
"""Seconds between pages at most; seconds by which the clock of the trap ``skew`` is fast."""

MOST_BLUR = 0.1
"""Share of a rate that delays may blur under the trap ``skew`` at most: a slow target earns no more tolerance."""


@dataclass(frozen=True)
class Stratum:
    """One exporter and one trap: what should be held, and what is.

    Attributes:
        exporter: Which exporter was played.
        trap: What was done to its pages.
        cells: What should be held.
        samples: What is held, by subject and instant in milliseconds.
        answer: The last answer that told.
    """

    exporter: str
    trap: str
    cells: tuple[Cell, ...]
    samples: Mapping[tuple[str, int], Mapping[str, Any]]
    answer: Answer


@dataclass(frozen=True)
class Strata:
    """All strata."""

    strata: tuple[Stratum, ...]


def observe(episode: Episode) -> Strata:
    """Play each exporter into each trap and read back everything that is held."""
    site = domain(episode)
    return Strata(tuple(_stratum(episode, site, name, trap) for name in played_exporters() for trap in TRAPS))


def _stratum(episode: Episode, site: str, name: str, trap: str) -> Stratum:
    played = PlayedExporter(name, episode.random)
    machine = node(episode, site, f"{name}-{trap}", names=played.devices)
    a_page = sum(len(row.series) for row in played.mapped)
    least = episode.settings.sized(smoke=CELLS_SMOKE, quick=CELLS_QUICK, full=CELLS_FULL)
    count = -(-least // a_page) + 2
    now = episode.now()
    step = min(STEP, round(episode.settings.limits["retention"] / 2 / count, 3))
    cells: dict[tuple[str, str, float], Cell] = {}
    delay = 0.0
    for page, known in _trapped(played, trap, [now - step * (count - i) for i in range(count)]):
        previous, delay = delay, _send(episode, machine, page, name, SKEW if trap == "skew" else 0.0)
        blur = min(MOST_BLUR, (previous + delay) / step)
        cells |= {(cell.subject, cell.measure, cell.instant): _blurred(cell, blur) for cell in known}
    samples: dict[tuple[str, int], Mapping[str, Any]] = {}
    kinds = {"node" if subject == NODE else "device" for row in played.mapped for subject in row.series}
    for kind in sorted(kinds):
        answer = _read(episode, machine, kind, now - step * (count + 1), samples)
    return Stratum(name, trap, tuple(cells.values()), samples, answer)


def _send(episode: Episode, machine: str, page: Page, name: str, shift: float) -> float:
    """Push a page; a clock that is fast by ``shift`` stamps it and says when it was sent.

    Returns seconds by which a correction of that clock may be off: it cannot know how long the page was on its way.
    """
    query = f"/v1/expositions?node={machine}&exporter={name}"
    if shift:
        sent = episode.now()
        query += f"&observed_at={instant(page.instant + shift)}&sent_at={instant(sent + shift)}"
        answer = episode.ask("POST", query, content=page.untimed.encode(), media_type="text/plain")
        return answer.started + answer.seconds - sent + 0.002
    episode.ask("POST", query, content=page.text.encode(), media_type="text/plain")
    return 0.0


def _blurred(cell: Cell, share: float) -> Cell:
    """A cell whose time of counting is known to a share only."""
    if cell.counted and isinstance(cell.truth, float):
        return replace(cell, tolerance=cell.tolerance + share * cell.truth)
    return cell


def _trapped(played: PlayedExporter, trap: str, instants: list[float]) -> Iterator[tuple[Page, tuple[Cell, ...]]]:
    """Pages in the order in which they are sent, each with what should be held because of it."""
    match trap:
        case "reset":
            for i, item in enumerate(instants):
                page = played.advance(item, reset=i % 5 == 4)
                yield page, page.cells
        case "repeat":
            for moment in instants:
                page = played.advance(moment)
                yield page, page.cells
                yield page, ()
        case "disorder":
            pages = [played.advance(place, overtaken=i % 2 == 0) for i, place in enumerate(instants)]
            for early, late in zip(pages[::2], pages[1::2], strict=False):
                yield late, late.cells
                yield early, early.cells
        case "gap":
            for i, row in enumerate(instants):
                page = played.advance(row, blank=i % 4 == 2)
                yield page, page.cells
        case _:
            for instant in instants:
                page = played.advance(instant)
                yield page, page.cells


def _read(
    episode: Episode, machine: str, kind: str, since: float, samples: dict[tuple[str, int], Mapping[str, Any]]
) -> Answer:
    path = f"/v1/samples?subject={machine}&subject_kind={kind}&from={instant(since)}"
    path += f"&limit={int(min(1000, episode.settings.limits['max_page']))}"
    for answer in pages(episode, path):
        for item in answer.items("items"):
            when = seconds_of(item.get("observed_at")) if isinstance(item, dict) else None
            if when is not None:
                samples[(str(item.get("device", NODE)), round(when * 1000))] = item
    return answer


def judge(o: Strata) -> Iterator[Finding]:
    """The worst stratum is the figure, so that one trap cannot hide among the others."""
    parts, misses = [], []
    for stratum in o.strata:
        wrong = list(_wrong(stratum))
        right, n = len(stratum.cells) - len(wrong), len(stratum.cells)
        bound = proportion_lower_bound(right, n)
        parts.append(PartFigure(f"{stratum.exporter} · {stratum.trap}", right / n, bound, n))
        misses += wrong[:2]
    yield Figure(
        "MET-003",
        min(part.estimate for part in parts),
        min(part.bound or 0.0 for part in parts),
        sum(part.n for part in parts),
        "worst stratum (exporter and trap) of the share of values within tolerance of the truth, a missing or "
        "superfluous value counting as wrong; exact one-sided 95 % lower bound (Clopper-Pearson) of each stratum, the "
        "lowest counts",
        parts,
        misses,
    )


def _wrong(stratum: Stratum) -> Iterator[Claim]:
    tolerant = 2.5 if stratum.trap == "skew" else 0.0  # the correction is known no better than the network's delay
    for cell in stratum.cells:
        value = _stored_value(stratum, cell, tolerant)
        if not correct(cell, value):
            subject = f"device {cell.subject}" if cell.subject else "the node"
            where = f"{stratum.exporter}, {stratum.trap}: {cell.measure} of {subject} at {instant(cell.instant)}"
            expected = f"{where} is {_shown(cell)}"
            yield holds("MET-003", False, expected, "absent" if value is None else value, stratum.answer)


def _stored_value(stratum: Stratum, cell: Cell, tolerant: float) -> object:
    position = round(cell.instant * 1000)
    sample = stratum.samples.get((cell.subject, position))
    if sample is None and tolerant:
        near = [(abs(t - position), t) for subject, t in stratum.samples if subject == cell.subject]
        distance, when = min(near, default=(float("inf"), 0))
        sample = stratum.samples.get((cell.subject, when)) if distance <= tolerant * 1000 else None
    return (sample or {}).get(cell.measure)


def correct(cell: Cell, value: object) -> bool:
    """Whether a value is the truth of its cell, within tolerance."""
    if cell.truth is None or isinstance(cell.truth, str):
        return value == cell.truth
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value - cell.truth) <= cell.tolerance + 1e-9 * abs(cell.truth)


def _shown(cell: Cell) -> str:
    if isinstance(cell.truth, float):
        return f"{cell.truth:.6g} ± {cell.tolerance:.3g}"
    return cell.truth or "absent"


CHECK = Check("met_accuracy", ("MET-003",), observe, judge, heavy=True)
