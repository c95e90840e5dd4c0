"""Scheduling over domains: where jobs run, which compromises there are, what capacity to buy, which paths data take.

Pure: an answer depends on the request alone. No input or output, no clock, no chance.
"""

from enum import StrEnum


class Scheduler(StrEnum):
    """What places jobs: the rule, or the rule with constants that a network sets, trained by PPO."""

    RULE = "rule"
    PPO = "ppo"


DEFAULT_ACCOUNT = "default"
"""Account of a job that names none (clause Jobs, Accounts)."""
