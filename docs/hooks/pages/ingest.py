"""How fast the reference takes samples in, beside the raw store: the committed figures of ``make benchmark-ingest``.

The limit of each database is the fastest raw store among those that wait for their commits, as the service does
(decision 38); what is measured without waiting is shown, and is no limit.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language, Words

from .markdown import code, page, percent, plain, table
from .results import FOLDER

TITLE = Words("Ingest beside the raw store", "摄取速率与原始存储对比")
TOLD = Words(
    "Medians of {repeat} rounds of one run of {command} on {date}: Python {python}, {processors} processors, {rows} "
    "rows of {devices} devices. The raw store is the database in a process that does nothing else, in the fastest of "
    "three ways that wait for their commits, as the service does. The aim is 60 % of it.",
    "{date} 由 {command} 单次运行（{repeat} 轮）得到的中位数：Python {python}、{processors} 个处理器、"
    "{devices} 个加速器的 {rows} 行。原始存储指进程中仅有数据库时，与服务同样等待提交的三种写法中最快者。"
    "目标为其 60 %。",
)
BEST = Words(
    "{database}: the best batch size reaches {best}: {verdict}.", "{database}：最佳批量达到 {best}：{verdict}。"
)
MISSED, MET = Words("aim missed", "未达目标"), Words("aim met", "达到目标")
AIM = 0.6
COLUMNS = {
    "en": ("Way", "Rows a second", "Share of the raw store", "Processor µs a row"),
    "zh": ("方式", "每秒行数", "占原始存储", "每行处理器时间（µs）"),
}
WAYS = {
    "raw store": "原始存储",
    "row by row": "逐行写入",
    "many at once": "多行一次写入",
    "many in order": "多行按序写入",
    "COPY": "COPY",
    "COPY packed": "COPY（已打包）",
    "COPY and merge": "COPY 后合并",
    "not waiting": "不等待落盘",
}
"""What ways of writing are called in Chinese; batches have their size in them."""


def section(language: Language, root: Path) -> str:
    """The section for the results page: a table for each database."""
    figures = json.loads((root / f"docs/{FOLDER}/ingest.json").read_text("utf-8"))
    postgresql = figures["postgresql"]
    return page(
        f"## {TITLE.in_(language)}",
        TOLD.in_(language).format(command=code("make benchmark-ingest"), **figures),
        *_of_one(language, f"SQLite {figures['sqlite']}", figures["results"]),
        *_of_one(language, f"PostgreSQL {postgresql['version']}", postgresql["results"]),
    )


def _of_one(language: Language, database: str, results: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """What one database comes to, and its table."""
    best = max(row["of_limit"] for row in results if row["way"].startswith("HTTP"))
    verdict = (MET if best >= AIM else MISSED).in_(language)
    rows = (
        (
            plain(_way(language, row["way"])),
            f"{row['rows_per_second']:,}",
            percent(row["of_limit"]),
            f"{row['processor_microseconds']:.1f}",
        )
        for row in results
    )
    told = BEST.in_(language).format(database=database, best=percent(best), verdict=verdict)
    return told, table(COLUMNS[language], rows)


def _way(language: Language, way: str) -> str:
    """A way of writing in a language."""
    if language == "en":
        return way
    parts = [WAYS.get(part, part.replace("batches of ", "每批 ")) for part in way.split(", ")]
    return "，".join(parts)
