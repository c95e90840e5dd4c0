"""``python -m lint`` prints what is wrong with the text, and what there is of it; it fails where anything is new."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from lint import known, rules
from lint.clauses import LANGUAGES
from lint.keywords import keywords
from lint.specification import Finding, Specification, read

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the command; the answer is its exit status."""
    parser = argparse.ArgumentParser(prog="lint", description=__doc__)
    parser.add_argument("--drop-stale", action="store_true", help="take out of known.yaml what is found no more")
    drop = parser.parse_args().drop_stale
    specification = read(ROOT)
    listed = known.load()
    compared = known.compare(rules.findings(specification), listed)
    stale = compared.stale
    if drop and stale:
        known.FILE.write_text(known.text(listed - Counter(stale)), "utf-8")
        print(f"took {len(stale)} lines out of spec/lint/known.yaml")
        stale = []
    for finding in compared.new:
        print(finding)
    for rule, file, sentence in stale:
        print(f"spec/lint/known.yaml: {rule}: {file} no longer has this; take it out with --drop-stale\n    {sentence}")
    print(*counts(specification), *(told(rule, compared.known) for rule in _names(compared.known)), sep="\n")
    wrong = len(compared.new) + len(stale)
    print(f"{len(rules.RULES)} rules, {wrong} findings" if wrong else f"{len(rules.RULES)} rules, nothing new")
    return 1 if wrong else 0


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


def told(rule: str, findings: list[Finding]) -> str:
    """What is known of a rule and not mended, by language, in one line."""
    files = [finding.file.split("/")[2] for finding in findings if finding.rule == rule]
    parts = ", ".join(f"{files.count(language)} in {language}" for language in LANGUAGES if language in files)
    name = "duties without ID" if rule == "duty-without-id" else f"findings of {rule}"
    return f"{len(files)} known {name}: {parts}; listed in spec/lint/known.yaml"


def _names(findings: list[Finding]) -> list[str]:
    return sorted({finding.rule for finding in findings})


if __name__ == "__main__":
    sys.exit(main())
