"""The judge's world for forecasts: domains in which a few large trainings and many small jobs come and go for days.

- ``trainings``: what a large training is expected to need, what becomes of it, and when it comes and starts;
- ``world``: domains with their trainings, small jobs, services, and what is announced;
- ``codec``: what is known at an instant, and how requests tell it;
- ``baselines``: forecasts that anybody can make, and series of real clusters;
- ``peaks``: waveforms and plans worked out anew.
"""
