"""Rules of the registers: what the text lists is what registers, model and published schemas have, and the reverse.

Whoever implements the standard from its text alone has to find every name in it. Lists are compared word by word, so
that neither a text nor a register can grow by itself.
"""

import re
from collections.abc import Iterator

from lint.clauses import CODE, LANGUAGES, Clause
from lint.specification import Finding, Specification, at

CONFORMANCE = "com-05-conformance"
ENUMERATIONS = {
    CONFORMANCE: "Verdict",
    "met-06-graph": "OperatingState",
    "res-05-faults": "FaultKind",
    "job-01-jobs": "JobState",
}
"""Clauses with a table of names, and the enumeration of the model that it is."""

FEATURES = {"en": re.compile(r"Features are(.+?); a feature", re.DOTALL), "zh": re.compile(r"特性有(.+?)；声明的特性")}

FOREIGN = frozenset(
    {"time_unix_nano", "start_time_unix_nano", "partial_success", "rejected_data_points", "error_message"}
)
"""Words in code that another document defines: the OpenTelemetry protocol."""


def register_text(specification: Specification) -> Iterator[Finding]:
    """Each requirement of the register stands in the clause that it names, word for word; and no other does."""
    rows = {row["id"]: row for row in specification.requirements}
    for language in LANGUAGES:
        found: dict[str, str] = {}
        for sentence in specification.sentences(language):
            for identifier in sentence.identifiers:
                found[identifier] = sentence.clause
                row = rows.get(identifier)
                if row is None:
                    yield at("register-text", sentence, f"spec/requirements.yaml has no {identifier}; add it")
                elif row["clause"] != sentence.clause:
                    yield at("register-text", sentence, f"the register has {identifier} in {row['clause']}; correct it")
                elif row[f"text_{language}"] != sentence.text:
                    advice = f"the register says: {row[f'text_{language}']} Make both the same, and run `make schemas`"
                    yield at("register-text", sentence, advice)
        for identifier, row in rows.items():
            if identifier not in found:
                advice = f"stands nowhere in spec/text/{language}; write it into {row['clause']}"
                yield specification.in_register("register-text", identifier, row[f"text_{language}"], advice)


def check_or_reason(specification: Specification) -> Iterator[Finding]:
    """Each requirement has a check, or says in both languages why it has none."""
    for row in specification.requirements:
        if not row.get("check") and not (row.get("unchecked_because_en") and row.get("unchecked_because_zh")):
            advice = "has no check; name one, or give unchecked_because_en and unchecked_because_zh"
            yield specification.in_register("check-or-reason", row["id"], row["text_en"], advice)


def identifier_kept(specification: Specification) -> Iterator[Finding]:
    """Identifiers of a profile are 001 and on without a gap, those that were withdrawn among them."""
    used = {row["id"]: row.get("text_en", "") for row in (*specification.requirements, *specification.withdrawn)}
    for profile in sorted({identifier[:3] for identifier in used}):
        numbers = {int(identifier[4:]) for identifier in used if identifier[:3] == profile}
        for number in sorted(set(range(1, max(numbers))) - numbers):
            advice = f"no requirement has {profile}-{number:03}; if it was withdrawn, say so under withdrawn"
            last = f"{profile}-{max(numbers):03}"
            yield specification.in_register("identifier-kept", last, used[last], advice)


def withdrawn_unused(specification: Specification) -> Iterator[Finding]:
    """No requirement has the identifier of one that was withdrawn, and what replaced that one is there."""
    known = {row["id"] for row in specification.requirements}
    withdrawn = [row["id"] for row in specification.withdrawn]
    for row in specification.withdrawn:
        told = f"{row['id']} {row['title_en']}"
        if row["id"] in known or withdrawn.count(row["id"]) > 1:
            advice = "was withdrawn, and no identifier is used twice; take the next free number"
            yield specification.in_register("withdrawn-unused", row["id"], told, advice)
        for identifier in row["replaced_by"]:
            if identifier not in known:
                advice = f"is said to be replaced by {identifier}, which is no requirement; name one that is"
                yield specification.in_register("withdrawn-unused", row["id"], told, advice)


def features_listed(specification: Specification) -> Iterator[Finding]:
    """The features of the clause are those of the register, each of its profile, and those of the model."""
    profiles = specification.registers.get("requirements", {}).get("profiles", [])
    wanted = {feature: row["profile"] for row in profiles for feature in row["features"]}
    for clause in _clauses(specification, CONFORMANCE):
        found = FEATURES[clause.language].search(clause.text)
        named: dict[str, str] = {}
        waiting: list[str] = []
        for feature, profile in re.findall(r"`([a-z-]+)`|\b([A-Z]{3})\b", found[1] if found else ""):
            if profile:  # it stands behind the features that are of it
                named |= dict.fromkeys(waiting, profile)
                waiting = []
            else:
                waiting.append(feature)
        if named != wanted or sorted(named) != sorted(_known(specification, "Feature")):
            advice = f"lists the features {named}, the register {wanted}; make them the same, and enumeration Feature"
            line = clause.text.count("\n", 0, found.start()) + 1 if found else 1
            yield Finding("features-listed", clause.file, line, found[0] if found else "", advice)


