"""Phrases of the checks of telemetry and of the compute index, and of verdicts, English to Chinese.

Names of node states are those of the clause on the graph (``spec/text/zh/met-06-graph.md``); names of exporters, tables
and models are left as they are.
"""

import re

STATES = {
    "idle": "空闲",
    "busy": "忙碌",
    "degraded": "降级",
    "straggling": "滞后",
    "faulty": "故障",
    "offline": "离线",
    "unknown": "未知",
}

CHANGES = {
    "registered": "登记",
    "deleted": "删除",
    "stopped": "停止响应",
    "nothing wrong": "无异常",
    "link up": "链路恢复",
    "link down": "链路中断",
    "exporter played by the suite": "由套件扮演的采集器",
    "clock throttled": "时钟降频",
    "slow host": "主机变慢",
    "device lost": "加速器丢失",
    "recovered": "已恢复",
    "hung, with faults": "停滞，并有故障",
    "node died": "节点失效",
    "no state but its own, or unknown": "除其自身状态或未知外，不显示其他状态",
}

TRAPS = {
    "plain": "正常",
    "disorder": "乱序",
    "gap": "缺失",
    "repeat": "重复",
    "reset": "计数器复位",
    "skew": "时钟偏差",
}
"""Names of the traps, for what is written as ``exporter · trap``."""

INDEX = {
    "mean absolute percentage error over all pairs of the judged tables; one-sided 95 % bootstrap bound over "
    "devices, or "
    "the same of devices as they arrive, of which nothing was sent before, whichever is greater": "所判定各表全部配对的"
    "平均绝对百分比误差；单侧 95 % 置信界由对加速器的自助法得到，或取依次到达、此前未提供任何数据的加速器的同一数值，以"
    "较大者为准",
    "mean over tasks of Kendall's rank correlation; one-sided 95 % bootstrap bound over tasks": "各任务 "
    "Kendall 秩相关系"
    "数的平均值；单侧 95 % 置信界由对任务的自助法得到",
    "share of pairs that were abstained from; one-sided 95 % bootstrap bound over devices": "不予判定的配对的占比；单侧"
    " 95 % 置信界由对加速器的自助法得到",
    "share of pairs whose interval, stated with 90 %, holds the measured value; one-sided 95 % bootstrap bound over "
    "devices": "所声明的 90 % 区间包含实测值的配对的占比；单侧 95 % 置信界由对加速器的自助法得到",
    "device left out": "留出加速器",
    "family left out": "留出系列",
    "devices as they arrive": "加速器依次到达",
}

PERCEPTION = {
    "mean over the six states of 2 TP/(2 TP + FP + FN), in node seconds, the 10 s after each change left out; "
    "bound: 5th "
    "percentile of 1000 bootstrap samples of nodes; parts: F1 of each state": "六种状态的 2 TP/(2 TP + FP + FN) 的平均"
    "值，以节点秒计，每次变化后 10 s 不计；置信界为对节点 1000 次自助抽样的第 5 百分位数；分项为各状态的 F1",
    "the lower of two shares of subjects, of which a node alone and a family count one each: of those with "
    "which nothing "
    "is wrong, such as are shown in no state but their own or unknown; of those that stop, such as are shown "
    "as faulty in "
    "time; n: subjects; bound: the lower of the exact one-sided 95 % lower bounds of both shares (Clopper and "
    "Pearson)": "两个对象占比中的较低者，单独的节点与节点组各计为一个对象：无异常的对象中，除其自身状态或未知外不显示其"
    "他状态者的占比；停止的对象中，按时显示为故障者的占比；n 为对象数；置信界为两个占比的精确单侧 95 % 置信下限"
    "（Clopper-Pearson）中的较低者",
    "worst stratum (exporter and trap) of the share of values within tolerance of the truth, a missing or superfluous "
    "value counting as wrong; exact one-sided 95 % lower bound (Clopper-Pearson) of each stratum, the lowest "
    "counts": "在真值容差之内的数值的占比，取最差的层（采集器与异常情形的组合），缺失或多余的数值计为错误；各层取精确单"
    "侧 95 % 置信下限（Clopper-Pearson），以最低者为准",
}

PHRASES = STATES | CHANGES | INDEX | PERCEPTION

