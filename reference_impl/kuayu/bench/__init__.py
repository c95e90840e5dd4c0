"""Comparison of scheduling policies in the worlds of the suite, as ``kuayu bench policy`` does it.

- ``judging``: what a policy reaches in a window, and what that is beside another;
- ``reference``: the reference's own scheduler as a policy;
- ``snapshots``: snapshots of ``kuayu.scheduling`` from what the suite shows a policy.

What trains and tunes is no part of the package: it lives beside it, in ``training/`` of the repository, and builds on
this.
"""
