"""Measured runs of ``llm_training_runs/runs.csv`` (found through KUAYU_DATA) in the law's own terms.

A row becomes a run where its layout, batch, model and time can be known; else it is left out, with the reason. FLOPs
that a source states are turned into a time by the source's own definition.
"""

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kuayu.demand.flop_counts import hardware_flops, model_flops
from kuayu.demand.hardware import CATALOGUE, Hardware
from kuayu.demand.strategy import Layouts, Recompute, Sharding, Strategy
from kuayu.demand.structure import ModelStructure, of_parameters
from kuayu_training.demand.models import family
from kuayu_training.demand.sources import SOURCES, VIRTUAL, Source

TABLE = Path("llm_training_runs") / "runs.csv"
NO_MEMORY = "OUT OF MEMORY"

PRECISIONS: Mapping[str, str] = {"bf16": "bf16", "amp_bf16": "bf16", "fp16": "fp16", "nvfp4": "fp4"}
"""Number formats by what sources call them; everything else with fp8 in it is fp8."""


_SESSION = re.compile(r"section '[^']*'(?:; \d\d-\d\d)?|[\d.]+ NeMo Container")


@dataclass(frozen=True)
class Run:
    """A measured run.

    Attributes:
        row: Line of the table, counted from 1 without its heading.
        source: Where it is from.
        model: Name of the model.
        structure: The model.
        strategy: Its layout.
        hardware: Its devices.
        seconds: Time of a step; None where only memory is known.
        memory: Bytes of the fullest device as the source reports it, if it does.
        out_of_memory: It did not fit.
        known: The source states layers and width; else they were guessed from the number of parameters.
        session: Section and day of the source's page, or release of its software; only within one are runs alike.
    """

    row: int
    source: str
    model: str
    structure: ModelStructure
    strategy: Strategy
    hardware: Hardware
    seconds: float | None
    memory: float | None
    out_of_memory: bool
    known: bool
    session: str

    @property
    def layouts(self) -> Layouts:
        """The layout as a table of one row."""
        return Layouts.of([self.strategy])

    @property
    def kind(self) -> str:
        """``moe`` or ``dense``."""
        return "moe" if self.structure.experts > 1 else "dense"


class Unusable(Exception):
    """A row that cannot become a run; its text says why."""


def folder() -> Path:
    """Folder of the public originals: KUAYU_DATA, or ../shared/data."""
    return Path(os.environ.get("KUAYU_DATA") or "../shared/data")


def read(data: Path) -> tuple[list[Run], dict[int, str]]:
    """Runs of a data folder, and the reason for each row that is none.

    Raises:
        FileNotFoundError: If there is no such table.
    """
    runs, left = [], {}
    for number, row in enumerate(_rows(data / TABLE), 1):
        try:
            runs.append(run(row, number))
        except Unusable as reason:
            left[number] = str(reason)
    return runs, left


def timed(runs: Sequence[Run]) -> list[Run]:
    """Runs with a time."""
    return [run for run in runs if run.seconds is not None]


