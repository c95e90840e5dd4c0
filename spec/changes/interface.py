"""Rules of the published interface: classes of the schema, and operations.

A class weighs by who sends it. What goes to a service is held to the closed schema: what allows less is breaking, what
allows more is additive. What a service answers is held to the schema for readers, who take members and values of open
enumerations that they do not know (COM-031): these are additive, and whatever else a reader has not met before is
breaking, as is what a service may answer no more. A class that goes both ways, or is in a document that no operation
carries, is held to both.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changes.change import Change, Severity, change, from_to, short
from changes.versions import Row, Version

SENT, ANSWERED = "sent", "answered"

WORDS = ("title", "description", "x-label-zh", "summary", "tags")
UPPER = ("maximum", "maxItems", "maxLength", "maxProperties")
LOWER = ("minimum", "minItems", "minLength", "minProperties")
CONDITIONS = (
    "pattern",
    "format",
    "const",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "contentMediaType",
    "contentSchema",
    "additionalProperties",
)
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
SUCCESSES = 400
"""Statuses below this one are of successes and redirections."""

_REFERENCE = re.compile(r"#/(?:\$defs|components/schemas)/(\w+)$")

MORE: Mapping[str, tuple[Severity, Severity]] = {
    "required-member-added": ("breaking", "additive"),
    "member-added": ("additive", "additive"),
    "member-withdrawn": ("breaking", "breaking"),
    "member-made-required": ("breaking", "additive"),
    "member-made-optional": ("additive", "breaking"),
    "value-withdrawn": ("breaking", "breaking"),
    "value-added": ("additive", "breaking"),
    "bound-tightened": ("breaking", "breaking"),
    "bound-loosened": ("additive", "breaking"),
    "type-narrowed": ("breaking", "breaking"),
    "type-widened": ("additive", "breaking"),
    "type-changed": ("breaking", "breaking"),
    "rule-added": ("breaking", "breaking"),
    "rule-changed": ("breaking", "breaking"),
    "rule-withdrawn": ("additive", "breaking"),
    "unit-changed": ("breaking", "breaking"),
    "description-changed": ("editorial", "editorial"),
}
"""How much each rule about a class weighs: where it is sent to a service, and where a service answers with it."""


def differences(old: Version, new: Version) -> Iterator[Change]:
    """What differs between the published interfaces of two versions."""
    yield from _classes(old, new)
    yield from _operations(old.interface, new.interface)


def _classes(old: Version, new: Version) -> Iterator[Change]:
    before, after = old.sent["$defs"], new.sent["$defs"]
    for name in before.keys() - after.keys():
        yield change("breaking", "class-withdrawn", f"class {name}", "is there no more")
    for name in after.keys() - before.keys():
        yield change("additive", "class-added", f"class {name}", short(after[name].get("description")))
    ways = _ways(old.interface)
    found: dict[tuple[str, str, str], Change] = {}
    for name in sorted(before.keys() & after.keys()):
        for way in sorted(ways.get(name) or (SENT, ANSWERED)):
            documents = (old.sent, new.sent) if way == SENT else (old.answered, new.answered)
            comparison = Comparison(documents[0]["$defs"], documents[1]["$defs"], way)
            for one in comparison.of(f"class {name}", documents[0]["$defs"][name], documents[1]["$defs"][name]):
                key = (one.rule, one.place, one.detail)
                if key not in found or found[key].severity != "breaking":
                    found[key] = one  # a class that goes both ways weighs by the heavier of them
    yield from found.values()


@dataclass(frozen=True)
class Comparison:
    """Compares schemas of one direction.

    Attributes:
        old: Definitions of the old version, by name.
        new: Those of the new one.
        way: ``sent`` to a service, or ``answered`` by one.
    """

    old: Row
    new: Row
    way: str

    def of(self, place: str, old: Row, new: Row, within: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Change]:
        """What differs between two schemas.

        Args:
            place: Where they stand.
            old: The old schema.
            new: The new one.
            within: References that are being followed, as some classes hold themselves.
        """
        names = _reference(old), _reference(new)
        if names[0] == names[1] and names[0] is not None:
            yield from self._words(place, old, new)
            return  # the class is compared by itself
        if any(names):
            pair = (names[0] or "", names[1] or "")
            if pair in within:
                return
            within |= {pair}
            old, new = _resolved(old, self.old), _resolved(new, self.new)
        else:
            yield from self._words(place, old, new)
        yield from self._kinds(place, old, new)
        yield from self._values(place, old, new)
        yield from self._bounds(place, old, new)
        yield from self._conditions(place, old, new)
        yield from self._members(place, old, new, within)
        if "items" in old and "items" in new:
            yield from self.of(f"{place}, items", old["items"], new["items"], within)
        elif "items" in old or "items" in new:
            rule = "rule-withdrawn" if "items" in old else "rule-added"
            yield self._change(rule, place, f"items: {_bare(old.get('items') or new.get('items'))}")

    def _change(self, rule: str, place: str, detail: str, *, open_: bool = False) -> Change:
        sent, answered = MORE[rule]
        if open_ and self.way == ANSWERED:
            answered = "additive"
        return change(sent if self.way == SENT else answered, rule, place, detail)

    def _words(self, place: str, old: Row, new: Row) -> Iterator[Change]:
        for word in WORDS:
            if old.get(word) != new.get(word):
                yield self._change("description-changed", place, f"{word}: {from_to(old.get(word), new.get(word))}")

    def _kinds(self, place: str, old: Row, new: Row) -> Iterator[Change]:
        was, now = _kinds(old), _kinds(new)
        if was != now:
            rule = "type-changed"
            if now is None or (was is not None and now > was):
                rule = "type-widened"
            elif was is None or now < was:
                rule = "type-narrowed"
            yield self._change(rule, place, from_to(_listed(was), _listed(now)))
        if old.get("x-unit") != new.get("x-unit"):
            yield self._change("unit-changed", place, from_to(old.get("x-unit"), new.get("x-unit")))

    def _values(self, place: str, old: Row, new: Row) -> Iterator[Change]:
        """Values of an enumeration; the readers' schema lists those of an open one as examples."""
        was, now = old.get("enum"), new.get("enum")
        open_ = was is None and now is None and "examples" in old and "examples" in new
        if open_:
            was, now = old["examples"], new["examples"]
        if was is None and now is None:
            return
        if was is None:
            yield self._change("rule-added", place, f"values: {_listed(now)}")
        elif now is None:
            yield self._change("rule-withdrawn", place, f"values: {_listed(was)}", open_="examples" in new)
        else:
            for value in sorted(set(map(str, was)) - set(map(str, now))):
                yield self._change("value-withdrawn", place, value)
            for value in sorted(set(map(str, now)) - set(map(str, was))):
                yield self._change("value-added", place, value, open_=open_)

    def _bounds(self, place: str, old: Row, new: Row) -> Iterator[Change]:
        for name in (*UPPER, *LOWER):
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            more = now is None or (was is not None and (now > was if name in UPPER else now < was))
            rule = "bound-loosened" if more else "bound-tightened"
            yield self._change(rule, place, f"{name}: {from_to(was, now)}")

    def _conditions(self, place: str, old: Row, new: Row) -> Iterator[Change]:
        for name in CONDITIONS:
            was, now = _bare(old.get(name)), _bare(new.get(name))
            if was == now:
                continue
            rule = "rule-added" if was is None else "rule-withdrawn" if now is None else "rule-changed"
            yield self._change(rule, place, f"{name}: {from_to(was, now)}")

    def _members(self, place: str, old: Row, new: Row, within: frozenset[tuple[str, str]]) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        was, now = set(old.get("required", ())), set(new.get("required", ()))
        for name in sorted(before.keys() - after.keys()):
            yield self._change("member-withdrawn", f"{place}, member {name}", "is there no more")
        for name in sorted(after.keys() - before.keys()):
            rule = "required-member-added" if name in now else "member-added"
            told = short(after[name].get("description", "is new"))
            yield self._change(rule, f"{place}, member {name}", told)
        for name in sorted(before.keys() & after.keys()):
            inside = f"{place}, member {name}"
            if name in now - was:
                yield self._change("member-made-required", inside, "cannot be left out")
            elif name in was - now:
                yield self._change("member-made-optional", inside, "can be left out")
            yield from self.of(inside, before[name], after[name], within)