def feature_required(specification: Specification) -> Iterator[Finding]:
    """Each feature has a requirement of its own, else it obliged to nothing; and no other feature has one."""
    profiles = specification.registers.get("requirements", {}).get("profiles", [])
    features = {(row["profile"], feature) for row in profiles for feature in row["features"]}
    used = {(row["profile"], row["feature"]): row for row in specification.requirements if row.get("feature")}
    for profile, feature in sorted(features - used.keys()):
        advice = f"no requirement of {profile} has this feature; write one, or take the feature out"
        yield Finding("feature-required", "spec/requirements.yaml", 1, feature, advice)
    for place in sorted(used.keys() - features):
        row, advice = (
            used[place],
            f"{place[0]} has no feature {place[1]}; add it to the profile, or correct the requirement",
        )
        yield specification.in_register("feature-required", row["id"], row["text_en"], advice)


def names_listed(specification: Specification) -> Iterator[Finding]:
    """Profiles, verdicts, states, kinds of faults, problems and indicators are those of registers and model."""
    register = specification.registers
    for name, enumeration in ENUMERATIONS.items():
        for clause in _clauses(specification, name):
            listed = _first_names(clause)
            names = [
                value
                for value in specification.enumerations.get(enumeration, [])
                if value != "unknown" or value in listed
            ]
            yield from _same(clause, listed, names, f"enumeration {enumeration} of spec/model")
    for clause in _clauses(specification, CONFORMANCE):
        listed = [row[0] for row in clause.rows if re.fullmatch("[A-Z]{3}", row[0])]
        yield from _same(
            clause, listed, [row["profile"] for row in register["requirements"]["profiles"]], "the register"
        )
        yield from _same(clause, listed, _known(specification, "Profile"), "enumeration Profile of spec/model")
    for clause in _clauses(specification, "com-07-errors"):
        listed = [f"{found[1]} {row[1]}" for row in clause.rows if (found := CODE.match(row[0]))]
        problems = [f"{row['name']} {row['status']}" for row in register["problems"]["problems"]]
        yield from _same(clause, listed, problems, "spec/problems.yaml")
    for clause in _clauses(specification, "met-01-indicators"):
        listed = [cell.split()[0] for row in clause.rows for cell in row if re.match("[A-Z]{3}-", cell)]
        yield from _same(
            clause, listed, [row["id"] for row in register["indicators"]["indicators"]], "spec/indicators.yaml"
        )


def word_published(specification: Specification) -> Iterator[Finding]:
    """A word of the interface that a clause sets as code, foreword and annexes aside, is published."""
    if not specification.published:
        return
    published = set(re.findall(r"[A-Za-z0-9_-]+", specification.published))
    for clause in (each for language in LANGUAGES for each in specification.clauses[language].values()):
        if clause.apart:
            continue
        for found in CODE.finditer(clause.text):
            if re.fullmatch(r"[a-z0-9]+(?:[_.-][a-z0-9]+)*", found[1]) and not re.match(r"\d", found[1]):
                for word in found[1].split("."):
                    if word not in published | FOREIGN and not found[1].startswith(("random", "numpy")):
                        line = clause.text.count("\n", 0, found.start()) + 1
                        advice = f"{word} is in no published schema, parameter or register; correct it"
                        yield Finding("word-published", clause.file, line, found[0], advice)


def operation_published(specification: Specification) -> Iterator[Finding]:
    """An operation that the text or the register names is a published one."""
    paths = {re.sub(r"\{[^}]*\}", "{}", operation) for operation in specification.operations}
    for sentence in specification.sentences():
        for operation in re.findall(r"\b((?:GET|PUT|POST|DELETE) /v1/[a-z/{}-]*[a-z}])", sentence.text):
            if re.sub(r"\{[^}]*\}", "{}", operation) not in paths:
                yield at("operation-published", sentence, f"{operation} is not in the published OpenAPI document")
    register = specification.registers.get("requirements", {})
    for row in (*register.get("profiles", ()), *(register.get("sub_profiles") or ())):
        for operation in row["mandatory"]:
            if operation not in specification.operations:
                advice = "is not in the published OpenAPI document"
                yield Finding("operation-published", "spec/requirements.yaml", 1, operation, advice)


def _clauses(specification: Specification, name: str) -> list[Clause]:
    return [specification.clauses[each][name] for each in LANGUAGES if name in specification.clauses[each]]


def _first_names(clause: Clause) -> list[str]:
    """What stands as code at the beginning of each row of a clause's tables."""
    return [found[1] for row in clause.rows if (found := CODE.match(row[0]))]


def _known(specification: Specification, enumeration: str) -> list[str]:
    """Values of an open enumeration that this version defines."""
    return [value for value in specification.enumerations.get(enumeration, []) if value != "unknown"]


def _same(clause: Clause, listed: list[str], wanted: list[str], where: str) -> Iterator[Finding]:
    if listed != wanted:
        strange = [name for name in listed if name not in wanted], [name for name in wanted if name not in listed]
        advice = f"its table is not {where}: only here {strange[0]}, only there {strange[1]}, else the order"
        yield Finding("names-listed", clause.file, 1, ", ".join(listed), advice)
