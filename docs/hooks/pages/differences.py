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

from kuayu_conformance.rendering.words import MODALS, Language, Words, named
from kuayu_schemas import registers
from kuayu_schemas.models import Level, Modal, Threshold

from .made import Made
from .markdown import badge, heading, link, page, plain, table
from .requirements import requirement_link, threshold_words
from .standard import TITLE as CLAUSE_TITLE
from .terms import LEVELS

Row = Mapping[str, Any]

FILE = "standard/differences.md"
TITLE = Words("What differs between versions", "版本之间的差异")
LEAD = Words(
    "Each version of the standard is compared with the next one, requirement by requirement, by the rules of "
    "[Versioning and stability](/versioning.md); the [changelog](/changelog.md) says what changed beside requirements.",
    "按[版本与稳定性](/versioning.md)的规则，逐项比较标准相邻版本的要求；要求之外的变化见[变更记录](/changelog.md)。",
)
DRAFT = Words("the draft as it stands", "当前草案")
FROM_TO, VERSION = Words("From {old} to {new}", "自 {old} 版至{new}"), Words("{}", " {} 版")
UNPUBLISHED = Words(" (not published yet)", "（尚未发布）")
NOTHING = Words("No requirement differs.", "没有要求存在差异。")
MEANWHILE = Words(
    "Until {name} is published, the set that is kept of it follows the draft. Breaking changes that were made to it "
    "meanwhile:",
    "{name} 发布之前，其要求集合随草案更新。其间的不兼容变化：",
)
VERSIONS = Words("Versions", "版本")
REQUIREMENT, WEIGHT, DIFFERENCE = Words("Requirement", "要求"), Words("Weight", "类别"), Words("What differs", "差异")
WITHDRAWN = Words("Withdrawn requirements", "已撤销的要求")
WEIGHTS = {
    "breaking": Words("breaking", "不兼容"),
    "additive": Words("additive", "增补"),
    "editorial": Words("editorial", "编辑性"),
}
COLOURS = {"breaking": "fail", "additive": "pass", "editorial": "not-applicable"}
"""Classes of the style sheet."""
RULES = {
    "requirement-withdrawn": Words("withdrawn", "已撤销"),
    "requirement-added": Words("new", "新增"),
    "keyword-changed": Words("another keyword", "能愿动词改变"),
    "threshold-changed": Words("another threshold", "阈值改变"),
    "level-changed": Words("another level", "级别改变"),
    "profile-changed": Words("another profile", "专规改变"),
    "feature-changed": Words("another feature", "特性改变"),
    "method-revised": Words("measured in another way since {since}", "自 {since} 起测量方法修改"),
    "method-reworded": Words("the method is worded otherwise", "测量方法的措辞改变"),
    "method-translated": Words("a translation of the method was mended", "测量方法的译文有所订正"),
    "figure-in-text-changed": Words("other numbers in the sentence", "条文中的数值改变"),
    "text-changed": Words("the sentence in other words", "条文改换措辞"),
}
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
ELSEWHERE = Words(" (in Chinese)", "（英文）")
"""Where a sentence differs in the other language alone."""
NONE, COLON, INSTEAD = Words("none", "无"), Words(": ", "："), Words("; instead: {names}", "；替代项：{names}")


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
        return min((str(change.severity) for change in self.changes[identifier]), key=list(WEIGHTS).index)


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of it."""
    register = yaml.load((root / "spec/requirements.yaml").read_text("utf-8"), yaml.CSafeLoader)
    steps = list(_steps(language, root, register))
    counts = table(
        (VERSIONS.in_(language), *(badge(COLOURS[weight], words.in_(language)) for weight, words in WEIGHTS.items())),
        [(link(step.title, f"#{step.anchor}"), *_counts(step)) for step in steps],
    )
    blocks = [
        block
        for step in steps
        for block in (heading(2, step.title, step.anchor), *_tables(language, root, register, step))
    ]
    blocks += _meanwhile(language, root, register)
    yield Made(FILE, page(f"# {TITLE.in_(language)}", LEAD.in_(language), counts, *blocks), "Standard")


def releases(root: Path) -> list[str]:
    """Names of the versions of which a set is kept, the first one first."""
    names = (file.parent.name for file in (root / "spec/releases").glob("*/requirements.json"))
    return sorted(names, key=lambda name: tuple(map(int, name.split("."))))


def _steps(language: Language, root: Path, register: Row) -> Iterator[Step]:
    """From each version to the next, and from the last one to the draft."""
    frozen = [(name, _of_changes("releases").read_frozen(name, root)["requirements"]) for name in releases(root)]
    versions = [*frozen, (DRAFT.in_(language), _of_changes("releases").kept(register))]
    for (old, before), (new, after) in pairwise(versions):
        changes: dict[str, list[Any]] = {}
        later = {"requirements": after, "withdrawn": register["withdrawn"]}
        for change in _of_changes("requirements").of_requirements({"requirements": before}, later):
            changes.setdefault(change.place.split()[-1], []).append(change)
        is_draft = new == DRAFT.in_(language)
        title = FROM_TO.in_(language).format(old=old, new=new if is_draft else VERSION.in_(language).format(new))
        if not is_draft and not _is_published(new):
            title += UNPUBLISHED.in_(language)
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
    if not step.changes:
        yield NOTHING.in_(language)
    heads = tuple(words.in_(language) for words in (REQUIREMENT, WEIGHT, DIFFERENCE))
    for title, rows in _by_clause(language, root, register, step):
        yield f"### {title}"
        yield table(heads, [_cells(language, step, row) for row in rows])


def _cells(language: Language, step: Step, row: Row) -> tuple[str, str, str]:
    weight = step.weight(row["id"])
    shown = badge(COLOURS[weight], WEIGHTS[weight].in_(language))
    return _titled(language, row), shown, "<br>".join(_lines(language, step, row))


def _by_clause(language: Language, root: Path, register: Row, step: Step) -> Iterator[tuple[str, list[Row]]]:
    """Rows of the register of which something differs, under the titles of their clauses."""
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
        yield WITHDRAWN.in_(language), withdrawn


def _lines(language: Language, step: Step, row: Row) -> Iterator[str]:
    """What differs of a requirement, a line for each rule that finds something."""
    before, after = step.before.get(row["id"], {}), step.after.get(row["id"], {})
    for rule in dict.fromkeys(change.rule for change in step.changes[row["id"]]):
        words = _rule(language, rule, row, after)
        if rule in MEMBERS:
            old, new = (_shown(language, MEMBERS[rule], version) for version in (before, after))
            both = f"{COLON.in_(language)}<del>{old}</del> <ins>{new}</ins>"
            words += both if old != new else ELSEWHERE.in_(language)
        yield words


def _rule(language: Language, rule: str, row: Row, after: Row) -> str:
    """What a rule finds: with the day since which a method is revised, and what took the place of what is withdrawn."""
    words = RULES[rule].in_(language).format(since=plain(after.get("revised", "")[:10]))
    if rule == "requirement-withdrawn" and row.get("replaced_by"):
        words += INSTEAD.in_(language).format(names=", ".join(map(requirement_link, row["replaced_by"])))
    return words


def _shown(language: Language, member: str, version: Row) -> str:
    """A member of a requirement as people read it."""
    value = version.get(f"text_{language}" if member == "text" else member)
    match member:
        case _ if value is None:
            return NONE.in_(language)
        case "threshold":
            return threshold_words(language, Threshold.model_validate(value))
        case "modal":
            return MODALS[Modal(value)].in_(language)
        case "level":
            return named(LEVELS, Level(value)).in_(language)
    return plain(value)


def _meanwhile(language: Language, root: Path, register: Row) -> Iterator[str]:
    """Breaking changes that were made to the set of a version before it was published."""
    rows = {row["id"]: row for row in (*register["requirements"], *register["withdrawn"])}
    for name in filter(lambda name: not _is_published(name), releases(root)):
        called = _of_changes("releases").called(name, root)
        if called:
            yield MEANWHILE.in_(language).format(name=name)
            yield table(
                (REQUIREMENT.in_(language), DIFFERENCE.in_(language)),
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
