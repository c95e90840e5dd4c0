"""What is said on the page of what scheduling over domains gained."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Scheduling, measured", "调度的实测")
INTRODUCTION = Words(
    "What the reference's scheduler reaches in the suite, and how it came by its ways. Each run says its command. What "
    "is a miss is printed as one. The suite was run with the rule as it ships, version 1.2.0 of its method.",
    "参考实现的调度器在测试套件中的结果，及其调参与训练的由来。每次运行均列出命令。未达之处如实列出。测试套件的运行采用现行规则"
    "（方法版本 1.2.0）。",
)
NOT_YET = Words(
    "What trainings, devices and traffic gain beside plain policies (SCH-003, SCH-004, SCH-005 and SCH-011) was not "
    "asked for in the run below: the windows of a full run take long by themselves.",
    "下列运行未请求训练、加速器与流量相对简单策略的收益（SCH-003、SCH-004、SCH-005 与 SCH-011）：完整运行的窗口"
    "单独即需较长时间。",
)

GAINS = Words("Gains over single domains", "相对单域调度的收益")
COMPARED = Words(
    "The service and every baseline play the same [simulated windows](/reference/scheduling-world.md) with the same "
    "information. Gains are relative to [**B1**](/reference/scheduling-world.md#baselines), which runs each job in its "
    "home domain, first come first served with backfill; B0 does so without backfill. **B2**, **B3**, **B3c** and "
    "**B4** are plain policies over all domains: B2 takes the first domain that admits a job, B3 the one in which it "
    "is expected to finish first, B3c weighs money for traffic too, B4 follows a linear programme. What B3 gains too "
    "comes of pooling the domains and not of the service. **B5 pool** is B3 with all devices in one place and a free "
    "network: no policy, but how much there is to be gained. *fitted* and *fitted-philly* are jobs drawn from what was "
    "fitted to the public traces ITP and Philly; *itp*, where it is listed, is the trace itself. The figures are those "
    "of the tables further down.",
    "被测服务与各基线经历相同的[仿真窗口](/reference/scheduling-world.md)，所获信息相同。收益均相对 "
    "[**B1**](/reference/scheduling-world.md#baselines)：作业在其所属域内按先到先服务加回填运行；B0 无回填。**B2**、"
    "**B3**、**B3c** 与 **B4** 为跨域的简单策略：B2 取最先接纳作业的域，B3 取预计最先完成的域，B3c 另计流量费用，B4 按"
    "线性规划。B3 亦有的收益来自合池，而非来自被测服务。**B5 理想池**为全部加速器同处一地、网络免费时的 B3，并非策略，"
    "只表明可得收益的多少。ITP 拟合与 Philly 拟合的作业按公开跟踪数据 ITP 与 Philly 的拟合结果生成；若列有 ITP 原始数"
    "据，则为该跟踪数据本身。数值与下文各表相同。",
)
PERIODS = Words(
    "Mean training period at the reference load, less than under B1; bold is the most of any policy",
    "基准负载下的平均训练周期，较 B1 缩短；粗体为各策略中最多者",
)
POLICY = Words("Policy", "策略")
ALL = Words("{}", "{}")
LARGE = Words("{}, eight devices or more", "{}，不少于八个加速器")
COSTS = Words(
    "Money for traffic between domains, in yuan for the work of a reference device in an hour, and the highest load at "
    "which jobs are still served well, with the utilisation there",
    "域间流量费用，按参考设备一小时的工作量计，单位为元；以及作业仍服务良好的最高负载与该处的利用率",
)
TRAFFIC = Words("Traffic, {}", "流量费用，{}")
SUSTAINED_COLUMNS = {
    "en": ("Load, over the reference", "Utilisation", "More than B1"),
    "zh": ("负载 ÷ 基准负载", "利用率", "高于 B1"),
}

CLOSE = Words("Where plain policies come close or win", "简单策略接近或胜出之处")
CLOSE_ABOUT = Words(
    "Compared are the service and the best of B3, B3c and B4 by the mean training period, in {places} places: sources "
    "of jobs, all jobs and large ones apart, and families. The plain policy's period is shorter in {wins} of them; in "
    "{near} more it comes within {points} points of the service's gain.",
    "按平均训练周期比较被测服务与 B3、B3c、B4 中的最优者，共 {places} 处：各作业来源（全部作业与大作业分列）与各场景族"
    "。其中 {wins} 处简单策略的周期更短，另有 {near} 处与被测服务的收益相差不超过 {points} 个百分点。",
)
CLOSE_GAINS = Words(
    "Gains over B1 there, the best plain one bold:", "各处相对 B1 的收益如下，简单策略中的最优者为粗体："
)
CLOSE_COLUMNS = {
    "en": ("Where", "B3", "B3c", "B4", "Service", "Plain one ahead by, points"),
    "zh": ("环境", "B3", "B3c", "B4", "被测服务", "简单策略领先，百分点"),
}

VANISHING = Words("Where gains vanish", "收益消失之处")
FAMILIES = Words(
    "Of the {families} families the service gains least in *{least}*, {least_gain}, and most in *{most}*, {most_gain}. "
    "The table by family stands under [SCH-003](#SCH-003).",
    "{families} 个场景族中，被测服务的收益在“{least}”最小，为 {least_gain}，在“{most}”最大，为 {most_gain}。各场景族"
    "的数值见 [SCH-003](#SCH-003) 的表。",
)
ALIKE = Words(
    "In *{where}*, where accelerators are the same everywhere and the gain is expected to be small, the service gains "
    "{gain}; no policy can gain more than {bound}.",
    "在“{where}”中各域加速器相同，收益理应有限：被测服务为 {gain}，任何策略均不能超过 {bound}。",
)
CURVES = Words(
    "One thing at a time is moved and all else kept as in the reference. Mean training period, less than under B1:",
    "每次只改变一项，其余与基准相同。平均训练周期较 B1 缩短：",
)
MOVED = Words("What is moved", "改变项")
VALUE = Words("Value", "取值")
