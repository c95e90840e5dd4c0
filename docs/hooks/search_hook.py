# ruff: noqa: INP001 - mkdocs loads the hook by its path
"""Search in each language by itself, and for whole Chinese terms.

1. The plugins write one index of both languages. Here each gets its own, in the folder of its pages; docs/overrides
   names that folder to the theme's script.
2. Terms of the standard are words: jieba would cut 域间调度 in three.
3. The theme's script looks up the beginnings of what is typed in the index, but never all of it (material 9.8,
   ``segment``): 调度 was sought as 调. The comparison is mended in the copy of the script that the site holds.
"""

import json
import re
from pathlib import Path

import jieba
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

ROOT = Path(__file__).parents[2]

TERM = re.compile(r"^\| (\w+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
TYPED = re.compile(r"(?P<end>\w+)<(?P<text>\w+)\.length;(?P=end)\+\+\)(?P=text)\.slice\(\w+,(?P=end)\)in ")
"""Where the script goes through the beginnings of what is typed."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the terms of the standard words."""
    for term in TERM.findall((ROOT / "spec/text/zh/com-03-terms.md").read_text("utf-8")):
        jieba.add_word(term)
    return config


@event_priority(-200)
def on_post_build(config: MkDocsConfig) -> None:
    """Divide the index, once it holds both languages, and mend the script.

    Raises:
        ValueError: The script is another than the one that is known; look whether it still has to be mended.
    """
    site = Path(config.site_dir)
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    chinese = [entry for entry in index["docs"] if entry["location"].startswith("zh/")]
    english = [entry for entry in index["docs"] if not entry["location"].startswith("zh/")]
    if not (chinese and english):
        return
    _write(site / "search", index, "en", english)
    inside = [entry | {"location": entry["location"].removeprefix("zh/")} for entry in chinese]
    _write(site / "zh/search", index, "zh", inside)
    (script,) = (site / "assets/javascripts/workers").glob("search.*.min.js")
    text = script.read_text("utf-8")
    if len(TYPED.findall(text)) != 1:
        raise ValueError(f"{script.name} does not look up what is typed as it did; see docs/hooks/search_hook.py")
    script.write_text(TYPED.sub(lambda found: found[0].replace("<", "<=", 1), text), "utf-8")


def _write(folder: Path, index: dict[str, object], language: str, entries: list[dict[str, object]]) -> None:
    """An index for the pages of a language, for a server and for pages that are opened from a folder."""
    config = {**index["config"], "lang": [language]}  # type: ignore[dict-item]
    text = json.dumps({**index, "config": config, "docs": entries}, ensure_ascii=False, separators=(",", ":"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "search_index.json").write_text(text, "utf-8")
    (folder / "search_index.js").write_text(f"var __index = {text}", "utf-8")
