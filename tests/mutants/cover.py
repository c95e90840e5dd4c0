"""Which mutants a change is held against, when all of them would take too long.

1. A *cover set*: the cheapest mutants that together break every requirement that any mutant breaks. It is found
   greedily (Chvátal 1979: the least cost per requirement that is not broken yet), and hangs on nothing but the
   declarations, so that it is the same everywhere. Mutants of decisions that are served over HTTP to show that both
   ways agree (``declaration.EDGES``) are held beside it.
2. Mutants that the change touches: their own class changed or is new, or the check of a requirement that they are
   about, or a class of the minimal server whose methods they replace. Syntax trees are compared, of the files as they
   are now, committed or not, and as they are in the commit that the change is based on; neither comments nor docstrings
   count. Of a module with several checks only what a check consists of counts for it.

The second part is bounded by a budget. Mutants beyond it are named, and only the whole matrix holds them.
"""

import ast
import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from pathlib import Path
from typing import Any

from kuayu_schemas import registers
from mutants.declaration import BEHIND, EDGES, Mutant
from mutants.oracle import Oracle

ROOT = Path(__file__).resolve().parents[2]
CHECKS = "kuayu_conformance.checks"
CHECKS_FOLDER = "conformance/kuayu_conformance/checks"
FOLDERS = (CHECKS_FOLDER, "tests/minimal_server", "tests/mutants")
"""Where a change touches mutants."""

BASE = "KUAYU_BASE"
"""Variable of the environment that names the commit that a change is based on."""

Cost = Callable[[Mutant], float]

Texts = tuple[str, str]
"""Text of a module in the base, and as it is now; empty where the module does not exist."""


class Reason(IntEnum):
    """Why a change touches a mutant, the most direct reason first."""

    NEW = 0
    CLASS = 1
    CHECK = 2
    MINIMAL_SERVER = 3
    HELPER = 4

    @property
    def words(self) -> str:
        """The reason, as it is printed."""
        return REASONS[self]


REASONS = {
    Reason.NEW: "it is new",
    Reason.CLASS: "its class changed",
    Reason.CHECK: "the check changed",
    Reason.MINIMAL_SERVER: "what it replaces changed",
    Reason.HELPER: "what the check rests on changed",
}


@dataclass(frozen=True)
class Base:
    """The commit that a change is compared with.

    Attributes:
        commit: Its name; empty where there is none.
        words: How it was determined, or why there is none.
    """

    commit: str
    words: str


@dataclass(frozen=True)
class Selection:
    """Mutants that a change is held against.

    Attributes:
        cover: Those that break every requirement.
        reasons: Names of those beside them that the change touches, as far as the budget goes, and why it does.
        beyond_budget: Those that it touches and that the budget is too small for.
        base: What the change was compared with.
    """

    cover: tuple[Mutant, ...]
    reasons: Mapping[str, Reason]
    beyond_budget: tuple[Mutant, ...]
    base: Base

    def mutants(self, candidates: Iterable[Mutant]) -> list[Mutant]:
        """All that are selected, in the order of the candidates."""
        names = {mutant.name for mutant in self.cover} | self.reasons.keys()
        return [mutant for mutant in candidates if mutant.name in names]

    @property
    def lines(self) -> list[str]:
        """What was selected and what was not, to be printed."""
        size, more, words = len(self.cover), len(self.reasons), self.base.words
        lines = [f"cover set: {size} mutants, which break every requirement that any mutant breaks"]
        lines.append(f"{more} more that the change touches ({words})" if self.base.commit else f"nothing more: {words}")
        if self.beyond_budget:
            names = ", ".join(mutant.name for mutant in self.beyond_budget)
            lines.append(f"{len(self.beyond_budget)} more that `make mutants` holds: {names}")
        return lines


def select(mutants: Sequence[Mutant], cost: Cost, budget: float, root: Path = ROOT) -> Selection:
    """Select the cover set, and what the change in a checkout touches while the cost stays within the budget."""
    cover = cover_set(mutants, cost)
    cover += [mutant for mutant in mutants if mutant.name in EDGES and mutant not in cover]
    base = base_of(root, os.environ.get(BASE, ""))
    others = [mutant for mutant in mutants if mutant not in cover]
    reasons = touched(others, base.commit, root) if base.commit else {}
    affordable, beyond = within(budget, [mutant for mutant in others if mutant.name in reasons], reasons, cost)
    return Selection(tuple(cover), {mutant.name: reasons[mutant.name] for mutant in affordable}, tuple(beyond), base)


