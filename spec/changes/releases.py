"""Frozen sets of requirements: what a release asks for, kept beside the registers so that no later edit passes unseen.

``spec/releases/NAME/requirements.json`` has the digests of the registers, and of each requirement its identifier with
all that it is judged by: keyword, threshold, level, profile, feature, method and both sentences. Titles, sources and
checks are left out, since they may differ without a change of meaning. ``called.yaml`` beside it names, by identifier,
the rules of breaking changes that were made to the set since, each of which has to be meant.

Sources: docs/en/versioning.md; RFC 8785 for digests, which are of registers as JSON.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from changes import requirements
from changes.change import Change
from changes.versions import ROOT, Row, Version

RELEASES = Path("spec") / "releases"
KEPT = ("id", *requirements.JUDGED, *requirements.SENTENCES, *requirements.METHODS)
"""Members of a requirement that a frozen set keeps."""


def freeze(version: Version, name: str) -> dict[str, Any]:
    """What is kept of a version under the name of a release."""
    registers = {"requirements": version.requirements, "indicators": version.indicators, "problems": version.problems}
    return {
        "release": name,
        "digests": {register: digest(row) for register, row in registers.items()},
        "requirements": kept(version.requirements),
    }


def write(version: Version, name: str, root: Path = ROOT) -> Path:
    """Freeze a version; the answer is the file that was written. ``called.yaml`` is left as it is."""
    file = root / RELEASES / name / "requirements.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(freeze(version, name), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return file


def read_frozen(name: str, root: Path = ROOT) -> Row:
    """A frozen set.

    Raises:
        OSError: There is none of that name.
    """
    loaded: Row = json.loads((root / RELEASES / name / "requirements.json").read_text("utf-8"))
    return loaded


def called(name: str, root: Path = ROOT) -> Mapping[str, list[str]]:
    """Rules of the breaking changes since that are meant, by identifier."""
    loaded: Mapping[str, list[str]] = yaml.load(
        (root / RELEASES / name / "called.yaml").read_text("utf-8"), yaml.CSafeLoader
    )
    return loaded or {}


def since(frozen: Row, version: Version) -> Iterator[Change]:
    """What a version changes of a frozen set, by the rules of requirements; what it adds is no change of the set."""
    known = {row["id"] for row in frozen["requirements"]}
    now = [row for row in kept(version.requirements) if row["id"] in known]
    yield from requirements.of_requirements(frozen, {**version.requirements, "requirements": now})


def kept(register: Row) -> list[dict[str, Any]]:
    """Requirements of a register with the members that are kept, texts on one line."""
    return [
        {member: _plain(row[member]) for member in KEPT if row.get(member) is not None}
        for row in register["requirements"]
    ]


def digest(register: Row) -> str:
    """SHA-256 of a register as JSON with sorted members and no spaces, as hexadecimal digits."""
    text = json.dumps(register, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _plain(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value
