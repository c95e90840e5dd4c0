"""Gateways as a process, and workers without a model as objects, for tests of what passes between them."""

import json
import subprocess
import sys
from collections.abc import Callable

from kuayu.live.checkpoint import Exchange
from kuayu.live.plan import Member, Settings
from kuayu.live.transport import Header, Inbox, MessageKey, Peers

SIZE = 1001
SETTINGS = Settings(domains=3, spares=0, delay=0.0)


class Gateways:
    """The process with the gateways, as the live mode starts it."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        command = [sys.executable, "-m", "kuayu.live.links", settings.to_json()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        listening = self._answer()
        self.ports, self.services = listening["ports"], listening["services"]

    def order(self, **order: object) -> None:
        """Have it carried out."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        self._answer()

    def close(self) -> None:
        """End the process."""
        with self.process:
            self.process.kill()

    def _answer(self) -> dict[str, dict[str, int]]:
        assert self.process.stdout is not None
        answer: dict[str, dict[str, int]] = json.loads(self.process.stdout.readline())
        return answer


class Node:
    """One side of the exchange, without a model."""

    def __init__(self, domain: str, gateways: Gateways) -> None:
        self.inbox = Inbox()
        self.serve: Callable[[Header], object] = lambda _: None
        self.peers = Peers(domain, gateways.ports[domain], 0.05, self._take)
        self.member = Member(domain, domain, self.peers.port)

    def _take(self, header: Header, payload: bytes) -> None:
        if header["kind"] == "give":
            self.serve(header)
            return
        key = MessageKey(header["generation"], header["kind"], header["step"], header["from"])
        self.inbox.put(key, header, payload)

    def under(self, generation: int, nodes: list["Node"]) -> Exchange:
        """Take up a plan."""
        members = [each.member for each in nodes]
        self.inbox.announce(generation)
        self.inbox.advance(generation)
        self.peers.keep(members)
        return Exchange(self.peers, self.inbox, generation, [each.id for each in members], nodes.index(self), SIZE)
