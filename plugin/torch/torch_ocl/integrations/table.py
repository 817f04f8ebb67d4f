"""The table of integrations: library, versions, and the modules whose import applies them."""

from typing import NamedTuple


class Integration(NamedTuple):
    """A row: what is changed in ``modules`` stands in the file named after the library."""

    library: str
    """Its name on PyPI, - as _; the stem of the file here and of the patch in ``upstream``."""
    modules: tuple[str, ...]
    first: str
    """The oldest version that was tested."""
    before: str
    """Versions from this one on are not known; they are left as they are, with a warning."""


TABLE = (
    Integration("accelerate", ("accelerate", "accelerate.commands.launch"), "1.10", "1.16"),
    Integration(
        "transformers",
        (
            "transformers.cache_utils",
            "transformers.utils.import_utils",
            "transformers.training_args",
            "transformers.trainer",
            "transformers.modeling_utils",
            "transformers.pipelines.base",
            "transformers.integrations.gguf.utils",
            "transformers.quantizers.quantizer_gguf",
        ),
        "5.20",
        "5.25",
    ),
    Integration("safetensors", ("safetensors",), "0.8", "0.9"),
    Integration(
        "lightning",
        (
            "lightning.fabric.connector",
            "lightning.pytorch.trainer.connectors.accelerator_connector",
        ),
        "2.6",
        "2.7",
    ),
    Integration(
        "ultralytics",
        (
            "ultralytics.utils.torch_utils",
            "ultralytics.utils.dist",
            "ultralytics.engine.validator",
            "ultralytics.engine.trainer",
        ),
        "8.4.150",
        "8.5",
    ),
    Integration(
        "diffusers",
        (
            "diffusers.utils.torch_utils",
            "diffusers.hooks.group_offloading",
            "diffusers.quantizers.gguf.utils",
        ),
        "0.42",
        "0.43",
    ),
    Integration("peft", ("peft",), "0.20", "0.22"),
    Integration("kornia", ("kornia",), "0.9", "0.10"),
    Integration("bitsandbytes", ("bitsandbytes",), "0.50.2", "0.51"),
    Integration("torchao", ("torchao",), "0.18", "0.19"),
)
BY_MODULE = {module: row for row in TABLE for module in row.modules}
