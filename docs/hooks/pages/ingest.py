"""How fast the reference takes samples in, beside the raw store: the committed figures of ``make benchmark-ingest``."""

import json
from pathlib import Path

from kuayu_conformance.rendering.words import Language, Words

from .markdown import code, page, plain, table
from .results import FOLDER

TITLE = Words("Ingest beside the raw store", "摄取速率与原始存储对比")
TOLD = Words(
    "Medians of one run of {command} on {date}: Python {python}, SQLite {sqlite}, {processors} processors, {rows} rows "
    "of {devices} devices. The raw store is SQLite in a process that does nothing else, in the faster of two ways. The "
    "aim is 60 % of it; the best batch size reaches {best:.0%}: {verdict}.",
    "{date} 由 {command} 单次运行得到的中位数：Python {python}、SQLite {sqlite}、{processors} 个处理器、"
    "{devices} 个加速器的 {rows} 行。原始存储指进程中仅有 SQLite 时两种写法中较快者。"
    "目标为其 60 %；最佳批量达到 {best:.0%}：{verdict}。",
)
MISSED, MET = Words("aim missed", "未达目标"), Words("aim met", "达到目标")
AIM = 0.6
COLUMNS = {
    "en": ("Way", "Rows a second", "Share of the raw store"),
    "zh": ("方式", "每秒行数", "占原始存储"),
}
WAYS = {
    "raw store": "原始存储",
    "row by row": "逐行写入",
    "many at once": "多行一次写入",
    "many in order": "多行按序写入",
}
"""What ways of writing are called in Chinese; batches have their size in them."""


def section(language: Language, root: Path) -> str:
    """The section for the results page."""
    figures = json.loads((root / f"docs/{FOLDER}/ingest.json").read_text("utf-8"))
    best = max(row["of_limit"] for row in figures["results"] if row["way"].startswith("HTTP"))
    verdict = (MET if best >= AIM else MISSED).in_(language)
    told = TOLD.in_(language).format(command=code("make benchmark-ingest"), best=best, verdict=verdict, **figures)
    rows = (
        (plain(_way(language, row["way"])), f"{row['rows_per_second']:,}", f"{row['of_limit']:.0%}")
        for row in figures["results"]
    )
    return page(f"## {TITLE.in_(language)}", told, table(COLUMNS[language], rows))


def _way(language: Language, way: str) -> str:
    """A way of writing in a language."""
    if language == "en":
        return way
    parts = [WAYS.get(part, part.replace("batches of ", "每批 ")) for part in way.split(", ")]
    return "，".join(parts)
