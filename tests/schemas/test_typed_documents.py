"""Types of documents say what the models say: the same classes, the same members, the same of them required."""

import subprocess
import sys
from enum import EnumMeta
from pathlib import Path
from typing import get_args, is_typeddict

import pytest

from kuayu_schemas import documents, models
from kuayu_schemas.base import KuayuModel

CLASSES = sorted(
    name for name, found in vars(models).items() if isinstance(found, type) and issubclass(found, KuayuModel)
)
ENUMS = sorted(
    name for name, found in vars(models).items() if isinstance(found, EnumMeta) and found.__module__ == models.__name__
)
MISREAD = """
from kuayu_schemas import documents

def hours(record: documents.JobRecord) -> float:
    return record["device_minutes"]

state: documents.HealthState = "ill"
"""


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "KuayuModel"])
def test_a_class_has_the_members_of_its_model(name: str) -> None:
    document, model = getattr(documents, name), getattr(models, name)
    assert is_typeddict(document)
    required = {member for member, field in model.model_fields.items() if field.is_required()}
    assert (document.__required_keys__, document.__optional_keys__) == (required, set(model.model_fields) - required)


@pytest.mark.parametrize("name", ENUMS)
def test_an_enumeration_has_the_values_of_its_model(name: str) -> None:
    assert list(get_args(getattr(documents, name))) == [value.value for value in getattr(models, name)]


@pytest.mark.slow
def test_a_type_checker_finds_members_and_values_that_there_are_not(tmp_path: Path) -> None:
    (tmp_path / "misread.py").write_text(MISREAD, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "misread.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'TypedDict "JobRecord" has no key "device_minutes"' in done.stdout
    assert "expression has type \"Literal['ill']\"" in done.stdout
    assert done.returncode == 1
