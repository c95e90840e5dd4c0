"""The stored baseline is of the benchmarks that there are, and does not tell whose machine it was made on."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


@pytest.fixture
def baseline() -> dict[str, Any]:
    """What was stored."""
    stored: dict[str, Any] = json.loads((FOLDER / "baseline.json").read_text("utf-8"))
    return stored


def test_every_benchmark_has_its_median_in_the_baseline_and_nothing_else_has(baseline: dict[str, Any]) -> None:
    written = {
        f"{name}.py::{node.name}"
        for name in ("test_reference", "test_suite", "test_training")
        for node in ast.parse((FOLDER / f"{name}.py").read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    held = {row["fullname"].rpartition("/")[2].partition("[")[0] for row in baseline["benchmarks"]}
    assert held == written, "make benchmark-baseline measures it anew"


def test_the_baseline_names_no_host_no_commit_and_no_single_times(baseline: dict[str, Any]) -> None:
    machine = baseline["machine_info"]
    assert set(machine) == {"cpu", "machine", "python_implementation", "python_version", "system"}
    assert set(machine["cpu"]) == {"brand_raw"}
    assert baseline["commit_info"] == {}
    assert not any("data" in row["stats"] for row in baseline["benchmarks"])
