"""What is said of policies beside each other."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Policies by family", "各场景族下的策略")
INTRODUCTION = Words(
    "{windows} whole windows of each source of jobs and of each family, in the judge's engine but without HTTP, of a "
    "seed that no run of the suite draws (`{command}`, {date}{method}, [all figures](/{file})). {about}These are "
    "figures of few windows and no verdicts, which are about a service over HTTP: [SCH-003](#SCH-003) and after.",
    "各作业来源与各场景族各 {windows} 个完整窗口，采用判定方的仿真引擎但不经 HTTP，种子为测试套件不采用者"
    "（`{command}`，{date}{method}，[全部数值](/{file})）。{about}窗口数不多，不构成判定；判定针对经 HTTP 的服务，"
    "见 [SCH-003](#SCH-003) 及其后各项。",
)
METHOD = Words(", method {} of the rule", "，规则为方法 {}")
"""Stands behind the date where a file says which method it is of; older ones do not."""

INTERVALS = Words(
    "What follows ± is half of the interval at 95 %, by the jackknife over windows; nothing is claimed of differences "
    "that lie within it. ",
    "± 之后为 95 % 置信区间的半宽，按窗口以刀切法求得；区间以内的差异不作结论。",
)
ABOUT = {
    "B5 pool": Words(
        "**B5** is B3 with all devices in one place and a free network, which nobody has. ",
        "**B5** 为全部加速器位于同一处且网络无代价时的 B3，实际无法达到。",
    ),
    "SRTF": Words(
        "**SRTF** runs the shortest remaining time first and preempts for it. ",
        "**SRTF** 为最短剩余时间优先（可抢占）。",
    ),
    "DRF": Words("**DRF** is dominant resource fairness. ", "**DRF** 为主导资源公平。"),
    "searched": Words(
        "The rule also stands there with the constants that CMA-ES found, as they shipped with method 1.4.0; it then "
        "moved jobs more often than [SCH-008](#SCH-008) allows. ",
        "另列规则在 CMA-ES 搜索所得常数（方法 1.4.0）下的结果，其迁移频次高于 [SCH-008](#SCH-008) 所允许者。",
    ),
    "ppo": Words(
        "**PPO over 1.4.0** is the network that was trained over those constants. The one that ships was trained "
        "since, over the constants that ship, and is compared with the rule below. ",
        "**PPO（1.4.0 常数）**为按这组常数训练的网络。现行网络此后按现行常数重新训练，与规则的比较见下文。",
    ),
    "network": Words(
        "**PPO** is the network that `kuayu serve --scheduler ppo` takes. ",
        "**PPO** 为 `kuayu serve --scheduler ppo` 所用网络。",
    ),
}
"""What is said of policies that stand nowhere else on the page, where the file has them."""
GAINS = {
    "all": Words(
        "Mean training period, less than under B1; bold is the most of any policy",
        "平均训练周期，较 B1 缩短；粗体为最多者",
    ),
    "large": Words("The same, of jobs of eight devices or more", "同上，不少于八个加速器的作业"),
}
MONEY = Words("Money for bandwidth, for a million device seconds that were done", "每完成一百万加速器秒的带宽费用")
WHERE = Words("Where", "环境")
BOUND = Words("Bound of any policy", "任何策略的上界")
POLICIES = {
    "B5 pool": Words("B5", "B5"),
    "searched": Words("Rule, constants of CMA-ES (1.4.0)", "规则，CMA-ES 常数（1.4.0）"),
    "ppo": Words("PPO over 1.4.0", "PPO（1.4.0 常数）"),
    "network": Words("PPO", "PPO"),
    "reference": Words("The reference's rule", "参考实现的规则"),
}
