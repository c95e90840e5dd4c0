"""Training steps that were measured on one accelerator, and what the demand law makes of them.

    python tests/benchmarks/own_runs.py                      what the law says of the runs that are kept
    python tests/benchmarks/own_runs.py --measure FILE.json  measure them anew

The runs are small language models of Hugging Face's transformers in eager PyTorch on an H100: weights in binary32 with
autocast to bfloat16 (LoRA: weights in bfloat16), fused AdamW, scores of attention in fast memory unless it says so.
They were measured on 2026-11-26, when the law had been made, in a stack whose habits it does not know. Memory is the
most that the allocator gave out. To measure needs CUDA, ``pip install transformers peft``, and three minutes.

Printed: the mean error of step times as the law stands, with one, three and all other runs given to it, and of one
factor for all runs, which is the least that a calibration should reach; and of memory.
"""

import argparse
import gc
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parents[2] / "docs" / "results" / "demand" / "h100_runs.json"
DRAWS = 30
"""Choices of three runs, seed 1."""

Row = dict[str, Any]


def gpt(layers: int, hidden: int, heads: int, *, dropout: bool = False) -> Row:
    """Structure of a GPT-2."""
    return {
        "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 50304, "sequence": 1024, "tied": True,
        "dropout": dropout,
    }  # fmt: skip


def llama(layers: int, hidden: int, heads: int, groups: int, feed_forward: int, sequence: int, **others: Any) -> Row:
    """Structure of a Llama, or with ``experts`` of a Mixtral."""
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "key_value_heads": groups}
    return {
        **shape, "feed_forward": feed_forward, "gated": True, "vocabulary": 32000, "sequence": sequence, "tied": False,
        **others,
    }  # fmt: skip


_SMALL, _LARGE, _LARGEST = (22, 2048, 32, 4, 5632), (26, 3200, 32, 32, 8640), (32, 4096, 32, 32, 11008)
PLAN: tuple[tuple[str, Row, Row], ...] = (
    ("gpt2-124m", gpt(12, 768, 12, dropout=True), {"micro_batch": 16}),
    ("gpt2-355m", gpt(24, 1024, 16), {"micro_batch": 16}),
    ("gpt2-774m", gpt(36, 1280, 20), {"micro_batch": 8}),
    ("gpt2-1.5b", gpt(48, 1600, 25), {"micro_batch": 8}),
    ("llama-1.1b", llama(*_SMALL, 2048), {"micro_batch": 8}),
    ("llama-1.1b-eager", llama(*_SMALL, 2048), {"micro_batch": 4, "fused_attention": False}),
    ("llama-1.1b-recompute", llama(*_SMALL, 2048), {"micro_batch": 16, "recomputation": "full"}),
    ("llama-1.1b-accumulate", llama(*_SMALL, 2048), {"micro_batch": 4, "global_batch": 16}),
    ("llama-1.1b-long", llama(*_SMALL, 16384), {"micro_batch": 1}),
    ("llama-3b", llama(*_LARGE, 2048), {"micro_batch": 4}),
    ("llama-3.2-1b", llama(16, 2048, 32, 8, 8192, 4096, vocabulary=128256, tied=True), {"micro_batch": 2}),
    ("llama-3b-recompute", llama(*_LARGE, 4096), {"micro_batch": 4, "recomputation": "full"}),
    ("llama-7b-lora", llama(*_LARGEST, 2048, adapter={"rank": 16}), {"micro_batch": 4}),
    ("llama-7b-out-of-memory", llama(*_LARGEST, 2048), {"micro_batch": 1}),
    ("mixtral-small", llama(12, 1024, 16, 4, 2048, 2048, experts=8, experts_per_token=2), {"micro_batch": 8}),
    ("mixtral-16x", llama(16, 1024, 16, 16, 1408, 2048, experts=16, experts_per_token=4), {"micro_batch": 8}),
    ("llama-1.1b-compiled", llama(*_SMALL, 2048), {"micro_batch": 8}),
)
"""What is measured: name, class ModelStructure, and what differs from one process with bfloat16 and fused attention."""


