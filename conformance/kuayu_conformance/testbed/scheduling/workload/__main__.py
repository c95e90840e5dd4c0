"""``python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR``: fit again, compare, and write both files."""

import json
import sys
from pathlib import Path
from typing import Any

from kuayu_conformance.testbed.scheduling.workload import fitting, traces
from kuayu_conformance.testbed.scheduling.workload.fitted import forget

FITTED = ("itp", "philly")


def main(arguments: list[str]) -> int:
    """Write what was fitted and how it compares."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kuayu_conformance.testbed.scheduling.workload DATA_DIR\n")
        return 2
    data, package = Path(arguments[0]), Path(__file__).parent
    (package / "fitted.json").write_text(fitted(data), "utf-8")
    forget()
    text = fitting.table({name: traces.read(name, data) for name in FITTED})
    (package / "comparison.json").write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0


def fitted(data: Path) -> str:
    """Text of the file of parameters."""
    found: dict[str, Any] = {name: fitting.members(fitting.fitted(traces.read(name, data))) for name in FITTED}
    found["serving"] = fitting.fitted_serving(traces.read("openb", data))
    found["used"] = fitting.fitted_use(data)
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {_part(of)}" for name, of in found.items()) + "\n}\n"


def _part(members: dict[str, Any]) -> str:
    """A line for each member, and one for each of a list of objects."""
    lines = []
    for name, value in members.items():
        listed = isinstance(value, list | tuple) and isinstance(value[0], dict)
        text = "[\n" + ",\n".join(f"   {json.dumps(row)}" for row in value) + "\n  ]" if listed else json.dumps(value)
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n }"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
