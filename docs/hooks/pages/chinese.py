"""Chinese accelerators: what is published of their training speed, what index follows, and what is not published."""

from collections.abc import Iterator
from functools import cache
from statistics import median

from kuayu import index
from kuayu_conformance.corpora import Gap, Table, flagperf_gaps, load
from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ComputeIndex, IndexRequest

from .made import Made
from .markdown import badge, page, plain
from .text import Phrases, phrases, text
from .translations import source_text, table_text, vendor_name

NAME = "chinese"
TABLE, REFERENCE = "flagperf", "A100"
REVISION = {"epoch": "chinese-accelerators", "number": 0}
OTHERS = frozenset({"A100", "A800", "H100"})
"""Devices of the table that the Chinese ones are compared with."""


def pages(language: Language) -> Iterator[Made]:
    """The one page of Chinese accelerators."""
    say = phrases(NAME, language)
    gaps, source = flagperf_gaps(), load(TABLE, None)
    block = text(
        NAME,
        language,
        gaps=[_gap(language, say, gap) for gap in gaps],
        without=[plain(vendor_name(language, gap.name)) for gap in gaps if not gap.compared],
        pairs=_side_by_side(language, source),
        indices=(_told(language, say, source, told) for told in indices()),
        source=plain(table_text(language, source.source)),
    )
    yield Made("index/chinese-accelerators.md", page(block))


@cache
def indices() -> tuple[ComputeIndex, ...]:
    """Indices of the Chinese devices of the table, for every task."""
    source = load(TABLE, None)
    devices = [device for device in source.device_names if device not in OTHERS]
    request = {"revision": REVISION, "corpus": source.corpus, "reference": REFERENCE, "devices": devices}
    return tuple(index.compute_indices(IndexRequest.model_validate(request)).indices)


def _side_by_side(language: Language, source: Table) -> Iterator[tuple[str, ...]]:
    """Every Chinese device beside every other that ran the same task on as many devices."""
    speeds: dict[tuple[str, str, int], list[float]] = {}
    for row in source.corpus["measurements"]:
        speeds.setdefault((row["device"], row["task"], row.get("devices", 1)), []).append(row["throughput"])
    for (device, task, devices), own in speeds.items():
        for other in source.device_names:
            theirs = speeds.get((other, task, devices))
            if device not in OTHERS and other in OTHERS and theirs:
                names = (plain(source_text(language, source.device_names[each])) for each in (device, other))
                yield *names, plain(source.task_names[task]), str(devices), f"{median(own) / median(theirs):.2f}"


def _gap(language: Language, say: Phrases, gap: Gap) -> tuple[str, ...]:
    state = "comparable" if gap.compared else "not_comparable" if gap.speeds else "no_speed"
    figures = (gap.cases, gap.cells, gap.speeds, gap.compared, gap.cases_with_utilisation_only)
    look = "pass" if gap.compared else "not-testable"
    return plain(vendor_name(language, gap.name)), *map(count, figures), badge(look, say[state])


def _told(language: Language, say: Phrases, source: Table, told: ComputeIndex) -> tuple[str, ...]:
    return (
        plain(source_text(language, source.device_names[told.device])),
        plain(source.task_names[told.task]),
        f"**{told.value:.2f}** ({told.low:.2f} – {told.high:.2f})",
        say["bases"].get(told.basis, told.basis),
        badge("aim-missed", say["abstained"]) if told.abstained else "",
    )
