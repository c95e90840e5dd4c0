"""What the page of the simulated world says, in both languages."""

from kuayu_conformance.rendering.words import Words

COMMAND = "python docs/hooks/pages/world_pictures.py"

TITLE = Words("The world of schedulers", "调度仿真环境")
INTRODUCTION = Words(
    "Schedulers are judged in a simulated world: domains at real places, links between them, jobs as they are really "
    "submitted, and what goes wrong. What a scheduler gains follows from the world as much as from the scheduler, so "
    "this page says what the world is made of. Its tables are made from the suite itself "
    "(`kuayu_conformance.testbed.scheduling`); the guides say how to be judged in it "
    "([with a service](/guides/scheduler.md), [with a class](/guides/policies.md)).",
    "调度器在仿真环境中评判：位于真实地点的算力域、域间链路、按真实情况提交的作业，以及各种异常。"
    "调度器的收益既取决于调度器，也取决于环境，因此本页说明环境由什么构成。各表由测试套件自身生成"
    "（`kuayu_conformance.testbed.scheduling`）；如何在其中接受评判见指南（[以服务](/guides/scheduler.md)、"
    "[以一个类](/guides/policies.md)）。",
)

PICTURES_TITLE = Words("One window, two policies", "同一窗口，两种策略")
PICTURES = Words(
    "{sites} domains of {nodes} nodes on average, family {family}, load {load:g}, {warm:g} h of warm start and "
    "{window:g} h of window, seed `{seed}`. Left B1, which keeps jobs at home; right B3c, which does not. The dotted "
    "line is where the window begins. Drawn by {command}. Pictures show what happens and prove nothing.",
    "{sites} 个域，平均每域 {nodes} 个节点，场景族 {family}，负载 {load:g}，预热 {warm:g} h，"
    "窗口 {window:g} h，种子 `{seed}`。"
    "左为 B1，作业留在本域；右为 B3c，作业可跨域。虚线处为窗口的开始。由 {command} 绘制。"
    "图示仅供观察，不作证明。",
)
CAPTIONS = {
    "gantt": Words(
        "Who held devices of which domain when: each stroke is a job.",
        "各域的加速器由谁在何时占用：每一横线为一个作业。",
    ),
    "utilisation": Words("Share of the devices of each domain that was held.", "各域被占用的加速器比例。"),
    "queue": Words("Devices that waiting jobs asked for.", "等待作业所申请的加速器数。"),
    "traffic": Words("What each domain received from others, in Gbit/s.", "各域自其他域接收的流量，单位 Gbit/s。"),
}

FAMILIES_TITLE = Words("Families", "场景族")
FAMILIES = Words(
    "A family says what is peculiar in a world. The figures of the standard are measured in the reference family; in "
    "every other one the training period must not become longer than under B1. From `faulty` on they are hostile.",
    "场景族说明环境的特殊之处。标准的数值指标在基准族中测量；在其他各族中，训练周期不应长于 B1。"
    "自 `faulty` 起为对抗性场景族。",
)
FAMILY_COLUMNS = {
    "en": ("Family", "What it is about", "What goes wrong", "Workload, other than the reference"),
    "zh": ("场景族", "特点", "异常", "与基准族不同的作业参数"),
}
FAMILY = {
    "reference": Words("", "各域规模取决于自身需求，每域一种加速器"),
    "balanced": Words("", "需求与供给同在一地"),
    "east-west": Words("", "规模取公开数据：东部需求，西部供给"),
    "gravity": Words("", "数据集不可移动"),
    "wan-poor": Words("", "链路如同公有云之间"),
    "wan-rich": Words("", "光传输线路"),
    "bursty": Words("", "需求成批到来"),
    "heterogeneous": Words("", "每域两种加速器，种类更多"),
    "identical": Words("", "各域加速器相同：收益必然有限"),
    "faulty": Words("", "线路与节点发生故障"),
    "slow-on-site": Words("", "纸面最快，实际最慢"),
    "false-capacity": Words("", "一个域上报其并不具备的容量"),
    "giant": Words("", "一个作业需要所有域"),
    "collapse": Words("", "数据传输途中带宽骤降"),
    "partition": Words("", "一个域在预留的两阶段之间失联"),
    "misjudged": Words("", "申报的时长为实际的十分之一或十倍"),
}
NOTHING = Words("", "")
ADVERSE = {
    "faulty": Words(
        "nodes fail {faults} times as often as in the training of Llama 3",
        "节点故障频率为 Llama 3 训练时的 {faults} 倍",
    ),
    "slow-on-site": Words(
        "the fastest domain on paper runs at {worse} of the slowest one's speed",
        "纸面最快的域实际速度为最慢域的 {worse}",
    ),
    "false-capacity": Words(
        "the fastest domain claims {boast} times the devices that it has", "最快的域声称拥有 {boast} 倍于实际的加速器"
    ),
    "partition": Words(
        "{cuts} domains in turn are cut off for up to {minutes} min",
        "先后有 {cuts} 次某个域失联，每次至多 {minutes} min",
    ),
}

