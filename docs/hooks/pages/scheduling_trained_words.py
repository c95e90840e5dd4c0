"""What is said of how the reference's scheduler was tuned and trained."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("How the reference's rule is tuned, and what PPO learned", "参考实现规则的调参与 PPO 训练")
TUNED = Words(
    "The reference decides by a [rule](/guides/scheduler.md). {constants} of its constants were searched by CMA-ES: "
    "{generations} generations, each in {windows} new windows of each of two sources of jobs, as the judge plays them "
    "but of seeds that no judge takes (`{command} --seed {seed}`, {date}, [all figures](/{file})). What is made little "
    "is the mean period of all jobs and that of large ones, alike, and a tenth of what bandwidth costs. The table "
    "compares what was found with the rule that it began with, in windows that nothing was chosen by; in brackets "
    "one-sided upper bounds at 95 %.",
    "参考实现按[规则](/guides/scheduler.md)决策。其中 {constants} 个常数以 CMA-ES 搜索：共 {generations} 代，"
    "每代采用两种作业来源各 {windows} 个新窗口，形式与判定方相同，但种子为判定方不采用者"
    "（`{command} --seed {seed}`，{date}，[全部数值](/{file})）。目标为降低全部作业与大作业的平均训练周期（同等计入）"
    "以及带宽费用（按十分之一计入）。下表在未用于选择的窗口中比较搜索结果与原规则；括号内为单侧 95 % 上限。",
)
TUNED_COLUMNS = {"en": ("Constant", "Before", "Found"), "zh": ("常数", "原值", "搜索结果")}
TUNED_ROWS = Words("All {count} constants", "全部 {count} 个常数")

LEARNED = Words(
    "A network may set five of the rule's constants by how things stand. It begins with the rule and is improved by "
    "proximal policy optimisation (PPO): {seeds} seeds, {steps} half hours each in scenarios that are drawn anew, "
    "{decisions} million decisions of the rule in all (`{command} --seed {seed}`, {date}, [curves](/{file})). The one "
    "that was best where it was looked at is compared with the rule in {held} whole windows of each kind, by which "
    "nothing was chosen.",
    "网络可依据当前状态设定规则的五个常数。网络以规则为起点，以近端策略优化（PPO）改进：共 {seeds} 个种子，"
    "各在不断新抽取的场景中学习 {steps} 个半小时，其间规则共作出 {decisions} 百万次决策"
    "（`{command} --seed {seed}`，{date}，[学习曲线数据](/{file})）。再取观测处最优者，"
    "在各类未用于选择的 {held} 个完整窗口中与规则比较。",
)
SHIPPED = Words(
    "**It has earned its place** by the rule that was set before (`kuayu_training.scheduling.scheduler`), and ships "
    "as the default.",
    "**网络已达到事先规定的条件**（`kuayu_training.scheduling.scheduler`），作为默认策略发布。",
)
NOT_SHIPPED = Words(
    "**It has not earned its place.** To ship as the default it would have to spend 15 % less at periods that are no "
    "longer (upper bound of 1 % more), or shorten both periods by 3 % at no more money. The rule decides; the network "
    "is an option (`kuayu serve --scheduler ppo`).",
    "**网络尚未达到条件。**作为默认策略发布需满足：训练周期不长于规则（上限不超过 1 %）且费用低 15 %，"
    "或费用不增而两种训练周期均缩短 3 %。由规则决策；网络为可选项（`kuayu serve --scheduler ppo`）。",
)
DRAWN = {
    "Gain over the rule in whole windows that nobody learned from, by half hours": (
        "未用于学习的完整窗口中相对规则的收益，按半小时数"
    ),
    "the rule": "规则",
    "seed ": "种子 ",
    " (chosen)": "（选用）",
}
"""What stands in the drawing."""
CURVES = Words("Learning curves, a line for each seed", "学习曲线，每个种子一条")
COMPARED_COLUMNS = {
    "en": ("Windows", "Number", "Policy", "Period ÷ rule's", "Large jobs", "Money for work"),
    "zh": ("窗口", "数量", "策略", "训练周期 ÷ 规则", "大作业", "单位工作量费用"),
}
KINDS = {
    "tuned": Words("as tuned in, jobs fitted to ITP", "与调参同类，ITP 拟合的作业"),
    "tuned, Philly": Words("as tuned in, jobs fitted to Philly", "与调参同类，Philly 拟合的作业"),
    "learned": Words("like those learned in", "与学习环境同类"),
    "larger": Words("ten to sixteen domains", "十至十六个域"),
    "strange": Words("families that nobody learned in", "未学习过的场景族"),
    "philly": Words("jobs fitted to Philly", "Philly 拟合的作业"),
    "trace": Words("jobs of ITP's trace", "ITP 跟踪数据中的作业"),
    "together": Words("all together", "合计"),
}
POLICIES = {
    "found": Words("what was found", "搜索结果"),
    "scores": Words("of it: scores", "其中：评分"),
    "order": Words("of it: order of jobs", "其中：作业次序"),
    "interruptions": Words("of it: interruptions", "其中：中断"),
    "ships": Words("**what ships**", "**发布值**"),
    "network": Words("network", "网络"),
}
APART = Words(
    "Found constants of the order of jobs make no difference, and stay as they were; the others shipped, rounded, as "
    "method 1.4.0. Those of interruptions, but for the horizon, moved jobs more often than SCH-008 allows, and have "
    "been replaced in 1.5.0; figures of the search are of before, those of PPO of 1.5.0. The same in other windows, "
    "group by group (`{command} --seed {seed}`, {date}, [all figures](/{file})); the rule here "
    "is the one before.",
    "作业次序的常数无显著影响，保持原值；其余取整后作为方法 1.4.0 发布。其中中断常数（时限除外）"
    "使作业迁移频率超出 SCH-008 的限值，已在 1.5.0 中替换；搜索的数值均为替换之前，下文 PPO 的数值为 1.5.0。"
    "下表为另一组窗口中的分组比较"
    "（`{command} --seed {seed}`，{date}，[全部数值](/{file})）；此处“规则”为调参前的规则。",
)
