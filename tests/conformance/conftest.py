"""What the stories about the suite share: the second server as a process, and one report on it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mutants.serve import MINIMAL_SERVER, served

from kuayu_conformance.folder import write
from kuayu_conformance.run.runner import Options, Progress, Run

QUICK = ("COM-001", "COM-004", "COM-008", "COM-012", "COM-017", "MET-001", "MET-003", "MET-009")
"""Requirements that take a second or two together, figures and behaviour among them."""


@pytest.fixture(scope="session")
def minimal_server() -> Iterator[str]:
    """Base URL of the second server."""
    with served(MINIMAL_SERVER) as target:
        yield target


@pytest.fixture(scope="session")
def options(minimal_server: str) -> Options:
    """A run of the quick requirements against the second server."""
    return Options(
        target=minimal_server,
        nonce="stories",
        headers={"authorization": "Bearer own"},
        other_headers={"authorization": "Bearer other"},
        selection=QUICK,
        timeout=30,
        watch=False,  # other tests run beside this one
    )


@pytest.fixture(scope="session")
def report_folder(options: Options, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report on the second server."""
    return _reported(options, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def brief_folder(options: Options, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report that can be judged again and again: without the thousands of pages of MET-003."""
    brief = tuple(requirement for requirement in options.selection if requirement != "MET-003")
    return _reported(replace(options, selection=brief), tmp_path_factory.mktemp("brief"))


def _reported(options: Options, folder: Path) -> Path:
    write(folder, Run(options, folder, Progress()).execute())
    return folder