BASELINES_TITLE = Words("Baselines", "基线")
BASELINES = Words(
    "All of them see what a service sees, and none of them more. Reports show B0 to B5; SRTF and DRF, which the "
    "literature compares with, stand beside them in tables, such as those of `kuayu bench policy`, and no requirement "
    "is relative to them.",
    "各基线所见与服务所见相同，不多不少。报告列出 B0 至 B5；SRTF 与 DRF 为文献中常用的比较对象，"
    "仅列入 `kuayu bench policy` 等对比表，任何要求均不以其为比较基准。",
)
BASELINE_COLUMNS = {"en": ("", "What it does"), "zh": ("", "做法")}
BASELINE = {
    "B0": Words("Home domain, first come first served, all devices at once.", "本域，先到先服务，一次分配全部加速器。"),
    "B1": Words(
        "Home domain with EASY backfill: the traditional scheduling of single domains, which the figures are relative "
        "to. A job too large for its home takes the faster of 75 % of the home and a static split with the nearest "
        "domain, reconciled every 50 steps.",
        "本域加 EASY 回填，即各项指标所相对的传统单域调度。超出本域规模的作业取以下两者中较快者："
        "本域的 75 %，或与最近的域静态切分、每 50 步同步一次。",
    ),
    "B2": Words(
        "The first domain to admit a job wins, in the way of MultiKueue.",
        "最先接纳作业的域获得该作业，即 MultiKueue 的方式。",
    ),
    "B3": Words(
        "Greedy over all domains: where a job is expected to finish first, with EASY backfill.",
        "跨域贪心：作业前往预计最先完成之处，并用 EASY 回填。",
    ),
    "B3c": Words(
        "The same with cost: completion, money for bandwidth and comparative advantage, with weights tuned on seeds of "
        "their own.",
        "在此基础上计入成本：完成时间、带宽费用与比较优势加权，权重在专用种子上调定。",
    ),
    "B4": Words(
        "A linear programme on goodput says which kinds of jobs should run in which pools, in the way of Gavel and "
        "Sia.",
        "以有效吞吐的线性规划决定各类作业应在哪些算力池运行，即 Gavel 与 Sia 的方式。",
    ),
    "SRTF": Words(
        "Shortest remaining time first over all domains, preemptive (Schrage, 1968): a longer job gives way if that "
        "shortens the sum of all times, checkpoints and restarts included.",
        "跨域最短剩余时间优先，可抢占（Schrage，1968）：计入检查点与重启后，仅当总耗时因此缩短时较长的作业才让出加速器。",
    ),
    "DRF": Words(
        "Dominant resource fairness between tenants (Ghodsi et al., NSDI 2011): next is the tenant whose largest share "
        "of any kind of accelerator is least; nobody is preempted.",
        "租户之间的主导资源公平（Ghodsi 等，NSDI 2011）：在各类加速器中所占最大份额最小的租户优先；不抢占。",
    ),
    "B5": Words(
        "What nobody can beat: the ideal pool (all devices in one place, a free network), lower bounds on the mean "
        "period and on the makespan, and the exact optimum of small instances.",
        "无人能够超越的界限：理想池（全部加速器同处一地、网络免费）、平均周期与总完工时间的下界，以及小规模算例的精确最优解。",
    ),
}

RUNS_TITLE = Words("What a run plays", "一次运行的内容")
RUNS = Words(
    "Fixed before a run begins. Loads are multiples of the reference load, at which the 95th percentile of the bounded "
    "slowdown under B1 reaches 10.",
    "在运行开始之前即已确定。负载为基准负载的倍数；基准负载为 B1 的有界减速比第 95 百分位数达到 10 时的负载。",
)
PLAN_COLUMNS = {"en": ("", "quick", "full"), "zh": ("", "quick", "full")}
SIZE = Words("Worlds", "环境规模")
SIZES = Words("{} domains of {} nodes on average", "{} 个域，平均每域 {} 个节点")
HOURS = Words("Hours", "时间（小时）")
GRID_HOURS = Words("Hours, where utilisation is measured", "时间（小时，测量利用率时）")
PARTS = Words(
    "{} of warm start, {} of window, up to {} until what was submitted in it has drained",
    "预热 {}，窗口 {}，其后至多 {} 直至窗口内提交的作业完成",
)
JOBS = Words("Jobs from", "作业来源")
WINDOWS = Words("Windows of the reference family", "基准族的窗口数")
OF_EACH = Words("{} of each source", "每种来源 {} 个")
CHOSEN = Words(", chosen among {}", "，从 {} 个中抽取")
LOADS = Words("Loads, for utilisation", "负载（用于利用率）")
OTHERS = Words("Other families", "其他场景族")
BY = Words("{}, {} windows each", "{} 种，各 {} 个窗口")
CURVES = Words("Curves", "曲线")
BY_POINTS = Words("{} with {} points, {} windows each", "{} 条，共 {} 点，每点 {} 个窗口")
SWINGS = Words("Loads that vary by 20 %, for stability", "波动 20 % 的负载（用于稳定性）")

