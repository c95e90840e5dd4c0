"""The second judge shares no code with the suite, nor with anything that the suite is made of."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
JUDGES = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("test_"))
NEEDED = {"numpy"}
"""What a judge needs beyond the standard library: the generator that the text names for forecasts."""


def imported(path: Path) -> Iterator[str]:
    """Packages that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=module, level=level):
                assert module is not None
                assert not level, "relative imports hide what is imported"
                yield module.partition(".")[0]


def test_judges_import_the_standard_library_and_each_other_alone() -> None:
    assert len(JUDGES) > 5
    allowed = sys.stdlib_module_names | NEEDED | {"second_judge"}
    foreign = {path.name: sorted(set(imported(path)) - allowed) for path in JUDGES}
    assert {name: packages for name, packages in foreign.items() if packages} == {}


def test_no_judge_comes_by_the_suite_in_another_way() -> None:
    modules = ", ".join(f"second_judge.{path.stem}" for path in JUDGES if path.stem != "__init__")
    program = f"import sys; import {modules}; print([name for name in sys.modules if name.startswith('kuayu')])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert not any("importlib" in set(imported(path)) for path in JUDGES)
