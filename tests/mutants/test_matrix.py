"""The suite on trial: what it says of every mutant is what the mutant declares, no more and no less."""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from miniature.adjusting import Adjusting
from miniature.agreeing import Agreeing
from miniature.allocating import Allocating
from miniature.backing import Backing
from miniature.buying import Buying
from miniature.client import SCHEMAS
from miniature.conversion import Conversion
from miniature.core import Core
from miniature.demanding import Demanding
from miniature.doubting import Doubting
from miniature.foreseeing import Foreseeing
from miniature.fronts import Fronts
from miniature.graph import Graphs
from miniature.indices import Indices
from miniature.layouts import Layouts
from miniature.naming import Naming
from miniature.otlp import Otlp
from miniature.phasing import Phasing
from miniature.placing import Placing
from miniature.questioning import Questioning
from miniature.recovering import Recovering
from miniature.routing import Routing
from miniature.scraping import Scraping
from miniature.series import Stepped
from miniature.service import Miniature
from miniature.sharding import Sharding
from miniature.shaving import Shaving
from miniature.sizing import Sizing
from miniature.suspecting import Suspecting
from miniature.watching import Watching
from miniature.waving import Waving

from kuayu_conformance.checks import dem_names, res_names, sch_names
from kuayu_conformance.checks.dem_fixtures import DEMANDS, SIZES
from kuayu_conformance.checks.res_fixtures import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS
from kuayu_conformance.checks.sch_fixtures import FRONTS, PLACEMENTS, Draft, Json
from kuayu_conformance.episode import Episode, Settings
from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants import MUTANTS
from mutants.declaration import (
    CHECKED,
    DECIDED,
    DECIDING,
    DRAWN_ON,
    ECHOED,
    JUDGED_BY_THEMSELVES,
    LAID_OUT,
    MEASURED,
    PLAYED,
    RECKONED,
    SCHEDULING,
    SLICES,
)
from mutants.matrix import MINIATURE, Rows, Trial, differences, joined, matrix, selected, trials_of
from mutants.page import Row

TESTABLE = {requirement.id for requirement in registers.requirements().requirements if requirement.check}
FIGURES = {row.id for row in registers.requirements().requirements if row.check and row.threshold}
"""Requirements on figures."""

JUDGED = Path(__file__).parents[1] / "conformance"


def test_every_check_is_broken_by_a_mutant() -> None:
    assert TESTABLE - {name for mutant in MUTANTS for name in mutant.breaks} == JUDGED_BY_THEMSELVES.keys()


def test_every_figure_has_a_near_miss_and_a_control() -> None:
    """Where the figure is a count of all, the unchanged server is the control: one less is the near-miss."""
    held = FIGURES - JUDGED_BY_THEMSELVES.keys()
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
        (Graphs, ("/v1/graph", "checks.graphs")),
        (Indices, ("/v1/compute-indices", "/v1/probe-plans")),
        (Placing, (" PLACEMENTS, ", " PLACEMENTS,\n")),
        (Fronts, (" FRONTS, ", " FRONTS,\n")),
        (Buying, ("import PLANS, ", "PLACEMENTS, PLANS, ", " PLANS,\n")),
        (Routing, (" ROUTES, ", " ROUTES,\n")),
        (Allocating, ("checks.sch_stories",)),
        (Demanding, ("dem_fixtures import DEMANDS,", "    DEMANDS,\n", "checks.dem_parts", "checks.dem_holding")),
        (Layouts, ("    LAYOUTS,\n",)),
        (Sizing, ("    SIZES,\n", "checks.dem_sizing_questions")),
        (Phasing, (" PHASES,\n",)),
        (Foreseeing, (" FORECASTS,", "checks.fct_origins", " RESERVATIONS,")),
        (Waving, (" WAVEFORMS,",)),
        (Shaving, (" PEAKS,\n", "checks.fct_peaks")),
        (Sharding, (" SHARDS, ", "checks.res_windows import FULL, ")),
        (Agreeing, (" COLLECTIVES, ",)),
        (Backing, ("import BACKUPS, ", "checks.res_failover_windows", "checks.res_recovery_window")),
        (Recovering, (" FAILOVERS, ", "checks.res_failover_windows")),
        (Adjusting, ("import ADJUSTMENTS, ", "    ADJUSTMENTS,\n", "checks.res_adjusting_windows")),
        (Watching, ("/v1/heartbeats", "/v1/log-lines", "/v1/faults", "checks.res_watching_player")),
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
    asking = {row.id for row in CHECKED if row.profile is Profile.COM and "least import DECISIONS" in source(row.check)}
    assert asking | {"COM-003"} == DECIDED


