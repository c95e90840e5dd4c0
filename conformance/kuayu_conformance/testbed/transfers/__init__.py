"""Links that change, and what travels over them: data of trainings and gradients (RES-005, RES-006, RES-010).

``shards_world`` draws windows in which jobs train on data from afar, ``shards_run`` plays one under a policy, event by
event; ``shards_state`` is what both speak of. Policies: ``shards_schedules``, which do not look at the network, and
``shards_executor``, which carries out the plans of somebody who is asked by ``shards_wire``. ``shards_clairvoyant`` is
who knows what links will carry. ``collectives`` has the law of exchanges, ``collectives_world`` draws windows of them,
and ``collectives_run`` carries choices out.
"""
