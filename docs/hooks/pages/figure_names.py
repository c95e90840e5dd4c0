"""Names that benchmarks give their figures, and words among them, in Chinese.

1. A name is known whole, as the page shows it: with spaces in place of underscores. What holds numbers is a pattern.
2. ``STATE: REASON`` is said part by part; states are those of clause *Resource graph*.
3. Names of programs, exporters, packages and exceptions, and measures such as F1, stay as they are.
"""

import re

from kuayu_conformance.rendering.words import Language

from .judged_phrases_measured import STATES

REASONS = {
    "no sample yet": "尚无样本",
    "nothing arrives from its domain": "所属算力域没有数据到达",
    "nothing is known of its accelerators": "对其加速器一无所知",
    "its power alone, at one level, does not tell work from rest": "仅有功率且保持同一水平，不能区分工作与空闲",
    "its power alone, above that at rest, does not tell little work from none": "仅有功率且高于空闲水平，"
    "不能区分少量工作与不工作",
    "several samples missed while others of its domain arrive": "连续缺失若干样本，而同一算力域的其他节点有数据到达",
    "no accelerator works": "没有加速器在工作",
    "accelerators work as usual": "加速器正常工作",
    "waits for another node of its family": "等待同一节点组的其他节点",
    "slower than usual": "慢于通常水平",
    "faults that are mended come again": "已纠正的错误反复出现",
    "a part of its accelerators is missing": "缺少部分加速器",
    "others of its family wait while it works": "在工作，同一节点组的其他节点在等待",
    "does not go on, with faults": "工作不再推进，有故障",
    "does not go on, with memory held": "工作不再推进，仍占有内存",
    "utilised, but gets nothing done": "有利用率，但工作没有进展",
    "does not go on, and its family waits or works without it": "工作不再推进，其节点组在等待，或已不含它而工作",
    "reported as degraded": "上报为降级",
    "reported as faulty": "上报为故障",
    "reported as offline": "上报为离线",
}
"""What a state was told from: ``REASONS`` of the reference's recognition."""
RUN = {
    "date": "日期",
    "days": "天数",
    "domains": "算力域数",
    "hours": "小时数",
    "jobs": "作业数",
    "load": "是否另加负载",
    "load after": "结束后的平均负载",
    "load before": "开始前的平均负载",
    "machine": "机器",
    "mean load over a minute": "一分钟平均负载",
    "nodes": "节点数",
    "options": "选项",
    "packages": "软件包",
    "period": "间隔，s",
    "processors": "处理器数",
    "request": "运行参数",
    "seconds": "秒数",
    "seed": "种子",
    "tenants": "租户数",
    "world": "运行环境",
}
"""How a benchmark was run."""
COMMON = {
    "False": "否",
    "None": "无",
    "True": "是",
    "all": "全部",
    "figures": "数值",
    "greatest": "最大",
    "least": "最小",
    "longest s": "最长，s",
    "median": "中位数",
    "most ms": "最大，ms",
    "n": "数量",
    "never": "始终未见",
    "p50": "第 50 百分位",
    "p50 ms": "第 50 百分位，ms",
    "p50 s": "第 50 百分位，s",
    "p90": "第 90 百分位",
    "p99": "第 99 百分位",
    "p99 ms": "第 99 百分位，ms",
    "p99 s": "第 99 百分位，s",
    "results": "结果",
    "rows": "行",
    "samples": "样本数",
    "worst ms": "最大，ms",
}
RECOGNITION = {
    "F1": "F1",
    "all but pipes and memory bandwidth": "除矩阵运算单元与内存带宽外的全部信号",
    "all that exporters of the region give": "该区域采集器给出的全部信号",
    "alone": "独立节点",
    "at rest, steady": "空闲，平稳",
    "blips of monitoring": "监测引起的短暂波动",
    "changes": "改变数",
    "delay": "延迟",
    "delay, p50 s": "延迟，第 50 百分位，s",
    "delay, p99 s": "延迟，第 99 百分位，s",
    "every ten seconds": "每十秒一个样本",
    "every thirty seconds": "每三十秒一个样本",
    "false alarms": "误报",
    "false states seen": "错误状态数",
    "false states by node": "各节点错误状态数",
    "families": "节点组",
    "graph": "含图的识别器",
    "healthy telemetry": "正常遥测",
    "host": "主机",
    "host-seldom": "主机，每十秒上报一次",
    "held-out region": "保留区域",
    "held-out region, by signals sent": "保留区域，按所发送信号",
    "idle or busy, right": "空闲或忙碌判断正确的占比",
    "interval": "置信区间",
    "jobs and rest": "作业与空闲交替",
    "judge's world": "评判方的世界",
    "macro F1": "宏平均 F1",
    "nodes with a false alarm": "有误报的节点数",
    "noisy work": "有噪声的工作",
    "notebook with pauses": "有停顿的笔记本",
    "page made every ten seconds": "采集器每十秒更新一次输出",
    "plain": "不含图的相同特征",
    "power": "功率",
    "power-capped": "受功率上限约束",
    "quantised work": "取值经量化的工作",
    "recall": "召回率",
    "recogniser": "识别器",
    "recognised within 10 s": "10 s 内识别的占比",
    "rules": "规则",
    "seen, about once a second": "所示状态的次数，约每秒一次",
    "server with pauses": "有停顿的推理服务",
    "serves nobody, steady": "推理服务无请求，平稳",
    "share of seconds": "误报秒数占比",
    "steady": "平稳",
    "these, and faults and shares": "以上各项，及故障与占比",
    "utilisation": "利用率",
    "utilisation and memory": "利用率与内存",
    "utilisation, power and memory": "利用率、功率与内存",
    "worlds": "世界",
}
OUTAGE = {
    "acknowledged": "已获确认",
    "agent": "上报方",
    "altered": "被改动",
    "attempts not acknowledged": "未获确认的尝试",
    "backlog samples": "积压样本数",
    "catch up s": "追赶用时，s",
    "doubled": "重复",
    "exact": "是否完全一致",
    "held": "已存有",
    "kills": "强行终止次数",
    "ledger": "账目",
    "lost": "丢失",
    "processor s": "处理器时间，s",
    "processor share": "处理器占比",
    "processor us per sample": "每个样本的处理器时间，µs",
    "rate": "每秒样本数",
    "resident mib": "常驻内存，MiB",
    "service": "服务",
    "spool mib": "暂存文件，MiB",
    "start processor s": "启动的处理器时间，s",
}
STORAGE = {
    "an hour of a node, page by page": "一个节点一小时的样本，逐页",
    "bytes per sample": "每个样本的字节数",
    "databases": "数据库",
    "delete": "删除",
    "file bytes": "文件字节数",
    "filled in s": "写入用时，s",
    "formula": "公式",
    "indicators of a node, now": "一个节点当前的指标",
    "indicators of a node, then": "一个节点某一过去时刻的指标",
    "month": "一个月",
    "month of samples bytes": "一个月样本的字节数",
    "month rolled up bytes": "一个月汇总的字节数",
    "nodes × 86 400 / period × days × bytes per sample; share = samples/s × processor seconds each": "节点数 × 86 400"
    " / 间隔 × 天数 × 每个样本的字节数；占比 = 每秒样本数 × 每个样本的处理器秒数",
    "pieces": "分段数",
    "processor seconds": "处理器秒数",
    "projected": "推算",
    "queries": "查询数",
    "query, newest 7 days as samples, again": "查询，最近 7 天为样本，再次",
    "query, newest 7 days as samples, out of the page cache": "查询，最近 7 天为样本，页缓存已清除",
    "query, rolled up, again": "查询，全部已汇总，再次",
    "query, rolled up, out of the page cache": "查询，全部已汇总，页缓存已清除",
    "question": "查询",
    "questions": "查询数",
    "roll up": "汇总",
    "rolled bytes": "汇总的字节数",
    "rolled bytes per row": "汇总后每行的字节数",
    "rolled bytes per sample": "汇总后每个样本的字节数",
    "rolled rows": "汇总的行数",
    "rows per second": "每秒行数",
    "slice": "片段",
    "writer held longest s": "占用写入方最长，s",
    "writer held p99 s": "占用写入方第 99 百分位，s",
}
LINKS = {
    "hidden": "隐去的占比",
    "links": "链路数",
    "time": "往返时间",
    "time by median": "往返时间，以中位数估计",
    "width": "带宽",
    "width by median": "带宽，以中位数估计",
}
SPEED = {
    "body bytes": "请求体字节数",
    "calls": "调用次数",
    "cold ms": "首次响应，ms",
    "demands, 1 case": "需求，1 个用例",
}
NAMES = {**STATES, **REASONS, **RUN, **COMMON, **RECOGNITION, **OUTAGE, **STORAGE, **LINKS, **SPEED}
PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"indicators of a domain of (\d+) nodes, now", "{} 个节点的算力域当前的指标"),
        (r"indicators of a domain of (\d+) nodes, then", "{} 个节点的算力域某一过去时刻的指标"),
        (r"a page of (\d+) samples", "一页样本，{} 个"),
        (r"series of an hour, steps of (\d+) s", "一小时的序列，步长 {} s"),
        (r"series of the whole time, steps of (\d+) s", "全部时间的序列，步长 {} s"),
        (r"forecasts, (\d+) domains, (\d+) series, (\d+) jobs", "预测，{} 个算力域，{} 个序列，{} 个作业"),
        (r"a peak plan, (\d+) steps, (\d+) to (\d+) loads", "削峰方案，{} 步，{}～{} 项可移负荷"),
        (r"a waveform, (\d+) to (\d+) jobs, (\d+) to (\d+) steps", "波形，{}～{} 个作业，{}～{} 步"),
        (r"reservations, (\d+) domains, (\d+) tenants", "预留，{} 个算力域，{} 个租户"),
        (r"phases of (\d+) trainings", "{} 项训练的阶段"),
        (r"demands, (\d+) cases of different models", "需求，{} 个不同模型的用例"),
        (r"sizes of (\d+) tasks, (\d+) that ran", "{} 个任务的规模，既往任务 {} 个"),
        (r"layouts on (\d+) accelerators", "{} 个加速器上的布局"),
    )
)


def figure_name(language: Language, text: str) -> str:
    """A name or a word among the figures in a language; one that is not known, or is nobody's word, stays."""
    if language == "en":
        return text
    if known := NAMES.get(text):
        return known
    for pattern, said in PATTERNS:
        if found := pattern.fullmatch(text):
            return said.format(*found.groups())
    state, colon, reason = text.partition(": ")
    return f"{STATES[state]}：{REASONS[reason]}" if colon and state in STATES and reason in REASONS else text
