"""What is said on the page of how near the demand law and right-sizing come."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Demand, measured", "需求的实测")
INTRODUCTION = Words(
    "How near the reference's estimates come to what others measured and published. Each section is one run of the "
    "command that it names; the first needs the table of public training runs. What is a miss is printed as one.",
    "参考实现的估算与他人已测量并公布的结果相差多少。每节为所列命令的一次运行；第一节所用为公开的训练实测表。未达之处"
    "如实列出。",
)
KNOWN = Words(
    "The public runs, and the workload of right-sizing, are *known to the developers*: the law and its constants were "
    "made with them in view, so that a stranger may be predicted worse. The outer loop alone was predicted before "
    "anybody had looked; since then it is known too.",
    "所用公开实测与资源规整的任务均为*开发者已知*：规律及其常数是在已知这些数据的情况下确定的，对未见过的来源误差可能"
    "更大。仅外层在查看之前已作预测；查看之后亦为已知。",
)

LAW = Words("Step time by the demand law", "算力需求规律给出的步时间")
LAW_COMMAND = "python -m kuayu_training.demand --json docs/results/demand/law.json"
LAW_ABOUT = Words(
    "Made by {command} from public runs of training, {timed} of them with a step time; {left} rows of the table could "
    "not be used, since a layout, a batch or a model is not stated. Every source is predicted by the law with "
    "what all others teach. Relative errors of the step time, beside those of the published priors alone and those "
    "of 6·P·tokens at the usual utilisation of the other sources. Made on 2026-11-27 with version 2.0.0 of the law, "
    "neither of which the file says.",
    "命令：{command}。数据为公开的训练实测，其中 {timed} 次有步时间；表中另有 {left} 行因未说明布局、批量或模型而无法"
    "使用。每个来源均由规律结合其余全部来源所示的偏差预测。下表为步时间的相对误差，并列出仅用已公布先验值的误差，"
    "以及以其余来源的通常利用率计算 6·P·词元数的误差。运行于 2026-11-27，规律版本为 2.0.0，二者均未记入该文件。",
)
ERROR_COLUMNS = {
    "en": (
        "Models",
        "Runs",
        "Mean",
        "Median",
        "90th percentile",
        "Runs within 10 %",
        "Mean, priors alone",
        "Mean, 6·P·tokens",
    ),
    "zh": (
        "模型",
        "实测数",
        "平均值",
        "中位数",
        "第 90 百分位",
        "误差 10 % 以内的占比",
        "平均值（仅先验值）",
        "平均值（6·P·词元数）",
    ),
}
KINDS = {
    "dense, structure stated": Words("dense, structure stated", "稠密模型，结构已公布"),
    "dense, structure guessed": Words("dense, structure guessed", "稠密模型，结构为推测"),
    "moe": Words("mixture of experts", "混合专家模型"),
}
WAY_COLUMNS = {
    "en": ("Left out together; mean error", *(each.en for each in KINDS.values())),
    "zh": ("一并留出者；平均误差", *(each.zh for each in KINDS.values())),
}
WAYS = {
    "source": Words("each source", "同一来源"),
    "team": Words("sources of one team on one machine", "同一团队、同一机器的来源"),
    "model": Words("runs of one model", "同一模型"),
    "accelerator": Words("runs on one accelerator", "同一加速器"),
}
CALCULON = Words(
    "On the {runs} runs of table 5 of Korthikanti et al. (arXiv:2205.05198) the law, which has not seen them, is off "
    "by {ours} on the mean. M. Isaev et al. publish {theirs} for the same runs (*Calculon*, SC 2023, table 2), with "
    "efficiencies that were measured on that machine.",
    "对 Korthikanti 等人（arXiv:2205.05198）表 5 的 {runs} 次实测，未曾见过它们的规律平均误差为 {ours}。"
    "M. Isaev 等人对同样的实测公布 {theirs}（*Calculon*，SC 2023，表 2），其效率系在该机器上测得。",
)
BY_SOURCE = Words("By source: {} rows", "按来源：{} 行")
SOURCE_COLUMNS = {
    "en": ("Source", "Models", "Runs", "Mean", "Median", "Bias", "Mean, priors alone", "Mean, 6·P·tokens"),
    "zh": ("来源", "模型", "实测数", "平均值", "中位数", "偏差", "平均值（仅先验值）", "平均值（6·P·词元数）"),
}

ORDER = Words("Order of layouts", "布局的排序")
GROUPS = ("groups", "of three or more", "pairs")
ORDER_ABOUT = Words(
    "Layouts of one model on one machine: {groups} groups with {pairs} pairs whose times differ by more than 2 %; "
    "Kendall's τ is the mean over the {of_three_or_more} groups of three layouts or more.",
    "同一模型在同一机器上的不同布局：{groups} 组，时间相差 2 % 以上者共 {pairs} 对；Kendall τ 为含三种及以上布局的 "
    "{of_three_or_more} 组的平均值。",
)
ORDER_COLUMNS = {"en": ("Figure", "Law", "6·P·tokens"), "zh": ("数值", "需求规律", "6·P·词元数")}
TAU = Words("Kendall's τ", "Kendall τ")
RIGHT = Words("pairs in the right order", "顺序正确的对")
REGRET = Words("slower than the best by, choosing what is ranked first", "选取排名首位者比最优者慢")

MEMORY = Words("Memory", "内存")
MEMORY_COLUMNS = {"en": ("Figure", "Found", "Runs"), "zh": ("数值", "结果", "实测数")}
OF = Words("{} of {}", "{}（共 {}）")
MEMORY_ERROR = Words("mean error of the fullest accelerator", "占用最多的加速器的平均误差")
MEMORY_BIAS = Words("bias", "偏差")
FORESEEN = Words("ran out of memory, and the law says so", "实际内存不足且规律亦如此判断")
ADMITTED = Words("ran, and the law says that they fit", "实际可运行且规律亦判断可容纳")

INNER = Words("Constants chosen without the source that is judged", "常数的选取不使用被判断的来源")
INNER_COMMAND = "python -m kuayu_training.demand.protocol --json docs/results/demand/inner.json"
INNER_ABOUT = Words(
    "Made by {command}, seed {seed}, on 2026-11-27 (which the file does not say). Whole sources are left out in turn: "
    "mean errors of the step time by the law alone, with the runs of all other sources, and with constants that were "
    "chosen on these by nested validation. All of these sources are known to the developers.",
    "命令：{command}，种子 {seed}，运行于 2026-11-27（未记入该文件）。依次留出整个来源：步时间的平均误差，分别为仅用规"
    "律、加其余全部来源的记录，以及在其余来源上以嵌套验证选取常数。这些来源均为开发者已知。",
)
INNER_MEMORY = Words("Memory is off by {} on the mean of {} runs.", "内存的平均误差为 {}（{} 次实测）。")
OUTER = Words("Sources that the law had not seen", "规律未曾见过的来源")
OUTER_ABOUT = Words(
    "Made by {command}, seed {seed}, on {date}: {runs} runs of sources that were entered after the law was made, and "
    "looked at once. That one own run brings like trainings within 6 % where runs agree is missed here. What was "
    "looked at is known to the developers from then on.",
    "命令：{command}，种子 {seed}，运行于 {date}：来源均在规律确定之后录入，共 {runs} 次实测，仅查看一次。记录彼此一致"
    "时一次自有记录使误差降至 6 % 以内的目标在此未达到。查看之后，这些来源即为开发者已知。",
)
LEFT_OUT_KINDS = {"dense": "dense, structure stated", "guessed": "dense, structure guessed", "moe": "moe"}
"""Kinds of the two files as those of the first table."""
OVER = {
    "over runs": Words("runs: {}", "{} 次实测"),
    "over sources": Words("sources: {}", "{} 个来源"),
}
LEFT_OUT_MEANS = {
    "en": ("Models", "Mean over", "Law alone", "With others", "Nested choice"),
    "zh": ("模型", "平均的单位", "仅用规律", "加其余来源", "嵌套验证选取"),
}
LEFT_OUT_WAYS = ("none", "others", "nested", "own 1", "own 3")
LEFT_OUT_COLUMNS = {
    "en": (
        *("Source", "Models", "Runs", "Law alone", "With others", "Nested choice"),
        *("With one own run", "With three", "Scatter of its runs"),
    ),
    "zh": (
        *("来源", "模型", "实测数", "仅用规律", "加其余来源", "嵌套验证选取"),
        *("加一次自有记录", "加三次", "记录的离散度"),
    ),
}

SIZING = Words("Right-sizing by kind of task", "按任务类型的资源规整")
SIZING_COMMAND = "python -m kuayu_training.demand.sizing --json docs/results/demand/sizing.json"
SIZING_ABOUT = Words(
    "Made by {command}: {seeds} worlds of tasks (seeds 0 to {last}), {records} records of each kind, held back in "
    "thirds. Figures are means over worlds with half of their 95 % interval. In each cell is the mean absolute error "
    "of the duration in hours, and below it that over the mean duration (WMAPE). Beside them what Yang, Hong and Tang "
    "print for their own trace (*High Technology Letters* 2023, 33(5), table 3). Made on 2026-11-22 with version 2 of "
    "the method (boosted trees with seen needs), neither of which the file says.",
    "命令：{command}。共 {seeds} 组任务（种子 0 至 {last}），每类 {records} 条记录，依次留出三分之一。数值为各组的平均"
    "值及其 95 % 置信区间的半宽。各格上方为时长的平均绝对误差（MAE），单位为小时，下方为加权平均绝对百分比误差（"
    "WMAPE）。并列者为杨明烜等对其自有日志公布的结果（《高技术通讯》2023, 33(5)，表 3）。运行于 2026-11-22，方法版本为 "
    "2（计入已观测需要的提升树），二者均未记入该文件。",
)
DURATION_COLUMNS = {
    "en": ("Kind", "XGBoost", "Random forest", "Forest's MAE over XGBoost's", "Paper: XGBoost", "Paper: random forest"),
    "zh": ("任务类型", "XGBoost", "随机森林", "随机森林的 MAE 相对 XGBoost", "论文：XGBoost", "论文：随机森林"),
}
CIRCULAR = Words(
    "The workload is drawn after the paper's tables 1 and 3 and is not its trace, which is not at hand. What cannot be "
    "explained of a duration was drawn as large as the paper's WMAPE of XGBoost, so that being near to the paper's "
    "figures says nothing; the difference between both models does. The paper prints no figures for graph learning.",
    "任务按该论文表 1 与表 3 生成，并非其日志，后者无从取得。时长中无法解释的部分按该论文 XGBoost 的 WMAPE 生成，"
    "因此与论文数值接近并不说明什么，两种模型之差才有意义。论文未给出图学习的数值。",
)
IMPORTANCE = Words("What durations depend on", "时长取决于什么")
IMPORTANCE_ABOUT = Words(
    "Permutation importance in the same worlds, as the service states it: by how much the error of held-back records "
    "grows when everything that is told of a resource is shuffled, in parts of the error of always saying the mean. "
    "Here durations were drawn to follow the size of a task, which all three resources tell alike, so that none should "
    "stand out. Where durations do depend on one resource by kind, in the suite's own world, the last table of "
    "[DEM-003](#DEM-003) shows what the service finds.",
    "同样各组任务中的排列重要性，即服务所声明者：将某资源的全部信息打乱后留出记录的误差增量，以恒取平均值的误差为 1。"
    "此处的时长按任务规模生成，三种资源对规模的反映相同，因此任何一种均不应突出。时长因类型而取决于某一资源的情形见测"
    "试套件自身的环境，服务所得见 [DEM-003](#DEM-003) 的最后一表。",
)
IMPORTANCE_COLUMNS = {
    "en": ("Kind", "Accelerators", "Cores", "Memory"),
    "zh": ("任务类型", "加速器", "CPU 核", "内存"),
}
SAVED = Words("What is saved, by how much too much is asked for", "节省的资源与超额申请的程度")
SAVED_ABOUT = Words(
    "In per cent of what was asked for, by mix (ResNet : NMT : GraphLearn : CTR) and by what is asked for over what is "
    "needed (median). Tasks may be 5 % slower on the mean. The interval of the duration is to hold 90 %.",
    "按任务比例（ResNet : NMT : GraphLearn : CTR）与申请量相对需要量之比的中位数，节省量相对申请量，均为百分数。允许平"
    "均减慢 5 %。时长的区间应包含 90 %。",
)
SAVED_COLUMNS = {
    "en": (
        "Mix",
        "Over-request",
        "Accelerators",
        "Cores",
        "Memory",
        "Out of memory",
        "Slower",
        "As told",
        "In interval",
    ),
    "zh": ("任务比例", "超额申请", "加速器", "CPU 核", "内存", "内存不足", "减慢", "声明的减慢", "落入区间"),
}
SAVED_NAMES = ("devices", "cores", "memory", "out_of_memory", "slow_down", "told", "covered")
