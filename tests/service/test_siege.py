"""Attacks of one tenant on a service that another uses: nobody is stalled, nothing is killed."""

from pathlib import Path

import pytest
from service.siege import besieged, siege

STALLED = 2.0
"""Seconds that no request of the other tenant may take, nor the detection longer than without an attack.

Before work was bounded, bodies of `{}` stalled everybody for 2 to 48 s, and clients that hang up others for 209 s.
"""

MEMORY = 1_024
"""MiB that the service and its workers may take together, whatever comes."""


@pytest.mark.alone
@pytest.mark.slow
def test_no_attack_of_one_tenant_stalls_another(tmp_path: Path) -> None:
    with besieged(tmp_path) as service:
        quiet, *attacks = siege(service)
    noticed = [
        each for each in attacks if max(each.wait, each.detection - quiet.detection) > STALLED or each.memory > MEMORY
    ]
    assert noticed == [], quiet
