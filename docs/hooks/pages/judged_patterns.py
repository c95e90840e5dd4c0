"""Phrases of the checks that hold figures or names, English to Chinese; what is captured is translated by itself."""

import re

PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"over-request ([\d.]+)", "超额申请 {}"),
        (r"over-request ([\d.]+), no slow-down allowed", "超额申请 {}，不允许减慢"),
        (r"([\d.]+) tasks an hour", "每小时 {} 个任务"),
        (r"(\d+) of (\d+)", "{}/{}"),
        (r"(\S+) \(not judged\)", "{}（不判定）"),
        (r"(Accuracy by domain), (.+)", "{}，{}"),
        (r"(Accuracy of (?:other|real) series), not judged, (.+)", "{}（不判定），{}"),
        (
            r"Accuracy by whether a change of 5 % or more within the next hour was known beforehand, (.+)",
            "准确率，按未来一小时内 5 % 以上的变化是否事先已知，{}",
        ),
        (r"Quantiles over what came, ([^:]+): (.+), first world", "分位数与实际值，{}：{}，第一个环境"),
        (r"Expected against what came, (.+)", "预测值与实际值，{}"),
        (r"([\d.]+) minutes ahead", "提前 {} 分钟"),
        (r"quantile ([\d.]+)", "{} 分位数"),
        (r"(\S+ %) \((\S+ %) to (\S+ %)\)", "{}（{}～{}）"),
        (r"(\S+ %) to (\S+ %)", "{}～{}"),
        (r"in (warm-up|fast convergence|stable convergence)", "{}中"),
        (r"generated (\d+)", "生成曲线 {}"),
        (r"(.+) \((.+)\), (recognised [a-z ]+): (\d+)% of steps right", "{}（{}），{}：{} % 的步正确"),
        (
            (
                r"share of (\d+) steps, spread evenly over (\d+) trainings, at which the phase told is that of the "
                r"definition; one-sided 95 % bootstrap bound over trainings"
            ),
            "均匀分布于 {1} 项训练的 {0} 步中，所判断的阶段与定义一致的占比；单侧 95 % 置信界由对训练的自助法得到",
        ),
    )
)
