"""Worlds that the suite makes by itself: what a target sees of them, and the truth that it does not see."""
