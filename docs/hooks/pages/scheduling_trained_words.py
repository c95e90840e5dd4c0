"""What is said of how the reference's scheduler was tuned and trained."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("How the reference came by its ways", "参考实现的调参与训练")
TUNED = Words(
    "The reference decides by a [rule](/guides/scheduler.md), a weighted sum. What a yuan for bandwidth counts in it, "
    "in seconds, and what a second of waiting, was tuned in {windows} windows that no judge takes "
    "(`{command} --seed {seed}`, [all figures](/{file})). Taken were those with the shortest training periods, of all "
    "jobs and of those of eight devices or more alike, that spend at most four fifths of what B3c does for bandwidth, "
    "which spends about half of what B1 does: **{money} s** and **{doubt}**, with {period} of B3c's period, {large} of "
    "that of large jobs, and {cost} of its money.",
    "参考实现按加权和[规则](/guides/scheduler.md)决策。其中带宽费用一元折合的秒数与等待一秒的权重，在判定方不采用的 "
    "{windows} 个窗口中选定（`{command} --seed {seed}`，[全部数值](/{file})）。在带宽费用不超过 B3c 五分之四（B3c 约为 "
    "B1 的一半）的取值中，取训练周期最短者，全部作业与不少于八个加速器的作业同等计入：选定 **{money} s** 与 "
    "**{doubt}**，训练周期为 B3c 的 {period}，大作业为 {large}，费用为 {cost}。",
)
TUNED_COLUMNS = {
    "en": ("Money, s", "Waiting", "Period, of B3c's", "Large jobs, of B3c's", "Money, of B3c's"),
    "zh": ("费用，s", "等待", "训练周期 ÷ B3c", "大作业 ÷ B3c", "费用 ÷ B3c"),
}
TUNED_ROWS = Words("All {count} choices", "全部 {count} 种取值")

LEARNED = Words(
    "A network may take the rule's place. It begins with what the rule does and is improved by proximal policy "
    "optimisation with masked actions: {seeds} networks, {steps} steps each "
    "(`python -m kuayu_training scheduler --seed {seed}`, [curves](/{file})). The one that was best where it was "
    "looked at is then compared with the rule and with plain policies in {held} scenarios of each kind by which none "
    "of them was chosen. "
    "The time that all jobs and those of eight devices or more are there, and money for bandwidth, are relative to "
    "B3c in the same scenario; the objective counts both times alike, and a tenth of the money.",
    "规则可由网络替代。网络先模仿规则，再以带动作掩码的近端策略优化（PPO）改进：共 {seeds} 个网络，各 {steps} 步"
    "（`python -m kuayu_training scheduler --seed {seed}`，[学习曲线数据](/{file})）。"
    "再取观测处最优者，在各类未用于选择的 {held} 个场景中与规则及简单策略比较。"
    "全部作业的耗时、不少于八个加速器的作业的耗时与带宽费用均相对同一场景中的 B3c；"
    "目标值中两种耗时同等计入，费用按十分之一计入。",
)
SHIPPED = Words(
    "It is better than the rule there: by {lead}, at least {floor}. It ships, and decides.",
    "其在与学习环境同类的场景中优于规则：目标值高 {lead}，下限 {floor}。该网络随参考实现发布并用于决策。",
)
NOT_SHIPPED = Words(
    "**It has not earned its place:** in scenarios like those it learned in its objective is {lead} against the "
    "rule's, at least {floor}, so that nothing is proven. No network ships, and the rule decides.",
    "**网络尚未取得应有优势：**在与学习环境同类的场景中，其目标值相对规则为 {lead}，下限 {floor}，不足以证明更优。"
    "故不发布网络，由规则决策。",
)
DRAWN = {
    "Gain over B3c in scenarios that nobody learned from, by steps": "未用于学习的场景中相对 B3c 的收益，按步数",
    "the rule": "规则",
    "seed ": "种子 ",
    " (chosen)": "（选用）",
}
"""What stands in the drawing."""
CURVES = Words("Learning curves, a line for each seed", "学习曲线，每个种子一条")
COMPARED_COLUMNS = {
    "en": ("Scenarios", "B3", "B4", "Rule", "Network", "Network over rule, at least"),
    "zh": ("场景", "B3", "B4", "规则", "网络", "网络相对规则，下限"),
}
KINDS = {
    "learned": Words("like those learned in", "与学习环境同类"),
    "larger": Words("ten to sixteen domains", "十至十六个域"),
    "strange": Words("families that nobody learned in", "未学习过的场景族"),
    "philly": Words("jobs fitted to Philly", "Philly 拟合的作业"),
    "trace": Words("jobs of ITP's trace", "ITP 跟踪数据中的作业"),
}
FIGURES = Words("{period}, large {large}; money {cost}", "{period}，大作业 {large}；费用 {cost}")
