"""Layouts: every way to divide a model that there is, by the time of its step."""

from collections.abc import Iterator

from minimal_server.core import Answer, Json, Request
from minimal_server.demanding import METHOD_OF_DEMAND, Demanding, Law

LAYOUTS = 10
MICRO_BATCHES = (1, 2, 4, 8)


class Layouts(Demanding):
    """The quickest strategies."""

    def rank_layouts(self, request: Request) -> Answer:
        """Strategies that can run, the quickest first."""
        body = self.body(request, "LayoutRequest")
        self.check_demand(body)
        hardware, law = self.sheets(body)[body["kind"]], self.law(body)
        considered, found = 0, []
        for strategy in self.strategies(body, hardware):
            considered += 1
            layout = self.layout(body["model"], strategy, hardware, law)
            if layout:
                found.append(layout)
        found.sort(key=lambda row: row["step_time"]["expected"])
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": {**METHOD_OF_DEMAND, "runs": law.runs},
                "considered": considered,
                "feasible": len(found),
                "layouts": found[: body.get("layouts", LAYOUTS)],
            },
        )

    def layout(self, model: Json, strategy: Json, hardware: Json, law: Law) -> Json | None:
        """What a strategy leads to; None where it cannot run."""
        of = self.spread_out(model, strategy, hardware)
        memory = sum(self.memory(of).values())
        if self.obstacles(of, memory):
            return None
        seconds = self.parts_of_step(of, law).whole
        return {
            "strategy": strategy,
            "step_time": self.time_estimate(seconds, law),
            "utilisation": self.use_of_peak(of, seconds),
            "memory": memory,
        }

    def strategies(self, body: Json, hardware: Json) -> Iterator[Json]:
        """Ways to divide the model over the accelerators; a layer stays within a node."""
        devices, batch, model = body["devices"], body["global_batch"], body["model"]
        precision = {"precision": body["precision"]} if "precision" in body else {}
        for tensor in self.divisors(devices, hardware["devices_per_node"]):
            for pipeline in self.divisors(devices // tensor, model["layers"]):
                data = devices // tensor // pipeline
                for micro in MICRO_BATCHES:
                    if batch % (data * micro):
                        continue
                    for expert in self.divisors(data, hardware["devices_per_node"] if "experts" in model else 1):
                        for recomputation in ("none", "full"):
                            yield {
                                "data": data,
                                "tensor": tensor,
                                "pipeline": pipeline,
                                "expert": expert,
                                "micro_batch": micro,
                                "global_batch": batch,
                                "sequence_parallel": tensor > 1,
                                "sharding": 1,
                                "recomputation": recomputation,
                                **precision,
                            }

    def divisors(self, number: int, most: int) -> list[int]:
        """Divisors of a number up to some size."""
        return [one for one in range(1, min(number, most) + 1) if number % one == 0]
