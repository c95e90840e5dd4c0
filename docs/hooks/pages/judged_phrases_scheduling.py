"""Phrases of the checks of scheduling, English to Chinese; they come before those of other checks."""

FRONTS = {
    "mean share of the points of the exact front that a schedule reaches within a hundredth in both ends; "
    "one-sided 95 % bootstrap bound over instances": (
        "精确前沿上被某个调度方案在两项目标上均达到（相差不超过百分之一）的点的占比，对各算例取平均；单侧 95 % 置信界"
        "由对算例的自助法得到"
    ),
    "Fronts": "前沿",
    "instance": "算例",
    "points": "前沿点数",
    "schedules": "方案数",
    "reached": "达到的占比",
    "hypervolume over the exact": "超体积 ÷ 精确前沿的超体积",
    "mean period, h": "平均周期，h",
    "communication cost": "通信成本",
    "exact": "精确前沿",
    "answer": "服务的响应",
}

TIMES = {
    "the first decision, cold": "首次决策（冷启动）",
    "median of the others, warm": "其余决策的中位数（热状态）",
    "99th percentile of the others, warm": "其余决策的第 99 百分位数（热状态）",
    "Time of decisions over HTTP": "经 HTTP 决策所需的时间",
    "state": "状态",
    "decisions": "决策数",
    "request": "请求大小",
    "jobs started": "启动的作业",
    "first": "首次",
    "slowest": "最慢",
    "99th percentile of the seconds for which domains had to wait, bound by order statistics": (
        "各域等待时间的第 99 百分位数，置信界由次序统计量得到"
    ),
    "silent at prepare": "准备阶段有域无响应",
    "silent at commit": "提交阶段有域无响应",
    "plain": "顺利完成",
    "placed": "指定节点",
    "refused": "遭拒绝",
    "expired": "预留过期",
}

PERIODS = {
    "fitted": "ITP 拟合（fitted）",
    "fitted-philly": "Philly 拟合（fitted-philly）",
    "itp": "ITP 原始数据（itp）",
    "of eight devices or more": "不少于八个加速器",
    "service": "被测服务",
    "bound": "下界",
    "B5 pool": "B5 理想池",
    "B5 bound": "B5 下界",
    "mean, h": "平均，h",
    "less than B1": "较 B1 减少",
    "of the pool's gain": "占理想池收益",
    "above the bound": "高于下界",
    "they are shown not to be, of all jobs or of large ones": "已证明并非如此（全部作业或大作业）",
    "eight devices or more, h": "不少于八个加速器，h",
    "job by job": "逐作业减少",
    "weighted, less than B1": "按工作量加权，较 B1 减少",
    "p95, less than B1": "第 95 百分位，较 B1 减少",
    "imputed": "推算所占比例",
    "weighted by work, h": "按工作量加权，h",
    "p95, h": "第 95 百分位，h",
    "slowdown ≤ 10": "减速比 ≤ 10",
    "not finished": "未完成",
    "utilisation": "利用率",
    "traffic": "流量费用",
    "devices": "加速器",
    "asked": "询问次数",
    "orders refused": "被拒的指令",
    "bad answers": "无效响应",
    "Training period by family at the reference load, less than under B1": "基准负载下各场景族的训练周期，较 B1 缩短",
    "family": "场景族",
    "windows": "窗口数",
    "under B1, h": "B1 下，h",
    "at least": "至少",
    "shortest": "最短者",
    "less than under B1, %": "较 B1 缩短，%",
}

FAMILIES = {
    "balanced": "供需均衡（balanced）",
    "east-west": "东数西算（east-west）",
    "gravity": "数据固定（gravity）",
    "wan-poor": "窄带广域网（wan-poor）",
    "wan-rich": "光传输线路（wan-rich）",
    "bursty": "成批到来（bursty）",
    "heterogeneous": "多种加速器（heterogeneous）",
    "identical": "加速器相同（identical）",
    "faulty": "频繁故障（faulty）",
    "slow-on-site": "实际最慢（slow-on-site）",
    "false-capacity": "虚报容量（false-capacity）",
    "giant": "巨型作业（giant）",
    "collapse": "带宽骤降（collapse）",
    "partition": "域失联（partition）",
    "misjudged": "时长误报（misjudged）",
}

CURVES = {
    "skew of demand": "需求偏斜",
    "load over the reference load": "负载与基准负载之比",
    "chance that data are at home": "数据位于本域的概率",
    "devices asked for beyond use": "超出使用量的申请",
    "tariff over the usual": "费率与通常费率之比",
    "share of the work in jobs larger than their home": "超出本域规模的作业的工作量占比",
    "share of jobs that are elastic": "弹性作业占比",
    "factor by which durations are misjudged": "申报时长的误差倍数",
    "at 0 none can be resized": "0 为作业均不可伸缩",
    "at 1 data need not move for home": "1 为数据均在本域",
    "0 is balanced": "0 为均衡",
    "near 0 all is idle": "接近 0 时全部空闲",
    "0 is as much as is used": "0 为恰等于使用量",
    "at 0 traffic is free": "0 为流量免费",
}

