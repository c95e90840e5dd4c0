"""The judge's world for forecasts: domains in which a few large trainings and many small jobs come and go for days.

``law`` says what a large training is expected to need, ``courses`` what becomes of it, ``jobs`` when it comes and
starts, ``crowd`` what small jobs and services hold, ``events`` what is announced. ``world`` puts them together for the
``kinds`` of domains, ``known`` says what is known at an instant, and ``wire`` how requests tell it. ``baselines`` are
forecasts that anybody can make, ``waves`` and ``peaks`` waveforms and plans worked out anew; ``real`` reads series of
real clusters.
"""
