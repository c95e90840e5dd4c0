"""State of each node from its telemetry, who answers and who does not, and which domains can be reached.

``Recogniser`` is what the service uses. ``RuleRecogniser`` and ``PlainRecogniser`` are the baselines beside it. All
three are pure: time comes in with the telemetry.
"""

from kuayu.perception.recognition.recogniser import PlainRecogniser, Recogniser, RuleRecogniser
from kuayu.perception.recognition.values import REASONS, SIGNALS, STATES, Population, Recognition, Telemetry

__all__ = [
    "REASONS",
    "SIGNALS",
    "STATES",
    "PlainRecogniser",
    "Population",
    "Recogniser",
    "Recognition",
    "RuleRecogniser",
    "Telemetry",
]