def strategy(changed: Row) -> Row:
    """Class ParallelStrategy of a run."""
    one = {"data": 1, "tensor": 1, "pipeline": 1, "global_batch": changed["micro_batch"], "precision": "bf16"}
    return {**one, "recomputation": "none", "fused_attention": True, **changed}


def measure(name: str, structure: Row, changed: Row) -> Row:
    """Step time in seconds and memory in bytes of one training, or that it did not fit."""
    import torch

    how = strategy(changed)
    parts, micro = how["global_batch"] // how["micro_batch"], how["micro_batch"]
    row: Row = {"name": name, "model": structure, "strategy": how}
    torch.manual_seed(1)
    torch.cuda.reset_peak_memory_stats()
    try:
        model = _model(torch, structure, how)
        optimiser = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-5, fused=True)
        forward = torch.compile(model) if name.endswith("compiled") else model
        tokens = torch.randint(0, structure["vocabulary"], (micro, structure["sequence"]), device="cuda:0")

        def step() -> None:
            for _ in range(parts):
                with torch.autocast("cuda", torch.bfloat16):
                    loss = forward(input_ids=tokens, labels=tokens).loss / parts
                loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            torch.cuda.synchronize()

        row |= _timed(step)
        row["memory"] = float(torch.cuda.max_memory_allocated())
    except torch.OutOfMemoryError:
        row["failed"] = True
    model = optimiser = forward = None
    gc.collect()
    torch.cuda.empty_cache()
    return row


