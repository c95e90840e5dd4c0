"""Failure, recovery and transfers: what is suspected, what to do about it, and how data travels meanwhile.

1. ``detection`` and ``faults`` tell from heartbeats, steps and measurements who is in trouble, ``logs`` from lines.
2. ``backup_planner`` says what is held beforehand, ``failover_planner`` how each job goes on after a fault, and
   ``adjustment_planner`` how the policies of running jobs follow load and latency.
3. ``shard_planner`` and ``collectives`` say how training data and gradients travel between domains.
4. Planners are pure: an answer depends on the request alone. No clock, no chance, no input but what is handed over.
"""
