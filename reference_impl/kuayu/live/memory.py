"""What the control plane knows for certain: who is there, which plan holds, what is stored, and how far the job is.

Every entry of the record changes it by the same function, when it is written and when it is read again, so that whoever
goes on from the record knows what its predecessor knew. What was only measured (beats, speeds) is measured anew.
"""

from typing import Any

from kuayu.live.plan import Member, Plan
from kuayu.live.record import SNAPSHOT, Entry
from kuayu.live.register import Register


class Memory:
    """What follows from the entries so far.

    Attributes:
        plan: The newest.
        workers: Who is there, by identifier.
        replaced: Who was a member once and must not come back.
        taken: Number of the last report of each worker that is on record.
        register: Checkpoints.
        at: The last step that all members have made.
        frontier: The furthest step that anyone has made.

    Args:
        until: Last step.
    """

    def __init__(self, until: int) -> None:
        self.plan = Plan(0, (), None, until)
        self.workers: dict[str, Member] = {}
        self.replaced: set[str] = set()
        self.taken: dict[str, int] = {}
        self.register = Register()
        self.at, self.frontier = 0, 0
        self._made: dict[int, tuple[float, set[str]]] = {}  # loss, and who told of the step
        self._ready: set[str] = set()

    @property
    def members(self) -> list[str]:
        """Identifiers of the workers of the job, by rank."""
        return [each.id for each in self.plan.members]

    def apply(self, entry: Entry) -> list[Entry]:
        """Let an entry count; entries that follow from it, without instants."""
        match entry["kind"]:
            case "joined":
                self.workers[entry["worker"]] = Member(entry["worker"], entry["domain"], entry["port"])
                self.taken[entry["worker"]] = 0
            case "gone":
                self._leave(entry["worker"])
            case "taken" if entry["worker"] in self.workers:
                return self._take(entry["worker"], entry["report"])
            case "plan":
                return self._adopt(Plan.of_wire(entry["plan"]))
            case "until":
                self.plan = Plan(self.plan.generation, self.plan.members, self.plan.restore, entry["step"])
            case kind if kind == SNAPSHOT:
                self._restore(entry)
        return []

    def snapshot(self) -> dict[str, Any]:
        """All of it, as one entry tells it."""
        return {
            "workers": [[each.id, each.domain, each.port, self.taken[each.id]] for each in self.workers.values()],
            "plan": self.plan.to_wire(),
            "replaced": sorted(self.replaced),
            "checkpoints": self.register.to_json(),
            "made": [[step, loss, sorted(makers)] for step, (loss, makers) in self._made.items()],
            "ready": sorted(self._ready),
            "reached": [self.at, self.frontier],
        }

    def _restore(self, entry: Entry) -> None:
        self.workers = {name: Member(name, domain, port) for name, domain, port, _ in entry["workers"]}
        self.taken = {name: taken for name, *_, taken in entry["workers"]}
        self.plan = Plan.of_wire(entry["plan"])
        self.replaced = set(entry["replaced"])
        self.register = Register.of_json(entry["checkpoints"])
        self._made = {step: (loss, set(makers)) for step, loss, makers in entry["made"]}
        self._ready = set(entry["ready"])
        self.at, self.frontier = entry["reached"]

    def _leave(self, worker: str) -> None:
        self.workers.pop(worker, None)
        self.taken.pop(worker, None)

    def _adopt(self, plan: Plan) -> list[Entry]:
        """A plan holds. What is before its checkpoint was made by all, though one may have died before it told."""
        first = plan.restore.step if plan.restore else 0
        made = [self._whole(step, loss) for step, (loss, _) in sorted(self._made.items()) if step <= first]
        removed = set(self.members) - {each.id for each in plan.members}
        self.plan = plan
        self.replaced |= removed
        for each in removed:
            self._leave(each)
        self.register.dropped(first)
        self._made, self._ready = {}, set()
        return made

    def _take(self, worker: str, report: dict[str, Any]) -> list[Entry]:
        self.taken[worker] = report["number"]
        if report["generation"] != self.plan.generation:
            return []
        match report["kind"]:
            case "ready":
                self._ready.add(worker)
                if self._ready.issuperset(self.members):
                    return [{"kind": "placed", "generation": self.plan.generation}]
            case "step":
                return self._step(worker, report)
            case "stored":
                which = (report["step"], report["generation"], report["piece"], report["of"])
                if self.register.stored(report["holder"], *which):
                    return [{"kind": "checkpoint", "step": report["step"]}]
        return []

    def _step(self, worker: str, report: dict[str, Any]) -> list[Entry]:
        step = report["step"]
        self.frontier = max(self.frontier, step)
        makers = self._made.setdefault(step, (report["loss"], set()))[1]
        makers.add(worker)
        if len(makers) < len(self.members):
            return []
        self.at = step
        del self._made[step]
        return [self._whole(step, report["loss"])]

    def _whole(self, step: int, loss: float) -> Entry:
        """All members have made a step, and all with the same loss."""
        return {
            "kind": "step",
            "step": step,
            "loss": loss,
            "generation": self.plan.generation,
            "world": len(self.plan.members),
        }