def _model(torch: Any, structure: Row, how: Row) -> Any:
    """The model on the accelerator, ready to be trained."""
    import transformers

    attention = {"attn_implementation": "sdpa" if how["fused_attention"] else "eager", "use_cache": False}
    if not structure.get("gated"):
        share = 0.1 if structure["dropout"] else 0.0
        drops = {f"{where}_pdrop": share for where in ("resid", "embd", "attn")}
        shape = {"n_layer": structure["layers"], "n_embd": structure["hidden"], "n_head": structure["heads"]}
        made = transformers.GPT2Config(
            **shape, **drops, **attention, vocab_size=structure["vocabulary"], n_positions=structure["sequence"]
        )
        kind = transformers.GPT2LMHeadModel
    else:
        experts = structure.get("experts", 1)
        config, kind = (
            (transformers.MixtralConfig, transformers.MixtralForCausalLM)
            if experts > 1
            else (transformers.LlamaConfig, transformers.LlamaForCausalLM)
        )
        routed = (
            {"num_local_experts": experts, "num_experts_per_tok": structure["experts_per_token"]} if experts > 1 else {}
        )
        made = config(
            **routed, **attention, num_hidden_layers=structure["layers"], hidden_size=structure["hidden"],
            num_attention_heads=structure["heads"], num_key_value_heads=structure["key_value_heads"],
            intermediate_size=structure["feed_forward"], vocab_size=structure["vocabulary"],
            max_position_embeddings=structure["sequence"], tie_word_embeddings=structure["tied"],
        )  # fmt: skip
    adapter = structure.get("adapter")
    torch.set_default_dtype(torch.bfloat16 if adapter else torch.float32)
    with torch.device("cuda:0"):
        model = kind(made)
    torch.set_default_dtype(torch.float32)
    if adapter:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(r=adapter["rank"], target_modules="all-linear"))
        model.enable_input_require_grads()
    if how["recomputation"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


def _timed(step: Callable[[], None]) -> Row:
    """Median of the steps of four seconds, at least four and at most forty, after three."""
    for _ in range(3):
        step()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 4 or (time.perf_counter() - began < 4 and len(times) < 40):
        since = time.perf_counter()
        step()
        times.append(time.perf_counter() - since)
    return {"step_time": statistics.median(times), "least": min(times), "most": max(times), "n": len(times)}


def asked(kept: Row, rows: Sequence[Row], runs: Sequence[Row]) -> dict[str, Row]:
    """What the law says of some rows, by name, with some runs given."""
    from kuayu.demand.demand_report import demand

    name = kept["hardware"]["id"]
    body: Row = {
        "revision": {"epoch": "own-runs", "number": 1},
        "hardware": [kept["hardware"]],
        "cases": [{"id": row["name"], "hardware": name, **_job(row)} for row in rows],
    }
    if runs:
        measured = ("step_time", "memory")
        body["runs"] = [
            {"source": "own", "hardware": name, **_job(row), **{each: row[each] for each in measured}} for row in runs
        ]
    return {each["case"]: each for each in demand(body)["demands"]}


def _job(row: Row) -> Row:
    return {"model": row["model"], "strategy": row["strategy"]}


def errors(kept: Row, rows: Sequence[Row], runs: Sequence[Row]) -> list[float]:
    """Relative errors of the step times of rows that are not among the runs given."""
    rest = [row for row in rows if row not in runs]
    told = asked(kept, rest, runs)
    return [abs(told[row["name"]]["step_time"]["expected"] / row["step_time"] - 1) for row in rest]


def judge(kept: Row) -> None:
    """Print the table."""
    ran = [row for row in kept["runs"] if "step_time" in row]
    eager = [row for row in ran if not row["name"].endswith("compiled")]
    told = asked(kept, kept["runs"], [])
    print(f"{'run':24}{'measured':>10}{'law':>9}{'error':>8}{'memory':>9}{'law':>9}{'error':>8}")
    for row in kept["runs"]:
        said = told[row["name"]]
        step, memory, fits = said["step_time"]["expected"], said["memory"], "" if said["fits"] else "  does not fit"
        if "failed" in row:
            print(f"{row['name']:24}{'out of memory':>19}{'':17}{memory / 1e9:7.1f} GB{fits}")
            continue
        took, held = row["step_time"], row["memory"]
        print(f"{row['name']:24}{took:8.3f} s{step:7.3f} s{step / took - 1:+8.1%}"
              f"{held / 1e9:6.1f} GB{memory / 1e9:6.1f} GB{memory / held - 1:+8.1%}{fits}")  # fmt: skip
    chance, mean = random.Random(1), statistics.fmean
    given = {
        "no run": errors(kept, eager, []),
        "one": [mean(errors(kept, eager, [row])) for row in eager],
        "three": [mean(errors(kept, eager, chance.sample(eager, 3))) for _ in range(DRAWS)],
        "all others": [errors(kept, eager, [row for row in eager if row is not left])[0] for left in eager],
    }
    ratios = [math.log(row["step_time"] / told[row["name"]]["step_time"]["expected"]) for row in eager]
    others = [(sum(ratios) - each) / (len(ratios) - 1) - each for each in ratios]
    given["one factor for all others"] = [abs(math.exp(each) - 1) for each in others]
    print(f"\nmean error of the step times of {len(eager)} eager runs, given")
    for what, found in given.items():
        print(f"  {what:28}{mean(found):6.1%}")
    print(f"they took {math.exp(mean(ratios)):.2f} times as long as it says (geometric mean)")
    inside = sum(
        told[row["name"]]["step_time"]["low"] <= row["step_time"] <= told[row["name"]]["step_time"]["high"]
        for row in eager
    )
    print(f"within the interval of 90 %: {inside} of {len(eager)}")
    print(f"mean error of memory {mean(abs(told[row['name']]['memory'] / row['memory'] - 1) for row in eager):.1%}")


def main() -> None:
    """Run the benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=Path, metavar="FILE", help="measure the runs, and write them there")
    parser.add_argument("--runs", type=Path, default=RUNS, help="runs that are judged")
    chosen = parser.parse_args()
    if chosen.measure is None:
        judge(json.loads(chosen.runs.read_text("utf-8")))
        return
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("this needs an accelerator that PyTorch can use; without --measure it does not")
    kept = json.loads(RUNS.read_text("utf-8"))
    kept["runs"] = [measure(*each) for each in PLAN]
    kept["device"], kept["stack"] = torch.cuda.get_device_name(), f"torch {torch.__version__}"
    chosen.measure.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
