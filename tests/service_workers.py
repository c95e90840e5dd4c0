"""What a worker of a service has loaded before anybody asks for it; importing this loads it."""

from kuayu.service.runtime import PREPARED

for part in PREPARED:
    part()
