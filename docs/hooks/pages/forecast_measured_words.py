"""What is said on the page of how well forecasts and phases did."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Forecasts, measured", "预测的实测")
INTRODUCTION = Words(
    "How well the reference forecasts what public traces hold, how fast it is, and what its phases of training look "
    "like on real curves. Each section is one run of the command that it names. What is a miss is printed as one.",
    "参考实现对公开数据的预测效果、速度，以及其训练阶段在真实曲线上的样子。每节为所列命令的一次运行。未达之处如实列"
    "出。",
)
KNOWN = Words(
    "The public traces and curves are *known to the developers*, who saw them while the methods were made, also the "
    "quarters and curves that nothing was fitted to: a stranger may be forecast worse.",
    "所用公开数据与曲线均为*开发者已知*，包括未用于拟合的部分；方法是在已知这些数据的情况下确定的，对未见过的数据误差可"
    "能更大。",
)

TRACES = Words("Public traces", "公开数据")
TRACES_COMMAND = "python -m kuayu_training.forecast --json docs/results/forecast/traces.json"
TRACES_ABOUT = Words(
    "Made by {command}: demanded devices by domain, forecast at instants spread over the last quarter of each source, "
    "which nothing was fitted to (sources: demand_series and job_traces of the public data). WAPE is the sum of errors "
    "over the sum of what came, median over domains and the worst; skill is one less the error over that of the last "
    "value at the same instants, with the 90 % interval from drawing whole days anew. Coverage is that of the stated "
    "90 % interval. Made on 2026-11-22 with `kuayu-hybrid` 1.0.0, neither of which the file says; the reference "
    "forecasts with 1.2.0 since 2026-11-27, and of that this section says nothing.",
    "命令：{command}。按算力域预测加速器需求量，起点均匀分布于各数据源的最后四分之一，该部分未用于任何拟合"
    "（数据源：公开数据 demand_series 与 job_traces）。WAPE 为误差之和与实际值之和的比，列出各域的中位数与最差值；"
    "技巧得分为 1 减去误差与上一值方法误差之比，90 % 区间由按整日重抽样得到。覆盖率为所声明的 90 % 区间的覆盖率。"
    "运行于 2026-11-22，方法为 `kuayu-hybrid` 1.0.0，二者均未记入该文件；参考实现自 2026-11-27 起使用 1.2.0，本节不反映"
    "该版本。",
)
PLAINLY = Words(
    "Plainly: an hour ahead, history alone gives nearly nothing on these data. Over the {sources} sources the "
    "reference's skill lies between {least} and {most}, plain gradient boosting does no better, and the most that any "
    "method reaches without jobs is {best} ({method} on {source}, over {origins} instants). What is told of the jobs "
    "that run is worth as much as their durations are known: on ITP {sharp} where these are told with σ = 0.01, "
    "{rough} with σ = 0.1, {usual} where they are taken from earlier jobs. Most of what is left are jobs that have "
    "not come yet: where they are announced an hour before, the skill is {announced}, and {reach} of the domains are "
    "20 % better than the last value or more; of history alone, {alone} of the domains of ITP.",
    "直言之：在这些数据上，提前一小时仅凭历史几乎没有改进。{sources} 个数据源上参考实现的技巧得分介于 {least} 与 "
    "{most} 之间，普通梯度提升并不更好，不含作业信息的方法中最高者为 {best}（{source} 上的 {method}，{origins} 个起"
    "点）。所告知的在运行作业的价值取决于其时长的可知程度：在 ITP 上，时长误差 σ = 0.01 时为 {sharp}，σ = 0.1 时为 "
    "{rough}，由既往作业推测时为 {usual}。其余部分主要来自尚未到达的作业：若提前一小时预告，技巧得分为 {announced}，"
    "{reach} 的域较上一值方法低 20 % 以上；仅凭历史时，ITP 的域中达到者为 {alone}。",
)
AHEAD = Words("{} minutes ahead", "提前 {} 分钟")
SOURCES = {
    "itp": Words("ITP: ten clusters of Microsoft, 2021 (MIT)", "ITP：微软十个集群，2021 年（MIT）"),
    "philly": Words(
        "Philly: virtual clusters of Microsoft, 2017 (CC BY 4.0)", "Philly：微软的虚拟集群，2017 年（CC BY 4.0）"
    ),
    "helios earth": Words(
        "Helios Earth: virtual clusters of SenseTime, 2020 (CC BY 4.0)",
        "Helios Earth：商汤的虚拟集群，2020 年（CC BY 4.0）",
    ),
    "openb": Words(
        "openb: a cluster of Alibaba, 2023 (research or study use)", "openb：阿里巴巴集群，2023 年（供研究或学习使用）"
    ),
    "dlrm": Words(
        "DLRM: recommenders of Alibaba, 2025 (research or study use)",
        "DLRM：阿里巴巴推荐业务，2025 年（供研究或学习使用）",
    ),
}
TRACE_COLUMNS = {
    "en": (
        "Method",
        "WAPE: median; worst",
        "Last value",
        "Skill: median (90 % interval)",
        "Domains at 20 %",
        "Coverage",
    ),
    "zh": ("方法", "WAPE：中位数；最差", "上一值", "技巧得分：中位数（90 % 区间）", "达到 20 % 的域", "覆盖率"),
}
COLON = Words(":", "：")
INSTANTS = Words(" ({} instants)", "（{} 个起点）")
METHODS = {
    "history": Words("reference, history alone", "参考实现，仅历史"),
    "seasonal naive": Words("seasonal naive", "季节性朴素法"),
    "boosting": Words("plain gradient boosting", "普通梯度提升"),
    "AutoARIMA": Words("AutoARIMA", "AutoARIMA"),
    "AutoETS": Words("AutoETS", "AutoETS"),
    "jobs, as before": Words("reference, jobs with durations as earlier ones", "参考实现，作业时长由既往作业推测"),
    "arrivals announced": Words("{}, arrivals announced an hour before", "{}，到达提前一小时预告"),
    "told": Words("reference, jobs told with σ = {}", "参考实现，作业时长误差 σ = {}"),
}
TOLD = Words(
    "σ is that of the logarithm of the error with which durations of jobs are told.",
    "σ 为所声明作业时长的误差取对数后的标准差。",
)

SPEED = Words("Speed", "速度")
SPEED_COMMAND = "python tests/benchmarks/forecast.py --json docs/results/forecast/speed.json"
SPEED_ABOUT = Words(
    "Made by {command}, with `kuayu-hybrid` 1.0.0, which the file does not say; of 1.2.0, which the reference "
    "forecasts with since 2026-11-27, this section says nothing.",
    "命令：{command}，方法为 `kuayu-hybrid` 1.0.0，未记入该文件；参考实现自 2026-11-27 起使用 1.2.0，本节不反映该版"
    "本。",
)

CURVES = Words("Phases of real trainings", "真实训练的阶段")
CURVES_COMMAND = "python -m kuayu_training.forecast.phases_pictures docs/results/forecast"
CURVES_ABOUT = Words(
    "Made by {command}: of each model in two sets of public curves its run with the most points, whatever it looks "
    "like. Bands are the [phases of the definition](/standard/fct-02-phases.md), which looks both ways; the strip "
    "below is what the reference said at each step when it had seen the run until there. Across is the step, up the "
    "loss, both logarithmic, as the definition takes them. Lines are thinned to a few hundred points. Curves: "
    "Megatron-LM, `tests/functional_tests`, commit d98e8a64 (NVIDIA, BSD-3-Clause style); MLPerf Training results "
    "v3.0 to v5.1 (MLCommons, Apache-2.0), learning rates as their configurations state them. Made on 2026-11-22 with "
    "version 2 of the phases' method, as it still is; the file says neither.",
    "命令：{command}。两组公开曲线中每个模型取点数最多的一次运行，不论其形状。色带为[标准所定义的阶段"
    "](/standard/fct-02-phases.md)，可参照前后两侧；下方窄条为参考实现在每步仅知此前内容时的判断。横轴为训练步，纵轴为"
    "损失，均为对数坐标，与定义一致。曲线经抽稀，至多数百点。数据：Megatron-LM 的 `tests/functional_tests`，提交 "
    "d98e8a64（NVIDIA，BSD-3-Clause 类许可）；MLPerf Training 结果 v3.0 至 v5.1（MLCommons，Apache-2.0）；学习率按其配"
    "置。运行于 2026-11-22，阶段方法版本为 2，与现行版本相同；二者均未记入该文件。",
)
PHASES = (
    Words("warm-up", "预热期"),
    Words("fast convergence", "快速收敛期"),
    Words("stable convergence", "稳定收敛期"),
)
CAPTION = Words(
    "{steps} steps; {begins}. {right} of {asked} steps told rightly.",
    "{steps} 步；{begins}。{asked} 步中 {right} 判断正确。",
)
FAST_FROM = Words("fast from {}", "自第 {} 步快速收敛")
STABLE_FROM = Words("stable from {}", "自第 {} 步稳定收敛")
AND = Words(", ", "，")
NEVER_FAST = Words("warm-up to the end", "预热期持续至结束")
NEVER_STABLE = Words("never stable", "始终未稳定")
MODELS = {
    "bert": Words("BERT", "BERT"),
    "deepseekv3": Words("DeepSeek-V3 proxy", "DeepSeek-V3 代理模型"),
    "gpt3": Words("GPT-3 15B", "GPT-3 15B"),
    "mixtral": Words("Mixtral 8x7B", "Mixtral 8x7B"),
    "nemotron3": Words("Nemotron 3 Super", "Nemotron 3 Super"),
    "t5": Words("T5", "T5"),
    "mlperf-gpt3": Words("MLPerf GPT-3 175B, from a checkpoint", "MLPerf GPT-3 175B，自检查点继续"),
    "mlperf-llama31_405b": Words("MLPerf Llama 3.1 405B, from a checkpoint", "MLPerf Llama 3.1 405B，自检查点继续"),
    "mlperf-llama31_8b": Words("MLPerf Llama 3.1 8B", "MLPerf Llama 3.1 8B"),
}
EYE = Words(
    "By eye: on GPT-3 15B, the DeepSeek-V3 proxy and Mixtral fast convergence ends where one would put it; their "
    "warm-up is long because their learning rate rises for long, while the loss has been falling from the beginning. "
    "T5 and Llama 3.1 8B fall along a power of their steps to the end and are never stable; of the latter the "
    "reference twice says so too early. The others show what the definition cannot do. BERT rests on a plateau, is "
    "called stable, and falls again much later. Both runs from a checkpoint are called stable where warm-up ends; all "
    "of the fall of Llama 3.1 405B comes after that. Nemotron's learning rate rises to the end of what was logged, so "
    "that all of it is warm-up.",
    "目视判断：GPT-3 15B、DeepSeek-V3 代理模型与 Mixtral 的快速收敛期结束之处与直观一致；其预热期偏长，是因为学习率上"
    "升的时间长，而损失自始即在下降。T5 与 Llama 3.1 8B 的损失直至结束均按步数的幂下降，始终未稳定；参考实现两次过早地"
    "将后者判为稳定。其余曲线显示该定义的不足：BERT 停在平台上，被判为稳定，很久之后再次下降；自检查点继续的两次运行在"
    "预热期结束时即被判为稳定，而 Llama 3.1 405B 的下降全部发生在其后；Nemotron 的学习率在所记录范围内始终上升，因而全"
    "程为预热期。",
)
