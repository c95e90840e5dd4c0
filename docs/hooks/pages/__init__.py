"""Pages of the site that follow from what is published: registers, schemas, checks, tables of measurements, results.

Each module makes the pages of one subject in one language, as Markdown. Nothing made here is committed. Links begin
with a slash and lead from the root of the language's own folder.
"""

from collections.abc import Iterator
from pathlib import Path

from kuayu_conformance.rendering.words import Language

from . import (
    api,
    changelog,
    chinese,
    decisions,
    demand_measured,
    differences,
    drafts,
    exporters,
    exposure,
    forecast_measured,
    handbook,
    implementations,
    indicators,
    ingest,
    latency,
    perception,
    probe_sets,
    problems,
    remade,
    requirements,
    resilience_measured,
    results,
    scheduling_measured,
    schemas,
    security,
    stability,
    standard,
    worked,
    world,
)
from .made import Made
from .markdown import page

__all__ = ["Made", "drafts", "remade", "shared_files", "stability", "written_pages"]


def written_pages(language: Language, root: Path) -> Iterator[Made]:
    """Every generated page in one language; ``root`` is the folder of the repository."""
    yield from standard.pages(language, root / "spec/text", drafts.links(language, root))
    yield from differences.pages(language, root)
    yield from requirements.pages(language, root)
    yield from indicators.pages(language)
    yield from exporters.pages(language)
    yield from api.pages(language)
    yield from problems.pages(language)
    yield from schemas.pages(language)
    yield from worked.pages(language)
    yield from probe_sets.pages(language, root)
    yield from chinese.pages(language)
    yield from perception.pages(language, root)
    yield from demand_measured.pages(language, root)
    yield from forecast_measured.pages(language, root)
    yield from scheduling_measured.pages(language, root)
    yield from resilience_measured.pages(language, root)
    yield from world.pages(language, root)
    yield from handbook.pages(language)
    measured = (part.section(language, root) for part in (ingest, latency, exposure))
    yield from results.pages(language, root, page(*measured))
    yield from implementations.pages(language, root)
    yield from security.pages(language, root)
    yield from changelog.pages(language, root)
    yield from decisions.pages(language, root / "docs/decisions")


def shared_files(root: Path) -> Iterator[Made]:
    """Every generated file that is for both languages."""
    yield from api.shared()
    yield from requirements.shared()
    yield from results.shared(root)
    yield from implementations.shared(root)
