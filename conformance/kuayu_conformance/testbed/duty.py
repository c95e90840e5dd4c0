"""How busy containers are that serve models: what telemetry shows of them, and what schedulers could reclaim.

Source: GPU duty of inference containers, alibaba/clusterdata ``cluster-trace-v2026-GenAI`` [7a6c496];
``tests/conformance/testbed/test_facts.py`` fits it again.
"""

DUTY_MEDIAN, DUTY_SIGMA = 0.205, 0.594
"""Log-normal duty of a container, from the quartiles of 104 984 samples above 1 %."""
