"""The judge's clusters: domains, links and jobs, and what becomes of them under a policy.

- ``values``: sites, pools, links, data sets, jobs and placements; what the other parts hand to each other;
- ``topology``: where domains are, what they hold, how links and prices vary in time, from a family and a seed;
- ``workload``: jobs as they are submitted, from traces or from models that were fitted to them;
- ``law``: how fast a placed job runs, what it moves, and what rare synchronisation costs in quality;
- ``engine``: the simulated world, decision by decision; ``engine.interfaces`` says what it asks of the parts above;
- ``baselines``: what policies are compared with, B0 to B4 and B3c;
- ``bounds``: what no policy can surpass (B5), and the exact optimum of small instances;
- ``scenarios``: families, loads and seeds put together from these, with the parts of their time, what goes wrong,
  how the load varies, and digests that tell them apart;
- ``windows``: what a policy reaches in a scenario, job by job, and pictures of it;
- ``codec``: the world as a service sees it, and its answers as orders.

Decision 12 in ``docs/decisions`` says what of it is measured, fitted, and assumed.
"""