def _operations(old: Row, new: Row) -> Iterator[Change]:
    before, after = _by_operation(old), _by_operation(new)
    for name in before.keys() - after.keys():
        yield change("breaking", "operation-withdrawn", name, "is there no more")
    for name in after.keys() - before.keys():
        yield change("additive", "operation-added", name, short(after[name].get("summary", "is new")))
    if old.get("security") != new.get("security"):
        yield change("breaking", "security-changed", "interface", from_to(old.get("security"), new.get("security")))
    definitions = old["components"]["schemas"], new["components"]["schemas"]
    sent, answered = (Comparison(definitions[0], definitions[1], way) for way in (SENT, ANSWERED))
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name], after[name]
        if was.get("operationId") != now.get("operationId"):
            told = from_to(was.get("operationId"), now.get("operationId"))
            yield change("breaking", "operation-renamed", name, told)
        if was.get("security") != now.get("security"):
            yield change("breaking", "security-changed", name, from_to(was.get("security"), now.get("security")))
        for word in WORDS:
            if was.get(word) != now.get(word):
                told = f"{word}: {from_to(was.get(word), now.get(word))}"
                yield change("editorial", "description-changed", name, told)
        yield from _parameters(name, was, now, sent)
        yield from _body(name, was.get("requestBody"), now.get("requestBody"), sent)
        yield from _answers(name, was["responses"], now["responses"], answered)


