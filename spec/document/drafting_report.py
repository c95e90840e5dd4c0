"""The drafting report (编制说明) that goes with a submission: prose, and figures that are never typed.

``drafting-report-zh.md`` has the headings that a drafting report has: how the work went, principles and content, tests,
comparison with other standards, law, dissent, patents, kind of standard, measures, what it replaces, the rest. Its
marks are filled in:

- ``@@count:NAME@@``: a number of the registers, of the published interface or of the results (:func:`counts`);
- ``@@part:NAME|TITLE@@``: a table of them (:data:`PARTS`), under its title;
- ``@@annex:TITLE@@``: the section of annex F with that title, so that no comparison is written twice.

Results are those of ``docs/results/results.json``, misses as misses. The report is in Chinese alone, for its committee.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from document import clauses, pdf, word
from document.assembling import Assembled
from document.manuscript import Manuscript
from document.markdown import code, plain, prose
from document.register_tests import threshold_text
from document.sources import Row, Sources
from document.words import LEVELS, MODALS, Language

LANGUAGE: Language = "zh"
SOURCE = Path(__file__).with_name(f"drafting-report-{LANGUAGE}.md")
ANNEX = "annex-f-neighbours"

VERDICTS = {"pass": "通过", "fail": "不通过", "inconclusive": "未能判定", "not-testable": "无法测试"}
"""Verdicts that results can have, in the words of reports."""
RUN_LEVELS = {"smoke": "冒烟", "quick": "快速", "full": "完整"}
EARLIER = "（先前的方法）"
NEVER_SECONDS, NEVER = 3600.0, "超过 1 % 始终未见"
"""What stands for a delay that never ended in the 99th percentile, as on the site."""
BRIEF = "课题任务书"
SOURCES = {"Yang, Hong and Tang, abstract and experiments 1 to 3": "Yang、Hong 与 Tang，摘要与实验 1 至 3"}
"""Sources of thresholds that are neither the brief nor the draft itself, in Chinese."""

_MARK = re.compile(r"@@count:(\w+)@@")
_BLOCK = re.compile(r"@@(part|annex):([^|@]+)(?:\|([^@]+))?@@")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([a-z0-9-]+)\.md(?:#[\w-]+)?\)")


def assemble(sources: Sources, standard: Assembled) -> Assembled:
    """Put the report together.

    Args:
        sources: What it is made of.
        standard: The draft, whose clauses it refers to by their numbers.

    Raises:
        ValueError: The source names a count, a part or a section that is not there.
    """
    manuscript = Manuscript(LANGUAGE)
    manuscript.begin("clause")
    title, text = _counted(SOURCE.read_text("utf-8"), counts(sources)).split("\n", 1)
    manuscript.add(word.title(title.removeprefix("# ")))
    numbers = {heading.anchor: heading.number for heading in standard.headings}
    for place, block in enumerate(clauses.blocks(text)):
        if mark := _BLOCK.fullmatch(block):
            kind, name, caption = mark.groups()
            if kind == "part":
                _part(manuscript, sources, standard, name, caption)
            else:
                _section(manuscript, sources, name, numbers)
        elif block.startswith("##"):
            marks, _, words = block.partition(" ")
            manuscript.heading(len(marks) - 1, words, f"report-{place}")
        else:
            manuscript.add(_referred(block, numbers))
    return Assembled(LANGUAGE, manuscript.text(""), manuscript.headings, manuscript.captions, ())


def title() -> str:
    """Title of the report."""
    return SOURCE.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")


def write(sources: Sources, body_of_pandoc: str, folder: Path, target: Path) -> int:
    """Write its PDF; the answer is the number of its pages.

    Args:
        sources: What it is made of.
        body_of_pandoc: All of it, in Typst's language.
        folder: Where Typst reads from.
        target: Where the PDF goes.
    """
    return pdf.write_report(title(), sources.date, LANGUAGE, body_of_pandoc, folder, target)


def counts(sources: Sources) -> dict[str, object]:
    """Numbers that the source may name, by their names."""
    rows: Sequence[Row] = sources.requirements["requirements"]
    measures = [measure for indicator in sources.indicators["indicators"] for measure in indicator["measures"]]
    results = sources.results
    verdicts = Counter(row["verdict"] for row in results)
    dates = sorted(row["date"] for row in results)
    return {
        "version": sources.version,
        "date": sources.date,
        "requirements": len(rows),
        **{modal: sum(1 for row in rows if row["modal"] == modal) for modal in MODALS},
        **{level: sum(1 for row in rows if row["level"] == level) for level in LEVELS},
        "checked": sum(1 for row in rows if row.get("check")),
        "unchecked": sum(1 for row in rows if not row.get("check")),
        "indicators": len(sources.indicators["indicators"]),
        "measures": len(measures),
        "exporters": len(sources.indicators["exporters"]),
        "operations": sum(len(item) for item in sources.openapi["paths"].values()),
        "classes": len(sources.definitions),
        "problems": len(sources.problems),
        "judged": len(results),
        **{verdict: verdicts[verdict] for verdict in VERDICTS},
        "earlier": sum(1 for row in results if row.get("earlier_method")),
        "runs": len({row["run"] for row in results}),
        "first": dates[0],
        "last": dates[-1],
    }


def _counted(text: str, numbers: Mapping[str, object]) -> str:
    def number(found: re.Match[str]) -> str:
        if found[1] not in numbers:
            raise ValueError(f"{SOURCE.name} names the count {found[1]}, which there is none of")
        return str(numbers[found[1]])

    return _MARK.sub(number, text)


def _part(manuscript: Manuscript, sources: Sources, standard: Assembled, name: str, caption: str | None) -> None:
    if name not in PARTS or caption is None:
        raise ValueError(f"{SOURCE.name} names the part {name}, which there is none of, or gives it no title")
    headings, rows = PARTS[name](manuscript, sources, standard)
    if rows:
        manuscript.table(caption, headings, rows, WIDTHS.get(name))
    else:
        manuscript.add("无。")


def _section(manuscript: Manuscript, sources: Sources, wanted: str, numbers: Mapping[str, str]) -> None:
    """A section of annex F; its tables have its title."""
    annex = sources.text(LANGUAGE, ANNEX) or ""
    sections = {
        part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^## ", annex, flags=re.MULTILINE)[1:]
    }
    if wanted not in sections:
        raise ValueError(f"{SOURCE.name} names the section {wanted}, which annex F does not have")
    for block in clauses.blocks(sections[wanted]):
        if block.startswith("|"):
            headings, *rows = [[_referred(cell, numbers) for cell in row] for row in clauses.rows_of(block)]
            manuscript.table(wanted, headings, rows)
        else:
            manuscript.add(_referred(block, numbers))


def _referred(text: str, numbers: Mapping[str, str]) -> str:
    """Links between files of the draft as its clauses, by their numbers."""

    def clause(found: re.Match[str]) -> str:
        number = numbers.get(found[2], "")
        if number[:1].isalpha():
            return f"草案附录 {number}"
        return f"草案 {number}“{found[1]}”" if number else found[1]

    return _LINK.sub(clause, text)


Table = tuple[Sequence[str], list[list[str]]]


def _contents(_: Manuscript, sources: Sources, standard: Assembled) -> Table:
    """For each clause how many requirements it has, and how many of them a test."""
    rows = sources.requirements["requirements"]
    numbers = {heading.anchor: heading for heading in standard.headings}
    found = []
    for place, entry in enumerate(sources.order["clauses"], start=1):
        files = {*([entry["file"]] if "file" in entry else []), *entry.get("files", ())}
        own = [row for row in rows if row["clause"] in files]
        heading = numbers.get(entry.get("file") or f"clause-{place}")
        if own and heading is not None:
            checked = sum(1 for row in own if row.get("check"))
            found.append([heading.number, heading.title, str(len(own)), str(checked)])
    return ("章", "题名", "要求", "有测试"), found


def _thresholds(manuscript: Manuscript, sources: Sources, _: Assembled) -> Table:
    rows = [
        [row["id"], plain(row["title_zh"]), threshold_text(manuscript, row["threshold"]), _from(row["source"])]
        for row in sources.requirements["requirements"]
        if "threshold" in row
    ]
    return ("编号", "名称", "阈值", "来源"), rows


def _from(source: str) -> str:
    """Where a threshold comes from; the register says it in English."""
    return plain(SOURCES.get(source) or source.replace("brief", BRIEF).replace("this standard", "本文件"))


def _verdicts(_: Manuscript, sources: Sources, __: Assembled) -> Table:
    """Verdicts by profile."""
    requirements = sources.requirements
    found = []
    for profile in requirements["profiles"]:
        ids = {row["id"] for row in requirements["requirements"] if row["profile"] == profile["profile"]}
        results = [row for row in sources.results if row["requirement"] in ids]
        verdicts = Counter(row["verdict"] for row in results)
        earlier = sum(1 for row in results if row.get("earlier_method"))
        name = f"{profile['profile']} {plain(profile['name_zh'])}"
        cells = [len(ids), len(results), *(verdicts[verdict] for verdict in VERDICTS), earlier]
        found.append([name, *map(str, cells)])
    return ("专规", "要求", "已判定", *VERDICTS.values(), "先前的方法"), found


def _figures(manuscript: Manuscript, sources: Sources, _: Assembled) -> Table:
    return ("编号", "名称", "估计值", "置信界", "阈值", "判定", "运行"), [
        [
            requirement["id"],
            plain(requirement["title_zh"]),
            figure(result.get("estimate"), requirement["threshold"]),
            figure(result.get("bound"), requirement["threshold"]),
            threshold_text(manuscript, requirement["threshold"]),
            _verdict(result),
            f"{result['date']}，{RUN_LEVELS[result['level']]}",
        ]
        for requirement, result in _results(sources)
        if "threshold" in requirement and "estimate" in result
    ]


def _misses(_: Manuscript, sources: Sources, __: Assembled) -> Table:
    return ("编号", "要求", "判定"), [
        [requirement["id"], prose(requirement["text_zh"]), _verdict(result)]
        for requirement, result in _results(sources)
        if result["verdict"] != "pass"
    ]


def _runs(_: Manuscript, sources: Sources, __: Assembled) -> Table:
    runs: dict[str, list[Row]] = {}
    for row in sources.results:
        runs.setdefault(row["run"], []).append(row)
    return ("运行", "结束日期", "级别", "种子", "所定项数"), [
        [code(name), rows[0]["date"], RUN_LEVELS[rows[0]["level"]], plain(rows[0]["seed"]), str(len(rows))]
        for name, rows in runs.items()
    ]


def _unchecked(_: Manuscript, sources: Sources, __: Assembled) -> Table:
    return ("编号", "要求", "原因"), [
        [row["id"], prose(row["text_zh"]), prose(row["unchecked_because_zh"])]
        for row in sources.requirements["requirements"]
        if not row.get("check")
    ]


QUANTITIES = {
    "B1-all": "B1 的平均周期，全部训练作业",
    "B3-all": "B3 的平均周期，全部训练作业",
    "less-all": "B3 较 B1 缩短，全部训练作业",
    "B1-large": "B1 的平均周期，不少于八个加速器者",
    "B3-large": "B3 的平均周期，不少于八个加速器者",
    "less-large": "B3 较 B1 缩短，不少于八个加速器者",
    "well": "无异常的对象显示正确的比例",
    "stopped": "停止的对象显示正确的比例",
    "estimate": "估计值",
    "bound": "置信界",
}
"""What was made again from the annexes, by the names in ``docs/results/annexes.json``."""
SAME_DIGITS = "逐位相同"


def _annexes(_: Manuscript, sources: Sources, __: Assembled) -> Table:
    """Figures that were made again from the annexes alone, beside the suite's."""
    kept = sources.annexes or {"rows": ()}
    found = []
    for row in kept["rows"]:
        error = SAME_DIGITS if not row["error"] else f"{row['error']:.3g}"
        unit = "" if row["unit"] == "1" else f" {row['unit']}"
        digits = ".9g" if not row["error"] else ".3g"
        own, suite = (plain(f"{row[name]:{digits}}{unit}") for name in ("annex", "suite"))
        if "suite_error" in row:
            suite += f"（{row['suite_error']:.3g}）"
        found.append([row["requirement"], QUANTITIES[row["quantity"]], own, plain(error), suite, str(row["n"])])
    return ("编号", "数值", "据附录", "标准误或界限之差", "套件（标准误）", "观测数"), found


