"""What is committed is what the model gives, on any machine and however often; and the generator says what is wrong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator import json_schema, pydantic_models, registers
from generator.model import Model, ModelError
from kuayu_schemas import schema

ROOT = Path(__file__).parents[2]
REQUIREMENTS = "schemas/kuayu_schemas/published/requirements.json"


def check(root: Path, hash_seed: str) -> subprocess.CompletedProcess[str]:
    """Run the generator of the tree at ``root`` without letting it write."""
    paths = os.pathsep.join(str(root / part) for part in ("spec", "schemas", "reference_impl", "conformance"))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "generator", "--check"]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)


def test_committed_files_are_what_the_model_gives_and_one_that_was_edited_by_hand_is_named(tmp_path: Path) -> None:
    """All but the edited one are so byte for byte, with hashes of their own; the edited one as committed: below."""
    for part in ("spec", "schemas", "reference_impl", "conformance"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    register = tmp_path / REQUIREMENTS
    register.write_text(register.read_text("utf-8").replace(" shall ", " should ", 1), "utf-8")
    done = check(tmp_path, hash_seed="2")
    assert done.returncode == 1
    expected = "kuayu_schemas/published/requirements.json differs from what spec/ gives; run `make schemas`\n"
    assert done.stderr == expected


def test_the_committed_requirements_are_what_the_register_gives_byte_for_byte() -> None:
    given = registers.load(ROOT / "spec/requirements.yaml", registers.REGISTERS["requirements"], schema.document())
    assert (ROOT / REQUIREMENTS).read_bytes() == json_schema.to_text(given).encode()


def test_a_register_that_breaks_its_schema_is_refused_place_by_place(tmp_path: Path) -> None:
    path = tmp_path / "problems.yaml"
    path.write_text(
        "problems:\n- {name: not-found, type: urn:kuayu:problem:not-found, status: 200, colour: red}\n", "utf-8"
    )
    with pytest.raises(registers.RegisterError) as caught:
        registers.load(path, "ProblemRegister", schema.document())
    message = str(caught.value)
    assert "problems.yaml: /problems/0/status: 200 is less than the minimum of 400" in message
    assert "'colour' was unexpected" in message
    assert '"retryable" is a required property' in message
    assert "hint: " in message


def test_a_register_that_is_no_yaml_is_refused_with_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "problems.yaml"
    path.write_text("problems: [", "utf-8")
    with pytest.raises(registers.RegisterError, match="cannot be read"):
        registers.load(path, "ProblemRegister", schema.document())


MODEL = """
id: urn:kuayu:model:trial
name: trial
prefixes: {{linkml: https://w3id.org/linkml/}}
imports: [linkml:types]
classes:
  Thing:
    description: For this trial.
    attributes:
      {slot}
    {rules}
"""


@pytest.mark.parametrize(
    ("slot", "rules", "cause"),
    [
        ("size: {range: integer, description: d}", "", "an integer needs bounds"),
        (
            "sizes: {range: float, multivalued: true, minimum_value: 0, description: d}",
            "",
            "bounds are for a single number",
        ),
        (
            "size: {range: float, description: d}",
            "rules: [{title: r, description: d, preconditions: {slot_conditions: {size: {minimum_value: 1}}}}]",
            "only equals_string, required and value_presence",
        ),
    ],
)
def test_what_the_generator_does_not_understand_is_refused_and_not_dropped(
    tmp_path: Path, slot: str, rules: str, cause: str
) -> None:
    path = tmp_path / "trial.yaml"
    path.write_text(MODEL.format(slot=slot, rules=rules), "utf-8")
    model = Model(path)
    with pytest.raises(ModelError, match=cause):
        pydantic_models.module(model)


def test_a_name_that_stands_in_two_parts_of_the_model_is_refused(tmp_path: Path) -> None:
    model = MODEL.format(slot="size: {range: string, description: d}", rules="")
    other = model.replace("trial", "other")
    (tmp_path / "other.yaml").write_text(other, "utf-8")
    (tmp_path / "trial.yaml").write_text(model.replace("[linkml:types]", "[linkml:types, other]"), "utf-8")
    with pytest.raises(ModelError, match="Thing stands in other and in trial"):
        Model(tmp_path / "trial.yaml")
