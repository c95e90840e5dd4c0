"""A part has every requirement that its operations suffice for, and no other: by what checks have called in real runs.

What a check calls is on record in the transcripts of the committed runs. A requirement belongs to a part exactly where
the part has every operation that its check calls, save that a check which keeps to the operations of the run belongs to
each part that has any of them.
"""

import importlib
import inspect
import lzma
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
from mutants.cover import definition

from kuayu_conformance.check import Check
from kuayu_conformance.checks import CHECKS, CheckEntry
from kuayu_conformance.contract import operation_of, operations
from kuayu_schemas import registers

RESULTS = Path(__file__).parents[2] / "docs" / "results"
ASKED = re.compile(rb'\{"kind":"\w+","episode":"(\w+)[^}]*?"(?:method":"([A-Z]+)","path|path)":"([^"?]+)')
OPTIONAL = {f"{row.method} {row.template}" for _, row in operations()} - set(registers.mandatory(registers.profiles()))
"""Operations that nobody has to have: those of features."""

REPEATED_RUN = RESULTS / "runs/scheduling"
"""A run at level full of a few checks that are in the confirmatory run too; to unpack it takes as long as the rest."""

LOADED = tuple(listed.load() for listed in CHECKS)
OF_PROFILES = {name: check for check in LOADED for name in check.requirements if not name.startswith("COM-")}
DIVIDED = {part.profile.value for part in registers.sub_profiles().values()}


@pytest.fixture(scope="module")
def called() -> Mapping[str, frozenset[str]]:
    """Operations that each check has called in the committed runs, without those that everybody has."""
    found: dict[str, set[tuple[str, str]]] = {}
    for transcript in sorted(RESULTS.glob("*/*/transcript.jsonl.xz")):
        if transcript.parent == REPEATED_RUN:
            continue
        with lzma.open(transcript) as lines:
            for line in lines:
                if asked := ASKED.match(line[:400]):
                    check, method, path = (part.decode() for part in (asked[1], asked[2] or b"GET", asked[3]))
                    found.setdefault(check, set()).add((method, _short(path)))
    common = set(registers.mandatory(["COM"]))
    return {
        check: frozenset(filter(None, (_operation(*each) for each in row))) - common for check, row in found.items()
    }


@cache
def _short(path: str) -> str:
    """A path with the same word in place of any name, so that thousands of nodes are looked at once."""
    return re.sub(r"^(/v1/[a-z-]+)/(?!patch$|events$)[^/]+", r"\1/name", path)


def _operation(method: str, path: str) -> str:
    found = operation_of(method, path)
    return f"{found.method} {found.template}" if found else ""


def keeps_to_the_run(check: Check[object]) -> bool:
    """Whether a check asks which operations the run is about, by itself or through the kit."""
    source = "".join(map(defining, (check.observe, check.judge)))
    return "settings.asks(" in source or "decision_services(" in source


def defining(function: Callable[..., object]) -> str:
    """What defines a function in its module, which may have other checks beside."""
    module = importlib.import_module(function.__module__)
    return definition(inspect.getsource(module), function.__name__)


@pytest.mark.parametrize("requirement", [name for name in OF_PROFILES if name[:3] in DIVIDED])
def test_a_requirement_is_of_the_parts_that_have_what_its_check_calls(
    called: Mapping[str, frozenset[str]], requirement: str
) -> None:
    check = OF_PROFILES[requirement]
    parts = [part for part in registers.sub_profiles().values() if part.profile.value == requirement[:3]]
    if check.name not in called:  # younger than the runs that are committed
        assert any(requirement in part.requirements for part in parts)
        return
    needed = called[check.name]
    for part in parts:
        has = {*part.mandatory, *(OPTIONAL if part.features else ())}
        belongs = requirement in part.requirements
        if not keeps_to_the_run(check):
            assert belongs == (needed <= has), f"{part.name}: {check.name} calls {sorted(needed - has)} beyond it"
        elif belongs or check.requirements == (requirement,):
            assert belongs == bool(needed & has), f"{part.name}: {check.name} calls {sorted(needed)}"


@pytest.mark.parametrize("check", [check for check in CHECKS if check.needs], ids=lambda check: check.name)
def test_common_behaviour_shows_through_parts_that_have_what_its_check_calls(
    called: Mapping[str, frozenset[str]], check: CheckEntry
) -> None:
    for name in set(check.needs) & registers.sub_profiles().keys():
        has = set(registers.sub_profiles()[name].mandatory)
        needed = called[check.name]
        assert needed & has, f"{name} has nothing that {check.name} calls"
        assert needed <= has or keeps_to_the_run(check.load()), sorted(needed - has)
