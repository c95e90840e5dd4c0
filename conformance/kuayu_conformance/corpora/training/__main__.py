"""``python -m kuayu_conformance.corpora.training DATA_DIR``: write the shipped runs from the public originals."""

import sys
from collections import Counter
from pathlib import Path

from kuayu_conformance.corpora.training.conversion import converted
from kuayu_conformance.corpora.training.runs import SHIPPED


def main(arguments: list[str]) -> int:
    """Write the shipped file, and say what is in it and what was left out."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kuayu_conformance.corpora.training DATA_DIR\n")
        return 2
    corpus, left = converted(Path(arguments[0]), SHIPPED)
    (Path(__file__).parent / "runs.json").write_text(corpus.to_json(), "utf-8")
    for (source, kind, stated), count in sorted(Counter((r.source, r.kind, r.stated) for r in corpus.runs).items()):
        sys.stdout.write(f"{source}: {count} runs, {kind}, structure {'stated' if stated else 'guessed'}\n")
    for reason, count in Counter(left.values()).most_common():
        sys.stdout.write(f"left out {count} rows: {reason}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
