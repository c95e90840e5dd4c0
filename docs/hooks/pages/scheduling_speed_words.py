"""What is said of how fast the simulated world goes."""

import re

from kuayu_conformance.rendering.words import Language, Words

TITLE = Words("How fast the simulated world goes", "仿真世界的速度")
COMMAND = (
    "python tests/benchmarks/scheduling.py --scale {scales} --policy {policies} "
    "--json docs/results/scheduling/speed.json"
)
ABOUT = Words(
    "One process on one core, its own processor time, seed `speed`, load 0.7: {command}. Jobs are submitted for the "
    "hours that are stated and played out for as long again; only those count that have finished. *At a time* are "
    "those that wait or hold devices, on average. The engine in Python is the oracle of the compiled world: both come "
    "to the same outcome, or the benchmark ends.",
    "单进程、单核，计自身处理器时间，种子 `speed`，负载 0.7：{command}。作业在所列小时数内提交，其后再运行同样长的时间"
    "，仅计已完成者。“同时”指等待或占用加速器的作业的平均数。Python 引擎用以核对编译后的仿真世界：两者结果不同则基准"
    "程序中止。",
)
COLUMNS = {
    "en": (
        "Policy",
        "Domains",
        "Nodes",
        "Hours",
        "Jobs",
        "Finished",
        "At a time",
        "Seconds in Python",
        "Jobs a second",
        "Seconds compiled",
        "Jobs a second",
    ),
    "zh": (
        "策略",
        "算力域",
        "节点",
        "小时",
        "作业",
        "已完成",
        "同时",
        "Python，秒",
        "作业每秒",
        "编译后，秒",
        "作业每秒",
    ),
}
CURVE = Words("Processor time of the compiled world over jobs that finished", "编译后的处理器时间与已完成作业数")
ACROSS = Words("jobs that finished", "已完成作业")
UP = Words("seconds", "秒")

BESIDE_AIMS = Words("The compiled world beside its aims, and beside others", "编译后的仿真世界：与目标及他人的比较")
ABOUT_AIMS = Words(
    "{date}, one process on one core, its own processor time, the best of some rounds; load of the machine beside it "
    "{least} to {most}: {command}. An *internal decision* is one job that the rule looks at; an *asked* one goes "
    "through the Gymnasium environment. Others' simulators were run in the same command, by their own programs with "
    "their own jobs; their start is counted, and policies that solve a linear programme each round are slow for that "
    "reason.",
    "{date}，单进程、单核，计自身处理器时间，取数轮中的最佳者；期间本机负载为 {least} 至 {most}：{command}。"
    "“内部决策”指规则对一个作业的一次考察；“外部决策”经由 Gymnasium 环境。"
    "他人的仿真器由同一命令以其自身的程序与作业运行，"
    "计入其启动时间；每轮求解线性规划的策略因此较慢。",
)
AIM_COLUMNS = {
    "en": ("Figure", "Measured", "Aim", "Met", "Processor seconds"),
    "zh": ("项目", "实测", "目标", "达到", "处理器秒"),
}
MET = {True: Words("yes", "是"), False: Words("**no**", "**否**")}
UNITS = {"1/s": "1/s", "ms": "ms", "exponent": ""}
"""As they are shown; an exponent has none."""

_FIGURES = (
    (r"internal decisions at (\S+) of the capacity", r"容量的 \1 倍负载下的内部决策"),
    (r"asked decisions, (\d+) worlds side by side", r"外部决策，\1 个仿真世界并行"),
    (r"asked decisions, one by one through the reference", "外部决策，经由参考实现逐一作出"),
    (r"drawing a scenario to learn in", "生成一个训练场景"),
    (r"simulated jobs, (\d+) domains, (\d+) nodes, (\d+) jobs", r"仿真作业，\1 个算力域，\2 个节点，\3 个作业"),
    (r"growth of processor time over jobs", "处理器时间随作业数增长的指数"),
    (
        r"Gavel's simulator, (\d+) devices, (\d+) jobs, one an hour, FIFO",
        r"Gavel 的仿真器，\1 个加速器，\2 个作业，每小时一个，FIFO",
    ),
    (
        r"Gavel's simulator, (\d+) devices, (\d+) jobs, one an hour, max-min fairness, a linear programme a round",
        r"Gavel 的仿真器，\1 个加速器，\2 个作业，每小时一个，最大最小公平，每轮一个线性规划",
    ),
    (
        r"Sia's simulator, its first Philly workload of (\d+) jobs, policy (\w+)",
        r"Sia 的仿真器，其第一个 Philly 负载的 \1 个作业，策略 \2",
    ),
)
"""Names of figures as ``tests/benchmarks/speed.py`` writes them, and in Chinese."""


def figure(language: Language, name: str) -> str:
    """A figure's name.

    Raises:
        KeyError: There is no Chinese for it.
    """
    if language == "en":
        return name
    for pattern, chinese in _FIGURES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, chinese, name)
    raise KeyError(name)
