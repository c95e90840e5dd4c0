"""Judging the demand law by measured runs, and the handbook that is generated from it."""
