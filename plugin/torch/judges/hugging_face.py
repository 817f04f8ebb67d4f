"""The tests of accelerate, diffusers and peft on ocl and on torch's CPU.

usage: hugging_face.py {accelerate,diffusers,peft} CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/huggingface/NAME, whose package and tests are used; pytest,
parameterized, transformers, accelerate and psutil have to be installed, for peft datasets and
scikit-learn, for diffusers requests_mock as well. Only tests that need no network come to their
end: the others fail on both devices. Most pipelines of diffusers need a tokenizer of the hub and
nothing else, for which one that knows single characters stands in, in CHECKOUT: with it they run,
but what they compare with numbers written down fails on both devices.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
from typing import Any

import suite

# What diffusers asks of an accelerator that it does not know: DIFFUSERS_TEST_DEVICE_SPEC.
DEVICE = """
import torch, torch_ocl
DEVICE_NAME = "ocl"
MANUAL_SEED_FN = torch.ocl.manual_seed
EMPTY_CACHE_FN = torch.ocl.empty_cache
DEVICE_COUNT_FN = torch.ocl.device_count
SUPPORTS_TRAINING = True
RESET_PEAK_MEMORY_STATS_FN = torch.ocl.reset_peak_memory_stats
RESET_MAX_MEMORY_ALLOCATED_FN = torch.ocl.reset_peak_memory_stats
MAX_MEMORY_ALLOCATED_FN = torch.ocl.max_memory_allocated
"""


@dataclasses.dataclass(frozen=True)
class Library:
    """Where a library's tests are, and which of their failures on ocl alone have a reason."""

    tests: tuple[str, ...]  # patterns below CHECKOUT
    explained: dict[str, str]
    errors: dict[str, str] = dataclasses.field(default_factory=dict)


LIBRARIES = {
    "accelerate": Library(
        ("tests/test_*.py",),
        {
            "can_be_reinstantiated": "has a list of devices",
            "prepare_model_8bit": "the device is ocl:0, and cuda has no index there: of two "
            "reasons to refuse a quantised model the other is given",
            "test_map_location": "needs the program `accelerate` on the path",
        },
    ),
    "diffusers": Library(
        (
            "tests/schedulers/test_*.py",
            "tests/models/unets/test_*.py",
            "tests/models/autoencoders/test_*.py",
            "tests/models/test_*.py",
            "tests/pipelines/*/test_*.py",
        ),
        {
            "LDMTextToImage.*offload": "LDMTextToImagePipeline does not free its last model",
        },
        {
            "Using streams for data transfer": "before 0.42 only CUDA's and XPU's",
            "LocalEntryNotFound|does not appear to have a file": "asks for a file of the hub",
            "Inductor": "Inductor makes no code for ocl yet",
        },
    ),
    "peft": Library(
        ("tests/test_*.py",),
        {
            "only_params_are_updated.*AdaLoRA": "peft moves AdaLoRA's ranknum to any device as a "
            "parameter to be trained, also on the CPU to another type",
            r"test_disable_adapters\[Embedding \+ transformers Conv1D 1 PVeRA": "wants the output "
            "to change by 1e-5 of it, on the CPU by 1e-8; there, too, it does not change by 1e-5",
            "forward.*AdaMSS Same": "before 0.21.2 AdaMSS seeds all generators, and puts the "
            "CPU's and CUDA's back alone: two adapters are equal",
            "merge_layers_multi.*AdaMSS Same": "the same; since, of seed 0's numbers on ocl, two "
            "adapters together are within 1e-3 of one",
        },
    ),
}


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """A file each; beside them the device's description, where the child starts."""
    (options.checkout / "ocl_device.py").write_text(DEVICE)
    if options.library == "diffusers":
        stand_in(options.checkout)
    tests = LIBRARIES[options.library].tests
    return sorted(f for pattern in tests for f in options.checkout.glob(pattern))


def stand_in(checkout: pathlib.Path) -> None:
    """Folders of the names of two repositories: a tokenizer of CLIP, and one of T5 with weights."""
    folder = checkout / "hf-internal-testing"
    if (folder / "tiny-random-t5/model.safetensors").is_file():
        return
    import transformers as tr
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    ends = [letter + "</w>" for letter in letters]
    names = [*letters, *ends, "<|startoftext|>", "<|endoftext|>"]
    vocab = {name: index for index, name in enumerate(names)}
    clip = tr.CLIPTokenizer(vocab=vocab, merges=[], model_max_length=77)
    clip.save_pretrained(folder / "tiny-random-clip")
    marks = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0)]
    pieces = [*marks, *((chr(code), -3.0) for code in range(33, 127))]
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 5, "num_heads": 4}
    sizes["dropout_rate"] = 0  # tests run pipelines in training's mode, and compare two runs
    t5 = tr.T5EncoderModel(tr.T5Config(vocab_size=1103, **sizes))
    for made in (tr.T5Tokenizer(vocab=pieces, extra_ids=0), t5):
        made.save_pretrained(folder / "tiny-random-t5")


def prepare(device: str) -> list[Any]:
    """In the child, which starts in CHECKOUT."""
    sys.path[:0] = [str(pathlib.Path.cwd() / "src"), str(pathlib.Path.cwd())]
    if device == "ocl":
        import torch
        import torch_ocl  # noqa: F401
        from accelerate import test_utils

        # accelerate and peft have no variable that names a device to test.
        ours = ("ocl", torch.ocl.device_count(), torch.ocl.memory_allocated)
        test_utils.get_backend = test_utils.testing.get_backend = lambda: ours
        for module in (test_utils, test_utils.testing):
            module.torch_device, module.device_count, module.memory_allocated_func = ours
    return []


def environment(device: str, options: argparse.Namespace) -> dict[str, str]:
    told = {"HF_HUB_OFFLINE": "1", "DIFFUSERS_TEST_DEVICE": device, "PYTHONDONTWRITEBYTECODE": "1"}
    if device == "ocl":
        told["DIFFUSERS_TEST_DEVICE_SPEC"] = "ocl_device.py"
    return told


def suite_of(library: str) -> suite.Suite:
    return suite.Suite(
        harness=__file__,
        describe=__doc__ or "",
        parts=parts,
        root=lambda options: options.checkout,
        command=lambda options: ["-W", "ignore", "-o", "addopts="],
        environment=environment,
        explained=LIBRARIES[library].explained,
        errors=LIBRARIES[library].errors,
        prefix="tests/",
        prepare=prepare,
    )


def main() -> int:
    name = sys.argv[1] if sys.argv[1:2] and sys.argv[1] in LIBRARIES else "accelerate"
    p = suite.parser(suite_of(name))
    p.add_argument("library", choices=LIBRARIES)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "src" / options.library).is_dir():
            p.error(f"CHECKOUT is to have src/{options.library}")

    return suite.main(suite_of(name), p, check)


if __name__ == "__main__":
    sys.exit(main())
