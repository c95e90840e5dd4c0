"""What differs between the versions of the standard, requirement by requirement, out of the sets that are kept of them.

1. ``spec/releases`` keeps what each version asks for. Each is compared with the next one, and the last one with the
   draft as it stands; what a difference weighs is found by the rules of ``spec/changes``.
2. Requirements stand in the order of the clauses that have them now. Those that were withdrawn are told of behind them.
3. The set of a version that is not published yet is kept up with the draft; which breaking changes were made to it
   meanwhile, ``called.yaml`` beside it says.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from kuayu_conformance.rendering.words import MODALS, Language
from kuayu_schemas import registers
from kuayu_schemas.models import Level, Modal, Threshold

from .made import Made
from .markdown import badge, heading, link, page, plain, table
from .requirements import requirement_link, threshold_words
from .standard import TITLE as CLAUSE_TITLE
from .text import phrases, term

NAME = "differences"

Row = Mapping[str, Any]

FILE = "standard/differences.md"
WEIGHTS = ("breaking", "additive", "editorial")
"""What a difference weighs, the heaviest first."""
COLOURS = {"breaking": "fail", "additive": "pass", "editorial": "not-applicable"}
"""Classes of the style sheet."""
MEMBERS = {
    "keyword-changed": "modal",
    "threshold-changed": "threshold",
    "level-changed": "level",
    "profile-changed": "profile",
    "feature-changed": "feature",
    "figure-in-text-changed": "text",
    "text-changed": "text",
}
"""Member of a requirement that a rule compares, so that what was and what is can be shown."""


@dataclass(frozen=True)
class Step:
    """From one version to the next.

    Attributes:
        title: What it is called on the page.
        anchor: By which it is led to.
        changes: What differs, by identifier; class ``Change`` of ``spec/changes``.
        before: Requirements of the one by identifier, as they are kept.
        after: Those of the other.
    """

    title: str
    anchor: str
    changes: Mapping[str, Sequence[Any]]
    before: Mapping[str, Row]
    after: Mapping[str, Row]

    def weight(self, identifier: str) -> str:
        """The heaviest weight of what differs of a requirement."""
        return min((str(change.severity) for change in self.changes[identifier]), key=WEIGHTS.index)


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of it."""
    say = phrases(NAME, language)
    register = yaml.load((root / "spec/requirements.yaml").read_text("utf-8"), yaml.CSafeLoader)
    steps = list(_steps(language, root, register))
    counts = table(
        (say["versions"], *(badge(COLOURS[weight], said) for weight, said in say["weights"].items())),
        [(link(step.title, f"#{step.anchor}"), *_counts(step)) for step in steps],
    )
    blocks = [
        block
        for step in steps
        for block in (heading(2, step.title, step.anchor), *_tables(language, root, register, step))
    ]
    blocks += _meanwhile(language, root, register)
    yield Made(FILE, page(f"# {say['title']}", say["lead"], counts, *blocks), "Standard")


def releases(root: Path) -> list[str]:
    """Names of the versions of which a set is kept, the first one first."""
    names = (file.parent.name for file in (root / "spec/releases").glob("*/requirements.json"))
    return sorted(names, key=lambda name: tuple(map(int, name.split("."))))


def _steps(language: Language, root: Path, register: Row) -> Iterator[Step]:
    """From each version to the next, and from the last one to the draft."""
    say = phrases(NAME, language)
    frozen = [(name, _of_changes("releases").read_frozen(name, root)["requirements"]) for name in releases(root)]
    versions = [*frozen, (say["draft"], _of_changes("releases").kept(register))]
    for (old, before), (new, after) in pairwise(versions):
        changes: dict[str, list[Any]] = {}
        later = {"requirements": after, "withdrawn": register["withdrawn"]}
        for change in _of_changes("requirements").of_requirements({"requirements": before}, later):
            changes.setdefault(change.place.split()[-1], []).append(change)
        is_draft = new == say["draft"]
        title = say["from_to"].format(old=old, new=new if is_draft else say["version"].format(new))
        if not is_draft and not _is_published(new):
            title += say["unpublished"]
        yield Step(title, f"from-{old}", changes, {row["id"]: row for row in before}, {row["id"]: row for row in after})


def _is_published(name: str) -> bool:
    """Whether a version is no later than the one that the register says it is."""
    major, minor, *_ = registers.SPEC_VERSION.split(".")
    return tuple(map(int, name.split("."))) <= (int(major), int(minor))


def _counts(step: Step) -> Iterator[str]:
    """How many requirements differ, by the heaviest weight of each."""
    weights = [step.weight(identifier) for identifier in step.changes]
    return (str(weights.count(weight)) for weight in WEIGHTS)


