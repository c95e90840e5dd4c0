"""``python -m kuayu_conformance.corpora DATA_DIR``: write the shipped tables from the public originals."""

import sys
from pathlib import Path

from kuayu_conformance.corpora.sources import shipped_files
from kuayu_conformance.corpora.table import Table


def main(arguments: list[str]) -> int:
    """Write every file that is shipped, and say what is in the tables."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kuayu_conformance.corpora DATA_DIR\n")
        return 2
    package = Path(__file__).parent
    for name, text in shipped_files(Path(arguments[0])).items():
        (package / name).write_text(text, "utf-8")
        if name.startswith("tables/"):
            sys.stdout.write(_described(Table.from_json(text)))
    return 0


def _described(table: Table) -> str:
    parts = ", ".join(f"{len(table.corpus[part])} {part}" for part in ("devices", "tasks", "measurements"))
    return f"{table.name}: {parts}; {'judged' if table.judged else 'reported'}\n  {table.source}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
