"""Getting a checkpoint together from those who hold its pieces, and handing pieces out."""

from kuayu.live.checkpoint import Key, State, Store
from kuayu.live.mailbox import Mailbox, Slip
from kuayu.live.peers import Peers
from kuayu.live.plan import FILE, Plan, Restore
from kuayu.live.wire import Header

ANSWER_S = 1.0
"""Seconds that a holder has to answer before the next one is asked."""


def restored(own: str, plan: Plan, restore: Restore, store: Store, peers: Peers, mailbox: Mailbox) -> State:
    """The whole state that a plan goes on from.

    All pieces are asked for at once. Whoever does not answer in time is passed over; when all were asked in vain they
    are asked again, until the control plane has a better plan.

    Raises:
        Superseded: It has.
    """
    keys = [Key(restore.step, restore.generation, piece) for piece in range(len(restore.holders))]
    found = {key: block for key in keys if (block := store.get(key)) is not None}
    turn = 0
    while len(found) < len(keys):
        missing = [key for key in keys if key not in found]
        for key in missing:
            holders = [each for each in restore.holders[key.piece] if each != own] or [FILE]
            holder = holders[turn % len(holders)]
            if holder != FILE:
                peers.send(holder, _request(own, plan.generation, key))
            elif (block := store.read(key)) is not None:
                found[key] = block
        for key in missing:
            message = None if key in found else mailbox.take(_slip(plan.generation, key), ANSWER_S)
            if message is not None:
                found[key] = message[1]
        turn += 1
        mailbox.check()
    return State.joined([found[key] for key in keys])


def hand_out(request: Header, store: Store, peers: Peers) -> None:
    """Answer a peer that asks for a piece; not at all where it is not held."""
    key = Key(request["step"], request["taken"], request["piece"])
    block = store.get(key)
    if block is not None:
        answer = {"kind": "piece", "generation": request["generation"], "step": key.step, "from": str(key.piece)}
        peers.send(request["from"], answer, block)


def _request(own: str, generation: int, key: Key) -> Header:
    names = {"step": key.step, "taken": key.generation, "piece": key.piece}
    return {"kind": "give", "generation": generation, "from": own, **names}


def _slip(generation: int, key: Key) -> Slip:
    return Slip(generation, "piece", key.step, str(key.piece))
