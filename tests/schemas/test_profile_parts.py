"""A sub-profile is a part of one profile: it has some of its operations and requirements, and all parts have all."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_schemas import registers, schema
from kuayu_schemas.models import SubProfileDefinition

TEXT = Path(__file__).parents[2] / "spec" / "text"
PARTS = list(registers.sub_profiles().values())
DIVIDED = sorted({part.profile.value for part in PARTS})
"""Profiles that have parts."""

SEVERAL = {"SCH-007", "RES-011"}
"""Requirements that take operations of several parts, or of another profile, and so are of the whole profile alone."""

NAMES = [*registers.profiles(), *registers.sub_profiles()]


def named(part: SubProfileDefinition) -> str:
    return part.name


def test_names_are_given_once_and_say_the_profile() -> None:
    register = registers.requirements()
    assert [
        name for name, count in Counter(part.name for part in register.sub_profiles or ()).items() if count > 1
    ] == []
    for part in PARTS:
        assert part.name.partition("/")[0] == part.profile.value
        assert part.profile.value in set(registers.profiles()) - {"COM"}


@pytest.mark.parametrize("part", PARTS, ids=named)
def test_a_part_has_operations_features_and_requirements_of_its_profile_in_their_order(
    part: SubProfileDefinition,
) -> None:
    whole = registers.profiles()[part.profile.value]
    assert part.mandatory == [operation for operation in whole.mandatory if operation in part.mandatory]
    assert part.mandatory != whole.mandatory, "what has every operation is the profile"
    assert set(part.features) <= set(whole.features)
    rows = {row.id: row for row in registers.requirements().requirements}
    assert part.requirements == [name for name in rows if name in part.requirements]
    for name in part.requirements:
        assert rows[name].profile is part.profile, name
        assert rows[name].feature is None or rows[name].feature in part.features, name


@pytest.mark.parametrize("profile", DIVIDED)
def test_parts_together_have_all_of_the_profile_but_what_takes_several_of_them(profile: str) -> None:
    parts = [part for part in PARTS if part.profile.value == profile]
    whole = registers.profiles()[profile]
    assert {operation for part in parts for operation in part.mandatory} == set(whole.mandatory)
    assert {feature for part in parts for feature in part.features} == set(whole.features)
    lacking = set(registers.requirements_of(profile)) - {name for part in parts for name in part.requirements}
    assert lacking == {name for name in SEVERAL if name.startswith(f"{profile}-")}


def test_a_part_with_more_operations_has_every_requirement_of_one_with_fewer() -> None:
    for small in PARTS:
        for large in PARTS:
            if set(small.mandatory) <= set(large.mandatory) and set(small.features) <= set(large.features):
                assert set(small.requirements) <= set(large.requirements), f"{large.name} holds {small.name}"


@given(st.lists(st.sampled_from(NAMES), unique=True), st.sampled_from(NAMES))
def test_whoever_declares_more_has_no_operation_less(names: list[str], further: str) -> None:
    fewer, more = registers.mandatory(names), registers.mandatory([*names, further])
    assert len(set(more)) == len(more)
    assert set(more) == {*fewer, *registers.mandatory([further])}


def test_an_unknown_name_has_no_operations_and_no_requirements() -> None:
    assert registers.mandatory(["RES/telepathy"]) == ()
    assert not registers.requirements_of("RES/telepathy")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_clause_lists_the_parts_with_their_operations(language: str) -> None:
    clause = (TEXT / language / "com-05-conformance.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Z]{3}/[a-z]+) \| .+ \| (.+) \|$", clause, re.MULTILINE)
    assert [name for name, _ in rows] == list(registers.sub_profiles())
    for name, operations in rows:
        paths = {operation.split()[1].split("/")[2] for operation in registers.sub_profiles()[name].mandatory}
        assert set(re.findall(r"`([a-z-]+)`", operations)) == paths, name


@pytest.mark.parametrize("name", ["RES/collectives", "ABC/of-a-later-version"])
def test_names_of_later_versions_can_be_declared(name: str) -> None:
    assert schema.is_valid("Declaration", {**DECLARATION, "sub_profiles": [name]})
    assert schema.is_valid("Declaration", {**DECLARATION, "sub_profiles": [name]}, reader=True)


@pytest.mark.parametrize(
    "name", ["RES", "res/collectives", "RES/Collectives", "RES/", "/collectives", "RES/a/b", "RES/a-"]
)
def test_what_is_no_name_of_a_part_cannot(name: str) -> None:
    assert not schema.is_valid("Declaration", {**DECLARATION, "sub_profiles": [name]}, reader=True)


DECLARATION = {
    "spec_version": registers.SPEC_VERSION,
    "implementation": {"name": "a maker of one thing", "version": "1"},
    "profiles": ["COM"],
    "features": [],
    "limits": {"max_body": 16777216, "max_batch": 10000, "max_page": 1000, "retention": 604800, "idempotency": 86400},
    "durability": "process",
    "revision": {"epoch": "e", "number": 1},
    "now": "2026-11-27T00:00:00Z",
}
