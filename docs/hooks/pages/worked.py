"""H100 against A100: where one scalar fails, and what the compute index makes of a few probes instead.

Everything is computed while the site is built, from the tables that come with the suite, by the reference's index.
"""

from collections.abc import Iterator
from math import inf
from statistics import fmean

from kuayu_conformance.rendering.words import Language, Words

from .intervals import Row, drawing
from .left_out import Case, Worked, work
from .made import Made
from .markdown import code, page, percent, plain, table
from .source_words import table_text

CASES = (
    Case("mlperf-time", "H100-SXM.v3.0", "A100-SXM-80GB.v3.0", Words("By time to train, v3.0", "按训练时间，v3.0 轮")),
    Case("mlperf", "H100-SXM", "A100-SXM-80GB", Words("By throughput, v3.0 and v3.1", "按吞吐，v3.0 与 v3.1 轮")),
)
TITLE = Words("H100 against A100", "H100 与 A100 对比")
INTRODUCTION = Words(
    "How many A100 is one H100 worth? Nodes of eight were measured in MLPerf Training, and the answer depends on the "
    "task. This page shows how far one figure for each device gets, and then pretends that nobody has measured an H100 "
    "yet: the compute index gets the measurements of all *other* accelerators, the H100's data sheet, and up to three "
    "probes that it [planned itself](/index/probe-sets.md). Where both were measured, the index is the ratio itself, "
    "task by task; the question is what can be said before. All of it is computed anew whenever this site is built; "
    "nothing is fitted to H100.",
    "一块 H100 相当于多少块 A100？MLPerf Training 测量了八加速器节点，答案因任务而异。"
    "本页先说明以单一数值评价加速器能做到何种程度，再假设尚无人测量过 H100："
    "算力指数只得到*其他*加速器的实测、H100 的数据手册，以及至多三次由其自行[计划的探测](/index/probe-sets.md)。"
    "两者均经实测时，指数即为逐任务的比值；问题在于此前能得到什么。"
    "全部内容在构建本站时重新计算，未对 H100 作任何拟合。",
)
SOURCE = Words("**Source:** {}", "**来源：**{}")
SCALAR_TITLE = Words("One scalar", "单一标量")
SCALAR = Words(
    "The H100 is {least:.2f} times as fast on {least_task} and {most:.2f} times on {most_task}. Whatever single figure "
    "one takes for all tasks, on one of them it misses by at least {least_worst}. The one that misses least on "
    "average, chosen in hindsight, is {scalar:.2f}: {mean} on average, {worst} on {worst_task}. The ratio of peak "
    "matrix throughputs, {peak:.2f}, misses by {peak_mean} on average.",
    "H100 在 {least_task} 上为 A100 的 {least:.2f} 倍，在 {most_task} 上为 {most:.2f} 倍。"
    "无论对全部任务取何种单一数值，总有一个任务的误差不小于 {least_worst}。事后选出的平均误差最小的数值为 "
    "{scalar:.2f}：平均误差 {mean}，在 {worst_task} 上误差 {worst}。峰值矩阵吞吐之比为 {peak:.2f}，平均误差 "
    "{peak_mean}。",
)
SCALAR_COLUMNS = {
    "en": ("Task", "Measured: H100 ÷ A100", "Best scalar misses by", "Ratio of peaks misses by"),
    "zh": ("任务", "实测：H100 ÷ A100", "最优单一标量的误差", "峰值之比的误差"),
}
INDEX_TITLE = Words("The compute index, without an H100", "未测量 H100 时的算力指数")
PLANNED = Words(
    "The probes, in the order of the service's plan: {}. Beneath each index the interval at 90 % coverage, the error, "
    "and the capability that dominates the time on the H100; *abstained* where the interval is wider than the "
    "tolerance of 40 %.",
    "按服务的计划，探测依次为：{}。指数之下依次为覆盖率 90 % 的区间、误差与 H100 上耗时的主导项；区间宽于容差 40 % "
    "的标为*不予判定*。",
)
DRAWN = Words(
    "Index of the H100 with {} probes: the dot and its interval are predicted, the stroke was measured. Strokes "
    "without a dot are the probes.",
    "{} 次探测时 H100 的指数：圆点与区间为预测，短竖线为实测；没有圆点的短竖线为探测任务。",
)
SCALAR_LINE = Words("best scalar {:.2f}", "最优单一标量 {:.2f}")
ERRORS = {
    "en": (
        "Probes",
        "Tasks predicted",
        "Index",
        "Scalar from the same probes",
        "Best scalar in hindsight",
        "Ratio of peaks",
    ),
    "zh": ("探测次数", "预测任务数", "算力指数", "由同样探测得到的标量", "事后最优标量", "峰值之比"),
}
ERRORS_TEXT = Words("Mean error over the tasks that were not probed:", "未探测任务的平均误差：")
ABSTAINED, PROBED = Words("abstained", "不予判定"), Words("probe", "探测")
HONEST_TITLE = Words("Where the index misses", "算力指数的不足")
HONEST = Words(
    "With {probes} probes the index misses by {worst} on {worst_task}, where it says {value:.2f} and "
    "{measured:.2f} was measured; {held} of {count} intervals hold what was measured. On average it misses by {mean}; "
    "a scalar made of the same probes, which is what one would have without an index, by {own}; the best scalar, which "
    "had seen all of the answers, by {best}. {verdict}",
    "{probes} 次探测时，指数在 {worst_task} 上误差最大，为 {worst}：指数为 {value:.2f}，实测为 {measured:.2f}；"
    "{count} 个区间中有 {held} 个包含实测值。平均误差：指数 {mean}；"
    "由同样探测得到的标量（即没有指数时所能得到的）{own}；已知全部答案的最优标量 {best}。{verdict}",
)
BETTER = Words("Here the index does better than the scalar of the same probes.", "此处指数优于由同样探测得到的标量。")
WORSE = Words(
    "Here the index does no better than the scalar of the same probes. What it adds is an interval for each task and "
    "an abstention where that is too wide.",
    "此处指数并不优于由同样探测得到的标量，其所增加的是每个任务的区间，以及区间过宽时的不予判定。",
)
LIMITS = Words(
    "What the index cannot know: which kernels and number formats a submitter chose for the new device (BERT ran "
    "partly in fp8 on H100, which the table does not count), how software matured between rounds, and, for time to "
    "train, how many samples a larger batch needs to converge. Such things show in probes alone, and only where a "
    "probe shares them.",
    "指数无从得知的因素：提交者为新加速器选用的算子与数值格式（BERT 在 H100 上部分使用 fp8，数据表未计入）、"
    "软件在各轮之间的成熟程度，以及按训练时间计时，较大批量收敛所需的样本数。这些因素只能由探测显现，"
    "且仅在探测任务与之相关时显现。",
)


