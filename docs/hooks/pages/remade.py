"""Three requirements that a seed picked, made again from annexes A to C, beside what the suite found.

``docs/results/annexes.json`` has the figures; ``python -m second_judge.annexes`` writes it.
"""

import json
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language, Words

from .markdown import plain, table
from .requirements import requirement_link

FILE = "docs/results/annexes.json"
MARK = "<!-- remade -->"
"""Stands in a page written by hand where the table goes."""
COLUMNS = {
    "en": ("Requirement", "Figure", "From the annexes", "Standard error", "By the suite (standard error)", "Values"),
    "zh": ("要求", "数值", "据附录", "标准误", "套件（标准误）", "观测数"),
}
QUANTITIES = {
    "B1-all": Words("mean period under B1, all training jobs", "B1 的平均周期，全部训练作业"),
    "B3-all": Words("mean period under B3, all training jobs", "B3 的平均周期，全部训练作业"),
    "less-all": Words("less under B3 than under B1, all training jobs", "B3 较 B1 缩短，全部训练作业"),
    "B1-large": Words("mean period under B1, 8 devices or more", "B1 的平均周期，不少于八个加速器者"),
    "B3-large": Words("mean period under B3, 8 devices or more", "B3 的平均周期，不少于八个加速器者"),
    "less-large": Words("less under B3 than under B1, 8 devices or more", "B3 较 B1 缩短，不少于八个加速器者"),
    "well": Words("shown rightly where nothing is wrong", "无异常的对象显示正确的比例"),
    "stopped": Words("shown rightly where work does not go on", "停止的对象显示正确的比例"),
    "estimate": Words("estimate", "估计值"),
    "bound": Words("bound", "置信界"),
}
"""What was made again, by its names in the file."""
SAME = Words("the same digits", "逐位相同")
"""In place of an error, where nothing is drawn and both agree in every digit."""


def figures(language: Language, root: Path) -> str:
    """The table."""
    found = json.loads((root / FILE).read_text("utf-8"))
    return table(COLUMNS[language], (_row(language, row) for row in found["rows"]))


def _row(language: Language, row: dict[str, Any]) -> tuple[str, ...]:
    unit = "" if row["unit"] == "1" else f" {row['unit']}"
    digits = ".3g" if row["error"] else ".9g"
    suite = f"{row['suite']:{digits}}{unit}" + (f" ({row['suite_error']:.3g})" if "suite_error" in row else "")
    return (
        requirement_link(row["requirement"]),
        plain(QUANTITIES[row["quantity"]].in_(language)),
        plain(f"{row['annex']:{digits}}{unit}"),
        f"{row['error']:.3g}" if row["error"] else SAME.in_(language),
        plain(suite),
        str(row["n"]),
    )
