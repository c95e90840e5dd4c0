"""Makes one document of the draft standard, as a committee receives it: DOCX and PDF, in Chinese and English.

One command, ``make standard``, puts the clauses of ``spec/text``, the registers and the published interface together in
the order of GB/T 1.1-2020 (``order.yaml``) and writes ``build/standard/kuayu-LANGUAGE.docx`` and ``.pdf``. It needs
nothing of the project's environment: ``requirements.lock`` of this folder holds pandoc, Typst and a reader of YAML.
"""
