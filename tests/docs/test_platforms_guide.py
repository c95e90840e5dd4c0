"""An order goes from its submission to its end as the page about platforms shows it, in both languages."""

from pathlib import Path

import pytest
from docs.typed import blocks, perform
from service.conftest import free_port

PATIENCE_SECONDS = 900.0
"""A busy machine takes minutes to start what imports everything."""


@pytest.mark.slow
def test_an_order_goes_its_way_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUAYU_URL", "KUAYU_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    service, *calls = perform("platforms.md", tmp_path, free_port(), PATIENCE_SECONDS)
    assert service.printed.strip() == ""
    assert len(calls) == 3
    for block in calls:
        assert block.shown is not None
        assert block.printed.splitlines() == block.shown.splitlines()


def test_both_languages_type_the_same() -> None:
    assert blocks("platforms.md") == blocks("platforms.md", "zh")
