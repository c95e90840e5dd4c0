"""Findings that the text had when their rule came, kept in ``known.yaml`` until they are mended.

The list only shrinks. A finding that is not in it fails, and so does a line of it that finds nothing any more: whoever
mends a sentence takes its line out (``python -m lint --drop-stale``). It holds no numbers of lines, as these move.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from lint.specification import Finding

FILE = Path(__file__).with_name("known.yaml")

HEAD = """\
# Findings of `make lint-spec` that are known and not mended yet, by rule and file: the sentences, word for word.
# Lines are only ever taken out (`python -m lint --drop-stale`). Each duty here needs an identifier with a check, or a
# place in the list behind the requirement that it is about.
"""

Known = Counter[tuple[str, str, str]]
"""Rule, file and sentence, with how often they are known."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Findings beside those that are known."""

    new: list[Finding]
    """Not known."""
    known: list[Finding]
    stale: list[tuple[str, str, str]]
    """Known, and found no more."""


def load(path: Path = FILE) -> Known:
    """Read the list."""
    rules = yaml.safe_load(path.read_text("utf-8")) or {}
    return Counter(
        (rule, file, sentence)
        for rule, files in rules.items()
        for file, sentences in files.items()
        for sentence in sentences
    )


def compare(findings: Iterable[Finding], known: Known) -> Compared:
    """Tell new findings from known ones, and known ones from those that are gone."""
    left, new, old = Counter(known), [], []
    for finding in findings:
        name = (finding.rule, finding.file, finding.sentence)
        if left[name] > 0:
            left[name] -= 1
            old.append(finding)
        else:
            new.append(finding)
    return Compared(new, old, sorted(left.elements()))


def text(known: Known) -> str:
    """The list as it is written."""
    rules: dict[str, dict[str, list[str]]] = {}
    for rule, file, sentence in sorted(known.elements()):
        rules.setdefault(rule, {}).setdefault(file, []).append(sentence)
    return HEAD + yaml.safe_dump(rules, allow_unicode=True, width=1000, sort_keys=True)