def pages(language: Language) -> Iterator[Made]:
    """The one page of the comparison."""
    blocks = [block for case in CASES for block in _case(language, case, work(case))]
    introduction = INTRODUCTION.in_(language)
    yield Made("index/h100-a100.md", page(f"# {TITLE.in_(language)}", introduction, *blocks, LIMITS.in_(language)))


def _case(language: Language, case: Case, worked: Worked) -> Iterator[str]:
    yield f"## {case.title.in_(language)}"
    yield f"### {SCALAR_TITLE.in_(language)}"
    yield _scalar(language, worked)
    yield f"### {INDEX_TITLE.in_(language)}"
    yield PLANNED.in_(language).format(", ".join(plain(worked.names[task]) for task in worked.plan))
    yield _indices(language, worked)
    yield _drawn(language, worked)
    yield ERRORS_TEXT.in_(language)
    yield _errors(language, worked)
    yield f"### {HONEST_TITLE.in_(language)}"
    yield _honest(language, worked)
    yield SOURCE.in_(language).format(plain(table_text(language, worked.source)))


def _scalar(language: Language, worked: Worked) -> str:
    measured, scalar = worked.measured, worked.scalar
    least, most = min(measured, key=measured.__getitem__), max(measured, key=measured.__getitem__)
    errors = {task: abs(scalar / ratio - 1) for task, ratio in measured.items()}
    worst = max(errors, key=errors.__getitem__)
    told = SCALAR.in_(language).format(
        least=measured[least],
        least_task=plain(worked.names[least]),
        most=measured[most],
        most_task=plain(worked.names[most]),
        scalar=scalar,
        mean=percent(fmean(errors.values())),
        worst=percent(errors[worst]),
        worst_task=plain(worked.names[worst]),
        peak=worked.peak,
        peak_mean=percent(worked.error(dict.fromkeys(measured, worked.peak))),
        least_worst=percent(worked.least_worst),
    )
    rows = [
        (
            plain(worked.names[task]),
            f"{ratio:.2f}",
            percent(scalar / ratio - 1, sign="+"),
            percent(worked.peak / ratio - 1, sign="+"),
        )
        for task, ratio in measured.items()
    ]
    return page(told, table(SCALAR_COLUMNS[language], rows))


