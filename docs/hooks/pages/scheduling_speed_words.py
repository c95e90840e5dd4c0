"""What is said of how fast the simulated world goes."""

from kuayu_conformance.rendering.words import Words

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
