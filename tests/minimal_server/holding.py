"""Memory of the fullest accelerator, by purpose."""

from minimal_server.sending import Sending, Spread

WEIGHT, STATE = 2, 12
"""Bytes of a parameter: its weight, and its copy in full precision with two means of the optimiser."""
WORKING = 1e9
"""Bytes of buffers."""


class Holding(Sending):
    """What memory is for."""

    def memory(self, of: Spread) -> dict[str, float]:
        """Bytes by purpose."""
        return {
            "parameters": self.shared_out(of, WEIGHT, 3),
            "gradients": self.shared_out(of, of.strategy.get("gradient_size", 4), 2),
            "optimizer": self.shared_out(of, STATE, 1),
            "activations": self.kept_by_stage(of),
            "working": WORKING + 3 * WEIGHT * of.tokens * of.model["vocabulary"] / of.of("tensor"),
        }

    def shared_out(self, of: Spread, size: float, since: int) -> float:
        """Bytes of something that each parameter has; replicas share it out from a level of sharding on."""
        common, experts = self.held_parameters(of)
        if of.strategy.get("sharding", 0) < since:
            return size * (common + experts)
        return size * (common / of.replicas + experts / max(1, of.replicas // of.of("expert")))

    def kept_by_stage(self, of: Spread) -> float:
        """Bytes of activations of all micro-batches that are under way in the first stage."""
        under_way = float(min(of.batches, of.of("pipeline")))
        if of.of("virtual_stages") > 1:
            under_way *= 1 + (of.of("pipeline") - 1) / (of.of("pipeline") * of.of("virtual_stages"))
        layer = self.kept_by_layer(of)
        if of.strategy.get("recomputation") == "full":
            return self.activations(of) * of.stage * under_way + layer
        return layer * of.stage * under_way

    def kept_by_layer(self, of: Spread) -> float:
        """Bytes that the backward pass of a layer needs, after V. Korthikanti et al., arXiv 2205.05198, section 4."""
        model, strategy, counts = of.model, of.strategy, of.counts
        hidden, members = model["hidden"], of.of("tensor")
        matrices = 3 if model.get("gated") else 2
        sparse = counts.sparse / counts.layers
        through = (1 - sparse) * counts.dense + sparse * (counts.met * counts.expert + counts.common)
        wide = model["heads"] * self.head_width(model)
        split = 4 * wide + 4 * self.key_width(model) + 2 * matrices * through / (matrices * hidden)
        if not strategy.get("fused_attention", True) and strategy.get("recomputation", "none") == "none":
            split += 5 * model["heads"] * model["sequence"]
        repeated = 10 * hidden / (members if strategy.get("sequence_parallel") else 1)
        return float(of.tokens * (repeated + split / members))