SOURCES_TITLE = Words("Measured, fitted, assumed", "实测、拟合与假设")
SOURCES_COLUMNS = {
    "en": ("Part", "Where it comes from", "What it does not show"),
    "zh": ("部分", "来源", "局限"),
}
SOURCES = (
    (
        Words("Places and delays", "地点与时延"),
        Words(
            "The eight hubs of 东数西算 and 56 cities near them; coordinates by GeoNames; delay by kilometres of "
            "fibre.",
            "“东数西算”八大枢纽及其附近 56 个城市；坐标取自 GeoNames；时延按光纤里程。",
        ),
        Words("That each of the cities has a data centre is assumed.", "各城市均有数据中心为假设。"),
    ),
    (
        Words("Bandwidth in time", "带宽的变化"),
        Words("Fitted to the same pairs of cloud regions measured days apart.", "由相隔数日对同一对云区域的测量拟合。"),
        Words("How long a link keeps its share is assumed.", "链路保持其份额的时长为假设。"),
    ),
    (
        Words("Arrivals, sizes, durations, homes", "到达、规模、时长、所属域"),
        Words(
            "Fitted to the traces ITP and Philly and compared with them; the traces themselves where `KUAYU_DATA` has "
            "them.",
            "由 ITP 与 Philly 跟踪数据拟合并与之比较；`KUAYU_DATA` 中有原始数据时可直接使用。",
        ),
        Words("Bursts within ten minutes are weaker in the model.", "模型中十分钟之内的突发弱于实际。"),
    ),
    (
        Words("Speed of a job", "作业速度"),
        Words(
            "Published figures of accelerators and training runs; the law is "
            "[part of the standard](/standard/sch-02-speed.md).",
            "加速器与训练的公开数据；规律为[标准的一部分](/standard/sch-02-speed.md)。",
        ),
        Words(
            "Domains may be slower than on paper, and are in one family.",
            "算力域可能慢于纸面，其中一个场景族即为如此。",
        ),
    ),
    (
        Words("Price of rare synchronisation", "低频同步的代价"),
        Words(
            "Fitted to 49 published cells (arXiv 2503.09799, 2501.18512), and charged in steps.",
            "由 49 组已发表的结果拟合（arXiv 2503.09799、2501.18512），以步数计费。",
        ),
        Words("The form of the law was chosen with further results in sight.", "规律的形式在参照其他结果后选定。"),
    ),
    (
        Words("Prices and tariffs", "价格与费率"),
        Words(
            "Published prices where there are any, else assumptions with a range.",
            "有公开价格者取公开价格，否则为附有范围的假设。",
        ),
        Words("All money is in yuan.", "货币单位均为元。"),
    ),
    (
        Words("Deadlines, tenants, reuse of data, jobs larger than home", "截止时间、租户、数据复用、超出本域的作业"),
        Words("Assumed; reports show figures over them.", "假设；报告给出随其变化的数值。"),
        Words("No public source.", "无公开来源。"),
    ),
)
DECISIONS = Words(
    "The reasons, and what is still to be verified, stand in the decisions "
    "[12](/decisions/0012-scheduling-world.md) and [13](/decisions/0013-scheduling-on-the-wire.md).",
    "理由以及尚待核实之处见决策 [12](/decisions/0012-scheduling-world.md) 与 "
    "[13](/decisions/0013-scheduling-on-the-wire.md)。",
)

DEVICES_TITLE = Words("Accelerators", "加速器")
DEVICES = Words(
    "Domains stand at the first of {places} places, and have accelerators dealt to them from these. The index of "
    "{reference} is one for every task profile. That of the others follows from their data sheets, with a deviation "
    "drawn for each world, which the index tells and the data sheet does not.",
    "算力域依次取 {places} 个地点，并分配以下加速器。{reference} 对每种任务画像的指数均为 1。"
    "其他加速器的指数由数据手册得出，并含在每个环境中随机抽取的偏差；指数反映该偏差，数据手册则不反映。",
)
DEVICE_COLUMNS = {
    "en": ("Device", "Peak, TFLOP/s bf16", "Sustained", "Memory, GB/s", "Memory, GB", "Power, W"),
    "zh": ("加速器", "峰值，TFLOP/s bf16", "可持续", "内存带宽，GB/s", "内存，GB", "功率，W"),
}