def run(row: Mapping[str, str], number: int) -> Run:
    """A row of the table as a run.

    Raises:
        Unusable: If it cannot be one.
    """
    source = SOURCES.get(row["source"])
    if source is None:
        raise Unusable("the source states no layout or no batch")
    options = _options(row["other_parallel"])
    if "Offload" in row["notes"]:
        raise Unusable("parameters are kept outside the device")
    if "inconsistent" in row["notes"]:
        raise Unusable("its layout contradicts its number of devices")
    if row["accelerator"] not in CATALOGUE:
        raise Unusable("its accelerator is not in the catalogue")
    structure, known = _structure(row, source)
    strategy = _strategy(row, options, source, structure)
    hardware = replace(CATALOGUE[row["accelerator"]], devices=strategy.devices, **source.machine)
    if strategy.devices != int(row["n_accel"]):
        raise Unusable("its layout contradicts its number of devices")
    if strategy.precision not in hardware.peak:
        strategy = replace(strategy, precision=hardware.plain)
    failed = NO_MEMORY in row["notes"]
    seconds = None if failed else _seconds(row, structure, strategy, source)
    memory = float(options["mem_gb"]) * 2**30 if options.get("mem_gb") else None
    return Run(
        number,
        row["source"],
        row["model"],
        structure,
        strategy,
        hardware,
        seconds,
        memory,
        failed,
        known,
        "; ".join(_SESSION.findall(row["notes"])),
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _options(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _structure(row: Mapping[str, str], source: Source) -> tuple[ModelStructure, bool]:
    extra = {**family(row["model"]), **source.structure}
    sequence = int(row["seq_len"] or 0)
    if not sequence:
        raise Unusable("its sequence is not stated")
    if row["layers"] and row["hidden"]:
        hidden = int(row["hidden"])
        heads = int(row["heads"] or hidden // 128)
        return ModelStructure(int(row["layers"]), hidden, heads, sequence, **extra), True
    if extra.get("experts", 1) > 1 or not row["params_b"]:
        raise Unusable("its model is not stated")
    if not row["model"].startswith("GPT"):
        raise Unusable("its model is not stated")
    return of_parameters(1e9 * float(row["params_b"]), sequence, extra["vocabulary"]), False


def _strategy(
    row: Mapping[str, str], options: Mapping[str, str], source: Source, structure: ModelStructure
) -> Strategy:
    stated = all(row[name].isdigit() for name in ("tp", "dp", "n_accel"))
    # Tensor and data that make up the machine leave no room for a pipeline.
    if not stated or not (row["pp"].isdigit() or int(row["tp"]) * int(row["dp"]) == int(row["n_accel"])):
        raise Unusable("its layout is not stated")
    if not row["global_batch"]:
        raise Unusable("its batch is not stated")
    data, stages, batch = int(row["dp"]), int(row["pp"] or 1), int(row["global_batch"])
    # A source that does not say it takes one sequence at a time under a pipeline, and all of them without.
    usual = {"micro_batch": 1 if stages > 1 else max(1, batch // data)}
    given: dict[str, Any] = {**usual, **source.strategy, **_given(options)}
    return Strategy(
        data=data,
        tensor=int(row["tp"]),
        pipeline=stages,
        virtual=VIRTUAL.get((row["source"], row["model"]), _whole(options, "vp")),
        context=_whole(options, "cp"),
        expert=_whole(options, "ep") if structure.experts > 1 else 1,
        global_batch=batch,
        **given,
    )


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    """What a row says itself of its strategy."""
    given: dict[str, Any] = {}
    if "recompute" in options:
        given["recompute"] = Recompute[options["recompute"].upper()]
    if "precision" in options:
        given["precision"] = _precision(options["precision"])
    if "zero" in options:
        # DeepSpeed fetches parameters ahead and reduces gradients as they come, whatever the source's habit.
        stage = Sharding(_whole(options, "zero"))
        given |= {"sharding": stage} | ({"overlap_data": True} if stage is Sharding.PARAMETERS else {})
    if options.get("fsdp", "0") not in {"0", ""}:
        partly = options["fsdp"] == "SHARD_GRAD_OP"
        given["sharding"] = Sharding.GRADIENTS if partly else Sharding.PARAMETERS
    if options.get("sp") == "1":
        given["sequence_parallel"] = True
    if options.get("mbs", "").isdigit():
        given["micro_batch"] = int(options["mbs"])
    return given


def _whole(options: Mapping[str, str], name: str) -> int:
    return int(options[name]) if options.get(name, "").isdigit() else 1


def _precision(text: str) -> str:
    return PRECISIONS.get(text.lower(), "fp8" if "fp8" in text.lower() else text.lower())


def _seconds(row: Mapping[str, str], structure: ModelStructure, strategy: Strategy, source: Source) -> float:
    """Time of a step: stated, or from tokens, or from FLOPs by the source's definition."""
    if row["step_time_s"]:
        return float(row["step_time_s"])
    if row["tokens_per_s"]:
        return strategy.global_batch * structure.sequence / float(row["tokens_per_s"])
    if not row["measured_tflops_per_accel"]:
        raise Unusable("its speed is not stated")
    flops = model_flops(structure, strategy.global_batch, causal=not source.hardware_flops)
    if source.hardware_flops:
        flops = float(hardware_flops(structure, Layouts.of([strategy]))[0])
    return flops / (1e12 * float(row["measured_tflops_per_accel"]) * strategy.devices)
