"""The guide to engines shows what its commands print, in both languages."""

from pathlib import Path

from docs.typed import blocks, perform
from service.conftest import free_port


def test_the_guide_to_engines_shows_what_its_program_prints(tmp_path: Path) -> None:
    done = perform("engines.md", tmp_path, free_port())
    assert [block.kind for block in done] == ["sh", "python"]
    assert done[0].printed.split()[:4] == ["what", "is", "there", "found"]
    assert done[1].shown is not None
    assert done[1].printed.split() == done[1].shown.split()


def test_both_languages_type_the_same() -> None:
    assert blocks("engines.md") == blocks("engines.md", "zh")
