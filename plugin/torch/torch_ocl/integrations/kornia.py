"""kornia: under ocl's autocast augmentations give images of the type that they were given."""

from types import ModuleType

from torch_ocl.integrations._patch import Patch, module


def kornia(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import kornia`` ends."""
    patch.extend_list(module("kornia.core.utils").is_autocast_enabled, "xpu", "ocl")


APPLY = {"kornia": kornia}
