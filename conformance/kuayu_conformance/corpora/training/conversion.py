"""Makes runs of the public table ``llm_training_runs/runs.csv``: what its columns and the sources' habits say together.

A row becomes a run where layout, batch, model and time can be known; else it is left out, and the reason is told.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.corpora.training.habits import HABITS, RECALLED, SHIPPED, STAGES, SourceConventions
from kuayu_conformance.corpora.training.machines import MACHINES, TERA
from kuayu_conformance.corpora.training.models import guessed, members
from kuayu_conformance.corpora.training.record import Corpus, Run

if TYPE_CHECKING:
    from kuayu_schemas import documents

__all__ = ["RECALLED", "SHIPPED", "TABLE", "Unusable", "converted"]

TABLE = "llm_training_runs/runs.csv"
GIBI = 2**30
WEIGHTS_TOO = 3
_HEAD = 128
_FAILED = "OUT OF MEMORY"
_SESSION = re.compile(r"section '[^']*'(?:; \d\d-\d\d)?|[\d.]+ NeMo Container")
_SIXTEEN = ("bf16", "fp16")
_FORMATS = {"bf16": "bf16", "amp_bf16": "bf16", "fp16": "fp16", "nvfp4": "fp4"}

Row = Mapping[str, str]


class Unusable(Exception):
    """A row cannot become a run; the message says why."""


def converted(data: Path, sources: Collection[str], table: str = TABLE) -> tuple[Corpus, dict[int, str]]:
    """Runs of some sources in a table of a data folder, and why each other row is left out.

    Raises:
        FileNotFoundError: There is no such table in the folder.
    """
    hardware: dict[str, documents.TrainingHardware] = {}
    runs, left = [], {}
    for number, row in enumerate(_rows(data / table), 1):
        try:
            run, machine = _run(row, number, sources)
        except Unusable as reason:
            left[number] = str(reason)
            continue
        entry = {"id": run.hardware, **machine}
        hardware.setdefault(run.hardware, cast("documents.TrainingHardware", entry))
        runs.append(run)
    used = {run.source for run in runs}
    source_of = {name: conventions.source for name, conventions in HABITS.items() if name in used}
    return Corpus(source_of, dict(sorted(hardware.items())), tuple(runs)), left


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _run(row: Row, number: int, sources: Collection[str]) -> tuple[Run, dict[str, Any]]:
    conventions = HABITS.get(row["source"])
    if conventions is None:
        raise Unusable("its source states no layout, no batch, or a machine that the wire cannot state")
    if row["source"] not in sources:
        raise Unusable("its source is known from a paper alone" if row["source"] in RECALLED else "not asked for")
    if "Offload" in row["notes"]:
        raise Unusable("weights are kept outside the accelerator")
    if "inconsistent" in row["notes"]:
        raise Unusable("its layout contradicts its number of accelerators")
    if row["accelerator"] not in MACHINES:
        raise Unusable("there is no data sheet of its accelerator")
    options = dict(_option(part) for part in row["other_parallel"].split(";"))
    model, stated = _model(row, conventions)
    machine = {**MACHINES[row["accelerator"]], **conventions.machine}
    strategy = _strategy(row, options, conventions, model, machine["peak_matrix_throughput"])
    name = row["accelerator"] + (f".{conventions.source.name}" if conventions.machine else "")
    failed = _FAILED in row["notes"]
    memory = float(options["mem_gb"]) * GIBI if options.get("mem_gb") else None
    run = Run(
        number,
        row["source"],
        row["model"],
        "; ".join(_SESSION.findall(row["notes"])),
        stated,
        model,
        strategy,
        name,
        None if failed else float(f"{_seconds(row, model, strategy, conventions):.6g}"),
        memory,
        failed,
    )
    if run.devices != int(row["n_accel"]):
        raise Unusable("its layout contradicts its number of accelerators")
    return run, machine


def _option(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name.strip(), value.strip()


def _model(row: Row, conventions: SourceConventions) -> "tuple[documents.ModelStructure, bool]":
    known = {**members(row["model"]), **conventions.model}
    if not row["seq_len"]:
        raise Unusable("its sequence is not stated")
    shape = {name: int(row[name]) for name in ("layers", "hidden") if row[name]}
    if shape.keys() == {"layers", "hidden"}:
        shape["heads"] = int(row["heads"] or shape["hidden"] // _HEAD)
        return cast("documents.ModelStructure", {**shape, "sequence": int(row["seq_len"]), **known}), True
    if not row["params_b"] or not row["model"].startswith("GPT") or "experts" in known:
        raise Unusable("its model is not stated")
    shape = guessed(1e9 * float(row["params_b"]), known["vocabulary"])
    return cast("documents.ModelStructure", {**shape, "sequence": int(row["seq_len"]), **known}), False


def _strategy(
    row: Row,
    options: Mapping[str, str],
    conventions: SourceConventions,
    model: "documents.ModelStructure",
    peaks: Mapping[str, float],
) -> "documents.ParallelStrategy":
    tensor, data, devices = row["tp"], row["dp"], row["n_accel"]
    # Where the pipeline is not told, there is none only if tensor and data make up the machine.
    whole = all(entry.isdigit() for entry in (tensor, data, devices))
    if not whole or not (row["pp"].isdigit() or int(tensor) * int(data) == int(devices)):
        raise Unusable("its layout is not stated")
    if not row["global_batch"]:
        raise Unusable("its batch is not stated")
    stages, batch = int(row["pp"] or 1), int(row["global_batch"])
    strategy: dict[str, Any] = {
        "data": int(data),
        "tensor": int(tensor),
        "pipeline": stages,
        # A source that does not say it takes one sequence at a time under a pipeline, and all of them without.
        "micro_batch": 1 if stages > 1 else max(1, batch // int(data)),
        "global_batch": batch,
        **conventions.strategy,
        **_given(options),
    }
    pieces = {
        "virtual_stages": STAGES.get((row["source"], row["model"]), _whole(options, "vp")),
        "context": _whole(options, "cp"),
        "expert": _whole(options, "ep") if model.get("experts", 1) > 1 else 1,
    }
    strategy |= {name: size for name, size in pieces.items() if size > 1}
    if strategy.get("precision", "bf16") not in peaks:
        strategy["precision"] = next(name for name in _SIXTEEN if name in peaks)
    return cast("documents.ParallelStrategy", strategy)


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    """What a row says itself of its strategy."""
    stated: dict[str, Any] = {}
    if options.get("recompute"):
        stated["recomputation"] = options["recompute"].lower()
    if options.get("precision"):
        text = options["precision"].lower()
        stated["precision"] = _FORMATS.get(text, "fp8" if "fp8" in text else text)
    if "zero" in options:
        stated["sharding"] = _whole(options, "zero")
        if stated["sharding"] == WEIGHTS_TOO:  # which DeepSpeed fetches ahead
            stated["overlap_data"] = True
    if options.get("fsdp", "0") not in {"", "0"}:
        stated["sharding"] = 2 if options["fsdp"] == "SHARD_GRAD_OP" else WEIGHTS_TOO
    if options.get("sp") == "1":
        stated["sequence_parallel"] = True
    if options.get("mbs", "").isdigit():
        stated["micro_batch"] = int(options["mbs"])
    return stated


def _whole(options: Mapping[str, str], name: str) -> int:
    return int(options[name]) if options.get(name, "").isdigit() else 1


def _seconds(
    row: Row, model: "documents.ModelStructure", strategy: "documents.ParallelStrategy", conventions: SourceConventions
) -> float:
    """Time of a step: stated, or from tokens, or from FLOP by the source's own count."""
    tokens: int = strategy["global_batch"] * model["sequence"]
    if row["step_time_s"]:
        return float(row["step_time_s"])
    if row["tokens_per_s"]:
        return tokens / float(row["tokens_per_s"])
    if not row["measured_tflops_per_accel"]:
        raise Unusable("its speed is not stated")
    count = _executed if conventions.counted == "executed" else _of_model
    rate = TERA * float(row["measured_tflops_per_accel"]) * int(row["n_accel"])
    return tokens * count(row, model) / rate


def _executed(row: Row, model: "documents.ModelStructure") -> float:
    """FLOP of a token of a GPT with everything computed anew: arXiv:2104.04473, equation 3, over the tokens."""
    del row
    layers, hidden, sequence = model["layers"], model["hidden"], model["sequence"]
    outer = model["vocabulary"] / (16 * layers * hidden)
    return float(96 * layers * hidden**2 * (1 + sequence / (6 * hidden) + outer))


def _of_model(row: Row, model: "documents.ModelStructure") -> float:
    """FLOP of a token: six of each parameter, and scores of attention as a causal mask leaves them."""
    scores: float = 6.0 * model["layers"] * model["hidden"] * model["sequence"]
    return 6e9 * float(row["params_b"]) + scores
