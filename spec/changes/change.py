"""What a difference is, how much it weighs, and the rules by which differences are found."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["breaking", "additive", "editorial"]
SEVERITIES: tuple[Severity, ...] = ("breaking", "additive", "editorial")
"""From the one that weighs most."""

MEANINGS: Mapping[Severity, str] = {
    "breaking": "who did right by the old version may not do so by the new one, or verdicts of the two do not compare",
    "additive": "what the old version allows and promises still holds, and there is more",
    "editorial": "words alone",
}

RULES: Mapping[str, str] = {
    # registers of requirements
    "requirement-withdrawn": "an identifier is there no more",
    "requirement-added": "an identifier is new",
    "keyword-changed": "a requirement has another keyword: shall, should or may",
    "threshold-changed": "a requirement has another threshold, has one now, or has none any more",
    "level-changed": "a requirement is of another level",
    "profile-changed": "a requirement belongs to another profile",
    "feature-changed": "a requirement holds with another feature, or with one, or always",
    "method-revised": "figures are measured in another way since a stated moment, and do not compare",
    "method-reworded": "a method differs in both languages, or in its numbers",
    "method-translated": "a method differs in the words of one language alone, with the same numbers",
    "figure-in-text-changed": "the sentence of a requirement has other numbers",
    "text-changed": "the sentence of a requirement differs in words, and in nothing that is judged",
    "note-changed": "title, source, clause, aim, check or reason of a requirement differ; nothing that is judged does",
    "part-withdrawn": "a profile, a sub-profile or a feature is there no more",
    "part-added": "a profile, a sub-profile or a feature is new",
    "part-changed": "a profile or sub-profile has other mandatory operations, or other requirements that are not new",
    "part-renamed": "a profile or sub-profile has another name for people",
    # register of stability
    "mark-lowered": "an item that was stable is provisional now, without having been deprecated",
    "mark-raised": "an item that was provisional, or deprecated, is stable now, or a deprecated one provisional",
    "item-deprecated": "an item is deprecated now, and is to be withdrawn",
    # registers of indicators and of problem types
    "row-withdrawn": "an indicator, a measure, an exporter, a mapping or a problem type is there no more",
    "row-added": "an indicator, a measure, an exporter, a mapping or a problem type is new",
    "row-changed": "what a measure, a mapping, an exporter or a problem type means differs",
    "row-reworded": "names and descriptions of a row differ",
    # classes
    "class-withdrawn": "a published class is there no more",
    "class-added": "a class is new",
    "member-withdrawn": "a member is there no more",
    "required-member-added": "a member is new and cannot be left out",
    "member-added": "a member is new and can be left out",
    "member-made-required": "a member can be left out no more",
    "member-made-optional": "a member can be left out now",
    "value-withdrawn": "an enumeration has a value less",
    "value-added": "an enumeration has a value more",
    "bound-tightened": "a bound allows less",
    "bound-loosened": "a bound allows more",
    "type-narrowed": "fewer kinds of values are allowed",
    "type-widened": "more kinds of values are allowed",
    "type-changed": "other kinds of values are allowed",
    "rule-added": "a pattern, format or condition is new",
    "rule-changed": "a pattern, format or condition differs; which of the two allows more cannot be told",
    "rule-withdrawn": "a pattern, format or condition is there no more",
    "unit-changed": "a member has another unit",
    "description-changed": "words about a class, a member or an operation differ",
    # operations
    "operation-withdrawn": "an operation is there no more",
    "operation-added": "an operation is new",
    "operation-renamed": "an operation has another name, by which clauses and generated clients call it",
    "parameter-withdrawn": "a parameter is there no more",
    "required-parameter-added": "a parameter is new and cannot be left out",
    "parameter-added": "a parameter is new and can be left out",
    "parameter-made-required": "a parameter can be left out no more",
    "parameter-made-optional": "a parameter can be left out now",
    "body-made-required": "a body has to be sent",
    "body-made-optional": "a body can be left out now",
    "media-withdrawn": "a media type, a header of an answer or a body is there no more",
    "media-added": "a media type, a header of an answer or a body is new",
    "status-withdrawn": "a status is answered no more",
    "success-added": "a status of success or redirection is new",
    "refusal-added": "a status of a refusal is new",
    "security-changed": "other credentials are asked for",
}
"""Every rule with what it finds; the severity is the finding's, since it can depend on who sends a value."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two versions.

    Attributes:
        severity: How much it weighs.
        rule: Rule that found it, of :data:`RULES`.
        place: Where: ``requirement COM-006``, ``class Domain, member label``, ``GET /v1/nodes``.
        detail: What was and what is, in words.
        mark: Mark of the item in the older version: stable, provisional, deprecated, or empty where it has none.
        permitted: Whether the mark lets a minor version make a breaking change.
    """

    severity: Severity
    rule: str
    place: str
    detail: str
    mark: str = ""
    permitted: bool = False


def change(severity: Severity, rule: str, place: str, detail: str) -> Change:
    """Make a change.

    Raises:
        KeyError: There is no such rule.
    """
    if rule not in RULES:
        raise KeyError(rule)  # one that nobody can look up
    return Change(severity, rule, place, detail)


def from_to(old: object, new: object) -> str:
    """What was and what is, in one line."""
    return f"{short(old)} → {short(new)}"


def short(value: object) -> str:
    """A value in a table: on one line, whole."""
    if value is None:
        return "nothing"
    return " ".join(str(value).split())


def ordered(changes: Iterable[Change]) -> list[Change]:
    """The heaviest first, of these such as no mark permits, then by rule and place; each once."""
    rank = {severity: place for place, severity in enumerate(SEVERITIES)}
    rules = {rule: place for place, rule in enumerate(RULES)}
    return sorted(
        set(changes), key=lambda one: (rank[one.severity], one.permitted, rules[one.rule], one.place, one.detail)
    )


def counts(changes: Iterable[Change]) -> dict[Severity, int]:
    """How many changes there are of each severity."""
    found = Counter(one.severity for one in changes)
    return {severity: found[severity] for severity in SEVERITIES}


def next_version(version: str, changes: Collection[Change]) -> str:
    """Number of the version that these changes lead to, by the versioning policy.

    Before 1.0 a breaking and an additive change both raise the second part, as Semantic Versioning allows; from 1.0 a
    breaking one does too where the mark of its item permits it.

    Args:
        version: ``MAJOR.MINOR.PATCH`` of the old one.
        changes: All of them; with none the number stays.

    Raises:
        ValueError: The version has another form.
    """
    major, minor, patch = (int(part) for part in version.split("."))
    found = counts(changes)
    if major and any(one.severity == "breaking" and not one.permitted for one in changes):
        return f"{major + 1}.0.0"
    if found["breaking"] or found["additive"]:
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}" if found["editorial"] else version