def _indices(language: Language, worked: Worked) -> str:
    first = {"en": ("Task", "Measured"), "zh": ("任务", "实测")}[language]
    heads = [f"k = {probes}" for probes in range(len(worked.told))]
    rows = [
        (
            plain(worked.names[task]),
            f"{ratio:.2f}",
            *(_cell(language, worked, task, k) for k in range(len(worked.told))),
        )
        for task, ratio in worked.measured.items()
    ]
    return table((*first, *heads), rows)


def _cell(language: Language, worked: Worked, task: str, probes: int) -> str:
    if task in worked.plan[:probes]:
        return PROBED.in_(language)
    told = worked.told[probes][task]
    dominant = f", {code(told.explanation.dominant)}" if told.explanation else ""
    abstained = f"<br>*{ABSTAINED.in_(language)}*" if told.abstained else ""
    error = told.value / worked.measured[task] - 1
    interval = f"{told.low:.2f}–{told.high:.2f}"
    return f"**{told.value:.2f}**<br>{interval}<br>{percent(error, sign='+')}{dominant}{abstained}"


def _drawn(language: Language, worked: Worked) -> str:
    probes = len(worked.plan)
    rows = [
        Row(worked.names[task], ratio, told.value, told.low, told.high, probe=task in worked.plan)
        for (task, ratio), told in ((item, worked.told[probes][item[0]]) for item in worked.measured.items())
    ]
    title = DRAWN.in_(language).format(probes)
    label = SCALAR_LINE.in_(language).format(worked.scalar)
    return page(drawing(rows, worked.scalar, title=title, scalar_label=label), f"*{title}*")


def _errors(language: Language, worked: Worked) -> str:
    rows = []
    for probes, told in enumerate(worked.told):
        tasks = worked.open_tasks(probes)
        own = worked.scalar_of_probes(probes)
        error = worked.error({task: told[task].value for task in tasks})
        scalars = [own, worked.scalar, worked.peak]
        cells = [percent(worked.error(dict.fromkeys(tasks, scalar)), 1) if scalar else "–" for scalar in scalars]
        rows.append((str(probes), str(len(tasks)), f"**{percent(error, 1)}**", *cells))
    return table(ERRORS[language], rows)


def _honest(language: Language, worked: Worked) -> str:
    probes = len(worked.plan)
    told = {task: worked.told[probes][task] for task in worked.open_tasks(probes)}
    errors = {task: abs(each.value / worked.measured[task] - 1) for task, each in told.items()}
    worst = max(errors, key=errors.__getitem__)
    scalar = worked.scalar_of_probes(probes)
    mean, own = fmean(errors.values()), worked.error(dict.fromkeys(told, scalar)) if scalar else inf
    return HONEST.in_(language).format(
        probes=probes,
        worst=percent(errors[worst]),
        worst_task=plain(worked.names[worst]),
        value=told[worst].value,
        measured=worked.measured[worst],
        held=sum(each.low <= worked.measured[task] <= each.high for task, each in told.items()),
        count=len(told),
        mean=percent(mean, 1),
        own=percent(own, 1),
        best=percent(worked.error(dict.fromkeys(told, worked.scalar)), 1),
        verdict=(BETTER if mean < own else WORSE).in_(language),
    )