ASSUMPTIONS_TITLE = Words("Assumptions about places and links", "关于地点与链路的假设")
ASSUMPTIONS = Words(
    "What no public source says, with the range that is plausible. A test shows that each of them changes something; "
    "a run can take other values (`assumed` of a cell).",
    "无公开来源的数值及其合理范围。测试表明其中每一项均有影响；运行时可取其他值（`assumed`）。",
)
ASSUMPTION_COLUMNS = {"en": ("Name", "Taken", "Range", "What it is"), "zh": ("名称", "取值", "范围", "含义")}
ASSUMED = {
    "neighbour": Words("", "枢纽附近城市的规模与枢纽集群规模之比。"),
    "access": Words("", "全部线路容量的系数；为 1 时中位数为 10 Gbit/s，即租户租用的规模。"),
    "cell": Words("", "线路保持其份额的小时数；测量相隔数日，无法说明更多。"),
    "tide": Words("", "网络由空闲转为繁忙或相反所经的小时数。"),
    "busy": Words("", "网络繁忙的时间比例。"),
    "depth": Words("", "繁忙时线路实际承受的实测损失的比例；0 为无损失。"),
    "yuan": Words("", "一美元折合的人民币元，2022—2025 年；货币单位均为元。"),
    "reach": Words("", "自该公里数起适用最高费率。"),
    "tariff": Words("", "全部费率的系数；0 为免费。"),
    "domestic": Words("", "国产加速器同等速度的价格与 A800 之比。"),
    "west": Words("", "西部枢纽与东部枢纽的加速器价格之比。"),
    "reserved": Words("", "预留价格与按需价格之比；EC2 至多优惠 72 %。"),
    "spot": Words("", "竞价价格与按需价格之比；EC2 至多优惠 90 %。"),
    "trouble": Words("", "线路中断、骤降与波动的频率相对场景族规定的倍数。"),
    "power": Words("", "全部电价的系数。"),
    "overhead": Words("", "服务器功率（不含制冷）与其加速器功率之比。"),
    "noise": Words("", "加速器速度相对规律的对数标准差；拟合误差为 0.09 至 0.15。"),
}

HABITS_TITLE = Words("Parameters of the workload", "作业参数")
HABITS = Words(
    "Those of the reference family. Whoever wants another world gives other values (`changed` of a cell).",
    "基准族的取值。需要其他环境者可给出其他值（`changed`）。",
)
HABIT_COLUMNS = {"en": ("Name", "Reference", "What it is"), "zh": ("名称", "基准", "含义")}
YES_NO = {True: Words("yes", "是"), False: Words("no", "否")}
HABIT = {
    "skew": Words(
        "How much domains differ in load and in when they are busy: one as the trace's clusters do.",
        "各域在负载与繁忙时段上的差异：1 为与跟踪数据的集群相同。",
    ),
    "east": Words("Whether the load of a domain follows its longitude.", "域的负载是否取决于其经度。"),
    "burst": Words(
        "How many times as long, and as rare, batches are as in the trace.", "批次的长度与稀疏程度相对跟踪数据的倍数。"
    ),
    "serving": Words("Share of the work in jobs that serve.", "推理服务作业的工作量占比。"),
    "oversize": Words("Share of the work in jobs larger than their home.", "超出本域规模的作业的工作量占比。"),
    "giant": Words("Whether one job asks for most devices of all domains.", "是否有一个作业申请全部域的大部分加速器。"),
    "locality": Words("Chance that a data set lies at the home of its job.", "数据集位于作业所属域的概率。"),
    "reuse": Words(
        "Chance that a job reads what an earlier one of its home has read.", "作业读取同域先前作业所读数据的概率。"
    ),
    "pinned": Words("Chance that a data set may not leave its domain.", "数据集不可离开其所在域的概率。"),
    "over_request": Words(
        "How far what is used lies below what is asked for: one as measured, zero not at all.",
        "实际使用低于申请的程度：1 为与实测相同，0 为完全相等。",
    ),
    "stated_spread": Words(
        "Standard deviation of the logarithm of stated over true seconds.", "申报时长与实际时长之比的对数标准差。"
    ),
    "elastic": Words(
        "Share of jobs of several devices that can do with half of what they ask for, and use twice of it.",
        "多加速器作业中可使用申请数量的一半至两倍者的占比。",
    ),
    "misjudged": Words(
        "Factor by which half of the jobs state too much and half too little.", "半数作业多报、半数少报的倍数。"
    ),
}
