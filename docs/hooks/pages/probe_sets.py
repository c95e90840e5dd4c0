"""Which workloads a device should run once: the committed experiment of tests/benchmarks/probe_sets.py."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language, Words

from .made import Made
from .markdown import code, page, percent, plain, table
from .source_words import table_text, task_name

FILE = "docs/results/index/probe_sets.json"

SHOWN = 4
"""Probes for which the chosen tasks are listed: as many as figures of the standard allow for."""

TITLE = Words("Choosing the probes", "探测任务的选取")
INTRODUCTION = Words(
    "A probe is a workload that a device runs once, so that its compute index need not rest on the data sheet alone. "
    "Which few workloads are worth running was not decided by taste. One device at a time is left out of a table of "
    "measured throughputs, with all that is the same silicon; it gets the measurements of a set of tasks back, as if "
    "it had run them; and the indices of its other tasks are compared with what was measured. The figures are mean "
    "errors.",
    "探测是加速器运行一次的负载，使其算力指数不必仅凭数据手册。哪些负载值得运行并非凭喜好决定："
    "每次从实测吞吐表中留出一个加速器（连同同一芯片的其他加速器），将一组任务的实测交还给它，如同它运行过这些任务，"
    "再将其余任务的指数与实测比较。表中数值为平均误差。",
)
WAYS = Words(
    "- *Random*: sets drawn at random, what taste would do on average; in brackets the best and the worst tenth.\n"
    "- *Fixed, in hindsight*: grown task by task by the error over all devices, the judged one included: an optimist's "
    "figure.\n"
    "- *Fixed, for a new device*: grown likewise over the other devices alone. This is what choosing a fixed set is "
    "worth.\n"
    "- *Planned*: for each device by the service's own [probe plan](/standard/idx-01-index.md), from the corpus and "
    "the device's data sheet, before anything was measured on it.",
    "- *随机*：随机抽取的任务组，相当于凭喜好选取的平均结果；括号内为最优与最差的十分位。\n"
    "- *固定（事后）*：按全部加速器（包括被评者）的误差逐个选取，属乐观值。\n"
    "- *固定（对新加速器）*：仅按其他加速器的误差逐个选取，此为选取固定任务组的实际所值。\n"
    "- *计划*：由服务自身的[探测计划](/standard/idx-01-index.md)针对每个加速器给出，依据为校准语料与其数据手册，"
    "此前未在其上作任何测量。",
)
MADE = Words(
    "Made on {date} with seed {seed}, {random_sets} random sets for each number of probes, method {method}, by "
    "{command}. Tables that come with no licence are not in the repository; they are read from a `KUAYU_DATA` folder.",
    "{date} 以种子 {seed} 得到，每种探测次数随机抽取 {random_sets} 组，方法为{method}，命令为 {command}。"
    "未声明许可证的数据表不在仓库中，自 `KUAYU_DATA` 目录读取。",
)
COLUMNS = {
    "en": ("Probes", "Random", "Fixed, in hindsight", "Fixed, for a new device", "Planned", "Fixed set, in hindsight"),
    "zh": ("探测次数", "随机", "固定（事后）", "固定（对新加速器）", "计划", "事后的固定任务组"),
}
TABLE = Words(
    "{devices} devices, {tasks} tasks. Without probes the mean error is {none}.",
    "{devices} 种加速器，{tasks} 个任务。无探测时平均误差为 {none}。",
)
CHOSEN = Words(
    "Tasks that were chosen for a new device, with the number of devices, at {} probes: {}.",
    "{} 次探测时为新加速器选取的任务（及加速器数）：{}。",
)
STOP, SEPARATOR = Words(". ", "。"), Words(", ", "；")
NUMBERED = Words("{} ({})", "{}（{}）")
READING_TITLE = Words("What follows", "结论")
READING = Words(
    "The probe set is a plan, not a list: `POST /v1/probe-plans` chooses among the tasks of *your* corpus, since which "
    "task tells most depends on what is known already. Compare the columns before trusting any of them: a fixed set "
    "that looks good in hindsight is worth less on a device that did not help to choose it, and where a plan is no "
    "better than chance the table says so. Where a list is wanted, as for a procurement, take the tasks that were "
    "chosen for most devices.\n\nThe reference workloads of `kuayu probe` stand for the kinds of tasks that the sets "
    "above draw on: a transformer in half and in single precision, a residual network, a recurrent one, convolutions "
    "over a waveform, and recommendation. A fixed set of four is worth little more than chance on a device that is "
    "new, so that all six are run and the corpus says which of them tell something.",
    "探测任务组是计划而非清单：`POST /v1/probe-plans` 在*您的*校准语料的任务中选取，"
    "因为哪个任务信息最多取决于已知的内容。采信之前请比较各列：事后看来良好的固定任务组，对未参与选取的加速器所值较少；"
    "计划不优于随机之处，表中亦如实列出。需要清单时（例如采购），可取为多数加速器所选的任务。\n\n`kuayu probe` "
    "的参考负载代表上述任务组所涉及的各类任务：半精度与单精度的 Transformer、残差网络、循环网络、波形卷积与推荐。"
    "对新加速器而言，四个任务的固定组并不明显优于随机，因此六个负载均予运行，由校准语料说明其中哪些有信息。",
)


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of the experiment."""
    figures = json.loads((root / FILE).read_text("utf-8"))
    made = MADE.in_(language).format(
        **{**figures, "method": plain(table_text(language, figures["method"])), "command": code(figures["command"])}
    )
    blocks = [block for each in figures["tables"] for block in _table(language, each)]
    introduction = (INTRODUCTION.in_(language), WAYS.in_(language), made)
    reading = (f"## {READING_TITLE.in_(language)}", READING.in_(language))
    yield Made("index/probe-sets.md", page(f"# {TITLE.in_(language)}", *introduction, *blocks, *reading))


def _table(language: Language, figures: Mapping[str, Any]) -> Iterator[str]:
    none, *rows = figures["rows"]
    names = {task: plain(task_name(language, name)) for task, name in figures["names"].items()}
    yield f"## {plain(figures['table'])}"
    told = {"devices": figures["devices"], "tasks": figures["tasks"], "none": percent(none["none"], 1)}
    yield f"{plain(table_text(language, figures['title']))}{STOP.in_(language)}{TABLE.in_(language).format(**told)}"
    yield table(COLUMNS[language], (_row(language, row, names) for row in rows))
    last = next((row for row in rows if row["probes"] == SHOWN), rows[-1])
    chosen = SEPARATOR.in_(language).join(
        NUMBERED.in_(language).format(names[task], times) for task, times in last["nested_tasks"]
    )
    yield CHOSEN.in_(language).format(last["probes"], chosen)


def _row(language: Language, row: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...]:
    tenths = f"({percent(row['random_tenth'], 1)} – {percent(row['random_ninetieth'], 1)})"
    return (
        str(row["probes"]),
        f"{percent(row['random'], 1)} {tenths}",
        *(percent(row[kind], 1) for kind in ("fixed", "nested", "planned")),
        SEPARATOR.in_(language).join(names[task] for task in row["fixed_tasks"]),
    )
