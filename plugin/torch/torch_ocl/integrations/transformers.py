"""transformers: Trainer with bf16 and checkpoints, pipelines, loading models onto ocl, GGUF files
(_gguf_transformers.py)."""

import inspect
import pathlib
from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _device
from torch_ocl.integrations._gguf_transformers import gguf_utils, quantizer_gguf
from torch_ocl.integrations._patch import Patch


def import_utils(library: ModuleType, patch: Patch) -> None:
    def make(old: Any) -> Any:
        def is_torch_bf16_gpu_available() -> bool:
            return old() or _device.chosen() is not None

        return is_torch_bf16_gpu_available

    patch.replace(library, "is_torch_bf16_gpu_available", make)


def training_args(library: ModuleType, patch: Patch) -> None:
    """Trainer's device where it found none is accelerate's, which knows ocl."""

    def make(old: Any) -> Any:
        def _setup_devices(self: Any) -> torch.device:
            device = old.func(self)
            state = getattr(self, "distributed_state", None)
            ours = device.type == "cpu" and not self.use_cpu and state is not None
            return state.device if ours and state.device.type == "ocl" else device

        new = type(old)(_setup_devices)
        new.__set_name__(library.TrainingArguments, "_setup_devices")
        return new

    patch.replace(library.TrainingArguments, "_setup_devices", make)


def trainer(library: ModuleType, patch: Patch) -> None:
    """Checkpoints have a file more: the states of ocl's random generators."""

    def name(self: Any) -> str:
        several = self.args.world_size > 1
        return f"rng_state_ocl_{self.args.process_index}.pth" if several else "rng_state_ocl.pth"

    def save(old: Any) -> Any:
        def _save_rng_state(self: Any, output_dir: str) -> None:
            old(self, output_dir)
            _device.save_random_states(pathlib.Path(output_dir) / name(self))

        return _save_rng_state

    def load(old: Any) -> Any:
        def _load_rng_state(self: Any, checkpoint: str | None) -> None:
            old(self, checkpoint)
            if checkpoint is not None:
                _device.load_random_states(pathlib.Path(checkpoint) / name(self))

        return _load_rng_state

    patch.replace(library.Trainer, "_save_rng_state", save)
    patch.replace(library.Trainer, "_load_rng_state", load)


def modeling_utils(library: ModuleType, patch: Patch) -> None:
    """No allocation of a model's size at once: drivers limit one allocation to a part of memory."""

    def make(old: Any) -> Any:
        def caching_allocator_warmup(model: Any, expanded_device_map: dict, *rest: Any) -> None:
            others = {
                parameter: device
                for parameter, device in expanded_device_map.items()
                if device in ("disk", "meta") or torch.device(device).type != "ocl"
            }
            old(model, others, *rest)

        return caching_allocator_warmup

    patch.replace(library, "caching_allocator_warmup", make)


def pipelines_base(library: ModuleType, patch: Patch) -> None:
    """An index means an ocl device, and no device the current one, where there is no other."""

    def make(old: Any) -> Any:
        signature = inspect.signature(old)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(self, *args, **kwargs)
            mapped = getattr(given.arguments.get("model"), "hf_device_map", None)
            device, chosen = given.arguments.get("device"), _device.chosen()
            if device is None and mapped is None and chosen is not None:
                device = chosen.index
            if isinstance(device, int) and device >= 0 and chosen is not None:
                given.arguments["device"] = torch.device("ocl", device)
            old(*given.args, **given.kwargs)
            if mapped and device is None:
                first = next(iter(mapped.values()))  # an index, for which it has no device
                if isinstance(first, int) and chosen is not None:
                    self.device = torch.device("ocl", first)

        return __init__

    patch.replace(library.Pipeline, "__init__", make)


def cache_utils(library: ModuleType, patch: Patch) -> None:
    """An offloaded cache fetches the next layer on a stream of its own, and asks CUDA for the other
    one."""

    def make(old: Any) -> Any:
        def update(
            self: Any,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            layer_idx: int,
            *rest: Any,
            **more: Any,
        ) -> Any:
            if not self.offloading or key_states.device.type != "ocl":
                return old(self, key_states, value_states, layer_idx, *rest, **more)
            if self.layer_class_to_replicate is not None:
                while len(self.layers) <= layer_idx:
                    self.layers.append(self.layer_class_to_replicate())
            current = torch.accelerator.current_stream(key_states.device)
            current.wait_stream(self.prefetch_stream)
            self.prefetch_stream.wait_stream(current)
            self.prefetch(layer_idx + 1, self.only_non_sliding)
            self.offloading = False  # the rest is the update itself
            try:
                found = old(self, key_states, value_states, layer_idx, *rest, **more)
            finally:
                self.offloading = True
            self.offload(layer_idx, self.only_non_sliding)
            return found

        return update

    patch.replace(library.Cache, "update", make)


APPLY = {
    "transformers.cache_utils": cache_utils,
    "transformers.utils.import_utils": import_utils,
    "transformers.training_args": training_args,
    "transformers.trainer": trainer,
    "transformers.modeling_utils": modeling_utils,
    "transformers.pipelines.base": pipelines_base,
    "transformers.integrations.gguf.utils": gguf_utils,
    "transformers.quantizers.quantizer_gguf": quantizer_gguf,
}
