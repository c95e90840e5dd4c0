"""What is said on the page of what was measured of resilience, and of a training through failures."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Resilience, measured", "容错的实测")
INTRODUCTION = Words(
    "What became of a small real training while its workers and its control plane failed, and how soon and surely "
    "faults are told. The requirements themselves are judged by the suite, in windows of its own plant and in domains "
    "that it plays; a run of all of them stands last. What is a miss is printed as one.",
    "一项规模小但真实的训练在工作进程与控制面发生故障时的结果，以及识别故障的快慢与准确程度。各项要求由测试套件在其"
    "仿真窗口与所模拟的算力域中判定，全部要求的一次运行列于最后。未达之处如实列出。",
)
NOT_YET = Words("No run has been committed yet.", "尚未提交任何运行结果。")

LIVE = Words("A training through failures", "故障中的训练")
ABOUT = Words(
    "{domains} domains and {spares} that stands by, each a process, on {processors} cores whose load was {load} at the "
    "end: {command}, {minutes} min with {count} incidents ([guide](/guides/live.md), [all of it]({file})). Each kind "
    "was brought about {each} times, one after the other, at unannounced moments.",
    "{domains} 个算力域与 {spares} 个备用域，各为一个进程，运行于 {processors} 个核，结束时负载为 {load}：{command}，"
    "共 {minutes} 分钟、{count} 个故障事件（[指南](/guides/live.md)，[全部结果]({file})）。每类故障"
    "在未预告的时刻依次施加 {each} 次。",
)
COLUMNS = {
    "en": ("Kind", "Incidents", "Recovered", "Detected, s", "First step, s", "Interruption, s", "Steps again"),
    "zh": ("类别", "事件数", "已恢复", "认定，s", "第一步，s", "中断，s", "重复的训练步"),
}
CELLS = Words(
    "Median, 95th percentile of the incidents and the greatest, from the fault; of the interruption, the longest time "
    "without a step that had not been made before.",
    "自故障发生起计，依次为中位数、各事件的第 95 百分位数与最大值；中断为未推进到此前未达到的训练步的最长时间。",
)
JUDGED = Words("What the two requirements of switching and interruption ask for", "切换与中断两项要求")
JUDGED_COLUMNS = {
    "en": ("Requirement", "95th percentile, s", "Upper bound, s", "Required, s", "Aim of a live run, s", ""),
    "zh": ("要求", "第 95 百分位数，s", "置信上限，s", "要求值，s", "实测目标值，s", ""),
}
MET = Words("met", "达到")
MISSED = Words("**missed**", "**未达到**")
DELAYS = Words("How long the training was interrupted", "训练中断的时长")
SHARE = Words("share of incidents", "事件占比")
SECONDS = Words("interruption, s", "中断，s")
HOLDS = Words("What has to hold", "需成立者")
HOLDS_COLUMNS = {"en": ("", "Found"), "zh": ("", "结果")}
DIFFERENCE = Words(
    "largest difference of a step's loss from that of the undisturbed training, nats (tolerance {tolerance})",
    "各训练步的损失与未受扰训练之差的最大值，nat（容差 {tolerance}）",
)
UNTOLD = Words("steps of {steps} without a loss on record", "{steps} 个训练步中没有损失记录者")
NOT_RECOVERED = Words("incidents that were not recovered from", "未能恢复的故障事件")
TWICE = Words(
    "steps under a foreign plan, after a later plan had begun, or with two results, of {entries} in the diaries of the "
    "workers",
    "工作进程自身记录的 {entries} 个训练步中，在不属于自己的计划下、在较晚的计划开始之后，或有两个结果者",
)
PICTURE = Words("Curve and course of the training, with the incidents in it", "训练的损失曲线与进程，及其中的故障事件")
ALARMS = Words(
    "false alarms, over {disturbed} min with faults and {calm} min without",
    "误报，含有故障的 {disturbed} 分钟与无故障的 {calm} 分钟",
)
STAYED = Words("replaced workers that did not end by themselves", "未自行结束的被替换工作进程")
