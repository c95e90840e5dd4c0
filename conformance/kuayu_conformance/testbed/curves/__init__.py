"""Training curves with the phases that they go through: made-up ones, and real ones where their folder is at hand.

- ``phases``: a curve, its phases as the standard defines them, and a recogniser that knows no more than a service;
- ``generated``: curves that follow from a seed;
- ``real``: curves of the folder of public originals;
- ``drawing``: curves with their phases for people (``python -m kuayu_conformance.testbed.curves OUT.svg``).
"""
