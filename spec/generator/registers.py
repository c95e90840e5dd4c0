"""The registers: YAML written by hand, checked against the JSON Schema, published as JSON."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

REGISTERS = {"indicators": "IndicatorRegister", "requirements": "RequirementRegister", "problems": "ProblemRegister"}


class RegisterError(Exception):
    """A register breaks the schema of its class."""


def load(path: Path, class_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Read the register at ``path`` and check it against ``class_name`` of the closed JSON Schema.

    Raises:
        RegisterError: It cannot be read or breaks the schema; each place is named.
    """
    name = f"{path.parent.name}/{path.name}"
    try:
        register: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise RegisterError(f"{name}: cannot be read: {error}\nhint: it has to be YAML in UTF-8") from error
    validator = jsonschema_rs.Draft202012Validator(schema | {"$ref": f"#/$defs/{class_name}"}, validate_formats=True)
    places = [f"{name}: {_pointer(error.instance_path)}: {error.message}" for error in validator.iter_errors(register)]
    if places:
        hint = f"hint: class {class_name} of spec/model says what stands where; quote what YAML would take for a number"
        raise RegisterError("\n".join([*places, hint]))
    return register


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{step}" for step in path) or "/"
