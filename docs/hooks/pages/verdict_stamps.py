"""Which verdicts of committed runs stand without being judged again: all that they depend on is as it was.

1. ``docs/results/judged.json`` has for each committed run, and for each of its checks, a digest of all that the
   check's verdicts depend on: the files of the run, the code that judges, and where that is run.
2. The code is the module of the check, the modules that judge every run, and whatever of the suite and of the schemas
   these import, in whatever line, directly or through others; and every file of data that lies in these two packages,
   for which of them a check reads is not to be seen from outside. Of code the syntax tree counts without docstrings
   and descriptions, of JSON all but prose: words about a figure do not change it.
3. Where it is run: the locked versions of libraries, the version of Python and the kind of processor.
4. The file is written by ``verify --remember`` alone, for what was judged and came to what the report says. A digest
   that is another, or is missing, says nothing, and the check is judged again.
5. Some checks are judged again whatever the file says, drawn by the date: each of them on one day of
   :data:`DAYS_OF_SAMPLING`.
"""

import ast
import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from kuayu_conformance.checks import CHECKS, RUN_CHECKS
from kuayu_conformance.run.plan import check_of, testable
from kuayu_schemas.models import ConformanceReport, Verdict

FILE = "docs/results/judged.json"

PACKAGES: Mapping[str, str] = {
    "kuayu_conformance": "conformance/kuayu_conformance",
    "kuayu_schemas": "schemas/kuayu_schemas",
}
"""Packages that judge, and where they lie."""

JUDGING = ("kuayu_conformance.run.judgement", "kuayu_conformance.kept_scores", "kuayu_conformance.transcript")
"""Modules that judge every run, whatever its checks are."""

WHOLE_RUN = "report"
"""Stands among the checks for what is said of a run as a whole."""

DAYS_OF_SAMPLING = 14
"""Days within which each check is drawn once: a fortnight in which a fault of the digests could stay unseen in CI, for
about a fourteenth of what it costs to judge everything."""

NOT_OF_JUDGING = re.compile(r"(^|/)rendering/templates/|\.md$|(^|/)py\.typed$|(^|/)__pycache__/|\.py$")
"""Files of the packages that no verdict depends on, and modules, which count where they are imported."""

PROSE = re.compile(r"(description|title|summary|.*_(en|zh))")
"""Members of JSON and arguments in code whose text says in words what others say."""

Stamps = dict[str, dict[str, str]]
"""Digests by run and check."""


def _digest(*parts: str | bytes) -> str:
    joined = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        joined.update(len(data).to_bytes(8, "big") + data)
    return joined.hexdigest()


