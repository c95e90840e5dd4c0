"""Phrases of the checks of demand and forecasts, English to Chinese."""

DEMAND = {
    "mean absolute percentage error of the step time over published runs of dense models whose structure is stated, "
    "each source left out in turn; one-sided 95 % bootstrap bound over sources": "结构已公布的稠密模型已公布实测的步时"
    "间的平均绝对百分比误差，依次留出每个来源；单侧 95 % 置信界由对来源的自助法得到",
    "dense": "稠密模型",
    "structure guessed": "结构为推测",
    "structure stated": "结构已公布",
    "experts": "混合专家模型",
    "Error of the step time, its source left out": "步时间的误差，留出所属来源",
    "Error of the step time by source": "各来源步时间的误差",
    "Error of the step time, every source of the same team on the same machine left out": "步时间的误差，"
    "留出同一团队在同一机器上的全部来源",
    "models": "模型",
    "model": "模型",
    "sources": "来源数",
    "source": "来源",
    "runs": "实测数",
    "mean": "平均值",
    "median": "中位数",
    "10th percentile": "第 10 百分位",
    "90th percentile": "第 90 百分位",
    "bias": "偏差",
    "in 90 % interval": "落入 90 % 区间",
    "6·P·tokens": "6·P·词元数",
    "the runs that Calculon publishes": "Calculon 公布的实测",
    "Calculon itself, its efficiencies measured there": "Calculon 自身，其效率在该机器上测得",
    "Memory of the fullest accelerator against what was reported": "占用最多的加速器的内存与所报告值之比较",
    "runs that tell it": "报告该值的实测数",
    "within 10 %": "误差 10 % 以内",
    "ran out of memory, and that was told": "实际内存不足且判断亦然",
    "ran, and fits": "实际可运行且判断可容纳",
    "Order of layouts of one model on one machine: mean of Kendall's τ over pairs that differ by more than 2 %": "同一"
    "模型在同一机器上不同布局的排序：相差 2 % 以上的对的 Kendall τ 平均值",
    "groups": "组数",
    "layouts": "布局数",
    "all": "全部",
    "Predicted against measured step time, its source left out": "步时间的预测值与实测值，留出所属来源",
    "measured, s": "实测值，s",
    "predicted, s": "预测值，s",
}

