"""The requirements of a release are frozen: nothing of them changes its meaning without a rule that calls it."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changes import releases
from changes.versions import Version, read

RELEASE = "0.2"


@pytest.fixture(scope="module")
def version() -> Version:
    return read(None)


def edited(version: Version, **members: Any) -> Version:
    """The same with other members of its first requirement."""
    register = deepcopy(dict(version.requirements))
    register["requirements"][0] |= members
    return replace(version, requirements=register)


def test_nothing_of_the_frozen_set_has_changed_but_what_is_called(version: Version) -> None:
    meant = releases.called(RELEASE)
    broken = [
        f"{change.place}: {change.rule}: {change.detail}"
        for change in releases.since(releases.read_frozen(RELEASE), version)
        if change.severity == "breaking" and change.rule not in meant.get(change.place.split()[-1], ())
    ]
    assert broken == [], "give it a new identifier, or name the rule in called.yaml and the break in the changelog"


def test_what_differs_from_the_frozen_set_is_called_by_a_rule(version: Version) -> None:
    frozen = releases.read_frozen(RELEASE)
    now = {row["id"]: row for row in releases.kept(version.requirements)}
    differing = {row["id"] for row in frozen["requirements"] if row != now.get(row["id"])}
    assert differing == {change.place.split()[-1] for change in releases.since(frozen, version)}


@pytest.mark.parametrize("member", [member for member in releases.KEPT if member != "id"])
def test_an_edit_of_any_member_that_is_kept_is_called(version: Version, member: str) -> None:
    frozen = releases.freeze(version, "now")
    assert list(releases.since(frozen, version)) == []
    assert list(releases.since(frozen, edited(version, **{member: "something else in 77 s"})))


def test_a_requirement_that_is_withdrawn_is_called_and_one_that_is_new_is_not(version: Version) -> None:
    frozen = releases.freeze(version, "now")
    fewer = {"requirements": version.requirements["requirements"][1:]}
    withdrawn = list(releases.since(frozen, replace(version, requirements=fewer)))
    assert [(change.severity, change.rule) for change in withdrawn] == [("breaking", "requirement-withdrawn")]
    frozen["requirements"] = frozen["requirements"][1:]
    assert list(releases.since(frozen, version)) == []


def test_what_is_written_is_what_is_read(version: Version, tmp_path: Path) -> None:
    file = releases.write(version, "9.9", tmp_path)
    assert (
        json.loads(file.read_text("utf-8")) == releases.read_frozen("9.9", tmp_path) == releases.freeze(version, "9.9")
    )
