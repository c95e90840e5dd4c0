"""Running jobs whose policy is adjusted as load and latency change (RES-007, RES-008, RES-009, RES-016).

``law`` is how fast a job is by a policy, and which policy is best (``dividing`` how its parts lie then); ``levels`` is
what counts as a change; ``reading`` takes both from a request. ``world`` draws windows (``disturbing`` what changes in
them, ``jobs`` what runs), ``wire`` tells of them as the standard's model does, ``plant`` carries changes out, and
``run`` plays a window under an adjuster. ``courses`` are steps over time, ``scores`` what disturbances cost, and
``baselines`` are adjusters to compare with.
"""
