"""Phrases of the checks of resilience, English to Chinese; they come before those of other checks."""

SHARED = {
    "95th percentile": "第 95 百分位数",
    "95th percentile, s": "第 95 百分位数，s",
    "all": "全部",
    "incidents": "事件",
    "kind": "种类",
    "links": "链路",
    "median": "中位数",
    "median, s": "中位数，s",
    "seconds": "秒",
    "the service": "被测服务",
    "what": "内容",
    "windows": "窗口",
}

FAULTS = {
    "% of incidents": "事件占比，%",
    "cause": "起因",
    "domain_unreachable": "算力域失联",
    "false alarms": "误报",
    "Faults by what happened": "异常，按起因",
    "from there until it can be fetched": "自报告至可取得",
    "job hangs": "作业挂起",
    "job_hung": "作业挂起",
    "log line": "日志行",
    "never": "从未",
    "node comes and goes": "节点时有时无",
    "node dies": "节点失效",
    "node dies amid a partition": "分区期间节点失效",
    "node of a job dies": "作业所在节点失效",
    "node_dead": "节点失效",
    "node_failing": "节点待修复",
    "partition": "分区",
    "rack dies": "机柜失效",
    "rank straggles": "进程滞后",
    "rank_straggling": "进程滞后",
    "recognised": "已识别",
    "Time until a fault was told": "自异常发生至被报告的时间",
    "Time until actions could be fetched": "自异常发生至可取得动作的时间",
    "Time until actions could be fetched, s": "自异常发生至可取得动作的时间，s",
    "told after 10 s": "10 s 之后报告",
    "until told": "至报告",
    "until told, p50, s": "至报告，中位数，s",
}

RECOVERY = {
    "apart, 95th percentile, s": "相差，第 95 百分位数，s",
    "apart, median, s": "相差，中位数，s",
    "cold, hourly copies at home": "冷恢复，副本每小时一份且存于本域",
    "copies an hour": "每小时副本数",
    "cut-off": "断开",
    "expected, median, s": "预计，中位数，s",
    "fault": "故障",
    "fixed rule, copies at home": "固定规则，副本存于本域",
    "happened, median, s": "实际，中位数，s",
    "node": "节点",
    "planner": "规划者",
    "plans": "方案数",
    "rack": "机柜",
    "replace": "替换",
    "restore": "恢复",
    "spares": "备用节点",
    "state over bandwidth, mean, s": "状态大小 ÷ 带宽，均值，s",
    "strategy": "方式",
    "their price, money/h": "其费用，货币单位/h",
    "time that checkpoints take": "检查点占用的时间",
    "Time until a job is whole again, beside others on the same faults": (
        "作业复原所需时间，与相同故障下的其他规划者对照"
    ),
    "Time until a job is whole again, by kind of fault": "作业复原所需时间，按故障种类",
    "Time until a job is whole again, share of incidents that are over after it": (
        "作业复原所需时间，届时已结束的事件占比"
    ),
    "Time without a new step, beside others on the same faults": "无新训练步的时间，与相同故障下的其他规划者对照",
    "Time without a new step, by kind of fault": "无新训练步的时间，按故障种类",
    "Time without a new step, share of incidents that are over after it": "无新训练步的时间，届时已结束的事件占比",
    "ways": "方式",
    "When a new step was expected, and when there was one": "新训练步的预计时间与实际时间",
    "work done again, mean, s": "重做的工作，均值，s",
}

SHARDS = {
    "best one whose idle links pull": "由空闲链路取用的最佳方案",
    "best static schedule with overlap": "有重叠的最佳静态方案",
    "Best static schedules, chosen in hindsight": "事后选出的最佳静态方案",
    "by bytes": "按字节",
    "by number": "按次数",
    "calm": "平静",
    "fixed, on demand": "固定分片、按需传输",
    "fixed, one ahead": "固定分片、提前一步",
    "idle links pull": "由空闲链路取用",
    "least": "使之最小",
    "measured": "实测",
    "not finished under the service": "被测服务下未完成",
    "outages": "中断",
    "schedule": "方案",
    "Share of time in which compute waits for data": "算力等待数据的时间占比",
    "Share of time in which compute waits for data, mean over windows": "算力等待数据的时间占比，各窗口均值",
    "Share of transfers that are blocked, by bytes": "被阻塞的传输占比，按字节",
    "Share of transfers that are blocked, by bytes, mean over windows": "被阻塞的传输占比，按字节，各窗口均值",
    "Share of transfers that are blocked, by number": "被阻塞的传输占比，按次数",
    "Share of transfers that are blocked, by number, mean over windows": "被阻塞的传输占比，按次数，各窗口均值",
    "who knows the links": "预知链路者",
    "windows, by what it is under fixed, on demand": "窗口，按固定分片、按需传输下的数值排列",
}

COLLECTIVES = {
    "% of the quickest": "占最快者的百分比，%",
    "best fixed of all windows": "全部窗口上最佳的固定算法",
    "best fixed of these": "此类窗口上最佳的固定算法",
    "best of each window in hindsight": "各窗口事后最佳",
    "busy": "繁忙",
    "chosen": "所选",
    "greatest latency of a link, ms": "链路的最大时延，ms",
    "hierarchical": "层次化",
    "metro": "城域",
    "national": "全国",
    "over the first": "相对首次测量最快者",
    "quickest by the first measurement, kept": "首次测量时最快且保持不变",
    "ring": "环",
    "Steps in parts of those of one who always has the quickest for nothing": (
        "训练步数，以始终无偿采用最快算法者为单位"
    ),
    "Steps of fixed collectives, likewise": "各固定算法的训练步数，单位同上",
    "switches an hour": "每小时切换次数",
    "to another collective or period": "其中更换算法或周期",
}

ADJUSTMENTS = {
    "% and ms": "% 与 ms",
    "% of the best": "占最佳的百分比，%",
    "adjuster": "调整者",
    "all changes at once": "变更即时生效",
    "always the best, for nothing": "始终无偿采用最佳策略",
    "calm minutes, acted in": "平静的分钟，其间有动作",
    "Changes that were named, and calm in which something was done": "被指出的变化，以及平静中的动作",
    "counted as a change, or calm": "视为变化，或平静",
    "disturbance": "扰动",
    "disturbances": "扰动数",
    "every policy kept": "策略保持不变",
    "latency rises": "时延上升",
    "load falls": "负载下降",
    "load rises": "负载上升",
    "missed, or false": "遗漏，或误动作",
    "named after, median, s": "指出所需时间，中位数，s",
    "never recovered": "从未恢复",
    "Share of a window's steps lost while adjusted, beside others in the same windows": (
        "调整期间损失的训练步占窗口的比例，与相同窗口中的其他调整者对照"
    ),
    "Share of a window's steps lost while adjusted, by kind of disturbance": (
        "调整期间损失的训练步占窗口的比例，按扰动种类"
    ),
    "share, 95 % bound": "占比，95 % 置信界",
    "steps, of those of the best": "训练步数，占最佳的比例",
    "Time to recover after the adjustment, beside others in the same windows": (
        "调整后恢复所需时间，与相同窗口中的其他调整者对照"
    ),
    "Time to recover after the adjustment, by kind of disturbance": "调整后恢复所需时间，按扰动种类",
    "with changes": "其中有变更",
}

PHRASES = {**SHARED, **FAULTS, **RECOVERY, **SHARDS, **COLLECTIVES, **ADJUSTMENTS}
"""All of them."""
