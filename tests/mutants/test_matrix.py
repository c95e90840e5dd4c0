"""The suite on trial: what it says of every mutant is what the mutant declares, no more and no less."""

import ast
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from conforming import Edit
from minimal_server.adjusting import Adjusting
from minimal_server.agreeing import Agreeing
from minimal_server.allocating import Allocating
from minimal_server.backing import Backing
from minimal_server.buying import Buying
from minimal_server.client import SCHEMAS
from minimal_server.conversion import Conversion
from minimal_server.core import Core
from minimal_server.demanding import Demanding
from minimal_server.doubting import Doubting
from minimal_server.foreseeing import Foreseeing
from minimal_server.fronts import Fronts
from minimal_server.graph import Graphs
from minimal_server.indices import Indices
from minimal_server.jobs import Jobs
from minimal_server.layouts import Layouts
from minimal_server.naming import Naming
from minimal_server.otlp import Otlp
from minimal_server.placing import Placing
from minimal_server.questioning import Questioning
from minimal_server.recovering import Recovering
from minimal_server.routing import Routing
from minimal_server.scraping import Scraping
from minimal_server.series import Stepped
from minimal_server.service import MinimalServer
from minimal_server.sharding import Sharding
from minimal_server.shaving import Shaving
from minimal_server.sizing import Sizing
from minimal_server.suspecting import Suspecting
from minimal_server.watching import Watching
from minimal_server.waving import Waving

from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS, SIZES
from kuayu_conformance.checks.interface import references
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, PLACEMENTS, PLANS, ROUTES
from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants import MUTANTS
from mutants.cover import check_source, module_and_name
from mutants.declaration import (
    CHECKED,
    DECIDED,
    DECIDING,
    DECLARED,
    DRAWN_ON,
    ECHOED,
    EDGES_BY_PROFILE,
    HTTP_ALONE,
    INDICES,
    JUDGED_BY_THEMSELVES,
    LAID_OUT,
    MEASURED,
    PLAYED,
    RECKONED,
    RECKONED_LONG,
    SCHEDULING,
    SLICES,
)
from mutants.matrix import Rows, differences, joined, matrix, selected, trials_of
from mutants.oracle import Oracle
from mutants.page import Row
from mutants.serve import MINIMAL_SERVER
from mutants.trial import Trial, in_process

TESTABLE = {requirement.id for requirement in registers.requirements().requirements if requirement.check}
FIGURES = {row.id for row in registers.requirements().requirements if row.check and row.threshold}
"""Requirements on figures."""
BOUNDED = {"JOB-011", "JOB-016", "JOB-019", "JOB-024", "JOB-027"} | {
    f"JOB-{number:03}" for number in (*range(1, 11), *range(32, 35))
}
"""Requirements of the interface whose sentence bounds a number, or leaves much open: how soon, how much at once."""

REQUESTS = references.requests(Random(1))
"""A small request for each operation that decides."""

JUDGED = Path(__file__).parents[1] / "conformance"


def test_every_check_is_broken_by_a_mutant() -> None:
    assert TESTABLE - {name for mutant in MUTANTS for name in mutant.breaks} == JUDGED_BY_THEMSELVES.keys()


def test_every_figure_has_a_near_miss_and_a_control() -> None:
    """Where the figure is a count of all, the unchanged server is the control: one less is the near-miss."""
    held = (FIGURES - JUDGED_BY_THEMSELVES.keys()) | BOUNDED
    assert {mutant.near_miss_of for mutant in MUTANTS} - {""} == held
    assert {mutant.control_for for mutant in MUTANTS} - {""} == held - {"MET-001"}
    assert all(not mutant.breaks for mutant in MUTANTS if mutant.control_for)


