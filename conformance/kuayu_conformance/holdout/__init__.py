"""Measured throughputs, part of them held back, to see what an index makes of the rest.

:mod:`~kuayu_conformance.holdout.folds` says what is held back, :mod:`~kuayu_conformance.holdout.disguise` makes it
impossible to recognise, :mod:`~kuayu_conformance.holdout.simple` computes the indices that anyone could, and
:mod:`~kuayu_conformance.holdout.pairs` sums up how far off an index was.
"""
