"""The Kuayu information model in Python: models, validators and registers, as the specification publishes them.

``models``     Pydantic classes, generated from the information model.
``documents``  Types of JSON documents for type checkers, generated from it too.
``schema``     Validation against the published JSON Schema, canonical JSON and digests.
``registers``  The registers of indicators, requirements and problem types.
"""
