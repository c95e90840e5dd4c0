"""``python -m kuayu_conformance.testbed.scheduling.baselines``: tune B3c and B4 again, and write ``tuned.json``.

Seeds are those of ``tuning.CELLS``. It takes some minutes on one core.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kuayu_conformance.testbed.scheduling.baselines.tuned import FILE
from kuayu_conformance.testbed.scheduling.baselines.tuning import tune

COMMAND = "python -m kuayu_conformance.testbed.scheduling.baselines"


def main() -> int:
    """Write what was found, and print it."""
    written = text({"command": COMMAND, **tune()})
    Path(__file__).with_name(FILE).write_text(written, "utf-8")
    sys.stdout.write(written)
    return 0


def text(found: dict[str, Any]) -> str:
    """A line for each member, and one for each row of a table."""
    lines = []
    for name, value in found.items():
        rows = isinstance(value, list)
        whole = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]" if rows else json.dumps(value)
        lines.append(f" {json.dumps(name)}: {whole}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
