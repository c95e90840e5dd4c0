"""A worker, which stands for a domain: it trains under the newest plan until the control plane has it end.

    python -m kuayu.live.worker NAME DOMAIN GATEWAY CONTROL FOLDER SETTINGS SERVICE

1. Threads: training (the main one), heartbeats, one that reads from the control plane, and those of
   :mod:`~kuayu.live.transport`.
2. Without a lease no step is made: a worker that was cut off may have been replaced meanwhile.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kuayu.live.checkpoint import (
    Exchange,
    Key,
    Moments,
    State,
    Store,
    advance,
    hand_out,
    rank_slice,
    restore_checkpoint,
)
from kuayu.live.plan import FILE, Plan, Settings
from kuayu.live.transport import Header, Inbox, MessageKey, Peers, Reports, SupersededError

PLAN_S = 1.0
"""Seconds that a request may be ahead of the plan that it is made under."""
LEASE_PERIODS = 4.0
"""Periods that a heartbeat which was answered is good for; fewer than those after which silence is a verdict."""
LEASE_POLL_S = 0.01


class Worker:
    """The worker.

    Args:
        own: Its identifier.
        domain: Domain that it stands for.
        gateway: Port of the domain's gateway.
        control: Port of the control plane.
        folder: Where the diary of its steps goes, and files of checkpoints.
        settings: Of the run.
    """

    def __init__(self, own: str, domain: str, gateway: int, control: int, folder: Path, settings: Settings) -> None:
        self._own, self._domain, self._settings = own, domain, settings
        from kuayu.live.model import SCALE, Model

        self._scale = SCALE
        self._model = Model(settings.seed, settings.parts)
        self._start = self._model.start()
        self._store = Store(folder / "checkpoints")
        self._diary: IO[str] = (folder / f"{own}.steps").open("w", buffering=1, encoding="ascii")
        self._inbox, self._plan = Inbox(), Plan(0, (), None, 0)
        self._phase, self._rank, self._step = "idle", 0, 0
        self._newest: Plan | None = None
        self._until, self._lease = 0, 0.0
        self._peers = Peers(own, gateway, settings.period, self._from_peer)
        self._reports = Reports(gateway, control, self._hello, self._obey)
        threading.Thread(target=self._beat, name="heart", daemon=True).start()

    def run(self) -> None:
        """Train under plan after plan; the control plane ends the process."""
        while True:
            self._phase = "idle"
            self._inbox.wait()
            try:
                self._train()
            except SupersededError:
                continue

    def now(self) -> tuple[int, int]:
        """Its rank, and the last step that it has done; 0 before the first."""
        return self._rank, self._step

    def _train(self) -> None:
        plan = self._newest
        assert plan is not None  # it was announced
        self._plan, self._phase = plan, "restore"
        self._inbox.advance(plan.generation)
        members = [member.id for member in plan.members]
        self._rank = rank = members.index(self._own)
        exchange = Exchange(self._peers, self._inbox, plan.generation, members, rank, self._start.size)
        step, values = 0, self._start
        moments = Moments.none(len(range(values.size)[exchange.own]))
        if plan.restore is not None:
            state = restore_checkpoint(self._own, plan, plan.restore, self._store, self._peers, self._inbox)
            step, values = plan.restore.step, state.values
            moments = Moments(state.moments.first[exchange.own].copy(), state.moments.second[exchange.own].copy())
        self._step = step
        self._reports.report({"kind": "ready", "generation": plan.generation})
        parts = range(self._settings.parts)[rank_slice(rank, len(members), self._settings.parts)]
        while step < self._until:
            step += 1
            self._model.load(values)
            self._phase, begun = "compute", time.monotonic()
            loss, sums = 0, None
            for part in parts:
                self._inbox.check()
                more = self._model.gradient(step, part)
                loss, sums = loss + more.loss, more.values if sums is None else sums + more.values
            assert sums is not None  # there are no more workers than parts
            self._phase, spent = "exchange", time.monotonic() - begun
            total, loss = exchange.scatter(step, sums, loss)
            mine = advance(values[exchange.own], moments, (total / self._scale).astype(values.dtype), step)
            values = exchange.gather(step, mine)
            self._step_done(step, loss / self._scale, spent / len(parts))
            if step % self._settings.every == 0:
                self._keep(step, rank, State(mine, moments))

    def _step_done(self, step: int, loss: float, seconds: float) -> None:
        """Tell of a step that was made, first in the diary, which nobody but the judge of the run reads.

        Without a lease nothing is made: a worker that was stopped, or cut off, may have been replaced meanwhile.
        """
        while time.monotonic() > self._lease:
            self._inbox.check()
            time.sleep(LEASE_POLL_S)
        self._step, generation = step, self._plan.generation
        self._diary.write(f"{time.monotonic():.6f} {generation} {step} {loss!r}\n")
        report = {"generation": generation, "step": step, "loss": loss, "seconds": seconds}
        self._reports.report({"kind": "step", **report})

    def _keep(self, step: int, rank: int, state: State) -> None:
        """Keep the own piece of a checkpoint, give a peer in the next domain a replica, write a file now and then."""
        members, block = self._plan.members, state.to_bytes()
        key = Key(step, self._plan.generation, rank)
        self._store.put(key, block)
        self._stored(self._own, key)
        peer = members[(rank + 1) % len(members)].id
        header = {"kind": "replica", "generation": key.generation, "step": step, "from": self._own, "piece": rank}
        self._peers.send(peer, header, block)
        if step % (self._settings.every * self._settings.files) == 0 and self._store.write(key, block):
            self._stored(FILE, key)

    def _stored(self, holder: str, key: Key) -> None:
        names = {"step": key.step, "generation": key.generation, "piece": key.piece}
        self._reports.report({"kind": "stored", "holder": holder, "of": len(self._plan.members), **names})

    def _from_peer(self, header: Header, payload: bytes) -> None:
        kind, generation = header["kind"], header["generation"]
        if kind == "give":
            if self._inbox.knows(generation, PLAN_S):
                hand_out(header, self._store, self._peers)
        elif kind == "replica":
            if generation == self._inbox.generation:
                key = Key(header["step"], generation, header["piece"])
                self._store.put(key, payload)
                self._stored(self._own, key)
        else:
            self._inbox.put(MessageKey(generation, kind, header["step"], header["from"]), header, payload)

    def _hello(self) -> Header:
        generation = self._newest.generation if self._newest is not None else 0
        of_itself = {"id": self._own, "domain": self._domain, "port": self._peers.port}
        return {"kind": "hello", "generation": generation, **of_itself}

    def _obey(self, header: Header) -> bool:
        """Do what the control plane says; False where this is the end."""
        if header["kind"] == "lease":
            self._lease = header["sent"] + LEASE_PERIODS * self._settings.period
        elif header["kind"] == "until":
            self._until = header["step"]
        elif header["kind"] == "plan":
            self._newest = Plan.of_wire(header)
            self._until = self._newest.until
            self._peers.keep(self._newest.members)
            self._inbox.announce(self._newest.generation)
        return bool(header["kind"] != "end")

    def _beat(self) -> None:
        while True:
            unheard = {peer: stage.value for peer, stage in self._peers.unheard().items()}
            beat = {"kind": "beat", "generation": self._plan.generation, "step": self._step, "phase": self._phase}
            beat["sent"] = time.monotonic()
            self._reports.beat({**beat, "unheard": unheard})
            self._peers.ping()
            time.sleep(self._settings.period)


Announce = Callable[[int, str, Callable[[], tuple[int, int]]], None]
"""Has a service hear of a worker: the service's port, the worker's name, its rank and last step."""


def main(arguments: list[str], announce: Announce | None = None) -> None:
    """Start from the arguments of the command line; where a service watches, have it hear of the worker."""
    own, domain, gateway, control, folder, settings, service = arguments
    try:
        worker = Worker(own, domain, int(gateway), int(control), Path(folder), Settings.of_json(settings))
        if announce is not None:
            announce(int(service), own, worker.now)
        worker.run()
    finally:
        traceback.print_exc()  # it runs until it is ended, so there was an error
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
