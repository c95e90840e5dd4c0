"""Chinese pages use the words of the text: no other word stands for a term, a requirement or a permission.

Held to it are pages written by hand, and all that generated pages and documents say in Chinese. What is quoted or set
as code says what others write, and a block device is no accelerator.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lint.keywords import REFUSED
from lint.terms import VARIANTS

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs/zh", "docs/hooks", "spec/document", "training/kuayu_training/demand/handbook_text")
FILES = ("docs/changelog-zh.yaml", "docs/decisions/zh.yaml", "mkdocs.yml")
WORDS = (REFUSED["zh"], *map(re.compile, VARIANTS["zh"]))
ASIDE = re.compile(r"“[^”\n]*”|`[^`\n]*`|块设备")


def refused(text: str) -> Iterator[str]:
    """Words of a text that are refused, with what stands around them."""
    for line in ASIDE.sub("", text).splitlines():
        for pattern in WORDS:
            yield from (line[max(found.start() - 12, 0) : found.end() + 12] for found in pattern.finditer(line))


def sources() -> list[str]:
    """Files in which Chinese stands, by their paths below the root."""
    found = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))
    named = {str(file.relative_to(ROOT)) for file in found if file.suffix in {".md", ".py", ".yaml"}}
    return sorted(named | set(FILES))


@pytest.mark.parametrize("path", sources())
def test_no_word_that_the_text_refuses_stands_in_it(path: str) -> None:
    assert list(refused((ROOT / path).read_text("utf-8"))) == []


@pytest.mark.parametrize("text", ["节点必须登记。", "数据不得离开。", "无须处置。", "占用设备", "服务的应答"])
def test_each_of_them_would_be_found(text: str) -> None:
    assert list(refused(text))


def test_what_is_quoted_is_left_alone() -> None:
    assert list(refused("不用“必须”，参考设备与块设备；`可以`")) == []
