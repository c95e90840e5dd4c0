"""What a vendor installs: the suite and nothing heavier, tested against the server that is not ours."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mutants.declaration import BUSY, CHECKED, PLAYED
from mutants.matrix import MINIATURE, served

import kuayu_conformance
import kuayu_schemas

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "xgboost", "fastapi", "sqlalchemy", "ray", "linkml")
SIGNING = "cryptography."
"""Library of the extra ``signing``: without it a command that needs a key says what to install, and all else works."""
WAITING = "MET-002"
"""Requirement whose check waits for samples for more than a minute, and does nothing else."""

IMPORTING = """
import ast, importlib, importlib.util, json, pkgutil, sys
from pathlib import Path

def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False

def looked_through(package):
    named = set()
    folders = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folders, package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for file in Path(folders[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                named.add("." * node.level + (node.module or ""))
    return {"named": sorted(named), "missing": sorted(name for name in named if not found(name))}
"""
"""Imports all modules of a package, and looks for whatever functions in them import, in an environment of its own."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a fresh environment into which `pip install .` has put Kuayu, without extras."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder)
    python = folder / "bin" / "python"
    # Its own pip would take as long to install as all else; and what is never imported need not be compiled.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    # the versions without their hashes: where one thing has a hash, pip asks for that of the project itself too
    versions = (line.split(" \\")[0] for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines())
    pinned = folder / "constraints.txt"
    pinned.write_text("\n".join(line for line in versions if not line.startswith((" ", "#"))), "utf-8")
    install = [*pip, "install", "--no-compile", "--constraint", str(pinned), str(ROOT)]
    subprocess.run(install, check=True, timeout=600)
    bring_machine_code(installed(folder / "bin", "kuayu_conformance"))
    return folder / "bin"


def bring_machine_code(package: Path) -> None:
    """Lay what numba has made of our copy beside the installed one, which is the same but for its dates.

    It would make it again, and take a minute of a processor.
    """
    core = Path("testbed", "scheduling", "core")
    ours, theirs = Path(kuayu_conformance.__file__).parent / core, package / core
    for module in ours.glob("*.py"):
        shutil.copystat(module, theirs / module.name)
    (theirs / "__pycache__").mkdir(exist_ok=True)
    for cached in (ours / "__pycache__").glob("*.nb[ci]"):
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

    Every verdict on the miniature is in the kill matrix. Here it is about what is installed: that what longer checks
    import, in whatever line, and the files that they read, are installed as well is shown by the tests below, which
    leave out none.
    """
    chosen = sorted({row.id for row in CHECKED} - PLAYED - BUSY - {WAITING})
    selected = [part for requirement in chosen for part in ("--requirement", requirement)]
    with served(MINIATURE) as target:
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
    assert [row for row in report["results"] if row["verdict"] not in {"pass", "not-applicable"}] == []
    assert run.returncode == 0, run.stdout + run.stderr
    verify = subprocess.run([str(installation / "kuayu"), "conformance", "verify", str(tmp_path)], check=False)
    assert verify.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("package", ["kuayu_conformance", "kuayu_schemas"])
def test_all_that_the_suite_imports_in_whatever_line_is_installed(installation: Path, package: str) -> None:
    found = answered(installation, IMPORTING + f"print(json.dumps(looked_through({package!r})))")
    assert len(found["named"]) > 10
    assert [name for name in found["missing"] if not name.startswith(SIGNING)] == []


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
def test_a_policy_is_compared_without_what_trains(installation: Path, tmp_path: Path) -> None:
    assert answered(installation, IMPORTING + "print(json.dumps(found('kuayu_training')))") is False
    (tmp_path / "mine.py").write_text(POLICY, "utf-8")
    world = ["--seeds", "1", "--nodes", "2", "--warm", "0", "--window", "2", "--drain", "0", "--against", "B0"]
    command = [str(installation / "kuayu"), "bench", "policy", "mine:Patient", *world]
    compared = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
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
    code += "print(sorted(n for n in ('fastapi', 'scipy', 'sqlalchemy', 'psutil') if n in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip().endswith("[]")
