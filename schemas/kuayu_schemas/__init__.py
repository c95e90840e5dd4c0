"""The Kuayu information model in Python: models, validators and registers, as the specification publishes them.

``models``     Pydantic classes, generated from the information model.
``schema``     Validation against the published JSON Schema, canonical JSON and digests.
``registers``  The registers of indicators, requirements and problem types.
"""
