"""Jobs whose nodes fail, and what becomes of them under somebody's plans (RES-003, RES-004).

- ``world``: windows, what their links carry, what fails in them, what stands when, what travels, and what of a backup
  plan can be held;
- ``run``: jobs work, checkpoints are copied, things fail, recoveries are carried out; a window under a planner, and
  planners to compare with.
"""
