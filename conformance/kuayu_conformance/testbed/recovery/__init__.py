"""Jobs whose nodes fail, and what becomes of them under somebody's plans (RES-003, RES-004).

``world`` draws windows (``links`` what their links carry, ``faults`` what fails), ``wire`` tells of them as the
standard's model does, and ``run`` plays one under a planner. ``plant`` lets time pass: ``state`` is what stands when,
``flows`` what travels, ``copying`` takes checkpoints, ``recovering`` carries plans out, and ``failing`` lets things
break. ``holding`` is what of a backup plan can be held, and ``baselines`` are planners to compare with.
"""