SIZING = {
    "gain reached ÷ gain required, each the total with the service's sizes ÷ that with what was asked for − 1, of "
    "deployed tasks, completion rate, devices and memory put to use; the least of the four in the worst of three mixes "
    "under FIFO at 70 tasks an hour and a mean over-request of 1.43; one-sided 95 % bootstrap bound over windows. Not "
    "the trace of the source, but a world drawn from the figures that it prints": "所得提升 ÷ 要求的提升；提升为采用服"
    "务规整结果时的总量与按原申请时的总量之比减 1，分别取任务部署量、任务完成率、加速器利用率与内存利用率；每小时 70 "
    "个任务、平均超额申请 1.43、FIFO 之下，取三种任务比例中最差者的四项最小值；单侧 95 % 置信界由对时间窗的自助法得"
    "到。所用并非来源的日志，而是按其公布数值生成的环境",
    "gain over what was asked for with the service's sizes − the same with one rate for the cores of all tasks that "
    "makes them 5 % slower on the mean; a gain is the mean of four (deployed tasks, completion rate, devices and "
    "memory put to use), each the total with these sizes ÷ that with what was asked for − 1; mean over over-requests "
    "of 1.2, 1.43, 1.6, the least of three mixes under FIFO, SRTF and DRF at 70 tasks an hour; one-sided 95 % "
    "bootstrap bound over windows. Not the trace of the source, but a world drawn from the figures that it "
    "prints": "采用服务规整结果时"
    "相对原申请的增益 − 对全部任务的 CPU 核按同一比例削减、使其平均减慢 5 % 时的增益；增益为四项（任务部署量、任务完成"
    "率、加速器与内存的使用）的平均值，每项为采用该规整时的总量与按原申请时的总量之比减 1；对超额申请 1.2、1.43、1.6 取"
    "平均，再取三种任务比例与 FIFO、SRTF、DRF 中最差者，每小时 70 个任务；单侧 95 % 置信界由对时间窗的自助法得到。"
    "所用并非来源的日志，而是按其公布数值生成的环境",
    "Gain over what was asked for along the over-request, mean of the four; in points, by how much the service exceeds "
    "one rate": "沿超额申请的增益（相对原申请，四项平均）；末列为被测服务超出同一比例的百分点",
    "service less one rate": "服务减同一比例",
    "What the source states, and the set-up of this world that comes nearest to each figure, and to all four at "
    "once": "来源所述，以及本环境中与每项数值、与四项同时最接近的设置",
    "figure": "数值",
    "source": "来源",
    "set-up that comes nearest": "最接近的设置",
    "all four": "四项同时",
    "mean of the four": "四项平均",
    "Gain along the over-request, FIFO": "沿超额申请的增益，FIFO",
    "Gain along the load, FIFO": "沿负载的增益，FIFO",
    "mean gain, %": "平均增益，%",
    "nobody overtakes": "不可越过前者",
    "Gains over what was asked for, relative; the last three of each mix know what every task needs: what is needed, "
    "as little as makes each task 5 % slower, one part of their cores for all that makes them 5 % slower on the mean "
    "(what "
    "the source's algorithm 1 comes to)": "相对原申请的提升（相对值）；每种比例的后三行已知各任务的真实需要：恰为所需、"
    "少至每个任务减慢 5 %、全部任务按同一比例削减 CPU 核至平均减慢 5 %（来源的算法 1 即归于此）",
    "mix (ResNet:NMT:GraphLearn:CTR)": "任务比例（ResNet:NMT:GraphLearn:CTR）",
    "mix": "任务比例",
    "sizes": "规整方式",
    "policy": "策略",
    "deployed": "部署量",
    "completed": "完成率",
    "devices": "加速器",
    "memory": "内存",
    "cores": "CPU 核",
    "least ÷ required": "最小值 ÷ 要求",
    "not named": "未说明",
    "service": "被测服务",
    "what is needed": "恰为所需",
    "as much slower as allowed": "减慢至允许的限度",
    "one rate for cores": "CPU 核按同一比例",
    "The same as per cent before and points added: put to use is what tasks use while they run, given away what they "
    "hold. Whether its per cents of shares are relative, and which of the two it counts, the source does not "
    "say": "同上，以规整前的百分数与增加的百分点表示：“使用”为任务运行期间所使用者，“占用”为其所持有者。来源未说明其百"
    "分数是否为相对值，也未说明所计为二者中的哪一个",
    "deployed before": "规整前部署量",
    "devices used": "加速器使用",
    "memory used": "内存使用",
    "completed +": "完成率 +",
    "devices used +": "加速器使用 +",
    "memory used +": "内存使用 +",
    "devices held +": "加速器占用 +",
    "cores held +": "CPU 核占用 +",
    "memory held +": "内存占用 +",
    "What it costs; of a window under FIFO, where it is not of all tasks": "代价；除针对全部任务者外，均为 FIFO 之下一"
    "个时间窗的值",
    "tasks that run out of memory": "内存不足的任务",
    "runs lost": "损失的运行",
    "hours lost": "损失的小时",
    "slower on the mean": "平均减慢",
    "cores not given (source: 28.5 %)": "未给予的 CPU 核（来源：28.5 %）",
    "As loads and assumptions vary, under FIFO in the mix 5:15:15:65": "负载与假设变化时，FIFO，任务比例 5:15:15:65",
    "what is other": "变化项",
    "slower": "减慢",
    "run out of memory": "内存不足",
    "no slow-down allowed": "不允许减慢",
    "excess alike in a kind (spread 0.25)": "同类任务的超额相近（离散度 0.25）",
    "excess unlike in a kind (spread 0.75)": "同类任务的超额相差较大（离散度 0.75）",
    "nobody asks for too little": "申请量均不少于需要量",
    "CTR asks for 1.6, ResNet for 1.5, others for 1.25 times the need": "CTR 申请需要量的 1.6 倍，ResNet 1.5 倍，其余 "
    "1.25 倍",
    "tasks of a kind alike (spread of use 0.25)": "同类任务相近（使用量离散度 0.25）",
    "durations in thousand seconds, not hours": "时长以千秒而非小时计",
    "What the service says time depends on, mean over histories": "服务所声明的时长依赖程度，各历史记录的平均值",
    "kind": "任务类型",
    "records": "记录数",
    "what matters": "实际起作用者",
    "stated error": "所声明的误差",
    "error in the source": "来源中的误差",
    "Gain in deployed tasks along the over-request": "部署量的提升随超额申请的变化",
    "Gain in deployed tasks along the load": "部署量的提升随负载的变化",
    "asked for ÷ needed": "申请量 ÷ 需要量",
    "more tasks, %": "多部署的任务，%",
    "tasks an hour": "每小时任务数",
}

