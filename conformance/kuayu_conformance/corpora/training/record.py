"""A measured run as a value, and the JSON that runs are kept in."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kuayu_schemas.schema import digest

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True)
class Source:
    """Where runs are from.

    Attributes:
        name: Its name in the public table.
        origin: Who published it, where, in which version.
        licence: SPDX name of the licence of the origin, or that there is none.
        habits: What all its runs share, in words.
        team: Who ran it on which machine, where several sources have that in common; else empty.
    """

    name: str
    origin: str
    licence: str
    habits: str
    team: str = ""


@dataclass(frozen=True)
class Run:
    """A measured run.

    Attributes:
        row: Line of the public table, counted from 1 without its heading.
        source: Name of the source.
        name: Name of the model in the source.
        session: Section and day of the source's page, or release of its software; only within one are times alike.
        stated: Whether the source states layers and width; else they were guessed from the number of parameters.
        model: Its structure.
        strategy: How it was spread.
        hardware: Name of the hardware.
        step_time: Seconds of a step; None where only memory is known.
        memory: Bytes of the fullest accelerator, as the source reports it; None where it does not.
        failed: Whether it ran out of memory.
    """

    row: int
    source: str
    name: str
    session: str
    stated: bool
    model: "documents.ModelStructure"
    strategy: "documents.ParallelStrategy"
    hardware: str
    step_time: float | None
    memory: float | None
    failed: bool

    @property
    def kind(self) -> str:
        """``moe`` or ``dense``."""
        return "moe" if self.model.get("experts", 1) > 1 else "dense"

    @property
    def devices(self) -> int:
        """Accelerators."""
        given: Mapping[str, Any] = self.strategy
        sizes = (given.get(name, 1) for name in ("data", "tensor", "pipeline", "context"))
        product = 1
        for size in sizes:
            product *= size
        return product

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return int(self.strategy["global_batch"] * self.model["sequence"])


@dataclass(frozen=True)
class Corpus:
    """Runs of several sources.

    Attributes:
        sources: By name.
        hardware: By name, which is its ``id``.
        runs: In the order of the public table.
    """

    sources: Mapping[str, Source]
    hardware: "Mapping[str, documents.TrainingHardware]"
    runs: tuple[Run, ...]

    @cached_property
    def digest(self) -> str:
        """Digest of all that verdicts depend on."""
        return digest({"hardware": dict(self.hardware), "runs": [asdict(run) for run in self.runs]})

    def to_json(self) -> str:
        """The runs as they are kept: one line for each source, hardware, model and run; equal models stand once."""
        models: dict[str, str] = {}
        lines = []
        for run in self.runs:
            text = json.dumps(run.model)
            models.setdefault(text, f"{run.name}#{len(models)}")
            members = {name: value for name, value in asdict(run).items() if value is not None}
            lines.append(json.dumps({**members, "model": models[text]}, ensure_ascii=False))
        parts = {
            "sources": [json.dumps(asdict(source), ensure_ascii=False) for source in self.sources.values()],
            "hardware": [json.dumps(entry) for entry in self.hardware.values()],
            "models": [f'{{"name": {json.dumps(name)}, "structure": {text}}}' for text, name in models.items()],
            "runs": lines,
        }
        return (
            "{\n"
            + ",\n".join(f' "{part}": [\n  ' + ",\n  ".join(item) + "\n ]" for part, item in parts.items())
            + "\n}\n"
        )

    @classmethod
    def from_json(cls, text: str) -> "Corpus":
        """The runs of a text that :meth:`to_json` made."""
        parts = json.loads(text)
        models = {model["name"]: model["structure"] for model in parts["models"]}
        optional = {"step_time": None, "memory": None}
        return cls(
            {source["name"]: Source(**source) for source in parts["sources"]},
            {entry["id"]: entry for entry in parts["hardware"]},
            tuple(Run(**{**optional, **run, "model": models[run["model"]]}) for run in parts["runs"]),
        )
