"""The service is asked in every window, baselines are kept; nonce and answers alone decide what is asked."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conformance.scheduling_scores import PLAN
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance import caching
from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.scheduling import gains as sch_gains
from kuayu_conformance.checks.scheduling import scores
from kuayu_conformance.checks.scheduling import stability as sch_stability
from kuayu_conformance.checks.scheduling.cells import FULL, QUICK, Plan, assignment, chosen, plan
from kuayu_conformance.checks.scheduling.scores import GIVEN_UP, Score
from kuayu_conformance.episode import Episode, Request, Settings
from kuayu_conformance.kept_scores import KeptScores
from kuayu_conformance.run.live import TakenUp
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.scenarios import Scenario, Timing
from kuayu_conformance.testbed.scheduling.windows import Cohort, WindowResult, play_window
from kuayu_conformance.transcript import TranscriptError, request_digest

SHORT = replace(
    PLAN,
    timing=Timing(3600.0, 3600.0, 3600.0),
    whole=Timing(3600.0, 7200.0, 7200.0, 10800.0),
    windows=1,
    load_windows=1,
    swings=("step",),
    swing_timing=Timing(3600.0, 3600.0, 0.0),
    swing_windows=1,
    nodes=4,
)


class Target:
    """Answers from a function; a source of episodes without a network."""

    def __init__(self, answer: Callable[[dict[str, Any]], object]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    def exchange(self, request: Request) -> Answer:
        """One answer."""
        self.requests.append(request)
        said = self._answer(json.loads(request.body))
        status = 404 if said is None else 200
        return Answer(
            len(self.requests),
            f"POST {request.path}",
            status,
            {"content-type": "application/json"},
            json.dumps(said).encode(),
        )

    def branch(self, label: str) -> "Target":
        """The same target, whatever is recorded of it."""
        del label
        return self

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is of no use to these checks")


def episode(source: Any, nonce: str = "nonce", run: str = "run", kept: KeptScores | None = None) -> Episode:
    """An episode of a quick run."""
    settings = Settings(nonce, run, False, frozenset(), {}, False)
    return Episode("sch", replace(settings, score_store=kept or settings.score_store), source)


def first_that_fits(body: dict[str, Any]) -> dict[str, Any]:
    """Each job goes wherever there are enough devices with enough memory, if its data may."""
    state = body["state"]
    memory = {kind["id"]: kind["memory"] for kind in state["accelerators"]}
    free = {(site["id"], pool["accelerator"]): pool["free"] for site in state["domains"] for pool in site["pools"]}
    decisions = []
    for spec in (waiting["spec"] for waiting in state["waiting"]):
        count = spec["devices"].get("requested", spec["devices"]["maximum"])
        pinned = [data["domains"] for data in spec.get("data", ()) if data.get("pinned")]
        for (site, kind), there in free.items():
            fits = there >= count and memory[kind] >= spec.get("memory_per_device", 0)
            if fits and all(site in sites for sites in pinned):
                free[site, kind] -= count
                share = {"domain": site, "accelerator": kind, "devices": count}
                placement = {"shares": [share], "split_mode": "none"}
                decisions.append({"job": spec["id"], "verb": "start", "placement": placement})
                break
    method = {"name": "first that fits", "version": "1"}
    return {"revision": state["revision"], "method": method, "decisions": decisions}


def shorten(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """A plan of minutes, and a cache of this module's own."""
    monkeypatch.setenv(caching.FOLDER, str(cache))
    for module in (sch_gains, sch_stability):
        monkeypatch.setattr(module, "plan", lambda **_: SHORT)


