"""Fitting of the shipped forecaster, and its judgement by public traces."""
