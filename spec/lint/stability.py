"""Rules of the register of stability: each item has a mark that it has earned, and each mark promises one thing.

1. Requirements, features, operations and indicators have one mark each; nothing else has one.
2. *Stable* is what is tested: a requirement that has a check and a method that this version leaves alone, a feature
   that obliges to such a requirement, an indicator whose own value is collected from an exporter.
3. What is deprecated says since when, until when, and what to use instead, in both languages.
4. Promises stand word for word in the clause *Data*.

Sources: docs/en/versioning.md; the register itself, ``spec/stability.yaml``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lint.clauses import LANGUAGES
from lint.specification import Finding, Specification

CLAUSE = "com-06-data"
FILE = "spec/stability.yaml"
DEPRECATED = "deprecated"
TOLD = ("since", "until", "instead_en", "instead_zh")
"""What a deprecated item says beside its mark."""


def item_marked(specification: Specification) -> Iterator[Finding]:
    """Each requirement, feature, operation and indicator has a mark, and nothing that is not there has one."""
    register = _register(specification)
    if register is None:
        return
    known = {row["mark"] for row in register["marks"]}
    for kind, names in _items(specification).items():
        marks = register.get(kind) or {}
        for name in sorted(names - marks.keys()):
            yield _finding(specification, "item-marked", name, f"has no mark; add it under {kind}, as provisional")
        for name in sorted(marks.keys() - names):
            yield _finding(specification, "item-marked", name, f"is none of the {kind}; take its mark out")
        for name, said in marks.items():
            if mark_of(said) not in known:
                yield _finding(specification, "item-marked", name, f"{mark_of(said)!r} is no mark; known: {known}")


def mark_earned(specification: Specification) -> Iterator[Finding]:
    """What is stable is tested: by a check whose method stays, or from an exporter that is played."""
    register = _register(specification)
    if register is None:
        return
    rows = {row["id"]: row for row in specification.requirements}
    stable = {
        kind: [name for name, said in (register.get(kind) or {}).items() if mark_of(said) == "stable"]
        for kind in ("requirements", "features", "indicators")
    }
    for name in stable["requirements"]:
        row = rows.get(name, {})
        if row and not row.get("check"):
            yield _finding(specification, "mark-earned", name, "is stable without a check; mark it as provisional")
        if row.get("revised"):
            advice = f"is stable, and its method was revised in this version ({row['revised']}); mark it as provisional"
            yield _finding(specification, "mark-earned", name, advice)
    tested = {row["feature"] for row in rows.values() if row.get("feature") and row.get("check")}
    for name in stable["features"]:
        if name not in tested:
            yield _finding(specification, "mark-earned", name, "is stable, and no requirement with it has a check")
    collected = {
        row["id"] for row in specification.registers["indicators"]["indicators"] if row["measures"][0].get("collection")
    }
    for name in stable["indicators"]:
        if name not in collected:
            advice = "is stable, and its own value is collected from no exporter; mark it as provisional"
            yield _finding(specification, "mark-earned", name, advice)


def deprecation_told(specification: Specification) -> Iterator[Finding]:
    """What is deprecated says since when, until when, which is later, and what to use instead; nothing else does."""
    for kind in _items(specification):
        for name, said in ((_register(specification) or {}).get(kind) or {}).items():
            if mark_of(said) != DEPRECATED:
                if isinstance(said, Mapping):
                    yield _finding(specification, "deprecation-told", name, "is not deprecated; give its mark alone")
                continue
            missing = [member for member in TOLD if not isinstance(said, Mapping) or not said.get(member)]
            if missing:
                yield _finding(specification, "deprecation-told", name, f"does not say {', '.join(missing)}")
            elif _minor(said["until"]) <= _minor(said["since"]):
                advice = f"is withdrawn in {said['until']}, no minor version after {said['since']}; give a later one"
                yield _finding(specification, "deprecation-told", name, advice)


def promise_stated(specification: Specification) -> Iterator[Finding]:
    """The table of marks of the clause is that of the register, word for word, in both languages."""
    register = _register(specification)
    if register is None:
        return
    for language in LANGUAGES:
        clause = specification.clauses[language].get(CLAUSE)
        rows = [row for row in clause.rows if len(row) == 2] if clause else []  # noqa: PLR2004 - mark and promise
        wanted = [[row[f"name_{language}"], row[f"promise_{language}"]] for row in register["marks"]]
        stated = [row for row in rows if row[0] in {name for name, _ in wanted}]
        if stated != wanted:
            file = clause.file if clause else FILE
            advice = f"its table of marks is not that of {FILE}: {wanted}; make both the same"
            yield Finding("promise-stated", file, 1, "; ".join(row[0] for row in stated), advice)


def mark_of(said: Any) -> str:
    """Mark of an item, from what the register says of it."""
    return str(said["mark"] if isinstance(said, Mapping) else said)


def _register(specification: Specification) -> Mapping[str, Any] | None:
    return specification.registers.get("stability")


def _items(specification: Specification) -> dict[str, set[str]]:
    """Names of the items that have marks, by the register's member."""
    registers = specification.registers
    profiles = registers.get("requirements", {}).get("profiles", [])
    return {
        "requirements": {row["id"] for row in specification.requirements},
        "features": {feature for row in profiles for feature in row["features"]},
        "operations": set(specification.operations),
        "indicators": {row["id"] for row in registers.get("indicators", {}).get("indicators", [])},
    }


def _finding(specification: Specification, rule: str, name: str, advice: str) -> Finding:
    text = specification.register_texts.get("stability", "")
    place = max(text.find(f"\n  {name}:"), -1) + 1
    return Finding(rule, FILE, text.count("\n", 0, place) + 1, name, advice)


def _minor(version: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version).split(".")[:2])