def _parameters(name: str, old: Row, new: Row, sent: Comparison) -> Iterator[Change]:
    before, after = (
        {(row["in"], row["name"]): row for row in operation.get("parameters", ())} for operation in (old, new)
    )
    paths = {place for place in before.keys() | after.keys() if place[0] == "path"}
    for where, parameter in before.keys() - after.keys() - paths:
        yield change("breaking", "parameter-withdrawn", f"{name}, {where} parameter {parameter}", "is there no more")
    for where, parameter in after.keys() - before.keys() - paths:
        required = after[where, parameter].get("required", False)
        place, told = f"{name}, {where} parameter {parameter}", short(after[where, parameter].get("description"))
        if required:
            yield change("breaking", "required-parameter-added", place, told)
        else:
            yield change("additive", "parameter-added", place, told)
    for where, parameter in sorted(before.keys() & after.keys()):
        place = f"{name}, {where} parameter {parameter}"
        was, now = before[where, parameter], after[where, parameter]
        required = was.get("required", False), now.get("required", False)
        if required == (False, True):
            yield change("breaking", "parameter-made-required", place, "cannot be left out")
        elif required == (True, False):
            yield change("additive", "parameter-made-optional", place, "can be left out")
        if was.get("description") != now.get("description"):
            told = from_to(was.get("description"), now.get("description"))
            yield change("editorial", "description-changed", place, told)
        yield from sent.of(place, was["schema"], now["schema"])


def _body(name: str, old: Row | None, new: Row | None, sent: Comparison) -> Iterator[Change]:
    place = f"{name}, body"
    if old is None and new is None:
        return
    if old is None or new is None:
        gone = new is None
        rule = "media-withdrawn" if gone else "body-made-required" if (new or {}).get("required") else "media-added"
        yield change("additive" if rule == "media-added" else "breaking", rule, place, "gone" if gone else "is new")
        return
    required = old.get("required", False), new.get("required", False)
    if required == (False, True):
        yield change("breaking", "body-made-required", place, "cannot be left out")
    elif required == (True, False):
        yield change("additive", "body-made-optional", place, "can be left out")
    yield from _media(place, old, new, sent)


