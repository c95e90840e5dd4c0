"""Links that change, and what travels over them: data of trainings and gradients (RES-005, RES-006, RES-010).

- ``shard_simulation``: windows in which jobs train on data from afar, played under a policy, event by event;
- ``shard_policies``: schedules that do not look at the network, plans of somebody who is asked, and who knows what
  links will carry;
- ``collectives``: the law of exchanges, windows of them, and choices carried out.
"""
