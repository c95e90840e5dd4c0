"""A real training that goes on while domains fail: live proof of RES-003, RES-004 and, in small, of RES-011.

Processes stand for domains. Each trains the same small transformer on its share of every batch and is told nothing of
faults; :mod:`~kuayu.live.run` stops, kills, slows and cuts them off from outside. The control plane
(:mod:`~kuayu.live.control`) is a process of its own and knows only what workers send. All traffic, heartbeats included,
runs through a gateway for each domain (:mod:`~kuayu.live.links`), where it can be cut and shaped without root.

=====================  =================================================================================================
process                what it does
=====================  =================================================================================================
``worker``             gradients, exchange with peers, checkpoints and replicas of them, heartbeats, step beats
``control``            verdicts, plans, register of checkpoints
``links``              the gateways
the command            starts them all, brings faults about, keeps the timeline
with a service         a service, and an agent in each domain (:mod:`kuayu.engine.live`)
=====================  =================================================================================================

Invariants:

- The batch of a step is a function of seed and step, cut into parts of one size. Gradients of parts are summed as
  integers, so a sum does not depend on who computed which part: with the same numeric libraries on the same kind of
  processor the curve is the same to the last bit, however often the world changes.
- A plan has a generation. Frames of an older generation are dropped, and a worker that loses its connection to the
  control plane ends: what has been replaced cannot come back.
- Workers are runs of the engine *local* (:mod:`kuayu.engine.runs`), which starts, watches and ends them as any job's.
- No process outlives the command, to which it is tied by a pipe, or the control plane (end of its connection).
"""
