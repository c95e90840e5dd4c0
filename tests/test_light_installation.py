"""What a vendor installs: what COM and MET need and nothing heavier, tested against the server that is not ours."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmarks.installation import packages_of, pinned, sizes
from mutants.declaration import BUSY, CHECKED
from mutants.serve import MINIMAL_SERVER, served

import kuayu_conformance
import kuayu_schemas
from kuayu_conformance.run.plan import LIBRARIES, extra_of

ROOT = Path(__file__).resolve().parents[1]
NUMERIC = LIBRARIES["simulation"]
HEAVY = ("torch", "xgboost", "fastapi", "sqlalchemy", "ray", "linkml", "llvmlite", *NUMERIC)
MOST_MEGABYTES = 60
"""Millions of bytes that the wheels may hold, without the bytecode that is made of them."""
LINKED = (*NUMERIC, "llvmlite", "numpy.libs", "scipy.libs")
"""What the extra ``simulation`` brings."""
SIGNING = "cryptography."
"""Library of the extra ``signing``: without it a command that needs a key says what to install, and all else works."""
WAITING = "MET-002"
"""Requirement whose check waits for samples for more than a minute, and does nothing else."""

IMPORTING = (
    f"NUMERIC = {NUMERIC!r}"
    """
import ast, importlib, importlib.util, json, pkgutil, sys
from pathlib import Path

def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as missing:
        return missing.name in NUMERIC

