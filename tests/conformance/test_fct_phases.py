"""Recognition of training phases: what is asked, and verdicts on answers made by hand; near-misses fail."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.forecast import curve_phases as fct_phases
from kuayu_conformance.checks.forecast.curve_phases import (
    QUICK,
    REQUIREMENT,
    PhaseForecasts,
    Recognition,
    Training,
    confusion,
    f1,
    macro_f1,
)
from kuayu_conformance.episode import Episode, Request, Settings
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.curves import FAST, PHASES, STABLE, WARM_UP, Curve, settled, switches
from kuayu_schemas import registers
from kuayu_schemas.models import Comparison, Replay, Requirement, RequirementResult, Threshold, Verdict

Json = dict[str, Any]


def requirement() -> Requirement:
    """That of the states of nodes, with the threshold that phases of trainings have."""
    row = next(each for each in registers.requirements().requirements if each.id == "MET-016")
    threshold = Threshold(value=0.95, unit="1", comparison=Comparison.at_least)
    return row.model_copy(update={"id": REQUIREMENT, "threshold": threshold, "aim": None})


def training(wrong: Sequence[int] = (), count: int = 100, **members: Any) -> Training:
    """A training of 200 steps: warm-up for 20, fast until 100; at some of the places that are asked it is not told."""
    steps = np.arange(1, 201)
    rates = np.minimum(steps / 20, 1.0)
    losses = np.where(steps < 100, 10.0 * steps**-0.5, 10.0 * 100**-0.5)
    curve = Curve("by hand", "by hand", steps, losses, rates)
    truth = switches(curve)
    places = [round(place) for place in np.linspace(0, 150, count)]
    answers = [
        Recognition(place, True, "unknown" if number in wrong else truth.phase(place), 1, 0.9)
        for number, place in enumerate(places)
    ]
    return Training(curve, truth, tuple(replace(answer, **members) for answer in answers))


def verdict(trainings: Sequence[Training], **members: Any) -> RequirementResult:
    findings = list(fct_phases.judge(PhaseForecasts(tuple(trainings), **members)))
    return conclude(requirement(), findings, "fct_phases", Replay.deterministic, 1.0)


@pytest.mark.parametrize(
    ("wrong", "expected"), [(0, Verdict.pass_), (4, Verdict.pass_), (5, Verdict.pass_), (6, Verdict.fail)]
)
def test_nineteen_of_twenty_steps_have_to_be_right(wrong: int, expected: Verdict) -> None:
    found = verdict([training(range(20, 20 + wrong))] * 20)
    assert found.verdict is expected
    assert found.estimate == pytest.approx(1 - wrong / 100)


def test_a_few_trainings_of_which_one_is_missed_leave_it_open() -> None:
    found = verdict([training()] * 19 + [training(range(60))])
    assert found.estimate == pytest.approx(0.97)
    assert found.verdict is Verdict.inconclusive


def test_steps_about_a_switch_are_not_judged() -> None:
    aside = replace(training(), answers=(*training().answers, Recognition(30, False, "unknown", 1, 0.5)))
    assert verdict([aside] * 20).estimate == 1.0


def test_a_request_without_an_answer_fails_whatever_the_others_are() -> None:
    answer = Answer(3, "POST /v1/training-phases", 500, {}, b"", "", 0.0, 0.0)
    found = verdict([training()] * 20, refused=answer, unanswered=1)
    assert (found.verdict, found.estimate) == (Verdict.fail, 1.0)
    silent = verdict([replace(training(), answers=())], refused=answer, unanswered=9)
    assert silent.verdict is Verdict.fail


def test_always_the_commonest_phase_is_not_enough_and_its_macro_f1_says_so() -> None:
    of = training(phase=STABLE)
    found = verdict([of] * 20)
    assert found.verdict is Verdict.fail
    counts = confusion([of])
    stable = counts[STABLE, STABLE]
    assert f1(counts, STABLE) == pytest.approx(2 * stable / (100 + stable))
    assert macro_f1(counts) == pytest.approx(f1(counts, STABLE) / 3)


def test_a_delay_ends_when_the_phase_is_told_and_stays() -> None:
    of = training()
    begin = of.step(of.truth.stable or 0)
    said = [FAST, STABLE, FAST, STABLE, STABLE]
    steps = [begin, begin + 5, begin + 10, begin + 20, begin + 40]
    flickering = replace(
        of, answers=tuple(Recognition(step - 1, True, phase, 1, 0.9) for step, phase in zip(steps, said, strict=True))
    )
    assert flickering.delay(STABLE) == pytest.approx(20 / begin)
    assert replace(of, answers=flickering.answers[:3]).delay(STABLE) is None
    early = replace(of, answers=(Recognition(begin // 2 - 1, True, STABLE, 1, 0.9),))
    assert early.delay(STABLE) == pytest.approx(begin // 2 / begin - 1)


def test_the_report_shows_what_simple_recognisers_reach_and_two_trainings() -> None:
    found = verdict([*[training(range(3))] * 3, training(range(50, 70))])
    beside, confused, delays, stated = found.tables or []
    assert [row.cells[0] for row in beside.rows][1:] == [
        "the definition, applied to the past alone",
        "always stable convergence",
    ]
    assert [row.cells[0] for row in confused.rows] == ["warm-up", "fast convergence", "stable convergence"]
    assert [row.cells[1] for row in delays.rows] == ["4", "4"]
    assert stated.rows[0].cells[:3] == ["0.9–0.95", "400", "0.900"]
    assert [series.label for series in (found.plots or [])[1].series] == [
        "loss",
        "phase of the definition",
        "phase told",
    ]
    assert [part.label for part in found.parts] == [
        "by hand",
        "in warm-up",
        "in fast convergence",
        "in stable convergence",
    ]


class Target:
    """Answers by a function from the points of a curve to a phase; keeps what it was asked."""

    def __init__(
        self, phase: Callable[[list[Json]], str], spoil: Callable[[Json], Any] = lambda report: report
    ) -> None:
        self.asked: list[Json] = []
        self._phase, self._spoil = phase, spoil

    def exchange(self, request: Request) -> Answer:
        """A report, spoilt or not."""
        body = json.loads(request.body)
        self.asked.append(body)
        rows = [
            {"curve": each["id"], "phase": self._phase(each["points"]), "since": 1, "confidence": 0.5}
            for each in body["curves"]
        ]
        report = {"revision": body["revision"], "method": {"name": "target", "version": "1"}, "phases": rows}
        content = json.dumps(self._spoil(report)).encode()
        return Answer(0, "POST", 200, {"content-type": "application/json"}, content, "", 0.0, 0.0)


def observed(target: Target, nonce: str = "asked", max_body: float = 1e6) -> PhaseForecasts:
    settings = Settings(
        nonce, "run", full=False, features=frozenset(), limits={"max_body": max_body}, other_tenant=False
    )
    return fct_phases.observe(Episode("fct_phases", settings, target))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def quick() -> tuple[Target, PhaseForecasts]:
    target = Target(lambda _: STABLE)
    return target, observed(target)


def test_nobody_is_told_the_future_of_what_is_asked(quick: tuple[Target, PhaseForecasts]) -> None:
    """Steps and rates give a training away, so nothing longer of it was sent before, nor beside it."""
    longest: dict[Any, int] = {}
    for body in quick[0].asked:
        trainings = [_fingerprint(each["points"]) for each in body["curves"]]
        assert len(set(trainings)) == len(trainings)
        for each, fingerprint in zip(body["curves"], trainings, strict=True):
            assert len(each["points"]) >= longest.get(fingerprint, 0)
            longest[fingerprint] = len(each["points"])
    assert len(longest) == QUICK.curves


def _fingerprint(points: list[Json]) -> tuple[float, float]:
    return points[0]["loss"], points[0]["learning_rate"]


def test_every_stretch_has_a_name_of_its_own_that_says_nothing(quick: tuple[Target, PhaseForecasts]) -> None:
    names = [each["id"] for body in quick[0].asked for each in body["curves"]]
    assert len(set(names)) == len(names) >= QUICK.curves * QUICK.spread


def test_steps_begin_with_the_run_and_the_loss_is_as_it_was(quick: tuple[Target, PhaseForecasts]) -> None:
    losses = {_fingerprint_of(each.curve): each.curve.losses.tolist() for each in quick[1].trainings}
    for each in (each for body in quick[0].asked for each in body["curves"]):
        points = each["points"]
        assert points[0]["step"] == 1
        told = [point["loss"] for point in points]
        assert told == losses[_fingerprint(points)][: len(points)]


def _fingerprint_of(curve: Curve) -> tuple[float, float]:
    return float(curve.losses[0]), float(curve.rates[0])


def test_asked_steps_are_spread_evenly_and_as_many_of_each_training(quick: tuple[Target, PhaseForecasts]) -> None:
    assert {len(each.spread) for each in quick[1].trainings} == {QUICK.spread}
    (figure,) = fct_phases.judge(quick[1])
    assert isinstance(figure, Figure)
    assert figure.n == QUICK.curves * QUICK.spread


def test_nothing_is_asked_of_which_the_end_of_the_run_decides(quick: tuple[Target, PhaseForecasts]) -> None:
    for each in quick[1].trainings:
        told = settled(each.curve.steps)
        assert all(answer.place < told for answer in each.answers)
        assert each.step(each.answers[-1].place) > 0.9 * each.step(told - 1)


def test_a_run_that_is_too_short_for_any_label_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Curve("short", "by hand", np.arange(1, 20), np.full(19, 2.0), np.ones(19))
    monkeypatch.setattr(fct_phases, "generated", lambda *_: short)
    target = Target(lambda _: STABLE)
    assert list(fct_phases.judge(observed(target))) == []
    assert target.asked == []


def test_requests_keep_to_the_limit_of_the_target() -> None:
    target = Target(lambda _: STABLE)
    observed(target, max_body=100_000)
    assert max(len(json.dumps(body)) for body in target.asked) <= 100_000


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: {**report, "phases": report["phases"][::-1]} if len(report["phases"]) > 1 else {},
        lambda report: {**report, "phases": report["phases"][1:]},
        lambda report: {**report, "phases": [{"curve": "x"}]},
        lambda _: {},
        lambda _: [],
    ],
)
def test_what_is_no_report_on_the_curves_asked_fails(spoil: Callable[[Json], Any]) -> None:
    findings = list(fct_phases.judge(observed(Target(lambda _: STABLE, spoil))))
    assert [finding.met for finding in findings if isinstance(finding, Claim)] == [False]


def test_whatever_phases_are_told_there_is_a_figure() -> None:
    chance = random.Random(1)
    target = Target(lambda _: chance.choice([*PHASES, "unknown"]))
    (figure,) = fct_phases.judge(observed(target))
    assert isinstance(figure, Figure)
    assert 0.1 < figure.estimate < 0.4


def test_who_says_warm_up_while_the_rate_rises_is_right_about_that() -> None:
    def phase(points: list[Json]) -> str:
        rates = [point["learning_rate"] for point in points]
        return WARM_UP if len(rates) < 2 or (rates[-1] > rates[-2] and max(rates) == rates[-1]) else STABLE

    (figure,) = fct_phases.judge(observed(Target(phase)))
    assert isinstance(figure, Figure)
    by_label = {part.label: part.estimate for part in figure.parts}
    assert by_label["in warm-up"] > 0.95
