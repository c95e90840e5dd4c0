"""The living graph: newest values from ingest, states from recognition, changes to whoever follows."""
