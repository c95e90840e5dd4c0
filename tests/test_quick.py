"""The short loop for a change finds the tests of what changed."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def quick() -> ModuleType:
    """The command, as a module."""
    loader = SourceFileLoader("quick", str(ROOT / ".ci/quick"))
    spec = importlib.util.spec_from_loader("quick", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import kuayu.demand.law", True),
        ("from kuayu.demand.law import hours", True),
        ("from kuayu.demand import (\n    other,\n    law,\n)", True),
        ("from kuayu.demand import law as rule", True),
        ("from kuayu.demand import lawful", False),
        ("from kuayu.demand.lawful import law", False),
        ("# import kuayu.demand.law", False),
    ],
)
def test_an_import_is_recognised_however_it_is_written(quick: ModuleType, text: str, imported: bool) -> None:
    assert quick.imports(text, "kuayu.demand.law") is imported


def test_tests_of_a_module_are_those_that_import_it_and_test_files_that_changed(quick: ModuleType) -> None:
    module = Path("conformance/kuayu_conformance/run/machine.py")
    assert quick.module_of(module) == "kuayu_conformance.run.machine"
    found = quick.tests_of([module, Path("tests/test_quick.py")])
    assert "tests/conformance/test_busy_machine.py" in found
    assert "tests/test_quick.py" in found
    assert "tests/service/test_openapi.py" not in found
