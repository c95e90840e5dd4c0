"""Chinese accelerators: what is published of their training speed, what index follows, and what is not published."""

from collections.abc import Iterator
from functools import cache
from statistics import median

from kuayu import index
from kuayu_conformance.corpora import Gap, Table, flagperf_gaps, load
from kuayu_conformance.rendering.figures import count
from kuayu_conformance.rendering.words import Language, Words, named
from kuayu_schemas.models import ComputeIndex, IndexRequest

from .made import Made
from .markdown import badge, page, plain, table
from .source_words import device_name, table_text, vendor_name

TABLE, REFERENCE = "flagperf", "A100"
REVISION = {"epoch": "chinese-accelerators", "number": 0}
OTHERS = frozenset({"A100", "A800", "H100"})
"""Devices of the table that the Chinese ones are compared with."""

TITLE = Words("Chinese accelerators", "中国加速器")
INTRODUCTION = Words(
    "An index rests on measurements, and of Chinese accelerators few are public. The largest public collection is "
    "FlagPerf, whose pages the vendors fill in themselves. Most cells hold accuracy or a share of a peak that is not "
    "published (MFU); neither tells a speed. Of {vendors} Chinese vendors {with_speed} give speeds that can be "
    "compared with another device on the same case, layout and batch size.",
    "指数以实测为依据，而公开的中国加速器实测很少。最大的公开集合为 FlagPerf，其页面由各厂商自行填写。"
    "多数单元格为精度，或相对于未公布峰值的利用率（MFU），二者均不能得出速度。{vendors} 家中国厂商中，有 {with_speed} "
    "家给出可在相同用例、布局与批量下与其他加速器比较的速度。",
)
GAPS_TITLE = Words("What is published", "公开的内容")
GAPS = {
    "en": ("Vendor", "Cases", "Figures", "Speeds of its own devices", "Comparable speeds", "Cases with MFU alone", ""),
    "zh": ("厂商", "用例", "数值", "自有加速器的速度", "可比的速度", "仅有 MFU 的用例", ""),
}
NO_SPEED, COMPARABLE = Words("no speed published", "未公布速度"), Words("comparable", "可比")
NOT_COMPARABLE = Words("not comparable", "不可比")
PLAIN = Words(
    "**No index can be given** for {vendors}: no speed is published there that could be compared. A data sheet alone "
    "would be guesswork; for several of these devices not even peak rates are published.",
    "**不能给出指数**的厂商：{vendors}。其页面没有可供比较的速度；仅凭数据手册只能是猜测，"
    "其中若干加速器连峰值也未公布。",
)
PAIRS_TITLE = Words("Measured side by side", "并列的实测")
PAIRS = {
    "en": ("Device", "Beside", "Task", "Devices", "Ratio of throughputs"),
    "zh": ("加速器", "对照", "任务", "加速器数", "吞吐之比"),
}
INDEX_TITLE = Words("What index follows", "由此得到的指数")
INDEX = Words(
    "With the A100 of FlagPerf's pages as the reference. In brackets the interval at 90 % coverage; *abstained* where "
    "it is wider than the tolerance of 40 %. Vendors measured by themselves, with software of their own, so that an "
    "index compares devices *with their stacks*. Three things that the pages leave open are in none of the intervals: "
    "number formats that are not stated, tuning, and whether batch sizes suit both devices.",
    "以 FlagPerf 页面中的 A100 为参考设备。括号内为覆盖率 90 % 的区间；区间宽于容差 40 % 的标为*不予判定*。"
    "各厂商以自己的软件自行测量，因此指数比较的是*连同软件栈的*加速器。页面未说明的三项内容不在任何区间之内："
    "未标明的数值格式、调优程度，以及批量是否适合双方。",
)
COLUMNS = {
    "en": ("Device", "Task", "Index", "Rests on", ""),
    "zh": ("加速器", "任务", "指数", "依据", ""),
}
BASES = {
    "measured": Words("measured", "实测"),
    "probed": Words("inferred from its other tasks", "由其他任务的实测推得"),
    "specified": Words("data sheet alone", "仅数据手册"),
}
ABSTAINED = Words("abstained", "不予判定")
NEEDED = Words(
    "What would change this is small: four [probes](/index/probe-sets.md), run once on one device of each kind, with "
    "the software stack named. `kuayu probe` and the [guide](/guides/compute-index.md) say how.",
    "改变这一状况所需甚少：每种加速器各以一个运行一次四个[探测任务](/index/probe-sets.md)，并注明软件栈。"
    "做法见 `kuayu probe` 与[指南](/guides/compute-index.md)。",
)
SOURCE = Words("**Source:** {}", "**来源：**{}")


def pages(language: Language) -> Iterator[Made]:
    """The one page of Chinese accelerators."""
    gaps, source = flagperf_gaps(), load(TABLE, None)
    without = [vendor_name(language, gap.name) for gap in gaps if not gap.compared]
    comma = {"en": ", ", "zh": "、"}[language]
    text = page(
        f"# {TITLE.in_(language)}",
        INTRODUCTION.in_(language).format(vendors=len(gaps), with_speed=len(gaps) - len(without)),
        f"## {GAPS_TITLE.in_(language)}",
        table(GAPS[language], (_gap(language, gap) for gap in gaps)),
        PLAIN.in_(language).format(vendors=comma.join(map(plain, without))),
        f"## {PAIRS_TITLE.in_(language)}",
        table(PAIRS[language], _side_by_side(language, source)),
        f"## {INDEX_TITLE.in_(language)}",
        INDEX.in_(language),
        table(COLUMNS[language], (_told(language, source, told) for told in indices())),
        NEEDED.in_(language),
        SOURCE.in_(language).format(plain(table_text(language, source.source))),
    )
    yield Made("index/chinese-accelerators.md", text)


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
                names = (plain(device_name(language, source.device_names[each])) for each in (device, other))
                yield *names, plain(source.task_names[task]), str(devices), f"{median(own) / median(theirs):.2f}"


def _gap(language: Language, gap: Gap) -> tuple[str, ...]:
    state = COMPARABLE if gap.compared else NOT_COMPARABLE if gap.speeds else NO_SPEED
    figures = (gap.cases, gap.cells, gap.speeds, gap.compared, gap.cases_with_utilisation_only)
    look = "pass" if gap.compared else "not-testable"
    return plain(vendor_name(language, gap.name)), *map(count, figures), badge(look, state.in_(language))


def _told(language: Language, source: Table, told: ComputeIndex) -> tuple[str, ...]:
    return (
        plain(device_name(language, source.device_names[told.device])),
        plain(source.task_names[told.task]),
        f"**{told.value:.2f}** ({told.low:.2f} – {told.high:.2f})",
        named(BASES, told.basis).in_(language),
        badge("aim-missed", ABSTAINED.in_(language)) if told.abstained else "",
    )
