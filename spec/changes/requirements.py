"""Rules of the registers: requirements, profiles, indicators with the collection map, and problem types.

- A new identifier is additive, since a claim names the version that it is about; one that is withdrawn is breaking.
- What is judged by is breaking where it differs: keyword, threshold, level, method, the feature with which a
  requirement holds, and numbers in its sentence. All else about a requirement is editorial.
- The words of a method say how a figure is measured, so that other words in both languages are breaking even where
  ``revised`` stays: who changes them states since when, or finds in the list what to look at again. Where one language
  keeps its words, and the other its numbers, only a translation was mended.
- A measure is what it means on the wire: unit, formula, period, accuracy, aggregation and range. So is a mapping.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from changes.change import Change, change, from_to, short
from changes.versions import Row, Version
from lint.languages import in_digits, numbers

JUDGED: Mapping[str, str] = {
    "modal": "keyword-changed",
    "threshold": "threshold-changed",
    "level": "level-changed",
    "profile": "profile-changed",
    "feature": "feature-changed",
    "revised": "method-revised",
}
"""Members of a requirement by which it is judged, and the rule for a difference."""

SENTENCES = {"text_en": "en", "text_zh": "zh"}
METHODS = {"method_en": "en", "method_zh": "zh"}

MEANING = {
    "measure": (
        "unit",
        "kind",
        "formula",
        "minimum",
        "maximum",
        "ceiling",
        "constancy",
        "period",
        "accuracy",
        "direction",
        "subjects",
        "aggregation",
    ),
    "mapping": ("fields", "field_unit", "transform", "factor", "subject", "match", "states", "resolution"),
    "exporter": ("device_label", "blanks", "sharing_labels", "part_labels", "identity_labels", "host_labels"),
    "problem type": ("type", "status", "retryable"),
    "indicator": ("dimension",),
}
"""Members of other rows that say what they mean; the rest is words."""


def differences(old: Version, new: Version) -> Iterator[Change]:
    """What differs between the registers of two versions."""
    yield from of_requirements(old.requirements, new.requirements)
    for register, key in (("profiles", "profile"), ("sub_profiles", "name")):
        yield from _parts(register, key, old.requirements, new.requirements)
    yield from _rows("indicator", _indicators(old.indicators), _indicators(new.indicators))
    yield from _rows("measure", _measures(old.indicators), _measures(new.indicators))
    yield from _rows("mapping", _mappings(old.indicators), _mappings(new.indicators))
    yield from _rows("exporter", _by(old.indicators["exporters"], "id"), _by(new.indicators["exporters"], "id"))
    yield from _rows("problem type", _by(old.problems["problems"], "name"), _by(new.problems["problems"], "name"))


def of_requirements(old: Row, new: Row) -> Iterator[Change]:
    """What differs between the requirements of two registers."""
    before, after = _by(old["requirements"], "id"), _by(new["requirements"], "id")
    replaced = {row["id"]: ", ".join(row["replaced_by"]) for row in new.get("withdrawn") or ()}
    for identifier in before.keys() - after.keys():
        instead = f" Instead: {replaced[identifier]}." if replaced.get(identifier) else ""
        detail = f"{before[identifier]['text_en']}{instead}"
        yield change("breaking", "requirement-withdrawn", f"requirement {identifier}", detail)
    for identifier in after.keys() - before.keys():
        yield change("additive", "requirement-added", f"requirement {identifier}", after[identifier]["text_en"])
    for identifier in before.keys() & after.keys():
        yield from _requirement(f"requirement {identifier}", before[identifier], after[identifier])


def _requirement(place: str, old: Row, new: Row) -> Iterator[Change]:
    yield from _method(place, old, new)
    for member in sorted(old.keys() | new.keys()):
        was, now = old.get(member), new.get(member)
        if _plain(was) == _plain(now) or member in METHODS:
            continue
        if member in JUDGED:
            yield change("breaking", JUDGED[member], place, _named(member, was, now))
        elif member in SENTENCES:
            language = SENTENCES[member]
            if _figures(str(was), language) != _figures(str(now), language):
                yield change("breaking", "figure-in-text-changed", place, _named(member, was, now))
            else:
                yield change("editorial", "text-changed", place, _named(member, was, now))
        else:
            yield change("editorial", "note-changed", place, _named(member, was, now))


def _method(place: str, old: Row, new: Row) -> Iterator[Change]:
    differing = [member for member in METHODS if _plain(old.get(member)) != _plain(new.get(member))]
    for member in differing:
        was, now, language = str(old.get(member)), str(new.get(member)), METHODS[member]
        mended = len(differing) == 1 and _figures(was, language) == _figures(now, language)
        rule = "method-translated" if mended else "method-reworded"
        yield change("editorial" if mended else "breaking", rule, place, _named(member, was, now))


def _parts(register: str, key: str, old: Row, new: Row) -> Iterator[Change]:
    """Profiles or sub-profiles, with their features, operations and requirements."""
    kind = {"profiles": "profile", "sub_profiles": "sub-profile"}[register]
    before, after = _by(old.get(register) or (), key), _by(new.get(register) or (), key)
    earlier = {row["id"] for row in old["requirements"]}
    later = {row["id"] for row in new["requirements"]}
    for name in before.keys() - after.keys():
        yield change("breaking", "part-withdrawn", f"{kind} {name}", "is there no more")
    for name in after.keys() - before.keys():
        yield change("additive", "part-added", f"{kind} {name}", short(after[name]["name_en"]))
    for name in before.keys() & after.keys():
        yield from _part(f"{kind} {name}", before[name], after[name], earlier & later)


def _part(place: str, old: Row, new: Row, known: Collection[str]) -> Iterator[Change]:
    """One of them; a requirement that is new or withdrawn, and so not ``known``, is told of by itself."""
    for feature in set(old["features"]) - set(new["features"]):
        yield change("breaking", "part-withdrawn", place, f"feature {feature}")
    for feature in set(new["features"]) - set(old["features"]):
        yield change("additive", "part-added", place, f"feature {feature}")
    for operation in set(old["mandatory"]) ^ set(new["mandatory"]):
        taken = "is mandatory now" if operation in new["mandatory"] else "is mandatory no more"
        yield change("breaking", "part-changed", place, f"{operation} {taken}")
    for identifier in set(old.get("requirements", ())) ^ set(new.get("requirements", ())):
        if identifier in known:
            taken = "belongs to it now" if identifier in new["requirements"] else "belongs to it no more"
            yield change("breaking", "part-changed", place, f"{identifier} {taken}")
    for member in ("name_en", "name_zh"):
        if old[member] != new[member]:
            yield change("editorial", "part-renamed", place, _named(member, old[member], new[member]))


def _rows(kind: str, before: Mapping[str, Row], after: Mapping[str, Row]) -> Iterator[Change]:
    """Rows of another register, by what names them."""
    for name in before.keys() - after.keys():
        yield change("breaking", "row-withdrawn", f"{kind} {name}", "is there no more")
    for name in after.keys() - before.keys():
        yield change("additive", "row-added", f"{kind} {name}", "is new")
    for name in before.keys() & after.keys():
        was, now = before[name], after[name]
        for member in sorted(was.keys() | now.keys()):
            if _plain(was.get(member)) == _plain(now.get(member)):
                continue
            told = _named(member, was.get(member), now.get(member))
            if member in MEANING[kind]:
                yield change("breaking", "row-changed", f"{kind} {name}", told)
            else:
                yield change("editorial", "row-reworded", f"{kind} {name}", told)


def _by(rows: Sequence[Row], key: str) -> dict[str, Row]:
    return {row[key]: row for row in rows}


def _indicators(register: Row) -> dict[str, Row]:
    """Indicators without their measures, which are rows of their own."""
    return {
        row["id"]: {member: value for member, value in row.items() if member != "measures"}
        for row in register["indicators"]
    }


def _measures(register: Row) -> dict[str, Row]:
    """Measures without their mappings, each named with its indicator."""
    return {
        f"{indicator['id']} {measure['name']}": {
            member: value for member, value in measure.items() if member != "collection"
        }
        for indicator in register["indicators"]
        for measure in indicator["measures"]
    }


def _mappings(register: Row) -> dict[str, Row]:
    """Mappings, named by measure, exporter and subject; one exporter can have several for a subject."""
    found: dict[str, Row] = {}
    for indicator in register["indicators"]:
        for measure in indicator["measures"]:
            for row in measure.get("collection", ()):
                name = f"{measure['name']} of {row['exporter']} for {row['subject']}"
                count = sum(1 for known in found if known == name or known.startswith(f"{name}, "))
                found[f"{name}, {count + 1}" if count else name] = row
    return found


def _named(member: str, was: object, now: object) -> str:
    return f"{member}: {from_to(_shown(was), _shown(now))}"


def _shown(value: object) -> object:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return value


def _plain(value: object) -> object:
    """A value without what line breaks and indentation of YAML make of it."""
    return short(value) if isinstance(value, str) else value


def _figures(text: str, language: str) -> set[str]:
    """Numbers of a sentence, in digits or words; *a* and *one* say nothing by themselves."""
    return numbers(in_digits(text, language)) - {"1"} | numbers(text)
