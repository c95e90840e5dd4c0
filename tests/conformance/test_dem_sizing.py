"""Verdicts on right-sizing from observations made by hand: near-misses fail, controls pass."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.demand.sizing import (
    BESIDE,
    CURVE,
    JUDGED,
    ONE_RATE,
    STATED,
    AnswerFaults,
    Cell,
    KindRanking,
    RatePair,
    Setting,
    SizedHistories,
    SizedWindow,
    SizingExchange,
    Window,
    advantage,
    gains,
    judge,
    mean_gain,
    points,
    ranked,
)
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.right_sizing import CORES, DEVICES, FIFO, KINDS, MEMORY, MIXES
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, RequirementResult, Verdict

ANSWER = Answer(3, "POST /v1/task-sizes", 200, {"content-type": "application/json"}, b"{}", "", 0.0, 0.0)
PLAIN = SizedWindow((400.0, 0.4, 0.2, 0.25), (0.4, 0.97, 0.5), 840, 0, 0.0)
RATE = 0.1
"""What one rate gains of each of the four in the worlds below."""
ENOUGH = (1.0 + RATE + 1e-4,) * 4
"""What is left of each of the four where the rate is reached, and hardly more."""


def window(factors: Sequence[float] = ENOUGH, dying: float = 0.0, slower: float = 0.0, number: int = 0) -> Window:
    a, b, c, d = (value * factor for value, factor in zip(PLAIN.four, factors, strict=True))
    after = replace(PLAIN, four=(a, b, c, d))
    return Window(number, dict.fromkeys(JUDGED, PLAIN), dict.fromkeys(JUDGED, after), dying, slower, 0.28)


def observed(
    mixes: Mapping[str, Sequence[Window]] | None = None,
    nothing: Sequence[Window] = (window((1.0,) * 4),) * 2,
    answered: Sequence[AnswerFaults] = (),
    ranks: Sequence[KindRanking] = (),
    along: Mapping[float, Sequence[Window]] | None = None,
) -> SizedHistories:
    """All points of the curve of the three mixes, as they are to be unless others are named, and one without excess.

    Windows are named by mix, at each over-request, or ``along`` the curve, in each mix that is not named.
    """
    cells = []
    for factor in CURVE:
        its = {mix: (along or {}).get(factor, (window(),) * 4) for mix in MIXES} | dict(mixes or {})
        cells += [_cell(Setting(mix, over_request=factor), windows) for mix, windows in its.items()]
    first = next(iter(MIXES))
    cells.append(_cell(Setting(first, over_request=1.0, allowed=0.0), nothing))
    return SizedHistories(tuple(cells), tuple(answered), tuple(ranks))


def _cell(setting: Setting, windows: Sequence[Window]) -> Cell:
    rated = tuple(window((1.0 + RATE,) * 4) for _ in windows)
    return Cell(setting, tuple(windows), {name: rated if name == ONE_RATE else tuple(windows) for name in BESIDE})


def verdict(observation: SizedHistories) -> RequirementResult:
    row = next(each for each in registers.requirements().requirements if each.id == "DEM-003")
    findings = [each for each in judge(observation) if each.requirement == "DEM-003"]
    return conclude(row, findings, "dem_sizing", Replay.deterministic, 1.0)


def unmet(observation: SizedHistories, requirement: str = "DEM-007") -> list[Claim]:
    return [
        each
        for each in judge(observation)
        if isinstance(each, Claim) and each.requirement == requirement and not each.met
    ]


def test_the_rate_and_hardly_more_passes() -> None:
    found = verdict(observed())
    assert found.verdict is Verdict.pass_
    assert found.estimate == pytest.approx(1e-4)


def test_a_gain_of_99_hundredths_of_the_rate_is_too_little_and_one_of_101_is_enough() -> None:
    """All four are raised by 99 hundredths of what one rate raises them by, then by 101."""
    for share, expected in ((0.99, Verdict.fail), (1.01, Verdict.pass_)):
        reached = window((1.0 + share * RATE,) * 4)
        found = verdict(observed(dict.fromkeys(MIXES, (reached,) * 4)))
        assert found.verdict is expected
        assert found.estimate == pytest.approx((share - 1.0) * RATE)


def test_what_was_asked_for_gains_nothing_and_is_not_enough() -> None:
    found = verdict(observed(dict.fromkeys(MIXES, (window((1.0,) * 4),) * 4)))
    assert found.verdict is Verdict.fail
    assert found.estimate == pytest.approx(-RATE)


@pytest.mark.parametrize("quantity", range(4))
@pytest.mark.parametrize("mix", MIXES)
def test_each_of_the_four_counts_in_each_of_the_mixes(mix: str, quantity: int) -> None:
    """One gain is none, in one mix: the mean of the four is less by a quarter of it."""
    factors = [1.0 if k == quantity else 1.0 + RATE for k in range(4)]
    found = verdict(observed({mix: (window(factors),) * 4}))
    assert found.verdict is Verdict.fail
    assert found.estimate == pytest.approx(-RATE / 4)


@pytest.mark.parametrize("policy", JUDGED)
def test_each_policy_counts(policy: str) -> None:
    """Under one of them nothing is gained."""
    one = window()
    found = verdict(observed(dict.fromkeys(MIXES, (replace(one, after={**one.after, policy: PLAIN}),) * 4)))
    assert found.verdict is Verdict.fail
    assert found.estimate == pytest.approx(-RATE)


@pytest.mark.parametrize("factor", CURVE)
def test_each_point_of_the_curve_counts_by_a_third(factor: float) -> None:
    found = verdict(observed(along={factor: (window((1.0,) * 4),) * 4}))
    assert found.verdict is Verdict.fail
    assert found.estimate == pytest.approx(-RATE / 3, abs=1e-3)


def test_gains_that_come_and_go_leave_it_open() -> None:
    """The mean is enough, but one window of four carries it."""
    rare = [window([1.0] * 4)] * 3 + [window([1.0 + 5.0 * RATE] * 4)]
    assert verdict(observed(dict.fromkeys(MIXES, rare))).verdict is Verdict.inconclusive


@pytest.mark.parametrize(("dying", "expected"), [(0.01, Verdict.pass_), (0.0101, Verdict.fail)])
def test_one_task_of_a_hundred_may_die(dying: float, expected: Verdict) -> None:
    assert verdict(observed({"40:30:20:10": (window(dying=dying),) * 4})).verdict is expected


@pytest.mark.parametrize(("slower", "expected"), [(0.0599, Verdict.pass_), (0.061, Verdict.fail)])
def test_tasks_may_be_slower_by_what_was_allowed_and_a_margin(slower: float, expected: Verdict) -> None:
    assert verdict(observed({"25:25:25:25": (window(slower=slower),) * 4})).verdict is expected


@pytest.mark.parametrize(
    ("gain", "expected"),
    [(0.0299, Verdict.pass_), (0.031, Verdict.fail), (-0.0299, Verdict.pass_), (-0.031, Verdict.fail)],
)
def test_nothing_is_gained_where_nothing_is_to_be_had(gain: float, expected: Verdict) -> None:
    nothing = [window((1.0 + gain, 1.0, 1.0, 1.0))] * 2
    assert verdict(observed(nothing=nothing)).verdict is expected


@pytest.mark.parametrize(("windows", "expected"), [(2, Verdict.pass_), (8, Verdict.fail)])
def test_gains_by_chance_are_none(windows: int, expected: Verdict) -> None:
    """Seven and nine per cent more tells nothing about two windows, and a lot about eight."""
    drawn = [window((1.0 + gain, 1.0, 1.0, 1.0)) for gain in (0.07, 0.01)] * windows
    sure = [window((1.0 + gain, 1.0, 1.0, 1.0)) for gain in (0.07, 0.09)] * windows
    assert verdict(observed(nothing=drawn[:windows])).verdict is Verdict.pass_
    assert verdict(observed(nothing=sure[:windows])).verdict is expected


@pytest.mark.parametrize(("slower", "dying"), [(0.011, 0.0), (0.0, 0.011)])
def test_costs_count_where_nothing_is_to_be_had_too(slower: float, dying: float) -> None:
    nothing = [window((1.0,) * 4, dying=dying, slower=slower)]
    assert verdict(observed(nothing=nothing)).verdict is Verdict.fail


def test_gains_are_of_totals_and_worked_by_hand() -> None:
    """400 and 600 tasks become 500 and 600: a tenth more, not an eighth; of 840 that came that is 50 on the mean."""
    one = window((1.25, 1.0, 1.0, 1.0))
    more = replace(PLAIN, four=(600.0, 0.6, 0.2, 0.25))
    other = Window(1, {FIFO: more}, {FIFO: more}, 0.0, 0.0, 0.0)
    assert gains([one, other], FIFO) == pytest.approx((0.1, 0.0, 0.0, 0.0))
    assert points([one, other], FIFO)[0] == pytest.approx(50 / 840)
    assert mean_gain((0.4, 0.2, 0.1, 0.1)) == pytest.approx(0.2)


def test_a_share_that_was_nothing_gains_without_end_or_nothing() -> None:
    dead = replace(PLAIN, four=(0.0, 0.0, 0.0, 0.0))
    assert gains([Window(0, {FIFO: dead}, {FIFO: PLAIN}, 0, 0, 0)], FIFO) == (inf,) * 4
    assert gains([Window(0, {FIFO: dead}, {FIFO: dead}, 0, 0, 0)], FIFO) == (0.0,) * 4


def test_bounds_lie_on_both_sides_and_are_the_same_every_time() -> None:
    windows = [window([1.0 + k / 20 + n / 50 for k in range(4)], number=n) for n in range(9)]
    pairs = [RatePair("a", windows, [window()] * 9)]
    found = advantage(pairs, JUDGED, "seed")
    assert found.lower < found.estimate < found.upper
    assert advantage(pairs, JUDGED, "seed") == found


def test_a_total_that_was_nothing_is_no_gain_of_either() -> None:
    dead = replace(PLAIN, four=(0.0, 0.5, 0.5, 0.5))
    one = window()
    none = [replace(one, before=dict.fromkeys(JUDGED, dead), after=dict.fromkeys(JUDGED, dead))] * 2
    rated = [replace(one, before=dict.fromkeys(JUDGED, dead), after=dict.fromkeys(JUDGED, PLAIN))] * 2
    # The other three are 0.4, 0.2 and 0.25 instead of a half: less by a mean of 0.65 / 0.5 / 4 of the four.
    assert advantage([RatePair("a", none, rated)], JUDGED, "seed").estimate == pytest.approx(0.65 / 0.5 / 4)


def asked(**changes: Any) -> SizingExchange:
    """An answer on two tasks of two kinds; changes of the first size, or of the report."""
    wanted = {"devices": 0.5, "cores": 8.0, "memory": 1e10}
    tasks = [{"id": name, "kind": name, "requested": wanted} for name in ("b", "a")]
    sizes = [
        {"task": name, "recommended": {**wanted, "cores": 6.0}, "slow_down": 0.05, "reason": "as others used"}
        for name in ("b", "a")
    ]
    sizes[0] |= {name: value for name, value in changes.items() if name in sizes[0]}
    report = {
        "revision": {"epoch": "e", "number": 1},
        "method": {"name": "m", "version": "1"},
        "tasks": changes.get("tasks", sizes),
        "importance": changes.get(
            "importance",
            [
                {"kind": kind, "devices": 0.1, "cores": 0.4, "memory": 0.0, "error": 0.1, "records": 300}
                for kind in "ab"
            ],
        ),
    }
    answer = replace(ANSWER, body=json.dumps(report).encode())
    return SizingExchange(tasks, ("b", "a"), 0.05, answer)


def test_an_answer_as_it_should_be() -> None:
    told = AnswerFaults.of("a question", asked())
    assert (told.amiss, told.faults) == ("", ())
    assert not unmet(observed(answered=[told]))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"recommended": {"devices": 0.5, "cores": 8.001, "memory": 1e10}}, "more than the 8"),
        ({"recommended": {"devices": 0.5, "cores": 8.0, "memory": 1.1e10}}, "of memory"),
        ({"recommended": {"devices": 0.0, "cores": 8.0, "memory": 1e10}}, "nothing of devices"),
        ({"slow_down": 0.051}, "slower by 0.051"),
        ({"importance": []}, "importance"),
    ],
)
def test_wrong_sizes_are_told_apart(changes: dict[str, Any], word: str) -> None:
    told = AnswerFaults.of("a question", asked(**changes))
    assert not told.amiss
    assert word in told.faults[0]
    assert len(unmet(observed(answered=[told]))) == 1
    assert not unmet(observed(answered=[told]), "DEM-003"), "that is no matter of the gain"


def test_kinds_are_told_in_order_of_name() -> None:
    right = asked().importance
    assert AnswerFaults.of("a question", asked(importance=list(reversed(right)))).faults


@pytest.mark.parametrize("told", [["a", "b"], ["b"], ["b", "a", "a"], ["b", "c"]])
def test_there_is_one_size_for_each_task_in_order(told: list[str]) -> None:
    one = asked().rows[0][1]
    found = AnswerFaults.of("a question", asked(tasks=[{**one, "task": name} for name in told]))
    assert found.amiss
    assert unmet(observed(answered=[found]))
    assert unmet(observed(answered=[found]), "DEM-003")


def test_no_answer_fails_both() -> None:
    silent = AnswerFaults.of("a question", replace(asked(), answer=replace(ANSWER, status=500)))
    found = observed(answered=[silent])
    assert unmet(found)
    assert verdict(found).verdict is Verdict.fail


@pytest.mark.parametrize("kind", [k for k, kind in enumerate(KINDS) if kind.strong])
@pytest.mark.parametrize(("records", "counts"), [(300, True), (299, False)])
def test_what_matters_stands_first_where_there_are_records_enough(kind: int, records: int, counts: bool) -> None:
    right = tuple(0.5 if k == KINDS[kind].rules else 0.4 for k in range(3))
    level = (0.5, 0.5, 0.5)
    assert not unmet(observed(ranks=[KindRanking("25:25:25:25", kind, right, 0.1, records, ANSWER)]))
    wrong = unmet(observed(ranks=[KindRanking("25:25:25:25", kind, level, 0.1, records, ANSWER)]))
    assert bool(wrong) is counts


def test_a_kind_of_which_the_source_says_nothing_may_depend_on_anything() -> None:
    kind = next(k for k, kind in enumerate(KINDS) if not kind.strong)
    assert not unmet(observed(ranks=[KindRanking("25:25:25:25", kind, (0.9, 0.0, 0.0), 0.1, 4000, ANSWER)]))


def test_the_kinds_depend_on_what_the_source_says() -> None:
    assert [(kind.name, kind.rules) for kind in KINDS if kind.strong] == [
        ("ResNet", MEMORY),
        ("NMT", DEVICES),
        ("CTR", CORES),
    ]


def test_ranks_find_their_kinds_behind_the_names() -> None:
    its = ranked("25:25:25:25", asked())
    assert [(rank.kind, rank.importance) for rank in its] == [(1, (0.1, 0.4, 0.0)), (0, (0.1, 0.4, 0.0))]


def test_the_report_stands_beside_the_source() -> None:
    figure = next(each for each in judge(observed()) if isinstance(each, Figure))
    curve, stated, gained = figure.tables[:3]
    assert len(curve.rows) == len(MIXES) * len(CURVE) * len(JUDGED)
    assert [row.cells[1] for row in stated.rows][:4] == [f"{100 * gain:.1f} %" for gain in STATED]
    assert gained.rows[0].cells[3:] == ["25.3 %", "15.2 %", "7.2 %", "8.0 %", "13.9 %"]
    assert len(gained.rows) == 1 + len(MIXES) * len(JUDGED) * (1 + len(BESIDE))
    assert len(figure.parts) == len(MIXES) * len(JUDGED)
    assert figure.plots[0].series[0].x == [1.0, *CURVE]
