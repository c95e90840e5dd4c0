"""What the document says of itself in both languages; all else it says is from the text and the registers."""

from typing import Literal, NamedTuple

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")


class Words(NamedTuple):
    """One thing said in both languages."""

    zh: str
    en: str

    def in_(self, language: Language) -> str:
        """The words in a language."""
        return self.zh if language == "zh" else self.en


TITLE = Words("智能算力跨域调度技术要求", "Technical requirements for cross-domain scheduling of AI compute")
# The cover of GB/T 1.1-2020, annex A; what only a committee can assign stays open.
ICS, CCS = Words("ICS 待定", "ICS (to be assigned)"), Words("CCS 待定", "CCS (to be assigned)")
LEVEL = Words("中华人民共和国 XX 行业标准", "XX industry standard of the People's Republic of China")
NUMBER = "XX/T XXXX—20XX"
REPLACES = Words("代替 ——", "Replaces ——")  # a first edition has nothing to name here
STAGE = Words("（征求意见稿）", "(draft for comments)")
COMPLETED = Words("（本草案完成时间：{date}，版本 {version}）", "(draft completed {date}, version {version})")
PATENTS = Words(
    "在提交反馈意见时，请将您知道的相关专利连同支持性文件一并附上。",
    "With their comments, recipients of this draft are asked to name relevant patents of which they are aware and to "
    "provide supporting documentation.",
)
PUBLISHED, IN_FORCE = (
    Words("XXXX - XX - XX 发布", "Published XXXX-XX-XX"),
    Words("XXXX - XX - XX 实施", "In force XXXX-XX-XX"),
)
ISSUER = Words("XXXX 发布", "Issued by XXXX")
CONTENTS = Words("目次", "Contents")
GENERAL = Words("总则", "General")
BIBLIOGRAPHY = Words("参考文献", "Bibliography")
INDEX = Words("索引", "Index")
ANNEX = Words("附录", "Annex")
NORMATIVE, INFORMATIVE = Words("（规范性）", "(normative) "), Words("（资料性）", "(informative) ")
TABLE, FIGURE = Words("表", "Table"), Words("图", "Figure")
CONTINUED = Words("（续）", " (continued)")
SEE_LABEL, SEE_LABEL_WITHIN = Words("见{}。", "See {}."), Words("，见{}。", " (see {}).")
# By these words the text, which has no numbers, speaks of what follows.
BELOW_TABLE, BELOW_FIGURE = Words("下表", "The table"), Words("下图", "The figure")
COLON, COMMA, FULL_STOP = Words("：", ": "), Words("、", ", "), Words("。", ".")
SEE = Words("（见 {}）", " (see {})")

MODALS = {"shall": Words("应", "shall"), "should": Words("宜", "should"), "may": Words("可", "may")}
LEVELS = {"interface": Words("接口", "interface"), "performance": Words("性能", "performance")}
COMPARISONS = {"at_least": Words("不小于", "at least"), "at_most": Words("不大于", "at most")}
DIMENSIONS = {
    "compute": Words("计算", "Compute"),
    "storage": Words("存储", "Storage"),
    "network": Words("网络", "Network"),
    "state": Words("状态", "State"),
}
CONSTANCIES = {
    "static": Words("静态", "static"),
    "probed": Words("探测", "probed"),
    "dynamic": Words("动态", "dynamic"),
}
KINDS = {
    "number": Words("数值", "number"),
    "by_precision": Words("各精度数值", "number for each precision"),
    "state": Words("状态", "state"),
}
DIRECTIONS = {
    "higher": Words("越大越好", "more is better"),
    "lower": Words("越小越好", "less is better"),
    "neutral": Words("视用途而定", "depends on the use"),
}
AGGREGATIONS = {
    "sum": Words("求和", "sum"),
    "mean": Words("平均", "mean"),
    "minimum": Words("最小值", "minimum"),
    "maximum": Words("最大值", "maximum"),
    "ratio_of_sums": Words("和之比", "ratio of sums"),
    "worst_state": Words("最差状态", "worst state"),
    "none": Words("不聚合", "not aggregated"),
}
SUBJECTS = {
    "device": Words("加速器", "device"),
    "node": Words("节点", "node"),
    "domain": Words("算力域", "domain"),
    "link": Words("域间链路", "link"),
}
TRANSFORMS = {
    "gauge": Words("瞬时值", "gauge"),
    "rate": Words("速率", "rate"),
    "increase": Words("增量", "increase"),
    "state": Words("状态", "state"),
    "present": Words("有无", "present"),
}
TAGS = {
    "common": Words("通用", "Common"),
    "resources": Words("资源", "Resources"),
    "perception": Words("感知", "Perception"),
    "index": Words("算力指数", "Compute index"),
    "demand": Words("需求", "Demand"),
    "forecast": Words("需求预测", "Forecast"),
    "scheduling": Words("调度", "Scheduling"),
    "resilience": Words("容错", "Resilience"),
    "jobs": Words("作业", "Jobs"),
}
MODEL = {
    "common": Words("通用类型", "Common types"),
    "resources": Words("资源", "Resources"),
    "indicators": Words("指标", "Indicators"),
    "perception": Words("感知", "Perception"),
    "graph": Words("资源图谱", "Resource graph"),
    "index": Words("算力指数", "Compute index"),
    "actions": Words("动作", "Actions"),
    "jobs": Words("作业", "Jobs"),
    "demand": Words("需求", "Demand"),
    "forecast": Words("需求预测", "Forecast"),
    "scheduling": Words("调度", "Scheduling"),
    "transfers": Words("数据与梯度的传输", "Transfers"),
    "recovery": Words("故障恢复", "Recovery"),
    "adjustment": Words("策略调整", "Adjustment"),
    "faults": Words("故障", "Faults"),
    "runs": Words("作业的提交与运行", "Jobs and their runs"),
    "conformance": Words("符合性", "Conformance"),
}