@dataclass(frozen=True)
class Run:
    """A run that was played with an empty cache.

    Attributes:
        live: What it asked, and was answered.
        observed: What it saw.
        kept: Where its scores are kept for whoever judges.
        cache: Where its baselines are kept for other runs.
    """

    live: "Recording"
    observed: sch_gains.GainWindows
    kept: Path
    cache: Path


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that others are compared with."""
    folder, live = tmp_path_factory.mktemp("kept"), Recording(first_that_fits)
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as monkeypatch:
        shorten(monkeypatch, cache)
        kept = KeptScores.begin(folder)
        observed = sch_gains.observe(episode(live, kept=kept))
        kept.close()
    return Run(live, observed, folder, cache)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, first: Run) -> None:
    """Baselines that the first run kept are at hand."""
    shorten(monkeypatch, first.cache)


def test_the_same_answers_lead_to_the_same_questions_with_and_without_a_cache(
    monkeypatch: pytest.MonkeyPatch, first: Run
) -> None:
    one, second = first.observed, Target(first_that_fits)
    assert any(first.cache.rglob("*.json")), "baselines are kept"
    other = sch_gains.observe(episode(second, run="another"))
    monkeypatch.setenv(caching.FOLDER, "")
    third = Target(first_that_fits)
    fresh = sch_gains.observe(episode(third))
    questions = [event["request"] for events in first.live.branches.values() for event in events]
    assert [digest(each) for each in second.requests] == questions
    assert one == other == fresh
    assert one.requests == len(questions) > 0
    assert one.bad_answers == 0


def test_a_full_run_plays_baselines_ahead_in_processes_of_their_own(
    monkeypatch: pytest.MonkeyPatch, first: Run
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv(caching.FOLDER, "")
    whole = Settings("nonce", "run", True, frozenset(), {}, False)
    ahead = sch_gains.observe(Episode("sch", whole, Target(first_that_fits)))
    assert ahead.pictures, "it was a full run"
    assert (ahead.windows, ahead.grid) == (first.observed.windows, first.observed.grid)


def test_where_such_a_process_is_killed_the_run_plays_them_itself(monkeypatch: pytest.MonkeyPatch, first: Run) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv(caching.FOLDER, "")
    monkeypatch.setattr(scores, "_stand_back", os.abort)  # as one that takes too much memory is
    whole = Settings("nonce", "run", True, frozenset(), {}, False)
    ahead = sch_gains.observe(Episode("sch", whole, Target(first_that_fits)))
    assert (ahead.windows, ahead.grid) == (first.observed.windows, first.observed.grid)


def test_whoever_judges_takes_windows_from_what_was_kept_and_plays_those_that_are_drawn(
    monkeypatch: pytest.MonkeyPatch, first: Run
) -> None:
    """Live first, as a run does; then from the record, as ``verify`` does, in another process."""
    live, one = first.live, first.observed
    monkeypatch.setenv(caching.FOLDER, "")
    for spot_checks, plays in ((0, False), (None, True)):
        played: list[str] = []
        _count(monkeypatch, played)
        source = ReplaySource("sch", live.events, live.branches)
        again = episode(source, kept=KeptScores.of(first.kept, spot_checks=spot_checks), run="another process")
        assert sch_gains.observe(again) == one
        assert bool(played) == plays
        assert [answer.status for _, answer in again.exchanges] == [200] * one.requests


def test_a_run_that_was_broken_off_goes_on_in_the_middle_of_its_windows(first: Run) -> None:
    """One window had ended, of another half the questions stand, and the last had not begun."""
    one, whole = first.observed, first.live.branches
    names = list(whole)
    half = len(whole[names[1]]) // 2
    stand = {names[0]: whole[names[0]], names[1]: whole[names[1]][:half]}
    second = Recording(first_that_fits)
    source = TakenUp("sch", [], second, lambda name: stand.get(name, ()))  # type: ignore[arg-type]  # a target instead
    again = episode(source)
    assert sch_gains.observe(again) == one
    assert second.branches[names[0]] == []
    assert [event["number"] for event in second.branches[names[1]]] == [*range(half, len(whole[names[1]]))]
    assert {name: len(its) for name, its in second.branches.items() if name not in stand} == {
        name: len(its) for name, its in whole.items() if name not in stand
    }
    assert len(again.exchanges) == one.requests


def test_going_on_takes_windows_that_had_ended_from_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: Run
) -> None:
    """To play a window again from its record takes nearly as long as to ask."""
    shutil.copytree(first.kept, tmp_path, dirs_exist_ok=True)
    one, whole = first.observed, first.live.branches
    names = list(whole)
    half = len(whole[names[1]]) // 2
    stand = {names[0]: whole[names[0]], names[1]: whole[names[1]][:half]}
    played: list[str] = []
    _count(monkeypatch, played)
    second = Recording(first_that_fits)
    source = TakenUp("sch", [], second, lambda name: stand.get(name, ()))  # type: ignore[arg-type]  # a target instead
    again = episode(source, kept=KeptScores.begin(tmp_path), run="resumed")
    assert sch_gains.observe(again) == one
    assert played == ["service"] * (len(names) - 1), "all but the window that had ended"
    assert second.branches[names[0]] == []
    assert [len(its) for its in second.branches.values()][1:] == [
        len(whole[name]) - (half if name == names[1] else 0) for name in names[1:]
    ]
    assert len(again.exchanges) == one.requests


def test_answers_that_were_altered_are_not_passed_over(monkeypatch: pytest.MonkeyPatch, first: Run) -> None:
    branches = deepcopy(first.live.branches)
    last = list(branches.values())[-1][-1]
    last["body"] = json.dumps({**json.loads(last["body"]), "decisions": []})
    played: list[str] = []
    _count(monkeypatch, played)
    source = ReplaySource("sch", first.live.events, branches)
    altered = episode(source, kept=KeptScores.of(first.kept, spot_checks=0), run="another")
    with contextlib.suppress(TranscriptError):
        assert sch_gains.observe(altered) != first.observed
    assert played == ["service"], "the window of that answer was played"


class Recording(Target):
    """A target whose exchanges are events as of a transcript, those of branches by themselves."""

    def __init__(self, answer: Callable[[dict[str, Any]], object], name: str = "sch", begin: int = 0) -> None:
        super().__init__(answer)
        self.name, self._begin = name, begin
        self.events: list[dict[str, Any]] = []
        self.branches: dict[str, list[dict[str, Any]]] = {}

    def branch(self, label: str, begin: int = 0) -> "Recording":
        """The same target, recorded under another name from some event on."""
        made = Recording(self._answer, f"{self.name}/{label}", begin)
        self.branches[made.name] = made.events
        return made

    def exchange(self, request: Request) -> Answer:
        """One answer, recorded."""
        said = super().exchange(request)
        number = self._begin + len(self.events)
        event = {"kind": "exchange", "number": number, "method": request.method, "path": request.path}
        event |= {
            "tenant": request.tenant,
            "request": digest(request),
            "status": said.status,
            "headers": said.headers,
            "failure": "",
        }
        self.events.append(event | {"body": said.body.decode(), "started": 0.0, "seconds": 0.0})
        return said


def digest(request: Request) -> str:
    """What a transcript keeps of a request."""
    return request_digest(request.method, request.path, request.headers, request.body)


def _count(monkeypatch: pytest.MonkeyPatch, played: list[str]) -> None:
    """Note which policies play a window from now on."""

    def noted(its: Scenario, policy: Policy, name: str, members: Cohort | None = None) -> WindowResult:
        played.append(name)
        return play_window(its, policy, name, members)

    monkeypatch.setattr(scores, "play_window", noted)


def test_another_nonce_asks_something_else() -> None:
    one, other = Target(first_that_fits), Target(first_that_fits)
    sch_stability.observe(episode(one))
    sch_stability.observe(episode(other, nonce="other"))
    assert one.requests[0].body != other.requests[0].body


def test_every_policy_has_the_same_cohort(first: Run) -> None:
    o = first.observed
    for cell, rows in o.windows.items():
        for window in rows:
            assert len({score.everyone.jobs for score in window.scores.values()}) == 1, cell
            assert window.bounds.training > 0.0
            best = min(score.training.period for score in window.scores.values())
            assert best >= window.bounds.training * window.scores["B1"].training.jobs
    assert set(o.windows[SHORT.reference("fitted")][0].scores) >= {"B0", "B1", "B4", "B5 pool", "service"}


@pytest.mark.parametrize("said", [None, {"decisions": "many"}])
def test_a_service_that_gives_no_answers_is_given_up(said: object) -> None:
    target = Target(lambda _: said)
    o = sch_gains.observe(episode(target))
    assert len(target.requests) == GIVEN_UP
    assert o.windows == {}
    assert o.bad is not None
    findings: Sequence[Any] = list(sch_gains.judge(o))
    assert [each.met for each in findings] == [False] * 4


def test_scores_are_kept_as_they_are(first: Run) -> None:
    for rows in first.observed.windows.values():
        for score in rows[0].scores.values():
            assert Score.from_json(json.loads(json.dumps(score.json()))) == score


@pytest.mark.parametrize("its", [QUICK, FULL])
def test_plans_are_whole(its: Plan) -> None:
    """The grid holds the reference load, and curves run through cells that exist."""
    assert 1.0 in its.loads
    assert list(its.loads) == sorted(its.loads)
    assert its.at_load(1.0) == its.reference(its.sources[0])
    assert plan(full=its is FULL) is its
    assert all(len(curve.points) > 1 for curve in its.curves)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=192, max_size=192), st.text(max_size=4))
def test_windows_are_chosen_in_proportion_to_their_long_jobs(long: list[int], nonce: str) -> None:
    """Of each way of dealing accelerators six of twenty-four, one of each four in the order of their long jobs."""
    numbers = chosen(long, 48, nonce)
    assert len(set(numbers)) == 48
    assert [assignment(number) for number in numbers] == list(range(8)) * 6, "in turn"
    for dealt in range(8):
        ordered = sorted(long[dealt::8])
        taken = sorted(long[number] for number in numbers if assignment(number) == dealt)
        for place, count in enumerate(taken):
            assert ordered[4 * place] <= count <= ordered[4 * place + 3]


def test_nobody_knows_beforehand_which_windows_are_chosen() -> None:
    long = [number % 5 for number in range(192)]
    assert chosen(long, 48, "one") == chosen(long, 48, "one")
    assert chosen(long, 48, "one") != chosen(long, 48, "other")
    assert chosen([3, 1], 2, "any") == (0, 1), "nothing to choose"
