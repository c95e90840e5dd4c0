"""Phrases of the checks of scheduling that hold figures or names; they come before those of other checks."""

import re

_BOUND = r"(Bound: Student's, (?:of the logarithm, )?over windows.*?, at \S+ after Holm(?: and α-spending)?)"

PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"(\d+) jobs", "{} 个作业"),
        (r"(\d+): (\d+ jobs)", "{}：{}"),
        (r"Front of instance (\d+), (\d+ jobs)", "算例 {} 的前沿，{}"),
        (r"(\d+) domains, (\d+) nodes, (\d+) active jobs", "{} 个域、{} 个节点、{} 个活动作业"),
        (
            (
                r"99th percentile over decisions on new states, one after the other, (.+ active jobs); one-sided 95 % "
                r"bound by order statistics"
            ),
            "对依次给出的新状态所作决策的第 99 百分位数，{}；单侧 95 % 置信界由次序统计量得到",
        ),
        (
            (
                r"1 − mean training period under the service ÷ that under B1, of the jobs of the cohort that train "
                r"and of those of them of at least eight devices, each the mean over workloads, the lesser\. "
                + _BOUND
                + r"(|; .+)\. Parts: by workload, then by family with a bound of their own"
            ),
            (
                "1 − 被测服务下的平均训练周期 ÷ B1 下的平均训练周期，分别取计分作业中的训练作业及其中不少于八个加速"
                "器者，各取不同作业来源的平均，以较小者为准。{}{}。分项：先按作业来源，再按场景族，各有自身的"
                "置信界"
            ),
        ),
        (
            (
                r"1 − mean training period under the service ÷ that under B1, of the jobs of the cohort that train "
                r"and of those of them of at least eight devices, the lesser; over workloads the geometric mean of "
                r"the quotients\. " + _BOUND + r"(|; .+)\. Parts: by workload, then by family with a bound of their own"
            ),
            (
                "1 − 被测服务下的平均训练周期 ÷ B1 下的平均训练周期，分别取计分作业中的训练作业及其中不少于八个加速"
                "器者，以较小者为准；不同作业来源取比值的几何平均。{}{}。分项：先按作业来源，再按场景族，各有自身的"
                "置信界"
            ),
        ),
        (
            r"; there was no job of eight devices, so that nothing can be proven",
            "；没有八个加速器的作业，因而无从证明",
        ),
        (
            r"Bound: Student's, over windows, at (\S+) after Holm",
            "置信界：对各窗口取 Student 界，水平为经 Holm 校正后的 {}",
        ),
        (
            (
                r"Bound: Student's, of the logarithm, over windows(|, looked at after .+ windows of each), at (\S+) "
                r"after Holm and α-spending"
            ),
            "置信界：对各窗口的对数取 Student 界{}，水平为经 Holm 校正与 α 消耗后的 {}",
        ),
        (r", looked at after (.+) windows of each", "，每种来源的窗口数达到 {} 时各查看一次"),
        (
            r"; more than (\S+) of B1's periods is imputed of jobs from (.+): inconclusive",
            "；作业来源 {1} 的周期中推算部分超过 B1 的 {0}：未能判定",
        ),
        (
            r"; with jobs from (.+) it falls short of (\S+): not proven",
            "；作业来源 {} 的缩短不足 {}：未得到证明",
        ),
        (
            r"with jobs from (.+) training periods are at least (\S+) shorter",
            "作业来源 {} 的训练周期至少缩短 {}",
        ),
        (
            r"(.+) at the reference load: jobs from (\S+), (\d+) windows with (\d+) jobs(.*)",
            "基准负载下的{}：作业来源为 {}，{} 个窗口，{} 个作业{}",
        ),
        (r"Training periods", "训练周期"),
        (r"Service", "服务情况"),
        (
            (
                r" that train(| of eight devices or more); p95 is a mean over windows, B5 pool is B3 with all devices "
                r"in one place, B5 bound is what no policy can beat with these devices"
            ),
            (
                "参与训练{}；第 95 百分位为各窗口的平均，B5 理想池为全部加速器同处一地时的 B3，B5 下界为以这些加速器"
                "任何策略均不能突破的值"
            ),
        ),
        (
            r" that train; p95 is a mean over windows, B5 pool is B3 with all devices in one place",
            "参与训练；第 95 百分位为各窗口的平均，B5 理想池为全部加速器同处一地时的 B3",
        ),
        (
            r" of eight devices or more",
            "（不少于八个加速器）",
        ),
        (
            r"; money for traffic and for devices, yuan for the work of a reference device in an hour",
            "；流量与加速器的费用按参考设备一小时的工作量计，单位为元",
        ),
        (r"family (\S+)", "场景族：{}"),
        (r"(\S+) less by", "{}：缩短"),
        (r"(\S+): period less by", "{}：周期缩短"),
        (r"(\S+): money less by", "{}：费用减少"),
        (r"Over the (.+), against B1; (.+)", "随{}的变化，相对 B1；{}"),
        (r"Over the (.+), against B1", "随{}的变化，相对 B1"),
        (r"Training period over the (.+)", "训练周期随{}的变化"),
        (
            (
                r"useful work ÷ capacity by linear programme, at the highest load at which 95 % of the jobs, and of "
                r"those of at least eight devices, have a bounded slowdown of 10 at most and the queue is bounded, ÷ "
                r"the same of B1 − 1; interpolated between the loads of the grid, nothing is assumed beyond it\. "
                r"Bound: Student's, with the standard error of the logarithm by bootstrap over (\d+) windows, at "
                r"(\S+) after Holm"
            ),
            (
                "有用工作量 ÷ 线性规划求得的容量，取 95 % 的作业以及不少于八个加速器的作业的 95 % 有界减速比不超过 "
                "10 且队列有界的最高负载，÷ B1 的同一数值 − 1；各负载之间插值，超出所试范围者不作假设。置信界："
                "Student 界，对数的标准误由对 {} 个窗口的自助法得到，水平为经 Holm 校正后的 {}"
            ),
        ),
        (
            r"Highest load at which jobs are served well, over the reference load; (\S+) is the most tried",
            "作业服务良好的最高负载与基准负载之比；所试最高为 {}",
        ),
        (
            r"(Highest load .+ tried)\. B1 sustains none of them; it counts with what it uses at (\S+)",
            "{}。B1 在各负载下均不能维持，按其在 {} 时的利用率计",
        ),
        (r"(\S+) and more", "{} 及以上"),
        (r"below (\S+)", "低于 {}"),
        (r"(served|large|used) at (\S+)", "{}，{}"),
        (r"Jobs that held devices of each domain under (\S+), over (\S+) h", "占用各域加速器的作业（{}），{} h"),
        (r"Share of the devices of each domain that jobs held under (\S+)", "各域被占用的加速器占比（{}）"),
        (r"What waited under (\S+)", "等待情况（{}）"),
        (r"Traffic on the links that lead to each domain under (\S+)", "通往各域的链路的流量（{}）"),
        (
            (
                r"1 − money for occupied bandwidth ÷ work done, both of the cohort, ÷ the same under B1; the bound "
                r"counts as nought unless SCH-003 and SCH-004 are proven and B1's traffic costs (\S+) yuan or more "
                r"for the work of a reference device in an hour \(here (\S+)\)\. " + _BOUND
            ),
            (
                "1 − 计分作业的带宽占用费用 ÷ 所完成的工作量，÷ B1 的同一数值；除非 SCH-003 与 SCH-004 得到证明，且"
                " B1 的流量费用按参考设备一小时的工作量计不低于 {} 元（此处为 {}），置信界计为零。{}"
            ),
        ),
        (r"communication × (\S+)", "通信 × {}"),
        (r"(\d+) of (\d+) expectations were not met", "{1} 项期望中有 {0} 项未满足"),
        (r"in the family (\S+) no training period is longer than under B1", "场景族“{}”中训练周期不长于 B1"),
        (r"(\S+%) longer over (\d+) windows, at least (\S+%)", "{1} 个窗口中长 {0}，至少 {2}"),
        (
            r"all but (\S+) of the questions where jobs are to run are answered by a placement report",
            "除至多 {} 外，关于作业应在何处运行的询问均得到放置报告",
        ),
        (r"(\d+) of (\d+) were not", "{1} 次中有 {0} 次没有"),
        (
            r"the cost is claimed only where neither SCH-003 nor SCH-004 fails in the same run",
            "仅当同一运行中 SCH-003 与 SCH-004 均未不通过时方可主张成本",
        ),
        (r"(\S+%) and (\S+%)", "{} 与 {}"),
        (r"(\w+): no more than (\S+) migrations for each hour of a job", "{}：每作业小时的迁移不超过 {} 次"),
        (
            r"(\w+): the queue grows by no more than (\S+) days of the capacity, or than under B1",
            "{}：队列的增长不超过容量的 {} 天，或不超过 B1",
        ),
        (r"(\S+) days, (\S+) under B1", "{} 天，B1 为 {} 天"),
        (r"every request is decided on", "每个请求均得到决策"),
        (r"(\d+) are not: (.+)", "{} 个没有：{}"),
        (
            r"jobs are started in at least (\S+) of the decisions, as there is room and many wait",
            "在有空余且有许多作业等待时，至少 {} 的决策启动作业",
        ),
        (r"none in (\d+) of (\d+)", "{1} 次中有 {0} 次未启动"),
    )
)
