"""Jobs whose nodes fail, and what becomes of them under somebody's plans (RES-003, RES-004).

- ``world``: windows, what their links carry, and what fails in them;
- ``state``: what stands when, what travels, and what of a backup plan can be held;
- ``simulation``: jobs work, checkpoints are copied, things fail, and recoveries are carried out;
- ``run``: a window under a planner, and planners to compare with.
"""
