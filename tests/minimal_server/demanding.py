"""Demand of training: a roofline with one efficiency, which is the median of what was measured."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median, pstdev

from minimal_server.core import Answer, Json, Request
from minimal_server.holding import Holding
from minimal_server.sending import Spread

METHOD_OF_DEMAND = {"name": "minimal server: roofline with one efficiency", "version": "1"}
EFFICIENCY, SPREAD = 0.45, 0.25
"""What is taken where nothing was measured: share of the peak that layers reach, and how far off that may be."""
SLOWEST = 1000.0
"""One over the least efficiency that is looked for."""
HIDDEN = 0.5
"""Share of the computation beside which replicas can exchange."""
UPDATED = 28.0
"""Bytes that the optimiser reads and writes for a parameter."""


@dataclass(frozen=True)
class Law:
    """What the time of a step is worked out with.

    Attributes:
        efficiency: Share of the peak that is reached.
        spread: Standard deviation of the logarithm of times.
        coverage: Share of cases that an interval is to hold.
        runs: Measured runs that it rests on.
    """

    efficiency: float
    spread: float
    coverage: float
    runs: int


@dataclass(frozen=True)
class Step:
    """Seconds of a step.

    Attributes:
        computing: In which layers are computed, and what nothing hides is sent between them.
        busy: Share of these that is computed.
        waiting: In which a pipeline fills and empties.
        exchange: In which replicas exchange what nothing hides.
        update: In which weights change.
    """

    computing: float
    busy: float
    waiting: float
    exchange: float
    update: float

    @property
    def whole(self) -> float:
        """All of it."""
        return self.computing + self.waiting + self.exchange + self.update


class Demanding(Holding):
    """What trainings need."""

    def training_demands(self, request: Request) -> Answer:
        """A demand for each case."""
        body = self.body(request, "TrainingDemandRequest")
        self.check_demand(body)
        sheets, law = self.sheets(body), self.law(body)
        demands = [
            self.demand(case, sheets[case["hardware"]], law, profiled=body.get("profiles", False))
            for case in body["cases"]
        ]
        method = {**METHOD_OF_DEMAND, "runs": law.runs}
        return Answer(200, {"revision": body["revision"], "method": method, "demands": demands})

    def sheets(self, body: Json) -> dict[str, Json]:
        """Hardware by name."""
        return {row["id"]: row for row in body["hardware"]}

    def law(self, body: Json) -> Law:
        """The efficiency at which the request's runs were as quick as they were."""
        sheets, coverage = self.sheets(body), body.get("coverage", 0.9)
        found = []
        for run in body.get("runs", ()):
            of = self.spread_out(run["model"], run["strategy"], sheets[run["hardware"]])
            if "step_time" in run:
                found.append(self.fitted(of, run["step_time"]))
        if not found:
            return Law(EFFICIENCY, SPREAD, coverage, 0)
        spread = pstdev(math.log(one) for one in found)
        return Law(self.typical_efficiency(found), max(0.05, spread), coverage, len(found))

    def fitted(self, of: Spread, seconds: float) -> float:
        """Efficiency with which a step takes so long.

        Time over slowness, which is one over the efficiency, is two straight lines, the second one steeper: what is not
        hidden becomes less until nothing is left of it. Newton's steps end after the second.
        """
        slowness = 1.0
        for _ in range(4):
            time, further = (
                self.parts_of_step(of, Law(1 / each, SPREAD, 0.9, 0)).whole for each in (slowness, 1.001 * slowness)
            )
            away = (seconds - time) / (further - time) * 0.001 * slowness
            slowness = min(SLOWEST, max(1.0, slowness + away))
        return 1 / slowness

    def typical_efficiency(self, found: Sequence[float]) -> float:
        """The one that counts of all that were found."""
        return median(found)

    def peak(self, hardware: Json, precision: str) -> float:
        """FLOP/s of a precision, else the most that the sheet tells of another."""
        sheet = hardware["peak_matrix_throughput"]
        return float(sheet.get(precision) or max(sheet.values(), default=0.0) or 1.0)

    def sixteen(self, hardware: Json) -> float:
        """FLOP/s in 16 bits."""
        return self.peak(hardware, "bf16" if "bf16" in hardware["peak_matrix_throughput"] else "fp16")

    def tokens_of_step(self, of: Spread) -> float:
        """Tokens of a step."""
        return float(of.strategy["global_batch"] * of.model["sequence"])

    def executed(self, of: Spread) -> float:
        """FLOP of a step with what is computed anew."""
        tokens = self.tokens_of_step(of)
        return self.work(of.counts, tokens) + self.done_again(
            of.counts, tokens, of.strategy.get("recomputation", "none")
        )

    def parts_of_step(self, of: Spread, law: Law) -> Step:
        """What the seconds of a step are spent on."""
        peak = self.peak(of.hardware, of.strategy.get("precision", "bf16"))
        products = self.executed(of) / (of.devices * peak * law.efficiency)
        seconds = {name: size / self.link_speed(of, self.link(of, name)) for name, size in self.sent(of).items()}
        between = sum(seconds.get(name, 0.0) for name in ("tensor", "expert") if not of.strategy.get(f"overlap_{name}"))
        computing = products + between
        waiting = computing * (of.of("pipeline") - 1) / (of.of("virtual_stages") * of.batches)
        hidden = HIDDEN * products if of.strategy.get("overlap_data", True) else 0.0
        update = UPDATED * sum(self.held_parameters(of)) / of.hardware["accelerator_memory_bandwidth"]
        if of.strategy.get("sharding", 0):
            update /= of.replicas
        return Step(computing, products / computing, waiting, max(0.0, seconds.get("data", 0.0) - hidden), update)

    def time_estimate(self, expected: float, law: Law) -> Json:
        """Time of a step with its interval."""
        factor = math.exp(NormalDist().inv_cdf(0.5 + law.coverage / 2) * law.spread)
        return {
            "expected": expected,
            "low": expected / factor,
            "high": expected * factor,
            "coverage": law.coverage,
        }

    def use_of_peak(self, of: Spread, seconds: float) -> float:
        """Work over what the accelerators could do meanwhile."""
        work = self.work(of.counts, self.tokens_of_step(of))
        return work / (seconds * of.devices * self.sixteen(of.hardware))

    def obstacles(self, of: Spread, memory: float) -> list[str]:
        """Why a training cannot run."""
        strategy, model = of.strategy, of.model
        divided = strategy["data"] * strategy["micro_batch"]
        reasons = {
            "there is not enough memory": memory > of.hardware["accelerator_memory_capacity"],
            "there are more stages than layers": of.of("pipeline") * of.of("virtual_stages") > of.counts.layers,
            "heads cannot be shared out": model["heads"] % of.of("tensor") > 0,
            "the batch cannot be shared out": strategy["global_batch"] % divided > 0,
            "experts cannot be shared out": model.get("experts", 1) % of.of("expert") > 0,
            "replicas cannot share out experts": of.replicas % of.of("expert") > 0,
            "the sequence cannot be shared out": model["sequence"] % of.of("context") > 0,
        }
        return [reason for reason, applies in reasons.items() if applies]

    def demand(self, case: Json, hardware: Json, law: Law, *, profiled: bool) -> Json:
        """What a case needs."""
        of = self.spread_out(case["model"], case["strategy"], hardware)
        memory, step = self.memory(of), self.parts_of_step(of, law)
        whole, tokens = sum(memory.values()), self.tokens_of_step(of)
        obstacles = self.obstacles(of, whole)
        return {
            "case": case["id"],
            "parameters": self.parameters(of.counts),
            "active_parameters": self.active_parameters(of.counts),
            "devices": of.devices,
            "work": self.work(of.counts, tokens),
            "executed_work": self.executed(of),
            "step_time": self.time_estimate(step.whole, law),
            "utilisation": self.use_of_peak(of, step.whole),
            "memory": whole,
            "memory_parts": [{"part": part, "size": size} for part, size in memory.items()],
            "fits": not obstacles,
            "obstacles": obstacles,
            "traffic": [
                {"dimension": name, "link": self.link(of, name), "size": size} for name, size in self.sent(of).items()
            ],
            **({"segments": list(self.segments(of, step))} if profiled else {}),
            **(
                {"phases": [self.phase(case, one, hardware, law) for one in case["phases"]]} if "phases" in case else {}
            ),
        }

    def segments(self, of: Spread, step: Step) -> Iterator[Json]:
        """A step from begin to end; what replicas send is sent in the exchange if there is one, else beside."""
        sent = dict(self.sent(of))
        apart = {"data": sent.pop("data")} if step.exchange > 0 else {}
        parts: tuple[tuple[str, float, float, dict[str, float]], ...] = (
            ("filling", step.waiting / 2, 0.5, {}),
            ("steady", step.computing, step.busy, sent),
            ("draining", step.waiting / 2, 0.5, {}),
            ("exchange", step.exchange, 0.0, apart),
            ("update", step.update, 1.0, {}),
        )
        begin = 0.0
        for activity, duration, busy, flows in parts:
            if duration > 0:
                yield {
                    "activity": activity,
                    "begin": begin,
                    "duration": duration,
                    "busy": busy,
                    "traffic": self.flows(of, flows, duration),
                }
                begin += duration

    def flows(self, of: Spread, sent: dict[str, float], duration: float) -> list[Json]:
        """Bytes a second by links."""
        by_link: dict[str, float] = {}
        for name, size in sent.items():
            link = self.link(of, name)
            by_link[link] = by_link.get(link, 0.0) + size
        return [{"link": link, "flow": size / duration} for link, size in by_link.items()]

    def phase(self, case: Json, phase: Json, hardware: Json, law: Law) -> Json:
        """What a case needs in one of its phases."""
        strategy = case["strategy"]
        batch = phase.get("global_batch", strategy["global_batch"])
        model = {**case["model"], "sequence": phase.get("sequence", case["model"]["sequence"])}
        own = {**strategy, "global_batch": batch, "data": self.useful_replicas(strategy, batch)}
        of = self.spread_out(model, own, hardware)
        seconds = self.parts_of_step(of, law).whole
        return {
            "phase": phase["phase"],
            "devices": of.devices,
            "step_time": seconds,
            "duration": phase["steps"] * seconds,
            "work": phase["steps"] * self.work(of.counts, self.tokens_of_step(of)),
            "memory": sum(self.memory(of).values()),
            "traffic": sum(self.sent(of).values()),
        }

    def useful_replicas(self, strategy: Json, batch: int) -> int:
        """Replicas for which there is a micro-batch."""
        return int(max(1, min(strategy["data"], batch // strategy["micro_batch"])))
