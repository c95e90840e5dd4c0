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

ENGLISH_ONLY = Words("", "本页的说明取自英文的信息模型；名称与标签附中文。")
"""Said on pages whose descriptions exist in English alone."""