PARTS: Mapping[str, Callable[[Manuscript, Sources, Assembled], Table]] = {
    "contents": _contents,
    "thresholds": _thresholds,
    "verdicts": _verdicts,
    "figures": _figures,
    "misses": _misses,
    "runs": _runs,
    "unchecked": _unchecked,
    "annexes": _annexes,
}
"""Tables that the source can name: their headings and rows."""


WIDTHS: Mapping[str, Sequence[int]] = {
    "contents": (10, 40, 25, 25),
    "thresholds": (12, 28, 25, 35),
    "figures": (12, 18, 13, 12, 14, 14, 17),
    "misses": (12, 68, 20),
    "unchecked": (12, 44, 44),
    "annexes": (12, 36, 14, 14, 14, 10),
}
"""Shares of the columns of tables whose cells would not tell them."""


def figure(value: float | None, threshold: Row) -> str:
    """A figure in the unit of its threshold: shares in per cent, counts as they are.

    Args:
        value: In the wire unit; None where there is none.
        threshold: What it is held against.
    """
    if value is None:
        return "–"
    unit = str(threshold["unit"])
    if unit == "s" and value == NEVER_SECONDS:
        return NEVER
    if unit == "1":
        share = 0 < threshold["value"] <= 1
        return plain(f"{100 * value:.3g} %" if share else f"{value:.3g}")
    return plain(f"{value:.3g}" if unit.startswith("{") else f"{value:.3g} {unit}")


def _verdict(result: Row) -> str:
    return VERDICTS[result["verdict"]] + (EARLIER if result.get("earlier_method") else "")


def _results(sources: Sources) -> Iterator[tuple[Row, Row]]:
    """Requirements with what was last found for them, in the order of the register."""
    found: dict[str, Any] = {row["requirement"]: row for row in sources.results}
    for requirement in sources.requirements["requirements"]:
        if requirement["id"] in found:
            yield requirement, found[requirement["id"]]
