"""Running checks: live against a target, or again on a transcript."""
