"""Placements: jobs that wait are started where they are best off; those that run go on."""

from minimal_server.bases import Bases
from minimal_server.core import Answer, Json, Request
from minimal_server.naming import Naming
from minimal_server.preempting import Preempting
from minimal_server.scene import Scene
from minimal_server.sharing import Sharing

METHOD = {"name": "minimal server: earliest completion, weighed", "version": "1"}
ALTERNATIVES = 3


class Placing(Bases, Sharing, Preempting, Naming):
    """Answers that follow from the request alone."""

    def place(self, request: Request) -> Answer:
        """What is to be done with the jobs of a state."""
        body = self.whole_request(request)
        self.check_scheduling(body)
        state, weights, explain = body["state"], self.weights(body), body.get("explain", False)
        scene = self.scene(state)
        ledger = self.ledger(scene)
        if "shares" in body:
            seats = self.shared_seats(scene, weights, ledger, body["shares"])
        else:
            seats = self.seats(scene, weights, ledger, everybody=explain)
        self.settle(scene, seats, ledger)
        most = body.get("alternatives", ALTERNATIVES)
        decisions = [] if "shares" in body else self.interruptions(scene, seats, explain=explain)
        for seat in seats:
            if seat.starts or explain:
                decision = self.decision(scene, seat)
                if explain:
                    decision["explanation"] = self.told_why(scene, weights, seat, ledger, most)
                decisions.append(decision)
        self.hold_state(request, body)
        method = {**METHOD, "weights": dict(weights)}
        return Answer(200, {"revision": self.echoed(state), "method": method, "decisions": decisions})

    def scene(self, state: Json) -> Scene:
        """What a state tells."""
        return Scene(state)
