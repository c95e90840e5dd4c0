"""PyTorch for the probes: never required, imported only when a probe asks for it and it is installed."""

import importlib
import importlib.util
from typing import Any

from kuayu.engine.probes.result import ProbeUnavailableError


def is_installed() -> bool:
    """Whether PyTorch is installed; looking does not import it."""
    return importlib.util.find_spec("torch") is not None


def load() -> Any:
    """The module ``torch``.

    Raises:
        ProbeUnavailableError: It is not installed, or a library that it needs is not.
    """
    if not is_installed():
        raise ProbeUnavailableError("PyTorch is not installed", "pip install 'kuayu[training]'")
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:  # the latter where a library does not load
        cause = str(error).partition("\n")[0]
        raise ProbeUnavailableError(f"PyTorch cannot be loaded ({cause})", "pip install 'kuayu[training]'") from error


def cuda_index(uuid: str) -> int:
    """Index under which PyTorch knows the accelerator that the driver gives ``uuid``; the two count differently.

    Raises:
        ProbeUnavailableError: PyTorch is not installed, or cannot use that accelerator.
    """
    torch = load()
    for index in range(torch.cuda.device_count()):
        if uuid.endswith(str(torch.cuda.get_device_properties(index).uuid)):
            return index
    raise ProbeUnavailableError("PyTorch cannot use this accelerator", "install a build of PyTorch with CUDA")


def stack(torch: Any, cuda: int | None) -> str:
    """Software that PyTorch's work runs on."""
    return f"torch {torch.__version__}" + (f", CUDA {torch.version.cuda}" if cuda is not None else "")