_THRESHOLD = r"([\d.e+-]+) (\S+) against (at_least|at_most) ([\d.e+-]+)"
_LATE = (
    r", one-sided 95 % upper bound by order statistics; (\d+) of (\d+) never were and count as 3600 s; parts: "
    r"99th percentile by kind, median in the table"
)
_LATE_ZH = (
    "的第 99 百分位数，单侧 95 % 置信上限由次序统计量得到；{1} 项中有 {0} 项始终未出现，按 3600 s 计；分项为各种类的第"
    " 99 百分位数，中位数见表"
)

VERDICTS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (rf"the figure misses the threshold: {_THRESHOLD}", "估计值未达到阈值：{} {}，要求{} {}"),
        (
            rf"the figure misses the threshold, its other bound (\S+) does not: {_THRESHOLD}",
            "估计值未达到阈值，其另一侧置信界 {} 达到：{} {}，要求{} {}",
        ),
        (
            rf"the figure misses the threshold, but there is too little to tell: {_THRESHOLD}",
            "估计值未达到阈值，但样本不足以判定：{} {}，要求{} {}",
        ),
        (
            rf"the figure reaches the threshold, its bound (\S+) does not: {_THRESHOLD}",
            "估计值达到阈值，其置信界 {} 未达到：{} {}，要求{} {}",
        ),
        (r"(\d+) of (\d+) expectations were not met", "{1} 项期望中有 {0} 项未满足"),
        (r"at_least", "不小于"),
        (r"at_most", "不大于"),
    )
)
"""Reasons of verdicts, of whatever profile."""

PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (
            r"99th percentile of the time from sending a change to the arrival of the event that shows it" + _LATE,
            "自发送变化至显示该变化的事件到达的时间" + _LATE_ZH,
        ),
        (
            r"99th percentile of the time from the instant at which a node's telemetry begins to differ until "
            r"the stream "
            r"shows its new state and goes on to for 5 s" + _LATE,
            "自节点的遥测开始不同，至事件流显示其新状态并持续 5 s 的时间" + _LATE_ZH,
        ),
        (
            (
                r"domains of which every node was shown in a state other than unknown at some time; (\d+) domains with "
                r"(\d+) nodes, (\d+) of which joined while telemetry ran; a count, so the bound is the "
                r"figure; the suite's "
                r"own world waited (\S+) s for it to keep up"
            ),
            (
                "每个节点均曾显示为未知以外状态的算力域的数目；{} 个算力域共 {} 个节点，其中 {} 个在遥测进行期间"
                "加入；为计数"
                "，置信界即该数值；套件的环境为等待服务共停留 {} s"
            ),
        ),
        (
            (
                r"indicators of which every measure is answered, with its unit, from each of (\d+) exporters "
                r"that yields it "
                r"and as a sample of each kind of subject; a count of all, not a sample"
            ),
            (
                "全部测度均得到响应且单位正确的指标的数目，来自提供该测度的 {} 种采集器，并作为各类对象的样本；为"
                "全体计数，"
                "并非抽样"
            ),
        ),
        (
            (
                r"longest gap between samples of any watched subject over (\d+) s, both ends of the window "
                r"included, of "
                r"(\d+) that the suite plays and (\d+) of the implementation's own; a maximum of what happened, not an "
                r"estimate from a sample, so the bound is the figure"
            ),
            (
                "{} s 内任一受观察对象的样本间的最长间隔，计入窗口两端，其中 {} 个由套件扮演，{} 个属于实现自身；"
                "为实际发生"
                "的最大值，并非由样本估计，置信界即该数值"
            ),
        ),
        (r"(\S+), of the implementation's own", "{}，属于实现自身"),
        (r"(mlperf|neusight|flagperf), (device left out|family left out|devices as they arrive)", "{}，{}"),
        *((rf"(\S+) · {trap}", f"{{}} · {said}") for trap, said in TRAPS.items()),
        (
            rf"([0-9a-f]+) is ({'|'.join(STATES)}) \((.+)\) from second (\S+) on",
            "{0} 自第 {3} 秒起为{1}（{2}）",
        ),
        (rf"shown as ({'|'.join(STATES)}) (\S+) s later", "{1} s 后显示为{0}"),
        (
            rf"(\S+) \((\w+); ([\w, ]+)\): ({'|'.join(STATES)}), (\S+) s after the beginning",
            "{0}（{1}；{2}）：开始 {4} s 后显示为{3}",
        ),
    )
)
