"""A version of the standard: its registers and what is published of it, from a folder or from a git revision."""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = "schemas/kuayu_schemas/published"

Row = Mapping[str, Any]
"""An object of a published file: of any version, so that no type of the present one fits."""


class VersionError(Exception):
    """A version cannot be read; the message says why, and ``hint`` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        """Keep the hint beside the message."""
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Version:
    """What two versions are compared by.

    Attributes:
        name: As it was asked for.
        requirements: Register of requirements.
        indicators: Register of indicators, with the collection map.
        problems: Register of problem types.
        sent: Closed schema, of what is sent to a service.
        answered: Schema for readers, of what a service answers.
        interface: The published OpenAPI document.
        stability: Register of stability; empty for a version that had none.
    """

    name: str
    requirements: Row
    indicators: Row
    problems: Row
    sent: Row
    answered: Row
    interface: Row
    stability: Row = field(default_factory=dict)

    @property
    def number(self) -> str:
        """Version of the standard that it says it is."""
        return str(self.requirements["spec_version"])


def read(name: str | None, root: Path = ROOT) -> Version:
    """Read a version.

    Args:
        name: Folder of a checkout, a git revision of the repository at ``root``, or None for ``root`` as it lies there.
        root: A checkout.

    Raises:
        VersionError: It is neither, or lacks a file.
    """
    folder = root if name is None else Path(name)
    load = _of_folder(folder) if name is None or folder.is_dir() else _of_revision(name, root)

    def register(register_name: str) -> Row:
        row: Row = yaml.load(load(f"spec/{register_name}.yaml"), yaml.CSafeLoader)
        return row

    def published(file: str) -> Row:
        row: Row = json.loads(load(f"{PUBLISHED}/{file}.json"))
        return row

    try:
        stability = register("stability")
    except VersionError:
        stability = {}  # versions before 0.2 promised nothing item by item
    return Version(
        name or "this checkout",
        register("requirements"),
        register("indicators"),
        register("problems"),
        published("kuayu.schema"),
        published("kuayu.reader.schema"),
        published("openapi"),
        stability,
    )


def _of_folder(folder: Path) -> Callable[[str], str]:
    def load(path: str) -> str:
        try:
            return (folder / path).read_text("utf-8")
        except OSError as error:
            raise VersionError(f"{folder} has no {path}", "name a checkout of the project") from error

    return load


def _of_revision(name: str, root: Path) -> Callable[[str], str]:
    def load(path: str) -> str:
        command = ["git", "-C", str(root), "show", f"{name}:{path}"]
        try:
            shown = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - a fixed program
        except FileNotFoundError as error:
            raise VersionError(f"{name} is no folder, and there is no git to look it up", "install git") from error
        except subprocess.CalledProcessError as error:
            cause = error.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise VersionError(
                f"{name} is no folder, and git does not have {path} of it: {' '.join(cause)}",
                "name a folder or a revision that has the published schemas; a shallow clone lacks earlier ones",
            ) from error
        return shown.stdout.decode("utf-8")

    return load