class _Plain(ast.NodeTransformer):
    """Takes from a syntax tree what only says in words what the rest says."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Without docstrings, and other text on its own."""
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Without arguments that are nothing but text about others."""
        self.generic_visit(node)
        node.keywords = [
            word
            for word in node.keywords
            if not (word.arg and PROSE.fullmatch(word.arg) and isinstance(word.value, ast.Constant))
        ]
        return node


def without_prose(value: Any) -> Any:
    """A document without members that are nothing but text about others."""
    if isinstance(value, dict):
        return {
            name: without_prose(member)
            for name, member in value.items()
            if not (isinstance(member, str) and PROSE.fullmatch(name))
        }
    return [without_prose(entry) for entry in value] if isinstance(value, list) else value


class JudgingCode:
    """The code and the data of the packages that judge, as they are in a checkout.

    Args:
        root: The checkout.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, tuple[str, frozenset[str]]] = {}

    def digest(self, modules: Iterable[str]) -> str:
        """Digest of some modules and of all that they rest on, of data, and of where it is run.

        Raises:
            FileNotFoundError: One of them does not exist.
        """
        reached: set[str] = set()
        queue = [*modules]
        for name in queue:
            if self._file(name) is None:
                raise FileNotFoundError(name)
        while queue:
            name = queue.pop()
            if name not in reached:
                reached.add(name)
                queue += self._module(name)[1]
        parts = [part for name in sorted(reached) for part in (name, self._module(name)[0])]
        return _digest(*parts, self.data, self.machine)

    @cached_property
    def data(self) -> str:
        """Digest of all files of data in the packages."""
        return _digest(*(part for name, data in self._data_files() for part in (name, data)))

    @cached_property
    def machine(self) -> str:
        """Digest of the versions of what is installed, and of the machine."""
        locked = (self._root / "requirements.lock").read_bytes()
        return _digest(locked, repr(sys.version_info[:2]), platform.machine())

    def _data_files(self) -> Iterator[tuple[str, bytes]]:
        for folder in PACKAGES.values():
            for path in sorted((self._root / folder).rglob("*")):
                name = path.relative_to(self._root).as_posix()
                if path.is_file() and not NOT_OF_JUDGING.search(name):
                    data = path.read_bytes()
                    if path.suffix == ".json":
                        data = json.dumps(without_prose(json.loads(data)), sort_keys=True).encode()
                    yield name, data

    def _file(self, module: str) -> Path | None:
        """The file of a module; None where it is of no package that judges, or does not exist."""
        package, _, rest = module.partition(".")
        if package not in PACKAGES:
            return None
        path = self._root / PACKAGES[package] / Path(*rest.split(".")) if rest else self._root / PACKAGES[package]
        files = (path / "__init__.py", path.with_suffix(".py"))
        return next((file for file in files if file.is_file()), None)

    def _module(self, name: str) -> tuple[str, frozenset[str]]:
        """Digest of a module, and the modules that it needs: packages that it lies in are imported before it."""
        if name not in self._modules:
            file = self._file(name)
            assert file is not None
            tree = ast.parse(file.read_bytes())
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            needed = {name.rpartition(".")[0], *self._imported(tree, package)}
            text = ast.dump(_Plain().visit(tree))
            self._modules[name] = _digest(text), frozenset(other for other in needed if self._file(other))
        return self._modules[name]

    @staticmethod
    def _imported(tree: ast.Module, package: str) -> Iterator[str]:
        """Names of what a module imports; what is taken from a package may be a module or not."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                beneath = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                origin = ".".join([*beneath, *filter(None, [node.module])])
                yield origin
                yield from (f"{origin}.{alias.name}" for alias in node.names)


def concerned(report: ConformanceReport) -> frozenset[str]:
    """Checks that a report has verdicts by."""
    judged = {result.requirement for result in report.results if result.verdict is not Verdict.not_applicable}
    return frozenset(filter(None, (check_of(row) for row in testable() if row.id in judged)))


def current(folder: Path, report: ConformanceReport, code: JudgingCode) -> dict[str, str]:
    """What the stamps of a run would be now: a digest for each of its checks, and for what is said of it as a whole."""
    files = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()]
    run = _digest(*(part for name, data in files for part in (name, data)))
    modules = {listed.name: f"kuayu_conformance.checks.{listed.module}" for listed in CHECKS}
    judging = [*JUDGING, *(sorted({check.judge.__module__ for check in RUN_CHECKS}))]
    whole = {name: code.digest([*JUDGING, modules[name]]) for name in sorted(concerned(report) & modules.keys())}
    return {name: _digest(run, digest) for name, digest in {WHOLE_RUN: code.digest(judging), **whole}.items()}


def drawn(run: str, check: str, day: date) -> bool:
    """Whether a check of a run is judged again on a day, whatever the stamps say."""
    number = int(_digest(run, check)[:8], 16)
    return (number - day.toordinal()) % DAYS_OF_SAMPLING == 0


def standing_verdicts(run: str, stamps: Stamps, digests: Mapping[str, str], day: date | None) -> frozenset[str]:
    """Checks of a run that need not be judged again; ``day`` is that of the sample, none is drawn where it is None."""
    written = stamps.get(run, {})
    return frozenset(
        check
        for check, digest in digests.items()
        if written.get(check) == digest and not (day and drawn(run, check, day))
    )


def read(root: Path) -> Stamps:
    """The committed stamps; none where there is no such file."""
    file = root / FILE
    stamps: Stamps = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return stamps


def write(root: Path, stamps: Stamps) -> None:
    """Write stamps, in an order of their own."""
    (root / FILE).write_text(json.dumps(stamps, indent=1, sort_keys=True) + "\n", "utf-8")
