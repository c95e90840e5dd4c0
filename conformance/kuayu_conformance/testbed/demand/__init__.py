"""The judge's world for forecasts: domains in which a few large trainings and many small jobs come and go for days.

- ``world``: what a large training is expected to need and what becomes of it; domains with their trainings, small jobs,
  services, and what is announced;
- ``codec``: what is known at an instant, and how requests tell it;
- ``baselines``: forecasts that anybody can make, series of real clusters, waveforms and plans worked out anew.
"""
