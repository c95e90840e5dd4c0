"""What is said of what the gain of the scheduler hangs on."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Sensitivity: what the gain hangs on", "敏感性：收益取决于什么")
INTRODUCTION = Words(
    "One thing of the reference cell is moved at a time, whose jobs are fitted to ITP; all else stays. The reference's "
    "rule plays {windows} whole windows at each point, compiled, without HTTP; they are of seeds that no run of the "
    "suite draws (`{command}`, {date}{method}, [all figures](/{file})). Gain is one less the mean training period "
    "over that of B1 (a job's home domain, backfilling); bars are 95 % bounds by the jackknife over windows. "
    "Money is for bandwidth, for a million device seconds that were done.",
    "每次只改变参考配置（作业按 ITP 拟合）中的一项，其余不变。"
    "参考实现的规则在每个取值下以编译形式（不经 HTTP）运行 {windows} 个完整窗口，"
    "其种子为测试套件不采用者（`{command}`，{date}{method}，[全部数值](/{file})）。"
    "收益为 1 减去平均训练周期与 B1（所属域内回填）之比；误差线为按窗口刀切法得到的 95 % 界。"
    "费用指每完成一百万加速器秒的带宽费用。",
)
FOUND = Words(
    "Of all jobs the rule's gain lies between {least} ({least_at}) and {most} ({most_at}). Bandwidth costs more than "
    "under B1 at: {dearer}. The gain cannot be told from none at: {none}.",
    "全部作业的收益介于 {least}（{least_at}）与 {most}（{most_at}）之间。带宽费用高于 B1 的取值：{dearer}。"
    "收益与零无显著差异的取值：{none}。",
)
AT = Words("{what}: {value}", "{what}：{value}")
NOWHERE = Words("no point", "无")
RULE_ALL = Words("the rule, all jobs", "规则，全部作业")
RULE_LARGE = Words("the rule, large jobs", "规则，大作业")
BESIDE = Words("B3, all jobs", "B3，全部作业")
BOUND = Words("bound of any policy, all jobs", "任何策略的上界，全部作业")
FIGURES = Words("All figures", "全部数值")
COLUMNS = {
    "en": (
        *("What is moved", "Value", "Rule, all", "Rule, large", "B3, all", "B3, large", "Bound, all"),
        *("Money B1", "B3", "Rule", "Where it has to vanish"),
    ),
    "zh": (
        *("改变项", "取值", "规则，全部", "规则，大作业", "B3，全部", "B3，大作业", "上界，全部"),
        *("费用 B1", "B3", "规则", "应消失之处"),
    ),
}
