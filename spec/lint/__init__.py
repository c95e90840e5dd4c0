"""Holds the clauses of the standard to the rules of its language, and to its registers, schemas and references.

One command, ``python -m lint`` (``make lint-spec``), reads ``spec/`` and what is published of it, and writes nothing.
Each module is a family of rules; a rule is a function from the specification to findings, named by its identifier.

Sources: GB/T 1.1-2020 (one verbal form a sentence; no requirement in foreword, scope, notes and terms; terms that are
used, and used as defined; references that lead somewhere), and the registers of ``spec/`` (the same words in both).
"""
