"""ultralytics: ``device="ocl"``, several by ``"ocl:0,1"``, a scaler for mixed precision."""

import datetime
import inspect
import pathlib
from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _device
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
            chosen = _choose(device)
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

    def ddp(old: Any) -> Any:
        def _setup_ddp(self: Any) -> None:
            if not _is_ours(self.args.device):
                return old(self)
            # One of several, which may share CPUs.
            self.device = _device.of_process(_indices(self.args.device)[library.LOCAL_RANK])
            self.accelerator = torch.ocl
            torch.ocl.set_device(self.device)
            torch.distributed.init_process_group(
                "ocl",
                timeout=datetime.timedelta(hours=3),  # as for other devices
                rank=library.RANK,
                world_size=self.world_size,
            )

        return _setup_ddp

    patch.replace(library.BaseTrainer, "_setup_train", make)
    patch.replace(library.BaseTrainer, "_setup_ddp", ddp)


def validator(library: ModuleType, patch: Patch) -> None:
    """A rank's last validation asks for its device by the names that it knows, and else CUDA's."""
    patch.extend_list(inspect.unwrap(library.BaseValidator.__call__), "npu", "ocl")


def dist(library: ModuleType, patch: Patch) -> None:
    """The program of a rank, which need not have been told to load extensions of torch."""

    def make(old: Any) -> Any:
        def generate_ddp_file(trainer: Any) -> str:
            name = old(trainer)
            if trainer.device.type == "ocl":
                file = pathlib.Path(name)
                start = "    sys.path = "
                lines = file.read_text(encoding="utf-8").splitlines()
                place = next(i for i, line in enumerate(lines) if line.startswith(start))
                lines.insert(place + 1, "    import torch_ocl")
                file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return name

        return generate_ddp_file

    patch.replace(library, "generate_ddp_file", make)


def _is_ours(device: Any) -> bool:
    return str(device).lower().partition(":")[0] == "ocl"


def _indices(device: Any) -> list[int]:
    """Of "ocl:0,1" 0 and 1, of "ocl" the current one. ValueError for what is no list of numbers."""
    given = str(device).partition(":")[2]
    if not given:
        return [torch.ocl.current_device()]
    parts = given.split(",")
    if not all(part.isdigit() for part in parts) or len(set(parts)) < len(parts):
        raise ValueError(f"device={device}: expected ocl, ocl:0, or ocl:0,1 for several processes")
    return [int(part) for part in parts]


def _choose(device: Any) -> torch.device:
    """The first one; ValueError for devices that there are not. Processes may share CPUs."""
    indices = _indices(device)
    count = torch.ocl.device_count()
    if max(indices) >= count and not (len(indices) > 1 and _device.are_cpus()):
        raise ValueError(f"device={device}: there are {count} ocl devices, from ocl:0 on")
    chosen = _device.of_process(indices[0])
    if len(indices) == 1:
        torch.ocl.set_device(chosen)
    return chosen


APPLY = {
    "ultralytics.utils.torch_utils": torch_utils,
    "ultralytics.utils.dist": dist,
    "ultralytics.engine.validator": validator,
    "ultralytics.engine.trainer": trainer,
}
