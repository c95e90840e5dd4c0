"""Energy that the processors use, where the kernel lets it be read.

Source: Linux kernel documentation, "Power Capping Framework" (``/sys/class/powercap``). Intel and AMD processors both
appear under the control type ``intel-rapl``. Since CVE-2020-8694 the counters are readable by root only; where they
cannot be read the power is not known, and nothing is put in its place.
"""

import re
from collections.abc import Mapping
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
MICRO = 1e-6


class ProcessorEnergy:
    """Energy counters of all packages and of the memory attached to them, in joules.

    The zones ``core`` and ``uncore`` are parts of a package and ``psys`` holds more than the processors, so none of
    them is counted.

    Attributes:
        spans: Value in joules at which each counter wraps.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        """Find the readable counters under ``root``."""
        self._files: dict[str, Path] = {}
        self.spans: dict[str, float] = {}
        for zone in sorted(root.glob("intel-rapl:*")):
            try:
                name = (zone / "name").read_text(encoding="utf-8").strip()
                if re.fullmatch(r"package-\d+(-die-\d+)?|dram", name):
                    self._joules(zone / "energy_uj")
                    self.spans[zone.name] = self._joules(zone / "max_energy_range_uj")
                    self._files[zone.name] = zone / "energy_uj"
            except (OSError, ValueError):
                continue

    def read(self) -> Mapping[str, float]:
        """Counters in joules by zone; empty where they cannot be read."""
        try:
            return {name: self._joules(file) for name, file in self._files.items()}
        except (OSError, ValueError):
            return {}

    @staticmethod
    def _joules(file: Path) -> float:
        return int(file.read_text(encoding="ascii")) * MICRO