USED = {
    "load": "负载",
    "more than B1": "高于 B1",
    "Jobs served well, large ones likewise, and utilisation, by load over the reference load": (
        "按负载与基准负载之比：服务良好的作业、其中的大作业，以及利用率"
    ),
    "served": "服务良好",
    "large": "大作业",
    "used": "利用率",
    "Utilisation over the load": "利用率随负载的变化",
    "useful work over capacity, %": "有用工作量 ÷ 容量，%",
    "Service over the load": "服务水平随负载的变化",
    "jobs with a bounded slowdown of 10 at most, %": "有界减速比不超过 10 的作业，%",
    "Time": "时间",
    "Time, h": "时间，h",
    "Jobs by domain": "各域的作业",
    "Share": "占比",
    "Number": "数量",
    "Gbit/s": "流量，Gbit/s",
    "jobs": "作业",
    "zhangjiakou": "张家口",
    "jiashan": "嘉善",
    "guiyang": "贵阳",
    "hohhot": "呼和浩特",
    "shaoguan": "韶关",
    "chengdu": "成都",
}

MONEY = {
    "Money for traffic, yuan for the work of a reference device in an hour": (
        "流量费用，按参考设备一小时的工作量计，单位为元"
    ),
    "where": "环境",
    "service less than B1": "被测服务较 B1 减少",
    "less than B3": "较 B3 减少",
    "period longer than B3's": "周期较 B3 延长",
    "larger than home: B1's static pair": "超出本域规模的作业：B1 的静态域对",
    "their period less than B1's": "其周期较 B1 缩短",
    "how many of the three reach their thresholds, on the same windows, with one policy and its own weights; as "
    "bound: how many do so with their bounds, after Holm": (
        "同一批窗口上、同一策略及其自身权重下，三项中达到要求值的项数；置信界为其置信界亦达到要求值的项数（经 Holm 校"
        "正）"
    ),
}

SHARES = {
    "distance between allocated and planned share over the planned share, compute weighted by index, in the "
    "worst domain of each plan; mean over plans with its one-sided 95 % bootstrap bound": (
        "实际份额与计划份额之差 ÷ 计划份额，算力按指数加权，取每个计划中最差的域；对各计划取平均，单侧 95 % 置信界由"
        "自助法得到"
    ),
    "operator's shares": "运营方的份额",
    "the service's own plan": "被测服务自身的计划",
    "Shares of the worst domain of each plan": "每个计划中最差的域的份额",
    "plan": "计划",
    "planned share": "计划份额",
    "allocated share": "实际份额",
    "relative error": "相对误差",
}

SWINGS = {
    "seconds from first step to end in which jobs of the cohort ran ÷ all of them; the worst form of load; "
    "bound: the least of the forms' one-sided 95 % bootstrap bounds over windows, nought for fewer than 5 "
    "windows of a form": (
        "计分作业自首步至结束的时间中处于运行状态的占比；取最差的负载形式；置信界为各负载形式单侧 95 % 置信界中的最小"
        "值，由对窗口的自助法得到，某一形式不足 5 个窗口时计为零"
    ),
    "step": "阶跃",
    "ramp": "斜坡",
    "oscillating": "振荡",
    "Load that varies by ±20 %": "波动 ±20 % 的负载",
    "uninterrupted": "无中断",
    "stops": "强制停止",
    "migrations": "迁移",
    "job hours": "作业小时",
    "queue grew, days": "队列增长，天",
}

EXPLAINED = {
    "share of the decisions of the run that are explained, jobs that wait without being named included; all were "
    "counted, so the bound is the figure": (
        "整个运行中附有解释的决策的占比，等待而未被提及的作业亦计入；已对全部决策计数，故置信界即为估计值"
    ),
    "Predictions against the judge's world (aim: within 10 %)": (
        "预计结果与仿真环境中所得之比较（目标：误差 10 % 以内）"
    ),
    "way": "方案",
    "predicted": "预计项",
    "run": "运行次数",
    "median error": "误差中位数",
    "within 10%": "误差 10 % 以内",
    "chosen": "所选方案",
    "alternatives": "替代方案",
    "first step": "首步时刻",
    "end": "结束时刻",
    "communication": "通信",
    "price": "价格",
    "efficiency": "效率",
    "What weights do, mean over jobs": "权重的作用，对各作业取平均",
    "batch": "批次",
    "what counts": "计入的目标",
    "started": "启动的占比",
    "index over best": "指数 ÷ 最佳指数",
    "period": "周期",
}

NEAR = {
    "mean over windows of Kendall's rank correlation of a job's traffic with the distance between its devices, "
    "jobs being alike otherwise; one-sided 95 % bootstrap bound over windows": (
        "作业流量与其加速器间距离的 Kendall 秩相关，作业的其他条件相同，对各窗口取平均；单侧 95 % 置信界由对窗口的自"
        "助法得到"
    ),
    "jobs placed, share": "已放置作业的占比",
    "Distance between the devices of a job (0 on a node, 1 on a switch, 2 in a domain)": (
        "一个作业的加速器之间的距离（同一节点为 0，同一交换机为 1，同一域为 2）"
    ),
    "traffic, from the least": "流量，由小到大",
    "mean distance": "平均距离",
}

PHRASES = FRONTS | TIMES | PERIODS | FAMILIES | CURVES | USED | MONEY | SHARES | SWINGS | EXPLAINED | NEAR
