# ruff: noqa: INP001 - mkdocs loads the hook by its path
"""The hook by which mkdocs gets the generated pages (package ``pages``) and lists them.

mkdocs-static-i18n makes new files of all that it finds, so a generated page is announced before it runs, as if it lay
in the folder of its language, and gets its content afterwards. mkdocs calls all of this once for each language, and
each time asks for the pages section after section: they are made once in between.
"""

from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from pages import Made, drafts, remade, shared_files, stability, written_pages
from pages.text import phrases, terms, vocabulary

from kuayu_conformance.rendering.words import Language

LANGUAGES: tuple[Language, ...] = ("en", "zh")

ROOT = Path(__file__).parents[2]


@cache
def pages_in(language: Language) -> tuple[Made, ...]:
    """Every generated page in one language."""
    return tuple(written_pages(language, ROOT))


@cache
def made() -> dict[str, Made]:
    """Everything that is generated, by its path below docs/."""
    pages = {f"{language}/{page.path}": page for language in LANGUAGES for page in pages_in(language)}
    return pages | {file.path: file for file in shared_files(ROOT)}


@event_priority(-200)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the generated pages, with headings in the language that is being built.

    They are made anew, since `mkdocs serve` comes here again when something has changed.
    """
    pages_in.cache_clear()
    made.cache_clear()
    for read in (phrases, terms, vocabulary):
        read.cache_clear()
    if not config.site_url:
        config.theme.static_templates.discard("sitemap.xml")  # a map of addresses needs an address
    for section, listed in sections(config.nav or []):
        generated = entries(section, config.theme["language"])
        if generated:
            listed[1:] = generated
    return config


def sections(nav: list[Any]) -> list[tuple[str, list[Any]]]:
    """Every section of the navigation with its entries, whatever its depth."""
    found = [pair for item in nav if isinstance(item, dict) for pair in item.items() if isinstance(pair[1], list)]
    return found + [below for _, entries in found for below in sections(entries)]


def entries(section: str, language: Language) -> list[Any]:
    """What the navigation lists in a section after its first page."""
    listed: dict[str, list[Any]] = {}
    for page in pages_in(language):
        if page.section == section:
            listed.setdefault(page.group, []).append(page.path)
    return [entry for group, paths in listed.items() for entry in ([{group: paths}] if group else paths)]


@event_priority(100)
def announce(files: Files, config: MkDocsConfig) -> Files:
    """Name the generated files, in place of those from which they are made."""
    for file in list(files):
        if file.inclusion is InclusionLevel.EXCLUDED:
            files.remove(file)
    for path in (*made(), *drafts.files(ROOT)):
        files.append(File(path, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


@event_priority(-200)
def fill(files: Files, config: MkDocsConfig) -> Files:  # noqa: ARG001 - mkdocs passes both by name
    """Put the content into the generated files of the language that is being built."""
    content, documents = made(), drafts.files(ROOT)
    for file in files:
        if file.src_uri in content:
            file.content_string = content[file.src_uri].text
        elif file.src_uri in documents:
            file.content_bytes = documents[file.src_uri].read_bytes()
    return files


def on_page_markdown(markdown: str, config: MkDocsConfig, **_: Any) -> str:
    """Put links to the draft, marks of stability and figures made again where a page has a place for them."""
    language: Language = config.theme["language"]
    filled = markdown.replace(drafts.MARK, drafts.links(language, ROOT))
    if stability.MARK in filled:
        filled = filled.replace(stability.MARK, stability.overview(language))
    return filled.replace(remade.MARK, remade.figures(language, ROOT)) if remade.MARK in filled else filled


on_files = CombinedEvent(announce, fill)
