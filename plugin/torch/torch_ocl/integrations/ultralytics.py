"""ultralytics: ``device="ocl"``, and a gradient scaler for mixed precision."""

from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations._patch import Patch


def torch_utils(library: ModuleType, patch: Patch) -> None:
    def parse(old: Any) -> Any:
        def parse_device(device: Any = "") -> str:
            return str(device) if _is_ours(device) else old(device)

        return parse_device

    def select(old: Any) -> Any:
        def select_device(device: Any = "", newline: bool = False, verbose: bool = True) -> Any:
            if not _is_ours(device):
                return old(device, newline, verbose)
            chosen = _device(device)
            if verbose:
                about = f"Python-{library.PYTHON_VERSION} torch-{library.TORCH_VERSION} OCL:"
                name = torch.ocl.get_device_name(chosen)
                text = f"Ultralytics {library.__version__} {about}{chosen.index} ({name})"
                library.LOGGER.info(text + "\n" if newline else text)
            return chosen

        return select_device

    patch.replace(library, "parse_device", parse)
    patch.replace(library, "select_device", select)


def trainer(library: ModuleType, patch: Patch) -> None:
    def make(old: Any) -> Any:
        def _setup_train(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = old(self, *args, **kwargs)
            if self.device.type == "ocl":
                # It made one for CUDA, which is switched off where there is no CUDA.
                self.scaler = torch.amp.GradScaler("ocl", enabled=self.amp)
            return result

        return _setup_train

    patch.replace(library.BaseTrainer, "_setup_train", make)


def _is_ours(device: Any) -> bool:
    return str(device).lower().partition(":")[0] == "ocl"


def _device(device: Any) -> torch.device:
    """ValueError for what is no single device that there is."""
    index = str(device).partition(":")[2]
    count = torch.ocl.device_count()
    if "," in index:
        raise ValueError(
            f"device={device}: ocl devices cannot train together yet; give one, such as ocl:0"
        )
    if index and not (index.isdigit() and int(index) < count):
        raise ValueError(f"device={device}: there are {count} ocl devices, from ocl:0 on")
    chosen = torch.device("ocl", int(index) if index else torch.ocl.current_device())
    torch.ocl.set_device(chosen)
    return chosen


APPLY = {"ultralytics.utils.torch_utils": torch_utils, "ultralytics.engine.trainer": trainer}
