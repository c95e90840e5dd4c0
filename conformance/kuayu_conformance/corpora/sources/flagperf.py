"""FlagPerf: what the vendors' result pages say, and how little of it tells a speed."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.gaps import Gap
from kuayu_conformance.corpora.table import Table


@dataclass(frozen=True)
class Maker:
    """Who makes a device, its name, and its data sheet."""

    vendor: str
    device: str
    sheet: str


FILE = "accelerator_benchmarks/flagperf_training.csv"
ORIGIN = Origin(
    "flagperf",
    "FlagPerf: training throughput of Ascend and Iluvatar accelerators, and of NVIDIA GPUs in the same case",
    "FlagOpen/FlagPerf training/<vendor>/<case>/README.md, commit 1b5a030398ab719e406f77877eb34c9599b17fd2; cases of "
    "the same layout and batch size on two vendors' devices; a number format that one page leaves out does not part "
    "them. Each vendor measured its own. Throughput without data loading, of all devices together.",
    "Apache-2.0",
    one_party=False,
)
STACK = "The vendor's, as its FlagPerf page states"
VENDORS = {
    "ascend": "Huawei Ascend",
    "cambricon": "Cambricon",
    "dcu": "Hygon",
    "iluvatar": "Iluvatar CoreX",
    "kunlunxin": "Kunlunxin",
    "metax": "MetaX",
    "mthreads": "Moore Threads",
}
DEVICES = {
    "A100": Maker("nvidia", "A100", "a100-sxm-40gb"),
    "A800": Maker("nvidia", "A800", "a800-sxm-80gb"),
    "H100": Maker("nvidia", "H100", "h100-sxm-80gb"),
    "BI-V100": Maker("iluvatar", "BI-V100", "bi-v100"),
    "BI150": Maker("iluvatar", "BI-150", "bi-150"),
    "Bi-150": Maker("iluvatar", "BI-150", "bi-150"),
    "Atlas 800T A2": Maker("ascend", "Atlas 800T A2", "ascend-910b"),
}
"""Device by the head of a configuration's name."""
SPEEDS = ("p_whole", "p_train", "p_core", "token/p/s", "性能(samples/s)", "性能（ntokens/s）")
COMPARED = ("p_core", "token/p/s")
"""Speeds that tell most of the device; the others of a run add evaluation or data loading."""
UTILISATION = "MFU"
LAYOUT = re.compile(r"[（(](?P<servers>\d+)x(?P<cards>\d+)[）)](?:（(?P<phase>\w+)）)?$")
BATCH = re.compile(r"\b(?:bs|mpe)=(\d+)")
STATED = {"fp32": ("fp32",), "bf16": ("bf16",)}
HALF = ("bf16", "fp16")
"""What is assumed where no page states a number format: language models of 2023 are not trained in binary32."""


@dataclass(frozen=True)
class Speed:
    """A cell with a speed, taken apart."""

    maker: Maker
    case: str
    devices: int
    phase: str
    batch: str
    precision: str
    throughput: float

    @property
    def task(self) -> tuple[str, str, str]:
        """What has to be the same for two speeds to be compared, but for layout and precision."""
        return self.case, self.phase, self.batch


def tables(data: Path) -> tuple[Table, ...]:
    """The table of what can be compared.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    speeds = list(_comparable(_speeds(rows(data / FILE))))
    precisions: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for speed in speeds:
        precisions[speed.task].add(speed.precision)
    stated = {key: "".join(sorted(names)) for key, names in precisions.items()}
    return (
        assemble(
            ORIGIN,
            [Device(maker.device, maker.sheet, STACK) for maker in DEVICES.values()],
            [
                Task(_name(key), STATED.get(precision, HALF), key[0].split("-")[0], ", ".join(filter(None, key)))
                for key, precision in stated.items()
            ],
            [Cell(speed.maker.device, _name(speed.task), speed.throughput, speed.devices) for speed in speeds],
        ),
    )


def gaps(data: Path) -> tuple[Gap, ...]:
    """What the pages of each Chinese vendor tell.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    cells: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows(data / FILE):
        cells[row["vendor"]].append(row)
    compared = Counter(speed.maker.vendor for speed in _comparable(_speeds(rows(data / FILE))))
    return tuple(_gap(vendor, cells[vendor], compared[vendor]) for vendor in VENDORS)


def _gap(vendor: str, cells: list[dict[str, str]], compared: int) -> Gap:
    own = [row for row in cells if (maker := _maker(row["config"])) is None or maker.vendor == vendor]
    cases_with_speed = {row["case"] for row in own if row["metric"] in SPEEDS}
    return Gap(
        vendor=vendor,
        name=VENDORS[vendor],
        cases=len({row["case"] for row in cells}),
        cells=len(cells),
        others=len(cells) - len(own),
        speeds=sum(row["metric"] in SPEEDS for row in own),
        utilisations=sum(row["metric"] == UTILISATION for row in own),
        cases_with_speed=len(cases_with_speed),
        cases_with_utilisation_only=len(
            {row["case"] for row in own if row["metric"] == UTILISATION} - cases_with_speed
        ),
        compared=compared,
    )


def _maker(config: str) -> Maker | None:
    return next((maker for head, maker in DEVICES.items() if config.startswith(head)), None)


def _speeds(cells: Iterable[Mapping[str, str]]) -> Iterator[Speed]:
    """Speeds of a vendor's own devices; a page's figures of another vendor's device are left out."""
    for row in cells:
        maker, layout = _maker(row["config"]), LAYOUT.search(row["config"])
        if row["metric"] not in COMPARED or maker is None or layout is None or maker.vendor != row["vendor"]:
            continue
        count = int(layout["servers"]) * int(layout["cards"])
        batch = BATCH.search(row["hyperparameters"])
        yield Speed(
            maker,
            row["case"],
            count,
            layout["phase"] or "",
            batch[0] if batch else "",
            row["precision"],
            float(row["value"]) * (count if row["metric"] == "token/p/s" else 1),
        )


def _comparable(speeds: Iterable[Speed]) -> Iterator[Speed]:
    """Speeds for which another vendor's device has one of the same task, layout and number format."""
    known = list(speeds)
    for speed in known:
        if any(
            other.maker.vendor != speed.maker.vendor
            and other.task == speed.task
            and other.devices == speed.devices
            and (other.precision == speed.precision or not (other.precision and speed.precision))
            for other in known
        ):
            yield speed


def _name(task: tuple[str, str, str]) -> str:
    return ".".join(filter(None, task))
