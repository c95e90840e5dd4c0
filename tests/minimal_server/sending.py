"""What an accelerator sends in a step, for which parallelism, and over which links."""

from dataclasses import dataclass

from minimal_server.core import Json
from minimal_server.counting import Counting, Counts

WIDTH = 2
"""Bytes of a 16-bit number."""


@dataclass(frozen=True)
class Spread:
    """A strategy of a model on hardware, with all that is left out filled in.

    Attributes:
        model: The model.
        counts: What it holds.
        strategy: As it was given.
        hardware: Sheet of the accelerators.
        replicas: Accelerators that hold the same weights: of data and of context parallelism.
        stage: Layers of the fullest stage.
        batches: Micro-batches of a step.
        tokens: Tokens of a micro-batch that an accelerator has.
    """

    model: Json
    counts: Counts
    strategy: Json
    hardware: Json
    replicas: int
    stage: int
    batches: int
    tokens: float

    def of(self, dimension: str) -> int:
        """Members of a parallelism."""
        return int(self.strategy.get(dimension, 1))

    @property
    def devices(self) -> int:
        """Accelerators."""
        return self.of("data") * self.of("tensor") * self.of("pipeline") * self.of("context")


class Sending(Counting):
    """Traffic by parallelism and links."""

    def spread_out(self, model: Json, strategy: Json, hardware: Json) -> Spread:
        """What follows from a strategy."""
        counts = self.counts(model)
        whole = strategy["data"] * strategy["micro_batch"]
        return Spread(
            model,
            counts,
            strategy,
            hardware,
            replicas=strategy["data"] * strategy.get("context", 1),
            stage=-(-counts.layers // strategy["pipeline"]),
            batches=max(1, -(-strategy["global_batch"] // whole)),
            tokens=min(strategy["micro_batch"], strategy["global_batch"])
            * model["sequence"]
            / strategy.get("context", 1),
        )

    def held_parameters(self, of: Spread) -> tuple[float, float]:
        """Parameters of the fullest accelerator: what replicas share, and experts, which fewer of them do."""
        counts, part = of.counts, of.stage / of.counts.layers / of.of("tensor")
        tables = counts.tables if of.of("pipeline") == 1 else 1
        common = counts.in_common * part + tables * counts.table / of.of("tensor")
        return common, counts.of_experts * part / of.of("expert")

    def sent(self, of: Spread) -> dict[str, float]:
        """Bytes by parallelism, of those that have several members."""
        sizes = {
            "data": self.sent_by_data(of),
            "tensor": self.sent_by_tensor(of),
            "pipeline": self.sent_by_pipeline(of),
            "context": self.sent_by_context(of),
            "expert": self.sent_by_experts(of),
        }
        return {dimension: size for dimension, size in sizes.items() if size > 0}

    def sent_by_data(self, of: Spread) -> float:
        """Gradients are summed up over replicas; where these share weights out, weights are gathered instead."""
        size, again = of.strategy.get("exchanged_size", 4), 2 * WIDTH if of.strategy.get("sharding", 0) > 2 else WIDTH
        back = again if of.strategy.get("sharding", 0) else size
        common, experts = self.held_parameters(of)
        fewer = max(1, of.replicas // of.of("expert"))
        return float(size + back) * (common * (1 - 1 / of.replicas) + experts * (1 - 1 / fewer))

    def sent_by_tensor(self, of: Spread) -> float:
        """Activations of each layer are summed up twice forward and twice backward."""
        members = of.of("tensor")
        sums = 6 if of.strategy.get("recomputation") == "full" else 4
        return 2 * (1 - 1 / members) * sums * self.activations(of) * of.stage * of.batches

    def sent_by_pipeline(self, of: Spread) -> float:
        """Activations go to the next stage, their gradients to the one before."""
        if of.of("pipeline") == 1:
            return 0.0
        parts = of.of("tensor") if of.strategy.get("scattered", True) else 1
        return 2 * of.of("virtual_stages") * self.activations(of) / parts * of.batches

    def sent_by_context(self, of: Spread) -> float:
        """Keys and values go round once forward, and with their gradients backward."""
        wide = 2 * self.key_width(of.model) / of.of("tensor")
        return 3 * (of.of("context") - 1) * WIDTH * of.tokens * wide * of.stage * of.batches

    def sent_by_experts(self, of: Spread) -> float:
        """Tokens go to their experts and back, forward and backward."""
        part = of.counts.sparse / of.counts.layers * of.counts.met / of.of("tensor")
        return 4 * (1 - 1 / of.of("expert")) * self.activations(of) * part * of.stage * of.batches

    def activations(self, of: Spread) -> float:
        """Bytes of the activations between two layers of a micro-batch."""
        return float(WIDTH * of.tokens * of.model["hidden"])

    def link(self, of: Spread, dimension: str) -> str:
        """Links that a parallelism needs: neighbours in the order tensor, context, data, pipeline lie nearest."""
        order = ["tensor", "context", "data", "pipeline"]
        if of.strategy.get("outermost") == "data":
            order = ["tensor", "context", "pipeline", "data"]
        reach = 1
        for inner in order:
            reach *= of.of("expert") if dimension == "expert" and inner == "data" else of.of(inner)
            if inner == dimension or (dimension == "expert" and inner == "data"):
                break
        if reach <= of.hardware["devices_per_node"]:
            return "node"
        return "domain" if reach <= of.hardware.get("devices_per_domain", reach) else "federation"

    def link_speed(self, of: Spread, link: str) -> float:
        """Bytes a second that an accelerator sends over links of a class."""
        if link == "federation" and "federation_bandwidth" in of.hardware:
            return float(of.hardware["federation_bandwidth"] / of.hardware["devices_per_domain"])
        return float(of.hardware["node_bandwidth" if link == "node" else "domain_bandwidth"])
