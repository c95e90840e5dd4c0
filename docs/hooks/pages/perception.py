"""What perception costs and how well it does beside what the suite judges: committed figures of the benchmarks."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language, Words

from .figure_names import figure_name
from .made import Made
from .markdown import code, page, plain, table

FOLDER = "docs/results/perception"

TITLE = Words("Perception, measured", "感知的实测")
INTRODUCTION = Words(
    "What the suite judges stands in the [report](/results.md). Here is what it does not judge: what the reference's "
    "own parts cost, how its recogniser fares beside simpler ones, what a month of samples takes, and what became of "
    "every sample over an outage. Each section is one run of the command that it names; so are figures named.",
    "测试套件所判定的内容见[报告](/results.md)。此处是其不作判定的内容：参考实现各部分的开销、其识别器与更简单方法的对比、"
    "一个月样本的代价，以及通路中断期间每个样本的去向。每节为所列命令的一次运行，数值名称译自该命令所用名称。",
)
SECTIONS: tuple[tuple[str, str, Words, Words], ...] = (
    (
        "recognition",
        "python tests/benchmarks/recognition_report.py",
        Words("Recognition of states", "状态识别"),
        Words(
            "Message passing over families and domains beside the same features without the graph and beside rules, in "
            "the judge's world and in a region of the training generator that no training has seen: 5 domains with "
            "1 000 nodes. None was fitted to the judge's world, but all were improved with a view to it (decisions 11 "
            "and 52). Delays are in seconds; recall within 10 s is the share of changes that were shown in time. By "
            "signals sent: the held-out region of whose signals only some arrive, so that much of it cannot be told. "
            "Healthy telemetry: false alarms by pattern, over every subset of seven signals.",
            "在图上沿节点组与算力域传递消息的识别器，与不含图的相同特征、以及规则方法的对比；所用为评判方的世界，"
            "以及训练发生器中未用于训练的区域：5 个算力域、1000 个节点。三者均未以评判方的世界拟合，"
            "但曾参照其加以改进（见决策 11 与 52）。延迟以秒计；10 s 内的召回率为及时显示的改变所占比例。"
            "按所发送信号：保留区域中仅有部分信号到达，其中许多状态因而无法判断。"
            "正常遥测：遍历七种信号的全部子集，按情形列出误报。",
        ),
    ),
    (
        "false_alarms",
        "python tests/benchmarks/false_alarms.py",
        Words("Nodes that nothing is wrong with", "没有异常的节点"),
        Words(
            "What exporters really show of healthy nodes, through every subset of seven signals, 127 of each pattern. "
            "The first rest of a lone node that keeps its memory looks like a hang that nothing counts; from the "
            "second on it does not.",
            "采集器对正常节点实际给出的输出，遍历七种信号的全部子集，每种情形 127 个。独立节点在占有内存的情况下首次"
            "空闲时，与未被计数的停滞无从区分；自第二次起则可区分。",
        ),
    ),
    (
        "replay",
        "python tests/benchmarks/replay_host.py",
        Words("Half an hour of a real host", "真实主机的半小时"),
        Words(
            "A host reports once a second and, as another node, once in ten; beside it stand captured pages of "
            "exporters, sent once a second and unchanged. Nothing is wrong with any of them.",
            "一台主机每秒上报一次，并作为另一节点每十秒上报一次；另有各采集器的真实输出，每秒原样发送一次。均没有异常。",
        ),
    ),
    (
        "graph",
        "python tests/benchmarks/graph.py",
        Words("Cost of the graph", "图谱的开销"),
        Words(
            "All nodes report once a second over HTTP, and the stream is read.",
            "全部节点每秒经 HTTP 上报一次，同时读取变更流。",
        ),
    ),
    (
        "outage",
        "python tests/benchmarks/outage.py",
        Words("Ten minutes without a path", "通路中断十分钟"),
        Words(
            "A sender keeps a ledger of every sample that was acknowledged, while the path breaks and either side is "
            "killed.",
            "上报方为每个已获确认的样本记账，其间通路中断、两端先后被强行终止。",
        ),
    ),
    (
        "queries",
        "python tests/benchmarks/queries.py",
        Words("Questions to a full database", "满库查询"),
        Words(
            "A day of a thousand nodes at 15 s, asked over HTTP.", "一千个节点、间隔 15 s、一天的数据，经 HTTP 查询。"
        ),
    ),
    (
        "rollup",
        "python tests/benchmarks/rollup.py --month",
        Words("Months of samples", "数月的样本"),
        Words(
            "What samples take raw and rolled up, and series of a month of 10 000 nodes.",
            "样本的原始与汇总占用，以及 10 000 个节点一个月的序列查询。",
        ),
    ),
    (
        "links",
        "python tests/benchmarks/links.py",
        Words("Links that nobody measured", "未测量的链路"),
        Words(
            "Links between clouds were hidden and estimated from the rest; the error is relative to what was measured.",
            "隐去部分云间链路，由其余链路估计；误差为相对于实测值的误差。",
        ),
    ),
)
COLUMNS = {"en": ("Figure", "Value"), "zh": ("数值名称", "值")}
MADE = Words("By {command}.", "命令：{command}。")
DIGITS = 4


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    blocks = [block for section in SECTIONS for block in _section(language, root, *section)]
    yield Made("results-perception.md", page(f"# {TITLE.in_(language)}", INTRODUCTION.in_(language), *blocks))


def _section(language: Language, root: Path, name: str, command: str, title: Words, about: Words) -> Iterator[str]:
    file = root / FOLDER / f"{name}.json"
    if not file.is_file():
        return
    yield f"## {title.in_(language)}"
    yield f"{about.in_(language)} {MADE.in_(language).format(command=code(command))}"
    yield from figures(language, json.loads(file.read_text("utf-8")))


def figures(language: Language, measured: Any) -> Iterator[str]:
    """Tables of all figures of a benchmark, by the names that it gives them, in a language."""
    leaves = list(_leaves(measured, ()))
    for path, group in groupby(leaves, key=lambda leaf: leaf[0][:-1]):
        if path:
            yield f"**{plain(' · '.join(figure_name(language, name) for name in path))}**"
        rows = ((plain(figure_name(language, names[-1])), _shown(language, value)) for names, value in group)
        yield table(COLUMNS[language], rows)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Figures with the names that lead to them; a list of plain values is one figure."""
    if isinstance(value, Mapping):
        plain_first = sorted(value.items(), key=lambda item: isinstance(item[1], Mapping | list))
        for name, member in plain_first:
            yield from _leaves(member, (*path, str(name).replace("_", " ")))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value, start=1):
            yield from _leaves(item, (*path, str(number)))
    else:
        yield path, value


def _shown(language: Language, value: Any) -> str:
    match value:
        case bool() | None:
            return plain(figure_name(language, str(value)))
        case float():
            return f"{value:,.{DIGITS}g}" if abs(value) < 10**DIGITS else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case list():
            return plain(", ".join(map(str, value)))
    return plain(figure_name(language, str(value)))
