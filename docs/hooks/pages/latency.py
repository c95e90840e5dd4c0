"""How long a placement takes over HTTP: committed figures of ``tests/benchmarks/patched_states.py``, and their aims.

The aims are those of decision 39: p99 over HTTP, in milliseconds.
"""

import json
from pathlib import Path

from kuayu_conformance.rendering.words import Language, Words

from .ingest import MET, MISSED
from .markdown import code, page, table
from .results import FOLDER

TITLE = Words("Latency of placements", "放置决策的时延")
TOLD = Words(
    "One run of {command} on {date}: Python {python}, {cores} processors, load {load:.1f} at the beginning, seed "
    "{seed}. A client on the same host asks over HTTP, one request after the other.",
    "{date} 由 {command} 单次运行得到：Python {python}、{cores} 个处理器，开始时负载 {load:.1f}，种子 {seed}。"
    "客户端在同一主机上经 HTTP 逐个发出请求。",
)
COMMAND = "python tests/benchmarks/patched_states.py --epochs 300 --large 300"
KINDS = {
    "5 domains, whole": (Words("5 domains, whole state", "5 个算力域，完整状态"), 50.0),
    "5 domains, as a patch": (Words("5 domains, as a patch", "5 个算力域，补丁"), 20.0),
    "64 domains, whole": (Words("64 domains, whole state", "64 个算力域，完整状态"), 300.0),
}
"""Kinds of requests, as the benchmark names them, and what p99 is to be at most, in milliseconds (decision 39)."""

COLUMNS = {
    "en": ("Request", "Requests", "p50, ms", "p99, ms", "Aim, ms", "Verdict", "Processor ms"),
    "zh": ("请求", "请求数", "p50（ms）", "p99（ms）", "目标（ms）", "判定", "处理器时间（ms）"),
}


def section(language: Language, root: Path) -> str:
    """The section for the results page."""
    figures = json.loads((root / f"docs/{FOLDER}/latency.json").read_text("utf-8"))
    machine = figures["machine"]
    told = TOLD.in_(language).format(
        command=code(COMMAND),
        date=figures["date"],
        seed=figures["seed"],
        python=machine["python"],
        cores=machine["cores"],
        load=machine["load"][0],
    )
    rows = []
    for kind, (name, aim) in KINDS.items():
        row = figures["ms"][f"{kind}, this"]
        verdict = MET if row["p99"] <= aim else MISSED
        rows.append(
            (
                name.in_(language),
                f"{row['requests']}",
                f"{row['p50']:.0f}",
                f"{row['p99']:.0f}",
                f"{aim:.0f}",
                verdict.in_(language),
                f"{row['processor']:.0f}",
            )
        )
    return page(f"## {TITLE.in_(language)}", told, table(COLUMNS[language], rows))
