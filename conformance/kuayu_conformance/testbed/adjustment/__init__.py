"""Running jobs whose policy is adjusted as load and latency change (RES-007, RES-008, RES-009, RES-016).

- ``world``: how fast a job is by a policy, which policy is best, windows, and what changes in them;
- ``run``: a window under an adjuster that is asked, changes carried out, and what disturbances cost, of a service and
  of adjusters to compare with.
"""
