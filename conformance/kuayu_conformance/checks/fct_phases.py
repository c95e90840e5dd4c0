"""Phases of trainings, recognised step by step (FCT-003).

Curves are asked about as they stood at chosen steps, each time under another name, with nothing of what came after.
Every request holds a training once at most, and shorter stretches of it are asked about before longer ones, so that
the target has never been told the future of what it is asked. Labels are those of the definition, which knows it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.fct_phases_report import exhibits, parts
from kuayu_conformance.checks.fct_phases_scores import Recognised, Training, accuracy
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_conformance.testbed.curves import real
from kuayu_conformance.testbed.curves.generated import curve as generated
from kuayu_conformance.testbed.curves.labels import Switches, settled, switches
from kuayu_conformance.testbed.curves.values import STRETCH, Curve
from kuayu_schemas import schema

REQUIREMENT = "FCT-003"


@dataclass(frozen=True)
class Extent:
    """How much is asked.

    Attributes:
        curves: Made-up curves.
        spread: Steps of each that are asked about, spread evenly.
        around: Steps about each switch, as powers of 1.25 times that of the switch; the next point is asked about too.
    """

    curves: int
    spread: int
    around: tuple[float, ...]


QUICK = Extent(96, 25, (-1.0, 0.0, 1.0, 2.0))
FULL = Extent(300, 60, (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0))

CROWD = 200
"""Curves that a request holds at most."""
ROOM = 0.9
"""Share of the longest body that is used."""
POINT, ENTRY = 72, 128
"""Bytes that a point of a curve takes at most, and what is about the points."""


@dataclass(frozen=True)
class Observation:
    """What the target said of every training.

    Attributes:
        trainings: With all answers that there were.
        refused: The first request that was not answered as the standard says; None where all were.
        unanswered: How many were not.
    """

    trainings: tuple[Training, ...]
    refused: Answer | None = None
    unanswered: int = 0


@dataclass(frozen=True)
class _Question:
    """A training as it stood at a point of it."""

    number: int
    place: int
    spread: bool


def observe(episode: Episode) -> Observation:
    """Ask about made-up curves, and in a full run about real ones where they are at hand."""
    extent = FULL if episode.settings.full else QUICK
    seed = f"{episode.random.random()}"
    curves = [generated(seed, number) for number in range(extent.curves)]
    curves += _real(episode.settings.traces)
    truths = [switches(curve) for curve in curves]
    rounds = _rounds([list(_asked(number, curve, truths[number], extent)) for number, curve in enumerate(curves)])
    told: list[list[Recognised]] = [[] for _ in curves]
    asked: dict[str, int] = {}
    refused, unanswered = None, 0
    for done, questions in enumerate(rounds):
        episode.passed(done, len(rounds))
        for batch in _batches(episode, questions):
            names = _names(episode, len(batch))
            asked |= {name: question.number for name, question in zip(names, batch, strict=True)}
            answer = episode.ask("POST", "/v1/training-phases", _body(episode, curves, batch, names))
            said = _said(answer, names)
            if said is None:
                refused, unanswered = refused or answer, unanswered + 1
                continue
            for question, row in zip(batch, said, strict=True):
                found = Recognised(question.place, question.spread, row["phase"], row["since"], row["confidence"])
                told[question.number].append(found)
    episode.keep_truth(lambda: {"trainings": [_whole(curve) for curve in curves], "asked": asked})
    trainings = zip(curves, truths, told, strict=True)
    return Observation(
        tuple(Training(curve, truth, tuple(its)) for curve, truth, its in trainings), refused, unanswered
    )


def _real(traces: Mapping[str, Path]) -> tuple[Curve, ...]:
    """Real curves, where every file of them is at hand."""
    return real.curves(traces[next(iter(real.FILES))]) if real.FILES.keys() <= traces.keys() else ()


def _asked(number: int, curve: Curve, truth: Switches, extent: Extent) -> Iterator[_Question]:
    """Points of a curve that are asked about; none so late that the end of the run plays a part in its label."""
    told = settled(curve.steps)
    if not told:
        return
    until = float(curve.steps[told - 1])
    spread = [until * (place + 0.5) / extent.spread for place in range(extent.spread)]
    switched = [place for place in (truth.fast, truth.stable) if place and place < told]
    around = [float(curve.steps[place]) * STRETCH**power for place in switched for power in extent.around]
    around += [float(curve.steps[place + 1]) for place in switched]
    evenly = [_place(curve, step) for step in spread]
    yield from (_Question(number, place, spread=True) for place in evenly)
    beside = {_place(curve, step) for step in around if step <= until}.difference(evenly)
    yield from (_Question(number, place, spread=False) for place in beside)


def _place(curve: Curve, step: float) -> int:
    """Place of the last point that is known at a step, or of the first there is."""
    return max(0, int(np.searchsorted(curve.steps, step, side="right")) - 1)


def _rounds(asked: Sequence[Sequence[_Question]]) -> list[list[_Question]]:
    """Questions in the order in which they may be put: of each training one a round, the shortest stretch first."""
    ordered = [sorted(questions, key=lambda one: (one.place, not one.spread)) for questions in asked]
    return [
        [questions[turn] for questions in ordered if turn < len(questions)] for turn in range(max(map(len, ordered)))
    ]


def _batches(episode: Episode, questions: Sequence[_Question]) -> Iterator[list[_Question]]:
    """Questions of a round in an order of chance, as many in a request as have room."""
    room = ROOM * episode.settings.limits.get("max_body", 1e6)
    batch: list[_Question] = []
    used = 0.0
    for question in episode.random.sample(list(questions), len(questions)):
        size = POINT * (question.place + 1) + ENTRY
        if batch and (used + size > room or len(batch) == CROWD):
            yield batch
            batch, used = [], 0.0
        batch.append(question)
        used += size
    yield batch


def _names(episode: Episode, count: int) -> list[str]:
    """So many names that say nothing, and that nothing had before."""
    return [episode.name_of(f"{episode.random.getrandbits(64):016x}") for _ in range(count)]


def _body(
    episode: Episode, curves: Sequence[Curve], batch: Sequence[_Question], names: Sequence[str]
) -> dict[str, Any]:
    return {
        "revision": {"epoch": episode.name_of("curves"), "number": episode.random.randrange(1_000_000)},
        "curves": [
            {"id": name, "points": _points(curves[question.number], question.place)}
            for name, question in zip(names, batch, strict=True)
        ],
    }


def _points(curve: Curve, place: int) -> list[dict[str, float]]:
    """A curve as it stood at a point of it."""
    columns = (values[: place + 1].tolist() for values in (curve.steps, curve.losses, curve.rates))
    return [{"step": step, "loss": loss, "learning_rate": rate} for step, loss, rate in zip(*columns, strict=True)]


def _whole(curve: Curve) -> dict[str, Any]:
    """A training with its future, from which its phases follow by the definition."""
    columns = {"steps": curve.steps, "losses": curve.losses, "rates": curve.rates}
    return {"source": curve.source, **{name: values.tolist() for name, values in columns.items()}}


def _said(answer: Answer, names: Sequence[str]) -> list[dict[str, Any]] | None:
    """Rows of a report, one for each curve in their order; None where it is no such report."""
    if answer.status != 200 or not schema.is_valid("PhaseReport", answer.json, reader=True):
        return None
    rows: list[dict[str, Any]] = answer.json["phases"]
    return rows if [row["curve"] for row in rows] == list(names) else None


def judge(observation: Observation) -> Iterable[Finding]:
    """Share of steps at which the phase is the right one."""
    if observation.refused is not None:
        found = f"{observation.unanswered} requests were not, the first: {observation.refused.brief}"
        expected = "every request is answered by a phase for each of its curves, in their order"
        yield Claim(REQUIREMENT, expected, False, found, observation.refused)
    trainings = [training for training in observation.trainings if training.spread]
    if not trainings:
        return
    clusters = [training.right for training in trainings]
    steps = sum(map(len, clusters))
    tables, plots = exhibits(trainings)
    yield Figure(
        REQUIREMENT,
        accuracy(trainings),
        mean_lower_bound(clusters, REQUIREMENT),
        steps,
        f"share of {steps} steps, spread evenly over {len(trainings)} trainings, at which the phase told is that of "
        "the definition; one-sided 95 % bootstrap bound over trainings",
        parts(trainings),
        tables=tables,
        plots=plots,
    )


CHECK = Check("fct_phases", (REQUIREMENT,), observe, judge, traces=tuple(real.FILES), heavy=True)
