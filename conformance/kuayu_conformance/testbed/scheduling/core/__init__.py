"""The simulated world compiled: structs of arrays, an event queue, and no Python objects inside.

- ``layout``: records, arrays, lists within them and handles; ``world``: a scenario in these, as policies and the judge
  see it;
- ``network``: traffic on links; ``jobs``: speeds, what becomes of jobs, and time;
- ``candidates`` and ``baselines``: B0 to B4, and how they play a world by themselves.

numba keeps what it has compiled beside the source and looks only at the file that a function stands in, not at those
that it calls. So what was compiled of another version of these files is removed here, before anything is loaded.
``python -m kuayu_conformance.testbed.scheduling.core`` compiles everything, which takes about a minute once.
"""

import contextlib
import hashlib
from pathlib import Path

from numba import __version__

_STAMP = "compiled-of"


def forget_what_is_stale(package: Path, *others: Path) -> None:
    """Remove what was compiled of other sources, or by another numba.

    Args:
        package: Folder whose functions were compiled.
        others: Folders of whose functions some are compiled into these.
    """
    digest = hashlib.sha256(__version__.encode())
    for file in (file for folder in (package, *others) for file in sorted(folder.glob("*.py"))):
        digest.update(file.name.encode() + file.read_bytes())
    stamp = package / "__pycache__" / _STAMP
    if stamp.is_file() and stamp.read_text("utf-8") == digest.hexdigest():
        return
    with contextlib.suppress(OSError):  # where nothing can be written, nothing is kept here
        for file in stamp.parent.glob("*.nb[ic]"):
            file.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest(), "utf-8")


forget_what_is_stale(Path(__file__).parent)
