"""Phrases of the checks of resilience that hold figures or names; they come before those of other checks."""

import re

_OVER = r"one-sided 95 % upper bound by order statistics"

PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (
            (
                r"recognised share of (\d+) incidents and (\d+) false alarms, exact one-sided 95 % lower bound "
                r"\(Clopper-Pearson\); (\S+) false alarms for each node and day, over (\S+) of these; the suite's own "
                r"world waited (\S+) s for it to keep up\. Parts: by kind of fault"
            ),
            (
                "{} 个事件与 {} 次误报中被识别者的占比，精确单侧 95 % 置信下限（Clopper-Pearson）；每节点每日误报"
                " {} 次，共 {} 节点日；套件的环境为等待服务共停留 {} s。分项：按异常种类"
            ),
        ),
        (
            (
                r"99th percentile of the time from a fault until its actions can be fetched, " + _OVER + r"; (\d+) of "
                r"(\d+) had none within 10 s and count as 3600 s\. Parts: by kind, and the time until a fault is told "
                r"and from there on apart"
            ),
            (
                "自异常发生至可取得其动作的时间的第 99 百分位数，单侧 95 % 置信上限由次序统计量得到；{1} 项中有 {"
                "0} 项在 10 s 内没有动作，按 3600 s 计。分项：按种类，以及至报告的时间与此后的时间"
            ),
        ),
        (
            (
                r"95th percentile of the (time until a job is whole again|time without a new step) over incidents, "
                + _OVER
                + r"; (\d+) of (\d+) were not over at the end of their window and count as 86400 s\. Parts: by kind of "
                r"fault"
            ),
            (
                "各事件的{0}的第 95 百分位数，单侧 95 % 置信上限由次序统计量得到；{2} 个事件中有 {1} 个在其窗口结"
                "束时尚未结束，按 86400 s 计。分项：按故障种类"
            ),
        ),
        (r"time until a job is whole again", "作业复原所需时间"),
        (r"time without a new step", "无新训练步的时间"),
        (
            (
                r"1 − share of time in which compute waits for data under the service ÷ that under fixed shards on "
                r"demand, both summed over windows at ±30 %\. One-sided 95 % bootstrap bound over windows"
            ),
            (
                "1 − 被测服务下算力等待数据的时间占比 ÷ 固定分片按需传输下的占比，二者均对 ±30 % 的窗口求和。单侧"
                " 95 % 置信界由对窗口的自助法得到"
            ),
        ),
        (
            (
                r"1 − share of transfers that are blocked under the service ÷ that under fixed shards on demand, both "
                r"summed over windows at ±30 %, by number and by bytes, the lesser\. One-sided 95 % bootstrap bound "
                r"over windows\. Parts: by number, then by bytes"
            ),
            (
                "1 − 被测服务下被阻塞的传输占比 ÷ 固定分片按需传输下的占比，二者均对 ±30 % 的窗口求和，按次数与按"
                "字节分别计算并取较小者。单侧 95 % 置信界由对窗口的自助法得到。分项：先按次数，再按字节"
            ),
        ),
        (
            (
                r"steps under the target less those of a collective that is kept, in parts of those of one who always "
                r"has the quickest for nothing; kept is the one that is best over all windows \((.+)\), or that which "
                r"is quickest by the first measurement of a window, whichever leaves less\. Mean over windows, "
                r"one-sided 95 % bootstrap bound over rounds of a window of each family\. Parts: over the best of all, "
                r"then over the first"
            ),
            (
                "被测服务推进的训练步数减去保持不变的算法所推进者，以始终无偿采用最快算法者为单位；保持不变者为全"
                "部窗口上最佳的算法（{}），或各窗口首次测量时最快者，以余量较小者为准。取各窗口均值，单侧 95 % 置"
                "信界由对轮次（每轮各类链路一个窗口）的自助法得到。分项：先相对全部窗口上最佳者，再相对首次测量最"
                "快者"
            ),
        ),
        (
            (
                r"95th percentile over disturbances of the share of a window's steps lost while adjusted, that of the "
                r"job for which it is greatest; " + _OVER + r"\. Parts: by kind of disturbance, then of others in the "
                r"same windows"
            ),
            (
                "各扰动中调整期间损失的训练步占窗口的比例（取损失最大的作业）的第 95 百分位数；单侧 95 % 置信上限"
                "由次序统计量得到。分项：按扰动种类，再按相同窗口中的其他调整者"
            ),
        ),
        (
            (
                r"95th percentile over disturbances of the time to recover after the adjustment, that of the job for "
                r"which it is greatest; " + _OVER + r"; after (\d+) of (\d+) some job never recovered\. Parts: by kind "
                r"of disturbance, then of others in the same windows"
            ),
            (
                "各扰动中调整后恢复所需时间（取最长的作业）的第 95 百分位数；单侧 95 % 置信上限由次序统计量得到；"
                "{1} 次扰动中有 {0} 次之后有作业从未恢复。分项：按扰动种类，再按相同窗口中的其他调整者"
            ),
        ),
        (r"Faults by kind; (\d+) were told again while they lasted", "异常，按种类；{} 个在持续期间被重复报告"),
        (r"within (\S+ (?:s|%))", "{} 以内"),
        (r"replace (\d+), restore (\d+)", "替换 {}，恢复 {}"),
        (r"(replace|restore) (\d+)", "{} {}"),
        (
            r"([\d.]+) steps, (\d+) ahead, (pull|split), local (evenly|first|last)",
            "每片 {} 步，提前 {} 步，{}，本地数据{}",
        ),
        (r"pull", "空闲链路取用"),
        (r"split", "按份额分配"),
        (r"evenly", "均匀使用"),
        (r"first", "最先使用"),
        (r"last", "最后使用"),
        (
            r"(Share of .+) at (calm|measured|outages|±30 %|×0\.3), window by window",
            "{}（{}），逐窗口",
        ),
        (r"(.+), against (.+)", "{}，相对{}"),
        (r"the best static schedule with overlap", "有重叠的最佳静态方案"),
        (r"the best one whose idle links pull", "由空闲链路取用的最佳方案"),
        (r"low communication, (\d+)", "低通信，周期 {}"),
        (r"fixed: (.+)", "固定：{}"),
        (r"(\S+ %) \((.+)\)", "{}（{}）"),
        (r"Steps a second, (.+), the window with the most switches: (\d+)", "每秒训练步数，{}，切换最多的窗口：{} 次"),
        (
            r"as many steps as by what was quickest at first \((.+)\)",
            "训练步数不少于首次测量时最快的算法（{}）",
        ),
        (
            r"(\S+ %) of the steps of the quickest fewer, after (\d+) switches",
            "比最快者少 {} 的训练步，切换 {} 次",
        ),
        (
            r"What happened to the job of a window that changed most: (\d+) changes under the service",
            "变更最多的窗口中作业的经历：被测服务下变更 {} 次",
        ),
        (
            r"Steps of that job over ten seconds, of those of the best policy: (\d+) changes under the service",
            "该作业每十秒的训练步数，占最佳策略的比例：被测服务下变更 {} 次",
        ),
        (r"load of domain (\d+)", "域 {} 的负载"),
        (
            r"(\S+) (\S+) was told as (\S+), and was not so",
            "{}：{} 被报告为 {}，而并非如此",
        ),
        (r"(\S+) (\S+) \((.+), from second (\S+) on\) is responded to", "{}：{}（{}，自第 {} 秒起）得到处置"),
        (r"only what is so is told", "仅报告属实者"),
        (r"told after (\S+) s, an action after (\S+) s", "{} s 后报告，{} s 后可取得动作"),
        (r"chosen, switches included", "所选，计入切换"),
    )
)
