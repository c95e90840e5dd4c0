"""Words for the values of the model's enumerations, for those pages where they stand in sentences and tables."""

from kuayu_conformance.rendering.words import Words

LEVELS = {"interface": Words("interface", "接口"), "performance": Words("performance", "性能")}
DIMENSIONS = {
    "compute": Words("Compute", "计算"),
    "storage": Words("Storage", "存储"),
    "network": Words("Network", "网络"),
    "state": Words("State", "状态"),
}
CONSTANCIES = {
    "static": Words("static", "静态"),
    "probed": Words("probed", "探测"),
    "dynamic": Words("dynamic", "动态"),
}
KINDS = {
    "number": Words("number", "数值"),
    "by_precision": Words("number for each precision", "各精度数值"),
    "state": Words("state", "状态"),
}
DIRECTIONS = {
    "higher": Words("more is better", "越大越好"),
    "lower": Words("less is better", "越小越好"),
    "neutral": Words("depends on the use", "视用途而定"),
}
AGGREGATIONS = {
    "sum": Words("sum", "求和"),
    "mean": Words("mean", "平均"),
    "minimum": Words("minimum", "最小值"),
    "maximum": Words("maximum", "最大值"),
    "ratio_of_sums": Words("ratio of sums", "和之比"),
    "worst_state": Words("worst state", "最差状态"),
    "none": Words("not aggregated", "不聚合"),
}
SUBJECTS = {
    "device": Words("device", "加速器"),
    "node": Words("node", "节点"),
    "domain": Words("domain", "算力域"),
    "link": Words("link", "域间链路"),
}
TRANSFORMS = {
    "gauge": Words("gauge", "瞬时值"),
    "rate": Words("rate", "速率"),
    "increase": Words("increase", "增量"),
    "state": Words("state", "状态"),
    "present": Words("present", "有无"),
}
TAGS = {
    "common": Words("Common", "通用"),
    "resources": Words("Resources", "资源"),
    "perception": Words("Perception", "感知"),
    "index": Words("Compute index", "算力指数"),
    "demand": Words("Demand", "需求"),
    "forecast": Words("Forecast", "需求预测"),
    "scheduling": Words("Scheduling", "调度"),
    "resilience": Words("Resilience", "容错"),
    "jobs": Words("Jobs", "作业"),
}
MODEL = {
    "common": Words("Common types", "通用类型"),
    "resources": Words("Resources", "资源"),
    "indicators": Words("Indicators", "指标"),
    "perception": Words("Perception", "感知"),
    "graph": Words("Resource graph", "资源图谱"),
    "index": Words("Compute index", "算力指数"),
    "actions": Words("Actions", "动作"),
    "jobs": Words("Jobs", "作业"),
    "demand": Words("Demand", "需求"),
    "forecast": Words("Forecast", "需求预测"),
    "scheduling": Words("Scheduling", "调度"),
    "transfers": Words("Transfers", "数据与梯度的传输"),
    "recovery": Words("Recovery", "故障恢复"),
    "adjustment": Words("Adjustment", "策略调整"),
    "faults": Words("Faults", "故障"),
    "runs": Words("Jobs and their runs", "作业及其运行"),
    "conformance": Words("Conformance", "符合性"),
}

PARTS_IN_CHINESE = {
    "common": "各专规共用的标识符、时间、量、修订号、问题、补丁与演进规则。传输中采用 SI 基本单位；"
    "比值为小数，不用百分数。",
    "resources": "算力域、节点及其加速器、算力域之间的链路，以及算力标识。",
    "indicators": "四个维度的十二项指标的定义，以及由何种采集器的何种字段采集。",
    "perception": "遥测的接收与指标的给出。",
    "graph": "某一修订号时的算力域、节点与链路及其状态，其后的变更，以及长时间的序列。",
    "index": "不同加速器就某一训练任务如何比较，以及何种探测能够使比较更为准确。",
    "actions": "执行各项决策的统一契约，由作业、故障恢复、自适应调整与两层调度共用；资源预留的两个阶段亦在此给出。",
    "jobs": "训练作业的规格（不可改变）与其状况（另行给出）。",
    "demand": "由模型结构、并行策略与硬件得出的训练作业需求：计算量、内存、通信量、训练步的时间及其构成，"
    "以及各阶段的差异；"
    "并由先前运行的任务得出任务的需求。",
    "forecast": "各算力域、租户与作业在十分钟后、一小时后及其后一段时间的需求；训练所处的阶段；预留的内容，"
    "以及削峰的方法。",
    "scheduling": "作业在何处运行：跨算力域及其节点的放置、选择的理由、其他可能的方案、容量的分配与购买，"
    "以及数据所经的路径。"
    "上述决策均仅由其请求决定。资源分配为实际占用的资源，通过动作契约准备与提交。",
    "transfers": "训练数据与梯度在算力域之间如何传输：其次取何数据、取自何处、如何分片、提前多少，"
    "以及各训练副本以何种集合通信达成一致。",
    "recovery": "所在节点发生故障时作业的处置：事先持有的备用节点数与检查点副本，以及事后各作业以何种方式、"
    "在哪些节点上继续运行。",
    "adjustment": "负载与网络变化时如何调整运行中作业的策略：各算力域计算训练步中的多少份，"
    "以及各训练副本以何种集合通信达成一致。",
    "faults": "节点的心跳与日志行，以及由此识别的故障。",
    "runs": "作业的提交、暂缓、启动、监视与结束。作业以若干次尝试运行，"
    "一个算力域为一次尝试所执行的部分为运行。运行的内容通过动作契约告知各算力域，"
    "运行的状况由各算力域报告。",
    "conformance": "实现所声明的内容、标准所要求的内容，以及测试套件得出的结果。",
}
"""What the parts of the model are about; the model itself says it in English."""

ENGLISH_ONLY = Words("", "本页的说明取自英文的信息模型；名称与标签附中文。")
"""Said on pages whose descriptions exist in English alone."""
