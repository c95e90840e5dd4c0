"""``python -m lint`` prints what is wrong with the text, and what there is of it; it fails where anything is."""

import argparse
import sys
from pathlib import Path

from lint import rules
from lint.clauses import LANGUAGES
from lint.keywords import keywords
from lint.specification import Specification, read

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the command; the answer is its exit status."""
    argparse.ArgumentParser(prog="lint", description=__doc__).parse_args()
    specification = read(ROOT)
    findings = rules.findings(specification)
    print(*findings, *counts(specification), f"{len(rules.RULES)} rules, {len(findings)} findings", sep="\n")
    return 1 if findings else 0


def counts(specification: Specification) -> list[str]:
    """How much there is, by language: sentences, those with a keyword, identifiers, and what tests them."""
    lines = ["     sentences  with a keyword  identifiers  with a check  with a reason"]
    for language in LANGUAGES:
        sentences = list(specification.sentences(language))
        numbers = (
            len(sentences),
            sum(1 for sentence in sentences if keywords(sentence)),
            sum(len(sentence.identifiers) for sentence in sentences),
            sum(1 for row in specification.requirements if row.get("check")),
            sum(1 for row in specification.requirements if row.get(f"unchecked_because_{language}")),
        )
        lines.append(f"{language}{numbers[0]:12}{numbers[1]:16}{numbers[2]:13}{numbers[3]:14}{numbers[4]:15}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
