"""Training curves with the phases that they go through: made-up ones, and real ones where their folder is at hand.

- ``values``: a curve; ``labels``: its phases as the standard defines them, with what came afterwards;
- ``schedules``, ``noise``, ``generated``: curves that follow from a seed;
- ``real``: curves of the folder of public originals;
- ``causal``: recognisers that know no more than a service, to hold it against;
- ``drawing``: curves with their phases for people (``python -m kuayu_conformance.testbed.curves OUT.svg``).
"""
