"""What is installed beside the suite decides what it can test: it says so, and holds nothing of it against a target."""

import ast
import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import kuayu_conformance
from kuayu_conformance import doctor
from kuayu_conformance.check import Check, CheckEntry
from kuayu_conformance.checks import CHECKS, RUN_CHECKS
from kuayu_conformance.doctor import diagnose
from kuayu_conformance.folder import verify, write
from kuayu_conformance.run import judgement, plan, resumption, runner
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_conformance.transcript import TranscriptError
from kuayu_schemas.models import Verdict

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(kuayu_conformance.__file__).parents[1]
NUMERIC = frozenset(plan.LIBRARIES["simulation"])
PLAYED = "MET-004", "MET-005", "MET-006", "MET-016", "MET-022", "MET-024"
"""Requirements that telemetry is played for."""


LOADING = """
import json, sys
import kuayu.cli, kuayu_conformance.cli, kuayu_conformance.doctor, kuayu_conformance.submissions
from kuayu_conformance.checks import CHECKS
begun = [name for name in sys.modules if name.startswith("kuayu_conformance.checks.sch")]
made = [listed.load().name for listed in CHECKS if not listed.extra]
print(json.dumps([begun, made, [name for name in sys.argv[1:] if name in sys.modules]]))
"""
"""Imports the command line and every check that needs no extra, and says which of some libraries that has loaded."""


def test_extras_bring_the_libraries_that_checks_are_said_to_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    brought = {name: _names(project["optional-dependencies"][name]) for name in plan.LIBRARIES}
    assert brought["simulation"] & {"kuayu[telemetry]"}
    brought["simulation"] = brought["simulation"] - {"kuayu[telemetry]"} | brought["telemetry"]
    assert brought == {name: set(libraries) for name, libraries in plan.LIBRARIES.items()}
    assert not _names(project["dependencies"]) & NUMERIC
    for name in ("reference", "training"):
        assert "kuayu[simulation]" in _names(project["optional-dependencies"][name])


def _names(requirements: list[str]) -> set[str]:
    """Requirements without their versions."""
    return {re.split("[<>=!~]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_imports_what_its_extra_brings_and_nothing_else_in_whatever_line(check: CheckEntry) -> None:
    found = _numeric(f"kuayu_conformance.checks.{check.module}")
    if check.extra == "simulation":
        assert found, "it is listed with an extra that it does without"
    else:
        assert found == set(plan.LIBRARIES.get(check.extra, ()))


def _numeric(module: str) -> set[str]:
    """Numeric libraries that a module imports, by itself or through others of the suite, functions included."""
    seen, queue, found = set[str](), [module], set[str]()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        found |= {each.split(".")[0] for each in _imports(name)} & NUMERIC
        parents = (".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1))
        queue += [each for each in (*_imports(name), *parents) if _file(each)]
    return found


def _file(module: str) -> Path | None:
    path = SOURCES.joinpath(*module.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@cache
def _imports(module: str) -> frozenset[str]:
    """Names of modules that a module of the suite imports in any line; names in them that may be modules as well."""
    file, names = _file(module), set[str]()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))) if file else ():
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def test_the_list_and_the_register_name_the_same_checks_of_the_same_requirements() -> None:
    checks: list[Check[object]] = [listed.load() for listed in CHECKS]
    assert [check.name for check in checks] == [listed.name for listed in CHECKS]
    listed = {requirement: check.name for check in (*checks, *RUN_CHECKS) for requirement in check.requirements}
    assert listed == {row.id: plan.check_of(row) for row in plan.testable()}


def test_neither_the_command_line_nor_checks_without_an_extra_load_numeric_libraries() -> None:
    """A process of its own, for this one has loaded them."""
    answer = subprocess.run([sys.executable, "-c", LOADING, *NUMERIC], capture_output=True, text=True, check=True)
    begun, made, loaded = json.loads(answer.stdout)
    assert begun == [], "a check is imported when it is made"
    assert {"com_writes", "met_accuracy", "sch_soundness"} <= set(made)
    assert loaded == []


def test_common_requirements_need_no_extra_and_of_telemetry_only_those_that_it_is_played_for() -> None:
    needing = {row.id for row in plan.testable() if row.id[:3] in {"COM", "MET"} and plan.extra_of(row)}
    assert needing == set(PLAYED)
    assert plan.untestable({"MET"}, {"telemetry", "simulation"}) == {"telemetry": list(PLAYED)}


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The suite as it is without any extra."""
    nothing = frozenset(plan.LIBRARIES)
    for module in (doctor, judgement, plan, runner):
        monkeypatch.setattr(module, "lacking", lambda: nothing)
    return monkeypatch


def test_what_needs_an_extra_is_not_testable_without_it_and_says_what_to_install(
    options: Options, tmp_path: Path, light: pytest.MonkeyPatch
) -> None:
    chosen = dataclasses.replace(options, selection=("COM-012", "MET-004", "SCH-003"), profiles=("MET", "SCH"))
    report = Run(chosen, tmp_path, Progress()).execute()
    results = {result.requirement: result for result in report.results}
    assert results["COM-012"].verdict is Verdict.pass_
    for requirement, extra in (("MET-004", "telemetry"), ("SCH-003", "simulation")):
        assert results[requirement].verdict is Verdict.not_testable
        assert f"needs the extra {extra} (" in (results[requirement].reason or "")
        assert results[requirement].hint == f"pip install 'kuayu[{extra}]'"
    assert report.exit_code == 2, "something is open, and nothing failed"
    write(tmp_path, report)
    assert all(verdict.agrees for verdict in verify(tmp_path))
    light.undo()
    assert all(verdict.agrees for verdict in verify(tmp_path)), "whoever has everything comes to the same"


def test_a_report_whose_checks_need_an_extra_is_not_judged_again_without_it(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would differ, and seem forged."""
    asked = dataclasses.replace(options, selection=("FCT-005",), profiles=("FCT",))
    write(tmp_path, Run(asked, tmp_path, Progress()).execute())
    monkeypatch.setattr(judgement, "lacking", lambda: frozenset({"simulation"}))
    with pytest.raises(TranscriptError, match=r"pip install 'kuayu\[simulation\]' installs it"):
        list(verify(tmp_path))


def test_a_run_is_not_gone_on_with_where_other_extras_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    header = {"suite_version": kuayu_conformance.__version__, "environment": runner.environment()}
    resumption.same_suite(header | {"without": []})
    resumption.same_suite(header)
    monkeypatch.setattr(resumption, "lacking", lambda: frozenset({"simulation"}))
    with pytest.raises(resumption.CannotResume, match=r"what extras are lacking was \[\], is \['simulation'\]"):
        resumption.same_suite(header | {"without": []})


@pytest.mark.usefixtures("light")
def test_the_doctor_names_what_is_lacking_and_what_it_is_for(options: Options) -> None:
    def found(asked: Options) -> list[tuple[str, str]]:
        lacking = [each for each in diagnose(asked, machine=False) if each.subject == "extras"]
        assert all(each.well is None for each in lacking), "a run goes on without"
        return [(each.observed, each.hint) for each in lacking]

    everything = dataclasses.replace(options, selection=())
    [(said, hint)] = found(dataclasses.replace(everything, profiles=("MET",)))
    assert said.endswith("not testable: MET-004, 005, 006, 016, 022, 024")
    assert hint == "pip install 'kuayu[telemetry]'"
    assert [hint for _, hint in found(everything)] == [f"pip install 'kuayu[{name}]'" for name in plan.LIBRARIES]
    assert found(options) == [], "nothing of what was asked for needs one"
