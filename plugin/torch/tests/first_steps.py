"""One training step of a model of each kind in plugin/opencl/runtime/ahead/recipes.def:
`first_steps.py KIND` prints the rows of recipes.def that the step asks for, in order (see
"Building ahead" in plugin/opencl/README.md)."""

from __future__ import annotations

import os
import re
import subprocess
import sys

FIRST_USE = re.compile(r"first use of (\S+) (.*)")


def convolution() -> None:
    """A ResNet-18 on 4 images of 224 x 224, SGD with momentum."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(inplace=True),
                nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outside),
            )
            self.past = nn.Sequential()
            if stride != 1 or inside != outside:
                self.past.append(nn.Conv2d(inside, outside, 1, stride, bias=False))
                self.past.append(nn.BatchNorm2d(outside))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu_(self.body(x) + self.past(x))

    widths = (64, 64, 128, 128, 256, 256, 512, 512)
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(True),
        nn.MaxPool2d(3, 2, 1),
    ]
    for before, width in zip((64, *widths), widths, strict=False):
        layers.append(Block(before, width, 1 if before == width else 2))
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).to(
        "ocl"
    )
    images = torch.randn(4, 3, 224, 224).to("ocl")
    labels = torch.randint(0, 1000, (4,)).to("ocl")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):  # momentum begins with the second
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def transformer() -> None:
    """Two layers of GPT-2 on 4 x 128 tokens, AdamW with gradients clipped."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=5000, n_layer=2)).to("ocl")
    tokens = torch.randint(0, 5000, (4, 128)).to("ocl")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(2):
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


KINDS = {"convolution": convolution, "transformer": transformer}


def programs(kind: str, **variables: str) -> list[tuple[str, str]]:
    """(source, defines) of every program that a fresh process asks for in the step of a kind, in
    order."""
    environment = {
        **os.environ,
        "OCLTENSOR_LOG_LEVEL": "debug",
        "OCLTENSOR_BUILD_AHEAD": "0",
        **variables,
    }
    step = [sys.executable, __file__, "--run", kind]
    ran = subprocess.run(step, env=environment, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(
            f"the step of kind {kind} failed:\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
        )
    return FIRST_USE.findall(ran.stdout + ran.stderr)


def main() -> None:
    if sys.argv[1] == "--run":
        import torch
        import torch_ocl  # noqa: F401  registers the device

        KINDS[sys.argv[2]]()
        torch.ocl.synchronize()
        return
    for source, defines in programs(sys.argv[1]):
        print(f'OCLTENSOR_RECIPE("{sys.argv[1]}", "{source}",\n                 "{defines}")')


if __name__ == "__main__":
    main()
