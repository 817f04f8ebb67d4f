"""Generates an image from words with a diffusers pipeline in a folder on the disk.

usage: generate_image.py [FOLDER] [--prompt TEXT] [--negative TEXT] [--steps 20] [--size 512]
                         [--seed 1] [--device ocl] [--dtype float32] [--offload] [--save image.png]

FOLDER is what diffusers' save_pretrained writes, or a download of a model's repository (Stable
Diffusion, SDXL, Flux and others). Without one it makes a small Stable Diffusion with random
weights, which draws noise: everything but the picture is as with real ones. --offload keeps the
parts that do not compute in the host's memory. The noise comes from the CPU's generator, so that a
seed means the same image on every device.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded over the network

import diffusers
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
import transformers
from tokenizers import pre_tokenizers


def small_pipeline() -> diffusers.StableDiffusionPipeline:
    """Stable Diffusion, as small as its parts can be, with random weights."""
    torch.manual_seed(0)
    # One token for each byte, and each again as the end of a word.
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*letters, *(f"{letter}</w>" for letter in letters)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    tokenizer = transformers.CLIPTokenizer(
        vocab={token: i for i, token in enumerate(tokens)}, merges=[], model_max_length=77
    )
    encoder = transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            vocab_size=len(tokens),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            bos_token_id=len(tokens) - 2,
            eos_token_id=len(tokens) - 1,
            pad_token_id=len(tokens) - 1,
        )
    )
    unet = diffusers.UNet2DConditionModel(
        sample_size=32,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        norm_num_groups=8,
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=[16, 16, 32, 32],
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        norm_num_groups=8,
    )
    scheduler = diffusers.EulerDiscreteScheduler(steps_offset=1)
    return diffusers.StableDiffusionPipeline(
        vae, encoder, tokenizer, unet, scheduler, None, None, None, False
    )


def load(folder: str, device: str, dtype: str, offload: bool) -> Any:
    kind = getattr(torch, dtype)
    if folder:
        pipeline = diffusers.DiffusionPipeline.from_pretrained(
            folder, torch_dtype=kind, local_files_only=True
        )
    else:
        pipeline = small_pipeline()
        if kind != torch.float32:
            pipeline.to(kind)
    if offload:
        pipeline.enable_model_cpu_offload(device=device)
    else:
        pipeline.to(device)
    pipeline.set_progress_bar_config(disable=not sys.stderr.isatty())
    return pipeline


def generate(
    pipeline: Any, prompt: str, steps: int, size: int, seed: int, negative: str = ""
) -> Any:
    """The image, a PIL one."""
    words = {"negative_prompt": negative} if negative else {}
    return pipeline(
        prompt,
        num_inference_steps=steps,
        width=size,
        height=size,
        generator=torch.Generator().manual_seed(seed),
        **words,
    ).images[0]


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("folder", nargs="?", default="")
    p.add_argument("--prompt", default="a copper kettle on a stove, morning light")
    p.add_argument("--negative", default="")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--size", type=int, help="of the image; without it 512, or 64 without a FOLDER")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="ocl")
    p.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    p.add_argument("--offload", action="store_true")
    p.add_argument("--save", default="image.png")
    options = p.parse_args()
    size = options.size or (512 if options.folder else 64)
    pipeline = load(options.folder, options.device, options.dtype, options.offload)
    start = time.perf_counter()
    image = generate(pipeline, options.prompt, options.steps, size, options.seed, options.negative)
    seconds = time.perf_counter() - start
    image.save(options.save)
    text = f"{options.device}: {size} x {size} in {options.steps} steps, {seconds:.1f} s"
    if options.device.startswith("ocl"):
        text += f", memory peak {torch.ocl.max_memory_allocated() / 2**20:.0f} MiB"
    print(f"{text}; saved as {options.save}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