def cover_set(mutants: Sequence[Mutant], cost: Cost) -> list[Mutant]:
    """Mutants of little cost that break every requirement that any of them breaks, in the order given.

    Of two that cost as much, one that misses a threshold by little is preferred, for it asks more of the suite.
    """
    unbroken = {requirement for mutant in mutants for requirement in mutant.breaks}
    cover: list[Mutant] = []
    while unbroken:
        useful = [mutant for mutant in mutants if mutant.breaks & unbroken]
        best = min(useful, key=partial(_price, cost, frozenset(unbroken)))
        cover.append(best)
        unbroken -= best.breaks
    for mutant in sorted(cover, key=lambda mutant: (-cost(mutant), mutant.name)):  # later ones made some needless
        others = [other for other in cover if other is not mutant]
        if mutant.breaks <= {requirement for other in others for requirement in other.breaks}:
            cover = others
    return [mutant for mutant in mutants if mutant in cover]


def _price(cost: Cost, unbroken: frozenset[str], mutant: Mutant) -> tuple[float, bool, str]:
    return cost(mutant) / len(mutant.breaks & unbroken), not mutant.near_miss_of, mutant.name


def within(
    budget: float, mutants: Iterable[Mutant], reasons: Mapping[str, Reason], cost: Cost
) -> tuple[list[Mutant], list[Mutant]]:
    """Those mutants that a budget is large enough for, the most telling first, and the others.

    New ones, near-misses and controls are the most telling: they show whether a threshold is where it should be. Those
    that are touched only by what a check rests on come last, for many checks rest on the same.
    """

    def order(mutant: Mutant) -> tuple[bool, bool, Reason, float]:
        reason = reasons[mutant.name]
        telling = reason is Reason.NEW or bool(mutant.near_miss_of or mutant.control_for)
        return reason is Reason.HELPER, not telling, reason, cost(mutant)

    affordable: list[Mutant] = []
    beyond: list[Mutant] = []
    for mutant in sorted(mutants, key=order):
        if cost(mutant) <= budget:
            affordable.append(mutant)
            budget -= cost(mutant)
        else:
            beyond.append(mutant)
    return affordable, beyond


def base_of(root: Path, name: str = "") -> Base:
    """The commit that the change in a checkout is based on.

    It is the one of that name, else where the branch left ``origin/main``, else the last commit before this one.
    """
    commit_of = partial(_git, root, "rev-parse", "--verify", "--quiet")
    head = commit_of("HEAD^{commit}")
    if not head:
        return Base("", "git knows no history here, so what the change touches is unknown")
    if name:
        commit = commit_of(f"{name}^{{commit}}")
        return Base(commit, f"since {name}") if commit else Base("", f"{BASE}={name} is no commit that git knows here")
    fork = _git(root, "merge-base", "HEAD", "origin/main")
    if fork and fork != head:
        return Base(fork, f"since {fork[:7]}, where the branch left origin/main")
    parent = commit_of("HEAD~1^{commit}")
    if parent:
        return Base(parent, f"since {parent[:7]}, the commit before")
    return Base("", "git knows no commit before this one, so what the change touches is unknown")


def touched(mutants: Iterable[Mutant], base: str, root: Path = ROOT) -> dict[str, Reason]:
    """Names of mutants that the change since a commit touches, each with the most direct reason."""
    changes = _changes(base, root)
    kinds = [kind for kind in Oracle.__mro__ if _difference(kind, changes) is not None]
    methods = {name for kind in kinds for name in _methods(kind)}
    modules = {module for module, texts in changes.items() if module.startswith(f"{CHECKS}.") and _is_other(texts)}
    requirements = _resting_on(modules, changes, root)
    reasons: dict[str, Reason] = {}
    for mutant in mutants:
        names = (*mutant.breaks, mutant.control_for)
        candidates = [requirements[name] for name in names if name in requirements]
        own = _difference(mutant.defined, changes)
        if own is not None:
            candidates.append(own)
        if methods & _replacements(mutant):
            candidates.append(Reason.MINIMAL_SERVER)
        if candidates:
            reasons[mutant.name] = min(candidates)
    return reasons


def _changes(base: str, root: Path) -> dict[str, Texts]:
    """Texts of modules that changed since a commit, by the name of the module."""
    files = {
        *_git(root, "diff", "--name-only", "--relative", base, "--", *FOLDERS).splitlines(),
        *_git(root, "ls-files", "--others", "--exclude-standard", "--", *FOLDERS).splitlines(),
    }
    changes: dict[str, Texts] = {}
    for file in sorted(file for file in files if file.endswith(".py")):
        path = root / file
        module = ".".join(Path(file).with_suffix("").parts[1:])
        changes[module] = _git(root, "show", f"{base}:./{file}"), path.read_text("utf-8") if path.is_file() else ""
    return changes