def looked_through(package):
    named = set()
    folders = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folders, package + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:
                if missing.name not in NUMERIC:
                    raise
    for file in Path(folders[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                named.add("." * node.level + (node.module or ""))
    return {"named": sorted(named), "missing": sorted(name for name in named if not found(name))}
"""
)
"""Imports all modules of a package but for those that need numeric libraries, and looks for whatever functions in them
import, in an environment of its own."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a fresh environment into which `pip install .` has put Kuayu, without extras."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder)
    python = folder / "bin" / "python"
    # Its own pip would take as long to install as all else; and what is never imported need not be compiled.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    constraint = pinned(folder / "constraints.txt")
    install = [*pip, "install", "--no-compile", "--constraint", str(constraint), str(ROOT)]
    subprocess.run(install, check=True, timeout=600)
    return folder / "bin"


@pytest.fixture(scope="module")
def simulation(installation: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that brings the environment what the extra ``simulation`` does: links to what is installed here."""
    ours, folder = Path(np.__file__).parents[1], tmp_path_factory.mktemp("simulation")
    for name in LINKED:
        (folder / name).symlink_to(ours / name)
    bring_machine_code(installed(installation, "kuayu_conformance"))
    return folder


def bring_machine_code(package: Path) -> None:
    """Lay what numba has made of our copy beside the installed one, which is the same but for its dates.

    It would make it again, and take minutes of a processor. What says of which sources it was made comes along: without
    that it would be removed before it is looked at.
    """
    core = Path("testbed", "scheduling", "core")
    ours, theirs = Path(kuayu_conformance.__file__).parent / core, package / core
    for module in ours.glob("*.py"):
        shutil.copystat(module, theirs / module.name)
    (theirs / "__pycache__").mkdir(exist_ok=True)
    for cached in (ours / "__pycache__").iterdir():
        if cached.suffix != ".pyc":
            shutil.copy2(cached, theirs / "__pycache__")


def answered(installation: Path, program: str) -> Any:
    """What a program of the environment prints, which is JSON."""
    command = [str(installation / "python"), "-c", program]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)


def installed(installation: Path, package: str) -> Path:
    """Folder of a package in the environment."""
    return Path(answered(installation, f"import json, {package} as it; print(json.dumps(it.__file__))")).parent


def files(folder: Path) -> list[str]:
    """Files of a package, but for those that Python makes of others."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if "__pycache__" not in name)


@pytest.mark.slow
def test_the_suite_runs_without_the_reference(installation: Path, tmp_path: Path) -> None:
    """What takes no more than some seconds is run, and judged again.

    Every verdict on the minimal server is in the kill matrix. Here it is about what is installed: that what longer
    checks import, in whatever line, and the files that they read, are installed as well is shown by the tests below,
    which leave out none.
    """
    rows = {row.id: extra_of(row) for row in CHECKED}
    chosen = sorted({name for name, extra in rows.items() if not extra} - BUSY - {WAITING})
    lacking = {"MET-004": "telemetry", "SCH-003": "simulation"}
    selected = [part for requirement in (*chosen, *lacking) for part in ("--requirement", requirement)]
    with served(MINIMAL_SERVER) as target:
        run = subprocess.run(
            [
                *(str(installation / "kuayu"), "conformance", "run", "--target", target, "-o", str(tmp_path)),
                *("--header", "Authorization: Bearer own", "--other-tenant-header", "Authorization: Bearer other"),
                *("--seed", "1", *selected),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert (tmp_path / "report.json").is_file(), run.stdout + run.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert {row["requirement"] for row in report["results"] if row["verdict"] == "pass"} == set(chosen)
    others = {row["requirement"]: row for row in report["results"] if row["verdict"] not in {"pass", "not-applicable"}}
    assert {name: (row["verdict"], row["hint"]) for name, row in others.items()} == {
        name: ("not-testable", f"pip install 'kuayu[{extra}]'") for name, extra in lacking.items()
    }
    assert run.returncode == 2, run.stdout + run.stderr
    for name, extra in lacking.items():
        assert f"pip install 'kuayu[{extra}]'" in run.stderr, "it is said beforehand"
        assert name in run.stderr
    verify = subprocess.run([str(installation / "kuayu"), "conformance", "verify", str(tmp_path)], check=False)
    assert verify.returncode == 0


@pytest.mark.slow
def test_it_takes_less_than_60_megabytes(installation: Path) -> None:
    found = sizes(packages_of(installation.parent), bytecode=False)
    assert found.total() < MOST_MEGABYTES * 1e6, found.most_common()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["kuayu_conformance", "kuayu_schemas"])
def test_all_that_the_suite_imports_in_whatever_line_is_installed(installation: Path, package: str) -> None:
    found = answered(installation, IMPORTING + f"print(json.dumps(looked_through({package!r})))")
    assert len(found["named"]) > 10
    missing = [name for name in found["missing"] if name not in NUMERIC]
    assert [name for name in missing if not name.startswith(SIGNING)] == []


@pytest.mark.slow
@pytest.mark.parametrize("package", [kuayu_conformance, kuayu_schemas], ids=lambda package: str(package.__name__))
def test_all_files_of_the_suite_are_installed(installation: Path, package: ModuleType) -> None:
    ours = Path(str(package.__file__)).parent
    assert files(installed(installation, package.__name__)) == files(ours)


@pytest.mark.slow
def test_nothing_heavy_is_installed_or_imported(installation: Path) -> None:
    program = f"import kuayu_conformance.cli; print(json.dumps([n for n in {HEAVY!r} if found(n) or n in sys.modules]))"
    assert answered(installation, IMPORTING + "looked_through('kuayu_conformance')\n" + program) == []


POLICY = """
class Patient:
    def decide(self, view):
        return []
"""


@pytest.mark.slow
def test_a_policy_is_compared_without_what_trains(installation: Path, simulation: Path, tmp_path: Path) -> None:
    assert answered(installation, IMPORTING + "print(json.dumps(found('kuayu_training')))") is False
    (tmp_path / "mine.py").write_text(POLICY, "utf-8")
    world = ["--seeds", "1", "--nodes", "2", "--warm", "0", "--window", "2", "--drain", "0", "--against", "B0"]
    command = [str(installation / "kuayu"), "bench", "policy", "mine:Patient", *world]
    light = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert light.returncode == 3
    assert "pip install 'kuayu[simulation]'" in light.stderr
    environment = {**os.environ, "PYTHONPATH": str(simulation)}
    compared = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert compared.returncode == 0, compared.stderr
    assert "yours" in compared.stdout
    assert "B0" in compared.stdout


@pytest.mark.slow
def test_a_command_that_needs_a_key_says_what_to_install(installation: Path, tmp_path: Path) -> None:
    command = [str(installation / "kuayu"), "conformance", "keygen", "-o", str(tmp_path / "key")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "pip install 'kuayu[signing]'" in answer.stderr


@pytest.mark.slow
def test_a_command_of_the_reference_says_what_to_install(installation: Path) -> None:
    answer = subprocess.run(
        [str(installation / "kuayu"), "serve", "--port", "8080"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 3
    assert "pip install 'kuayu[reference]'" in answer.stderr


def test_help_does_not_load_the_reference() -> None:
    code = "import sys; from kuayu.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted(n for n in ('fastapi', 'numpy', 'scipy', 'sqlalchemy', 'psutil') if n in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip().endswith("[]")
