"""What is said of how soon and how surely faults are told from heartbeats and steps."""

from kuayu_conformance.rendering.words import Words

TITLE = Words("Telling faults from heartbeats and steps", "由心跳与训练步识别故障")
ABOUT = Words(
    "The reference's detector by itself, without HTTP, in simulated time, one process on one core: {command} ([all "
    "of it]({file})). Beats every 0.5 s arrive through five kinds of weather: delayed, lost, held up and bundled, "
    "in storms. First some days of calm, then faults at random. A death counts as recognised where it is told "
    "within 10 s; amid a partition it is timed from its end. Bounds are exact, one-sided, 95 %. Parameters were "
    "chosen in other weathers and with other seeds. Requirements RES-001 and RES-002 are about a service, and "
    "judged over HTTP in a world of the suite's own.",
    "参考实现的检测器本身，不经 HTTP，采用仿真时间，单进程单核：{command}（[全部结果]({file})）。心跳每 0.5 s 一次，"
    "经五种状况到达：延迟、丢失、滞留与成批、风暴。先为若干日的平静期，其后随机施加故障。10 s 之内通告的失效视为识别；"
    "分区期间的失效自分区结束起计。"
    "界限均为精确的单侧 95 % 界限。参数在其他状况与其他种子下选定。"
    "RES-001 与 RES-002 针对服务，由测试套件在其自有的环境中经 HTTP 判定。",
)
SCALES = Words("Calm and cost, by scale", "平静期与开销，按规模")
SCALE_COLUMNS = {
    "en": (
        "Domains × nodes",
        "Node-days of calm",
        "False alarms",
        "For each node and day, at most",
        "A look, p50 / p99, ms",
        "Part of a core",
        "Arrays, MB",
        "Process with the world, MB",
    ),
    "zh": (
        "算力域 × 节点",
        "平静期节点日",
        "误报",
        "每节点每日至多",
        "每次判断 p50 / p99，ms",
        "占一个核",
        "数组，MB",
        "含模拟环境的进程，MB",
    ),
}
KINDS = Words("Faults", "故障")
KIND_COLUMNS = {
    "en": ("Domains × nodes", "Fault", "n", "Recognised", "At least", "p50, s", "p99, s"),
    "zh": ("算力域 × 节点", "故障", "数量", "识别占比", "至少", "p50，s", "p99，s"),
}
KIND_NAMES = {
    "kill": Words("a node dies", "单个节点失效"),
    "rack": Words("a rack dies", "机柜失效"),
    "amid": Words("a node dies amid a partition", "分区期间节点失效"),
    "partition": Words("a domain cannot be reached", "算力域不可达"),
    "hang": Words("a job hangs", "作业挂起"),
    "straggler": Words("a rank straggles", "进程滞后"),
}
OTHERS = Words(
    "Beside fixed timeouts and a plain accrual detector, on the same beats", "与固定超时及普通累积检测器比较，心跳相同"
)
OTHER_COLUMNS = {
    "en": ("", "False alarms for each node and day", "A death, p99, s", "Told dead in partitions"),
    "zh": ("", "每节点每日误报", "失效，p99，s", "分区期间误判为失效"),
}
DETECTORS = {
    "kuayu": Words("kuayu", "kuayu"),
    "fixed 1.5 s": Words("fixed 1.5 s", "固定超时 1.5 s"),
    "fixed 3 s": Words("fixed 3 s", "固定超时 3 s"),
    "plain φ, 8": Words("plain φ, 8", "普通累积检测器，φ = 8"),
}
OF = Words("{count} of {nodes}", "{nodes} 中的 {count}")
JOBS = Words(
    "Jobs: {days} job-days without fault; false verdicts for each job and day at most {hang} hangs and {straggler} "
    "stragglers.",
    "作业：无故障的作业日 {days}；每作业每日误报至多为挂起 {hang}、滞后 {straggler}。",
)
NEVER = Words("never", "未通告")
