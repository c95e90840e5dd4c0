"""Running jobs whose policy is adjusted as load and latency change (RES-007, RES-008, RES-009, RES-016).

- ``law``: how fast a job is by a policy, which policy is best, what counts as a change, and what a request says of it;
- ``world``: windows, what changes in them, and the jobs that run;
- ``run``: a window under an adjuster that is asked, and changes carried out;
- ``scores``: what disturbances cost, of a service and of adjusters to compare with.
"""
