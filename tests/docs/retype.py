"""Puts what a guide's commands print today into the guide, in both languages: ``python -m docs.retype PAGE``.

Run it in ``tests/`` when the answers of the reference have changed for a reason, and read the difference.
"""

import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docs.typed import CODE, GUIDES, SHOWN, perform


def retype(page: str) -> None:
    """Carry a guide out, and replace what it shows."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        performed = perform(page, Path(folder), port)
    for language in ("en", "zh"):
        outputs = iter([each.printed for each in performed if each.shown is not None])

        def shown(found: re.Match[str], outputs: Iterator[str] = outputs) -> str:
            if found[1] != SHOWN:
                return found[0]
            lines = next(outputs).strip("\n").splitlines()
            return "\n".join([f"```{SHOWN}", *(line.rstrip() for line in lines), "```"])

        file = GUIDES / language / "guides" / page
        if file.exists():
            file.write_text(CODE.sub(shown, file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        retype(name)
