"""Name of the method, and calibrations that were made lately.

A calibration depends on nothing but the corpus and the reference, so keeping some changes no answer.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock

from kuayu.index.calibration import Calibration, calibrate
from kuayu.index.gaussian_process import KERNEL, Kernel, Process
from kuayu.index.observations import observe
from kuayu_schemas.models import Corpus, IndexMethod

METHOD_NAME = "Harmonic mean of calibrated capabilities, averaged with a Gaussian process"
METHOD_VERSION = "2.0.0"

METHOD = IndexMethod(name=METHOD_NAME, version=METHOD_VERSION)

KEPT = 8
"""How many calibrations are kept."""


@dataclass(frozen=True)
class Estimators:
    """Both estimates of a corpus: the calibrated harmonic mean, and the process, computed when it is needed."""

    calibration: Calibration
    _processes: dict[Kernel, Process | None] = field(default_factory=dict)

    def process(self, kernel: Kernel = KERNEL) -> Process | None:
        """The Gaussian process; None where the reference was not measured or the process has no weight."""
        if kernel.weight and kernel not in self._processes:
            self._processes[kernel] = Process.of(self.calibration, kernel)
        return self._processes.get(kernel)


_kept: OrderedDict[tuple[bytes, str], Estimators] = OrderedDict()
_lock = Lock()


def calibrated(corpus: Corpus, reference: str) -> Estimators:
    """Calibrate by a corpus whose names have been checked."""
    key = (sha256(corpus.model_dump_json().encode()).digest(), reference)
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    seen = observe(corpus)
    made = Estimators(calibrate(seen, seen.device_at[reference]))
    with _lock:
        _kept[key] = made
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return made


def forget() -> None:
    """Forget the calibrations that were kept, so that the next call is a cold one."""
    with _lock:
        _kept.clear()