def test_operations_of_scheduling_rest_on_what_is_said_to_be_behind_them() -> None:
    """What is called while they answer belongs to them or to the ground of all operations, or is named."""
    called = {path: called_by(path, body) for path, body in sch_names.requests(Draft(Random(1))).items()}
    of = {kind.__name__: kind for kind in Miniature.__mro__}
    ground = {Miniature, Core, *SCHEDULING}
    foreign = {name for calls in called.values() for kind, name in calls if kind in of and of[kind] not in ground}
    assert foreign == ECHOED
    fronts = {name for kind, name in called[FRONTS] if kind in of and of[kind] in DECIDING}
    assert fronts
    assert fronts <= DRAWN_ON


def test_operations_of_demand_rest_on_what_is_said_to_be_behind_them() -> None:
    """Sizes rest on nothing that demands and layouts rest on, but names."""
    settings = Settings("nonce", "run", False, frozenset(), {}, False)
    episode = Episode("dem_names", settings, None)  # type: ignore[arg-type]  # nothing is asked
    of = {kind.__name__: kind for kind in Miniature.__mro__}
    apart: dict[str, set[type]] = {DEMANDS: {*LAID_OUT}, SIZES: {Sizing}}
    for path, body in dem_names.requests(episode).items():
        kinds = {of[kind] for kind, _ in called_by(path, body) if kind in of}
        behind = apart.get(path, {*LAID_OUT, Layouts})
        assert behind <= kinds <= {Miniature, Core, Naming, *behind}


def test_operations_of_resilience_rest_on_what_is_said_to_be_behind_them() -> None:
    """None rests on what another one rests on, but on what links carry, how they are named, and how quick rings are."""
    of = {kind.__name__: kind for kind in Miniature.__mro__}
    apart: dict[str, set[type]] = {
        SHARDS: {Doubting, Sharding},
        COLLECTIVES: {Doubting, Agreeing},
        BACKUPS: {Doubting, Suspecting, Backing},
        FAILOVERS: {Doubting, Suspecting, Recovering},
        ADJUSTMENTS: {Doubting, Questioning, Adjusting, Agreeing},
    }
    for path, body in res_names.requests(Random(1)).items():
        called = called_by(path, body)
        kinds = {of[kind] for kind, _ in called if kind in of}
        assert apart[path] <= kinds <= {Miniature, Core, Naming, Sharding, *apart[path]}
        assert path == SHARDS or {name for kind, name in called if kind == Sharding.__name__} <= MEASURED
        assert path == COLLECTIVES or {name for kind, name in called if kind == Agreeing.__name__} <= RECKONED


def called_by(path: str, body: Json) -> set[tuple[str, str]]:
    """Classes and methods that are called while a request is answered."""
    service, called = Miniature(SCHEMAS, {}), set[tuple[str, str]]()

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


def source(module: str | None) -> str:
    spec = find_spec(module or "")
    assert spec
    assert spec.origin
    return Path(spec.origin).read_text("utf-8")


def row(**verdicts: str) -> Row:
    """Results of a run; the reason for each verdict is the verdict."""
    said = {name.replace("_", "-"): verdict.replace("_", "-") for name, verdict in verdicts.items()}
    return Row("one", said, 1.0, reasons=said)


def test_what_the_machine_was_too_busy_for_is_played_again_twice_and_then_counts() -> None:
    trial = Trial("one", frozenset({"COM-001", "MET-004", "MET-005"}))
    rows, busy = Rows([trial]), row(COM_001="fail", MET_004="not_testable", MET_005="pass")
    second = rows.repetition_of(trial, busy)
    assert second == Trial("one", frozenset({"MET-004"}), 2)
    third = rows.repetition_of(second, row(MET_004="not_testable"))
    assert third == Trial("one", frozenset({"MET-004"}), 3)
    assert rows.repetition_of(third, row(MET_004="not_testable")) is None
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


def test_the_unchanged_miniature_is_held_against_everything() -> None:
    trials = [trial for trial in trials_of([]) if trial.name == MINIATURE]
    assert frozenset[str]().union(*(trial.requirements for trial in trials)) == {row.id for row in CHECKED}
    assert all("COM-003" in trial.requirements for trial in trials)
    assert trials_of([], ["MET-004"]) == [Trial(MINIATURE, frozenset({"MET-004"}))]
    assert trials_of([], ["COM-001"]) == [Trial(MINIATURE, frozenset({"COM-001"}))]


@pytest.mark.slow
@pytest.mark.alone
def test_the_cover_set_and_mutants_of_the_change_equal_their_declarations(capsys: pytest.CaptureFixture[str]) -> None:
    """Those beyond the budget are named on the terminal; the whole matrix (``make mutants``) holds them."""
    selection = selected()
    with capsys.disabled():
        print("", *selection.lines, sep="\n")
    mutants = selection.mutants(MUTANTS)
    declared = {mutant.name: mutant.breaks for mutant in mutants} | {MINIATURE: frozenset()}
    rows = list(matrix(mutants))
    assert {row.name for row in rows} == set(declared)
    assert [line for row in rows for line in differences(row, declared[row.name])] == []