def test_what_no_mutant_is_held_against_is_a_figure_and_judged_by_itself() -> None:
    assert JUDGED_BY_THEMSELVES.keys() <= FIGURES
    for test in JUDGED_BY_THEMSELVES.values():
        module, _, name = test.partition("::")
        written = ast.parse((JUDGED / module).read_text("utf-8")).body
        assert name in {node.name for node in written if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(
    ("kind", "signs"),
    [
        (Scraping, ("/v1/scrape-targets",)),
        (Conversion, ("/v1/scrape-targets", "/v1/expositions", "/v1/metrics")),
        (Otlp, ("/v1/metrics",)),
        (Stepped, ("/v1/series",)),
        (Graphs, ("/v1/graph", "kit.graphs")),
        (Indices, ("/v1/compute-indices", "/v1/probe-plans")),
        (Placing, ("placement_requests import PLACEMENTS\n",)),
        (Fronts, ("placement_requests import FRONTS\n",)),
        (Buying, ("placement_requests import PLANS\n",)),
        (Routing, ("placement_requests import ROUTES\n",)),
        (Allocating, ("AllocationHistory",)),
        (Demanding, ("demand_requests import DEMANDS\n", "DemandCase", "Occupancy")),
        (Layouts, ("demand_requests import LAYOUTS\n",)),
        (Sizing, ("demand_requests import SIZES\n", "/v1/task-sizes")),
        (Foreseeing, ("forecast_requests import FORECASTS\n", "forecast_requests import RESERVATIONS\n")),
        (Waving, ("forecast_requests import WAVEFORMS\n",)),
        (Shaving, ("forecast_requests import PEAKS\n", "PeakPlan")),
        (Sharding, ("resilience_requests import SHARDS\n",)),
        (Agreeing, ("resilience_requests import COLLECTIVES\n",)),
        (Backing, ("resilience_requests import BACKUPS\n", "RecoveryInspector")),
        (Recovering, ("resilience_requests import FAILOVERS\n", "FailoverWindow")),
        (Adjusting, ("resilience_requests import ADJUSTMENTS\n", "AdjustmentWindow")),
        (Jobs, ("jobs.job_domains",)),
        (Watching, ("/v1/heartbeats", "/v1/log-lines", "/v1/faults")),
    ],
)
def test_what_answers_an_operation_is_held_against_every_check_that_calls_it(
    kind: type, signs: tuple[str, ...]
) -> None:
    held = next(each.requirements for each in SLICES if kind in each.kinds)
    calling = {
        row.id for row in CHECKED if row.profile is not Profile.COM and any(sign in source(row.check) for sign in signs)
    }
    assert calling
    assert calling - PLAYED <= held


def test_what_decides_is_held_against_every_check_of_com_that_asks_for_decisions() -> None:
    """Those that ask, and the one that looks at whatever was asked."""
    signs = ("requests import DECISIONS", "requests import decision_services")
    asking = {
        row.id for row in CHECKED if row.profile is Profile.COM and any(sign in source(row.check) for sign in signs)
    }
    assert asking | {"COM-003"} == DECIDED


def test_operations_of_scheduling_rest_on_what_is_said_to_be_behind_them() -> None:
    """What is called while they answer belongs to them or to the ground of all operations, or is named."""
    called = {path: called_by(path, REQUESTS[path]) for path in (PLACEMENTS, FRONTS, PLANS, ROUTES)}
    of = {kind.__name__: kind for kind in MinimalServer.__mro__}
    ground = {MinimalServer, Core, *SCHEDULING}
    foreign = {name for calls in called.values() for kind, name in calls if kind in of and of[kind] not in ground}
    assert foreign == ECHOED
    fronts = {name for kind, name in called[FRONTS] if kind in of and of[kind] in DECIDING}
    assert fronts
    assert fronts <= DRAWN_ON


def test_operations_of_demand_rest_on_what_is_said_to_be_behind_them() -> None:
    """Sizes rest on nothing that demands and layouts rest on, but names."""
    of = {kind.__name__: kind for kind in MinimalServer.__mro__}
    apart: dict[str, set[type]] = {DEMANDS: {*LAID_OUT}, SIZES: {Sizing}}
    for path in (DEMANDS, LAYOUTS, SIZES):
        kinds = {of[kind] for kind, _ in called_by(path, REQUESTS[path]) if kind in of}
        behind = apart.get(path, {*LAID_OUT, Layouts})
        assert behind <= kinds <= {MinimalServer, Core, Naming, *behind}


def test_operations_of_resilience_rest_on_what_is_said_to_be_behind_them() -> None:
    """None rests on what another one rests on, but on what links carry, how they are named, and how quick rings are."""
    of = {kind.__name__: kind for kind in MinimalServer.__mro__}
    apart: dict[str, set[type]] = {
        SHARDS: {Doubting, Sharding},
        COLLECTIVES: {Doubting, Agreeing},
        BACKUPS: {Doubting, Suspecting, Backing},
        FAILOVERS: {Doubting, Suspecting, Recovering},
        ADJUSTMENTS: {Doubting, Questioning, Adjusting, Agreeing},
    }
    for path, behind in apart.items():
        called = called_by(path, REQUESTS[path])
        kinds = {of[kind] for kind, _ in called if kind in of}
        assert behind <= kinds <= {MinimalServer, Core, Naming, Sharding, *behind}
        assert path == SHARDS or {name for kind, name in called if kind == Sharding.__name__} <= MEASURED
        assert path == COLLECTIVES or {name for kind, name in called if kind == Agreeing.__name__} <= RECKONED


def called_by(path: str, body: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Classes and methods that are called while a request is answered."""
    service, called = MinimalServer(SCHEMAS, {}), set[tuple[str, str]]()

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        kind, _, name = frame.f_code.co_qualname.partition(".")
        if event == "call" and name and "." not in name:
            called.add((kind, name))

    text = json.dumps(body | ({"explain": True} if path == PLACEMENTS else {})).encode()
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        assert service.answer("POST", path, {"content-type": "application/json"}, text).status == 200
    finally:
        sys.setprofile(before)
    return called


def source(check: str | None) -> str:
    """What a check consists of, by its path; what it imports stands a line each."""
    module, name = module_and_name(check or "")
    spec = find_spec(module)
    assert spec
    assert spec.origin
    text = check_source(Path(spec.origin).read_text("utf-8"), name)
    assert f"{name} = " in text
    return text


def row(**verdicts: str) -> Row:
    """Results of a run; the reason for each verdict is the verdict."""
    said = {name.replace("_", "-"): verdict.replace("_", "-") for name, verdict in verdicts.items()}
    return Row("one", said, 1.0, reasons=said)


def test_what_the_machine_was_too_busy_for_is_played_again_once_and_then_counts() -> None:
    trial = Trial("one", frozenset({"COM-001", "MET-004", "MET-005"}))
    rows, busy = Rows([trial]), row(COM_001="fail", MET_004="not_testable", MET_005="pass")
    second = rows.repetition_of(trial, busy)
    assert second == Trial("one", frozenset({"MET-004"}), again=True)
    assert rows.repetition_of(second, row(MET_004="not_testable")) is None
    complete = rows.add(row(MET_004="pass"))
    assert complete
    assert complete.verdicts == {"COM-001": "fail", "MET-004": "pass", "MET-005": "pass"}
    assert complete.broken == {"COM-001"}


def test_only_what_is_played_is_made_again() -> None:
    assert Rows([]).repetition_of(Trial("one", frozenset({"COM-001"})), row(COM_001="not_testable")) is None


def test_what_passes_in_one_run_alone_does_not_pass() -> None:
    good, bad = row(COM_003="pass", MET_004="pass"), row(COM_003="fail", COM_001="not_testable")
    for both in (joined(good, bad), joined(bad, good)):
        assert both.verdicts == {"COM-001": "not-testable", "COM-003": "fail", "MET-004": "pass"}
        assert both.reasons["COM-003"] == "fail"
    silent = Row("one", {}, 1.0, "no report")
    assert joined(good, silent) == joined(silent, good) == silent


def test_the_unchanged_minimal_server_is_held_against_everything() -> None:
    trials = [trial for trial in trials_of([]) if trial.name == MINIMAL_SERVER]
    assert frozenset[str]().union(*(trial.requirements for trial in trials)) == {row.id for row in CHECKED}
    assert all("COM-003" in trial.requirements for trial in trials if trial.over_http)
    assert {name for trial in trials if not trial.over_http for name in trial.requirements} == RECKONED_LONG
    assert trials_of([], ["MET-004"]) == [Trial(MINIMAL_SERVER, frozenset({"MET-004"}))]
    assert trials_of([], ["COM-001"]) == [Trial(MINIMAL_SERVER, frozenset({"COM-001"}))]


def test_mutants_of_decisions_of_every_profile_are_served_too() -> None:
    assert EDGES_BY_PROFILE.keys() == {"IDX", "DEM", "FCT", "SCH", "RES"}
    for names in EDGES_BY_PROFILE.values():
        assert len(names) == 2
        assert all(DECLARED[name].over_http for name in names)


@pytest.mark.parametrize("name", ["residual-is-left-out", "repeated-names-are-taken"])
def test_what_is_found_in_this_process_is_what_is_declared(name: str) -> None:
    mutant = DECLARED[name]
    (found,) = in_process([Trial(name, mutant.requirements - HTTP_ALONE, over_http=False)])
    assert found.broken == mutant.breaks


def test_a_mutant_that_answers_as_the_fake_does_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    same = replace(DECLARED["abstains-never"], service=Oracle, edit=Edit(frozenset({INDICES})))
    monkeypatch.setitem(DECLARED, same.name, same)
    (found,) = in_process([Trial(same.name, frozenset({"IDX-005"}), over_http=False)])
    assert differences(found, frozenset()) == [
        "abstains-never: the suite wrote no report: it answers all that is asked as the conforming fake does"
    ]


@pytest.mark.slow
@pytest.mark.matrix
def test_the_cover_set_and_mutants_of_the_change_equal_their_declarations(capsys: pytest.CaptureFixture[str]) -> None:
    """Those beyond the budget are named on the terminal; the whole matrix (``make mutants``) holds them."""
    selection = selected()
    with capsys.disabled():
        print("", *selection.lines, sep="\n")
    mutants = selection.mutants(MUTANTS)
    declared = {mutant.name: mutant.breaks for mutant in mutants} | {MINIMAL_SERVER: frozenset()}
    rows = list(matrix(trials_of(mutants, nearest=selection.cover)))
    assert {row.name for row in rows} == set(declared)
    assert [line for row in rows for line in differences(row, declared[row.name])] == []