def _tables(language: Language, root: Path, register: Row, step: Step) -> Iterator[str]:
    """A table for each clause."""
    say = phrases(NAME, language)
    if not step.changes:
        yield say["nothing"]
    heads = (say["requirement"], say["weight"], say["difference"])
    for title, rows in _by_clause(language, root, register, step):
        yield f"### {title}"
        yield table(heads, [_cells(language, step, row) for row in rows])


def _cells(language: Language, step: Step, row: Row) -> tuple[str, str, str]:
    say = phrases(NAME, language)
    weight = step.weight(row["id"])
    shown = badge(COLOURS[weight], say["weights"][weight])
    return _titled(language, row), shown, "<br>".join(_lines(language, step, row))


def _by_clause(language: Language, root: Path, register: Row, step: Step) -> Iterator[tuple[str, list[Row]]]:
    """Rows of the register of which something differs, under the titles of their clauses."""
    say = phrases(NAME, language)
    clauses: dict[str, list[Row]] = {}
    for row in register["requirements"]:
        if row["id"] in step.changes:
            clauses.setdefault(row["clause"], []).append(row)
    profiles = [row["profile"] for row in register["profiles"]]
    for clause in sorted(clauses, key=lambda name: (profiles.index(name.partition("-")[0].upper()), name)):
        title = CLAUSE_TITLE.search((root / f"spec/text/{language}/{clause}.md").read_text("utf-8"))
        yield link(title[1] if title else clause, f"/standard/{clause}.md"), clauses[clause]
    withdrawn = [row for row in register["withdrawn"] if row["id"] in step.changes]
    if withdrawn:
        yield say["withdrawn"], withdrawn


def _lines(language: Language, step: Step, row: Row) -> Iterator[str]:
    """What differs of a requirement, a line for each rule that finds something."""
    say = phrases(NAME, language)
    before, after = step.before.get(row["id"], {}), step.after.get(row["id"], {})
    for rule in dict.fromkeys(change.rule for change in step.changes[row["id"]]):
        words = _rule(language, rule, row, after)
        if rule in MEMBERS:
            old, new = (_shown(language, MEMBERS[rule], version) for version in (before, after))
            both = f"{say['colon']}<del>{old}</del> <ins>{new}</ins>"
            words += both if old != new else say["elsewhere"]
        yield words


def _rule(language: Language, rule: str, row: Row, after: Row) -> str:
    """What a rule finds: with the day since which a method is revised, and what took the place of what is withdrawn."""
    say = phrases(NAME, language)
    words: str = say["rules"][rule].format(since=plain(after.get("revised", "")[:10]))
    if rule == "requirement-withdrawn" and row.get("replaced_by"):
        words += say["instead"].format(names=", ".join(map(requirement_link, row["replaced_by"])))
    return words


def _shown(language: Language, member: str, version: Row) -> str:
    """A member of a requirement as people read it."""
    say = phrases(NAME, language)
    value = version.get(f"text_{language}" if member == "text" else member)
    match member:
        case _ if value is None:
            return str(say["none"])
        case "threshold":
            return threshold_words(language, Threshold.model_validate(value))
        case "modal":
            return MODALS[Modal(value)].in_(language)
        case "level":
            return term(language, "levels", Level(value))
    return plain(value)


def _meanwhile(language: Language, root: Path, register: Row) -> Iterator[str]:
    """Breaking changes that were made to the set of a version before it was published."""
    say = phrases(NAME, language)
    rows = {row["id"]: row for row in (*register["requirements"], *register["withdrawn"])}
    for name in filter(lambda name: not _is_published(name), releases(root)):
        called = _of_changes("releases").called(name, root)
        if called:
            yield say["meanwhile"].format(name=name)
            yield table(
                (say["requirement"], say["difference"]),
                [
                    (
                        _titled(language, rows[identifier]),
                        "<br>".join(_rule(language, rule, rows[identifier], rows[identifier]) for rule in rules),
                    )
                    for identifier, rules in called.items()
                ],
            )


def _titled(language: Language, row: Row) -> str:
    """A requirement with its title; one that was withdrawn has no place to lead to."""
    shown = row["id"] if "withdrawn_in" in row else requirement_link(row["id"])
    return f"{shown}<br>{plain(row[f'title_{language}'])}"


@cache
def _of_changes(name: str) -> ModuleType:
    """A module of ``spec/changes``, which mkdocs does not look into."""
    spec = str(Path(__file__).parents[3] / "spec")
    if spec not in sys.path:
        sys.path.append(spec)
    return import_module(f"changes.{name}")
