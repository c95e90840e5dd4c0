"""What is said of policies beside each other."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Policies beside each other", "各策略对比")
INTRODUCTION = Words(
    "{windows} whole windows of each source of jobs and of each family, in the judge's engine but without HTTP, of a "
    "seed that no run of the suite draws (`{command}`, {date}, [all figures](/{file})). **SRTF** runs the shortest "
    "remaining time first and preempts for it, **DRF** is dominant resource fairness; the others are as above. These "
    "are figures of few windows and no verdict, which is about a service over HTTP: [SCH-003](#SCH-003) and after.",
    "各作业来源与各场景族各 {windows} 个完整窗口，采用判定方的仿真引擎但不经 HTTP，种子为测试套件不采用者"
    "（`{command}`，{date}，[全部数值](/{file})）。**SRTF** 为最短剩余时间优先（可抢占），**DRF** 为主导资源公平；"
    "其余同上。窗口数不多，不构成判定；判定针对经 HTTP 的服务，见 [SCH-003](#SCH-003) 及其后各项。",
)
GAINS = {
    "all": Words(
        "Mean training period, less than under B1; bold is the most of any policy",
        "平均训练周期，较 B1 缩短；粗体为最多者",
    ),
    "large": Words("The same, of jobs of eight devices or more", "同上，不少于八个加速器的作业"),
}
MONEY = Words("Money for bandwidth, for a million device seconds that were done", "每完成一百万设备秒的带宽费用")
WHERE = Words("Where", "环境")
BOUND = Words("Bound of any policy", "任何策略的上界")
POLICIES = {"reference": Words("The reference's rule", "参考实现的规则")}