PHASES = {
    "warm-up": "预热期",
    "fast convergence": "快速收敛期",
    "stable convergence": "稳定收敛期",
    "unknown": "未知",
    "phase": "阶段",
    "recogniser": "识别者",
    "accuracy": "准确率",
    "macro-F1": "宏平均 F1",
    "accuracy 1.25 times away from every switch": "距各转换 1.25 倍以外的准确率",
    "Phases told beside those of two simple recognisers": "所判断的阶段与两种简单识别者的对比",
    "the target": "被测服务",
    "the definition, applied to the past alone": "仅对此前内容应用定义",
    "always stable convergence": "恒为稳定收敛期",
    "Phases of the definition down, told across, in steps that are judged": "行为定义的阶段，列为所判断的阶段，单位为"
    "被判定的步数",
    "into": "转入",
    "switches": "转换数",
    "never, while asked": "询问期间始终未判断",
    "Delay until a switch is told and stays, in parts of the step of the switch; negative where it is early": "判断转"
    "换并保持不变的延迟，以转换处的步数为 1；提前者为负",
    "Confidence stated, and share that was right": "所声明的置信度与正确的占比",
    "confidence": "置信度",
    "steps": "步数",
    "mean of it": "置信度平均值",
    "right": "正确的占比",
    "step": "训练步",
    "loss; phases: 1 warm-up, 2 fast convergence, 3 stable convergence": "损失；阶段：1 预热期，2 快速收敛期，3 稳定收"
    "敛期",
    "loss": "损失",
    "phase of the definition": "定义的阶段",
    "phase told": "所判断的阶段",
    "generated from scratch": "生成，从头训练",
    "generated, restarted": "生成，中途重启",
    "generated, resumed": "生成，自检查点继续",
    "recognised worst": "识别最差",
    "recognised as well as most": "识别居中",
}

FORECAST = {
    "1 - sum of absolute errors over sum of devices demanded, in the order of time; the worst domain; bound: the least "
    "of the domains' one-sided 95 % bounds, by bootstrap over days of worlds": "1 减去按时间顺序的绝对误差之和与加速器"
    "需求量之和的比；取最差的域；置信界为各域单侧 95 % 置信界中的最小值，由对各环境的日的自助法得到",
    "mean over levels of how far the share of cases that do not exceed a quantile is from its level; the worst of "
    "domains and of their tenants, both horizons together; bound: the greatest of their one-sided 95 % bounds, by "
    "bootstrap over days of worlds": "不超过分位数的情形的占比与其水平之差，对各水平取平均；取各域及其租户中最差者，两"
    "种预测时长合计；置信界为其单侧 95 % 置信界中的最大值，由对各环境的日的自助法得到",
    "Accuracy by domain": "各域的准确率",
    "Accuracy of other series": "其他序列的准确率",
    "Accuracy of real series": "实测序列的准确率",
    "large trainings": "大型训练",
    "small jobs": "小作业",
    "services": "服务",
    "fewer trainings": "较少训练",
    "trainings and all else": "训练与其他全部",
    "domain": "域",
    "tenant": "租户",
    "forecasts": "预测数",
    "last value": "上一值",
    "seasonal naive": "季节性朴素法",
    "drift": "漂移法",
    "smoothing": "指数平滑",
    "plan": "按计划",
    "less error than last value, 5-95 %": "较上一值减少的误差（5 %～95 %）",
    "change": "变化",
    "share": "占比",
    "known": "事先已知",
    "not known": "事先未知",
    "demanded by tenants of domains": "各域租户的需求",
    "demanded by large trainings": "大型训练的需求",
    "held in domains": "各域占用",
    "waited for in domains": "各域等待",
    "submitted in domains within a minute": "各域一分钟内提交",
    "set": "数据集",
    "of": "范围",
    "all clusters": "全部集群",
    "worst cluster": "最差的集群",
    "what came": "实际值",
    "hours": "小时",
    "devices demanded": "加速器需求量",
    "devices expected": "预测的加速器需求量",
    "first world": "第一个环境",
    "series of": "序列",
    "cases": "情形数",
    "away": "偏离",
    "minutes": "分钟",
    "less": "减少",
    "level": "水平",
    "as stated": "与声明一致",
    "last value with errors": "上一值及其误差",
    "Share of cases that do not exceed a quantile": "不超过分位数的情形的占比",
    "Share of cases that do not exceed a quantile, in per cent: the least and the most, where it is met": "不超过分位"
    "数的情形的占比，百分数：恰等于分位数时的最小与最大值",
    "Pinball loss over all levels, in devices, beside the last value with the errors that it made within a "
    "day": "全部水平的分位数损失，单位为加速器，并列上一值及其一日内误差的分布",
    "Reservations for an hour: cases in which more is needed, and devices reserved over the most needed": "一小时的预"
    "留：需求超出预留的情形，以及预留量与最大需要量之比",
    "promised": "所承诺",
    "rule": "规则",
    "more is needed": "需求超出",
    "reserved over needed": "预留 ÷ 需要",
    "the most that was seen": "已见的最大值",
}

PHRASES = DEMAND | SIZING | PHASES | FORECAST
