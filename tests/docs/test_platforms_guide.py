"""An order goes from its submission to its end as the page about platforms shows it, in both languages."""

from pathlib import Path

import pytest
from docs.typed import blocks, perform
from service.conftest import free_port


@pytest.mark.slow
def test_an_order_goes_its_way_as_the_page_shows(tmp_path: Path) -> None:
    begun, put, told, called_off = perform("platforms.md", tmp_path, free_port())
    assert begun.printed.strip() == ""
    for block in (put, told, called_off):
        assert block.shown is not None
        assert block.printed.splitlines() == block.shown.splitlines()


def test_both_languages_type_the_same() -> None:
    assert blocks("platforms.md") == blocks("platforms.md", "zh")
