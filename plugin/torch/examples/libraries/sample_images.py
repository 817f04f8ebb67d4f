"""diffusers samples images with a small UNet of random weights on `ocl` and on the CPU.

usage: sample_images.py [--device ocl] [--steps 10] [--count 4] [--save FILE.png]; ends with an
error where pixels, from 0 to 1, differ by more than LIMIT.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel

LIMIT = 1e-3  # float32 sums in another order; early steps divide them by 0.01 or less


def sample(device: str, steps: int = 10, count: int = 4) -> tuple[np.ndarray, float]:
    """[count, 16, 16, 3] and seconds, without the first call, which compiles."""
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(32, 64),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    pipeline = DDIMPipeline(unet, DDIMScheduler()).to(device)
    pipeline.set_progress_bar_config(disable=not sys.stdout.isatty())
    pipeline(batch_size=count, num_inference_steps=1)
    start = time.perf_counter()
    generator = torch.Generator().manual_seed(1)  # of the CPU: the same noise on every device
    images = pipeline(count, generator, num_inference_steps=steps, output_type="np").images
    return images, time.perf_counter() - start


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="ocl")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--count", type=int, default=4)
    p.add_argument("--save")
    options = p.parse_args()
    (got, ours), (want, cpu) = (
        sample(device, options.steps, options.count) for device in (options.device, "cpu")
    )
    worst = float(np.abs(got - want).max())
    print(
        f"diffusers on {options.device}: {options.count} images in {options.steps} steps in "
        f"{ours:.2f} s (CPU {cpu:.2f} s), pixels differ by {worst:.1e}"
    )
    if options.save:
        from PIL import Image

        row = np.concatenate(list(got), axis=1)
        Image.fromarray((row * 255).round().astype("uint8")).save(options.save)
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