def _difference(kind: Any, changes: Mapping[str, Texts]) -> Reason | None:
    """Whether a class or function is new, or is defined otherwise than before; None where it is what it was."""
    before, now = (definition(text, kind.__name__) for text in changes.get(kind.__module__, ("", "")))
    if before == now:
        return None
    return Reason.CLASS if before else Reason.NEW


def _is_other(texts: Texts) -> bool:
    before, now = (ast.dump(_parsed(text)) for text in texts)
    return before != now


def _resting_on(modules: Collection[str], changes: Mapping[str, Texts], root: Path) -> dict[str, Reason]:
    """Requirements whose check changed, or imports a module that did, by itself or through others."""
    reasons: dict[str, Reason] = {}
    for row in registers.requirements().requirements if modules else ():
        if not row.check:
            continue
        module, name = module_and_name(row.check)
        before, now = (check_source(text, name) for text in changes.get(module, ("", "")))
        if before != now:
            reasons[row.id] = Reason.CHECK
        elif not _beneath(check_source(_text(module, root), name), root).isdisjoint(modules):
            reasons[row.id] = Reason.HELPER
    return reasons


def module_and_name(path: str) -> tuple[str, str]:
    """Where a check is, by its path in the register: the module, and its name there unless that is CHECK."""
    module, _, name = path.rpartition(".")
    return (module, name) if name.isupper() else (path, "CHECK")


@cache
def check_source(text: str, name: str) -> str:
    """What a check consists of: all that defines it in its module, and what that takes from others, a line each."""
    own = definition(text, name)
    used = _names(ast.parse(own))
    lines = [
        f"from {node.module} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        for node in _parsed(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name) in used
    ]
    return "\n".join([*lines, own])


def _text(module: str, root: Path) -> str:
    """Text of a module in the folder of checks; empty where it is a package, or is not there."""
    path = root / CHECKS_FOLDER / f"{module.removeprefix(f'{CHECKS}.').replace('.', '/')}.py"
    return path.read_text("utf-8") if path.is_file() else ""


def _beneath(check: str, root: Path) -> set[str]:
    """Modules in the folder of checks that a check of this text imports, by itself or through others."""
    modules: set[str] = set()
    queue = [check]
    while queue:
        new = _imports(queue.pop()) - modules
        modules |= new
        queue += [_text(module, root) for module in new]
    return modules


@cache
def _imports(text: str) -> frozenset[str]:
    """Modules in the folder of checks that a module imports."""
    modules: set[str] = set()
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith(f"{CHECKS}."):
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


def _replacements(mutant: Mutant) -> set[str]:
    """Names of what a mutant does otherwise than the minimal server, in its class or in one that it shares with others.

    Of an edit they are those of all that answers what is edited.
    """
    if mutant.edit:
        return {name for path in mutant.edit.paths for kind in BEHIND[path].kinds for name in _methods(kind)}
    kinds = [kind for kind in mutant.service.__mro__ if kind.__module__.startswith("mutants.") and kind is not Oracle]
    return {name for kind in kinds for name in _methods(kind)}


def _methods(kind: type) -> set[str]:
    """Names of what a class defines."""
    return {name for name in vars(kind) if not name.startswith("__") or name == "__init__"}


def definition(text: str, name: str) -> str:
    """What defines a name in a module: its statements, those of all that they name in the module, and so on.

    It is empty where the module does not define it.
    """
    statements = _statements(text)
    definitions: dict[str, str] = {}
    queue = [name]
    while queue:
        current = queue.pop()
        if current not in definitions and current in statements:
            definitions[current] = "\n".join(ast.unparse(statement) for statement in statements[current])
            queue += [name for statement in statements[current] for name in _names(statement)]
    return "\n".join(definitions[current] for current in sorted(definitions))


@cache
def _statements(text: str) -> dict[str, list[ast.stmt]]:
    """Statements of a module, by the names that they define."""
    statements: dict[str, list[ast.stmt]] = {}
    for statement in _parsed(text).body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            names = {statement.name}
        elif isinstance(statement, ast.Assign):
            names = {name for target in statement.targets for name in _names(target)}
        elif isinstance(statement, ast.AnnAssign):
            names = _names(statement.target)
        else:
            names = set()
        for name in names:
            statements.setdefault(name, []).append(statement)
    return statements


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _parsed(text: str) -> ast.Module:
    """A module without docstrings."""
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return module


def _git(root: Path, *arguments: str) -> str:
    """What git prints; empty where it fails, or where there is none."""
    command = ["git", *arguments]
    try:
        process = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
