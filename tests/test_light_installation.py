"""What a vendor installs: the suite and nothing heavier, tested against the server that is not ours."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from mutants.declaration import CHECKED, PLAYED
from mutants.matrix import MINIATURE, served

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "xgboost", "fastapi", "sqlalchemy", "ray", "linkml")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a fresh environment into which `pip install .` has put Kuayu, without extras."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "requirements.lock"), str(ROOT)], check=True, timeout=600)
    return folder / "bin"


@pytest.mark.slow
def test_the_suite_runs_without_the_reference(installation: Path, tmp_path: Path) -> None:
    chosen = sorted({row.id for row in CHECKED} - PLAYED)
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
    assert [row for row in report["results"] if row["verdict"] not in {"pass", "not-applicable"}] == []
    assert run.returncode == 0, run.stdout + run.stderr
    verify = subprocess.run([str(installation / "kuayu"), "conformance", "verify", str(tmp_path)], check=False)
    assert verify.returncode == 0


@pytest.mark.slow
def test_nothing_heavy_is_installed_or_imported(installation: Path) -> None:
    code = (
        "import importlib.util as u, sys; import kuayu_conformance.cli, kuayu_conformance.checks;"
        f"print([n for n in {HEAVY!r} if u.find_spec(n) or n in sys.modules])"
    )
    answer = subprocess.run([str(installation / "python"), "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


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