def _answers(name: str, old: Row, new: Row, answered: Comparison) -> Iterator[Change]:
    for status in old.keys() - new.keys():
        yield change("breaking", "status-withdrawn", f"{name}, answer {status}", "is there no more")
    for status in new.keys() - old.keys():
        told = short(new[status].get("description"))
        if status.isdecimal() and int(status) >= SUCCESSES:
            yield change("additive", "refusal-added", f"{name}, answer {status}", told)
        else:
            yield change("breaking", "success-added", f"{name}, answer {status}", told)
    for status in sorted(old.keys() & new.keys()):
        place, was, now = f"{name}, answer {status}", old[status], new[status]
        if was.get("description") != now.get("description"):
            told = from_to(was.get("description"), now.get("description"))
            yield change("editorial", "description-changed", place, told)
        headers = was.get("headers", {}), now.get("headers", {})
        for header in headers[0].keys() - headers[1].keys():
            yield change("breaking", "media-withdrawn", place, f"header {header}")
        for header in headers[1].keys() - headers[0].keys():
            yield change("additive", "media-added", place, f"header {header}")
        yield from _media(place, was, now, answered)


def _media(place: str, old: Row, new: Row, comparison: Comparison) -> Iterator[Change]:
    """Media types of a body or an answer, each with its schema and that of a stream's items."""
    before, after = old.get("content", {}), new.get("content", {})
    for media in before.keys() - after.keys():
        yield change("breaking", "media-withdrawn", place, media)
    for media in after.keys() - before.keys():
        yield change("additive", "media-added", place, media)
    for media in sorted(before.keys() & after.keys()):
        for part in ("schema", "x-item-schema"):
            was, now = before[media].get(part), after[media].get(part)
            if was is not None and now is not None:
                yield from comparison.of(f"{place} as {media}", was, now)
            elif was != now:
                rule = "rule-added" if was is None else "rule-withdrawn"
                yield change("breaking", rule, f"{place} as {media}", part)


def _by_operation(document: Row) -> dict[str, Row]:
    """Operations by method and path; how a variable of a path is called makes no difference."""
    return {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}": {
            **item[method],
            "parameters": [*item.get("parameters", ()), *item[method].get("parameters", ())],
        }
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    }


def _ways(document: Row) -> dict[str, set[str]]:
    """For each class that operations carry, whether it is sent, answered or both, with all that it holds."""
    ways: dict[str, set[str]] = {}
    definitions = document["components"]["schemas"]

    def mark(node: Any, way: str) -> None:
        for name in _references(node):
            if way not in ways.setdefault(name, set()):
                ways[name].add(way)
                mark(definitions[name], way)

    for operation in _by_operation(document).values():
        mark([operation["parameters"], operation.get("requestBody")], SENT)
        mark(operation["responses"], ANSWERED)
    return ways


def carried(document: Row) -> dict[str, set[str]]:
    """For each operation the classes that it carries, with all that these refer to."""
    definitions = document["components"]["schemas"]
    found: dict[str, set[str]] = {}
    for operation, node in _by_operation(document).items():
        names, waiting = set[str](), list(_references(node))
        while waiting:
            if (name := waiting.pop()) not in names:
                names.add(name)
                waiting += _references(definitions[name])
        found[operation] = names
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        name = _reference(node)
        if name is not None:
            yield name
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _reference(node: Row) -> str | None:
    target = node.get("$ref")
    found = _REFERENCE.search(target) if isinstance(target, str) else None
    return found[1] if found else None


def _resolved(node: Row, definitions: Row) -> Row:
    """A schema with what it refers to in place of the reference."""
    name = _reference(node)
    while name is not None:
        node = {**definitions[name], **{key: value for key, value in node.items() if key == "x-unit"}}
        name = _reference(node)
    return node


def _kinds(node: Row) -> frozenset[str] | None:
    """Kinds of values that a schema allows, by the names of JSON Schema; None where it allows all."""
    if "anyOf" in node:
        return frozenset(_reference(choice) or str(choice.get("type", _bare(choice))) for choice in node["anyOf"])
    kinds = node.get("type")
    if kinds is None:
        return None
    named = {kinds} if isinstance(kinds, str) else set(kinds)
    return frozenset(named | {"integer"} if "number" in named else named)


def _listed(values: Sequence[Any] | frozenset[str] | None) -> str:
    return "anything" if values is None else ", ".join(sorted(map(str, values)))


def _bare(node: Any) -> Any:
    """A schema without the words in it."""
    if isinstance(node, Mapping):
        return {key: _bare(value) for key, value in node.items() if key not in WORDS}
    return [_bare(value) for value in node] if isinstance(node, list) else node
