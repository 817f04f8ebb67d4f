"""Jobs of the bench that need PyTorch on both sides: small calls, optimizer steps, a model's
forward pass or training step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from data import BLOCK
from networks.language import Llama, LlamaToken, Recurrent, T5Encoder, Transformer
from networks.speech import WhisperEncoder
from networks.vision import ConvNeXt, MobileNetV3, ResNet, UNet, VisionTransformer
from torch import nn
from torch.nn import functional as F

NETWORKS: dict[str, tuple[Callable[..., nn.Module], str]] = {  # and what goes in
    "resnet18": (lambda: ResNet((2, 2, 2, 2), False), "images"),
    "resnet50": (lambda: ResNet((3, 4, 6, 3), True), "images"),
    "mobilenetv3": (MobileNetV3, "images"),
    "unet": (UNet, "pixels"),
    "vit": (VisionTransformer, "images"),
    "convnext": (ConvNeXt, "images"),
    "bert": (lambda **more: Transformer(30522, 512, **more), "words"),
    "gpt2": (lambda **more: Transformer(50257, 1024, causal=True, **more), "words"),
    "llama": (LlamaToken, "words"),
    "llama training": (Llama, "words"),
    "lstm": (Recurrent, "words"),
    "t5 encoder": (T5Encoder, "words to states"),
    "whisper encoder": (WhisperEncoder, "sound to states"),
}
ADAM = ("vit", "convnext")  # and all that read words; other images: SGD with momentum
Body = Callable[[], Any]


def randomise(model: nn.Module) -> nn.Module:
    """The same weights in every process, quickly: one random block again and again, scaled by the
    fan-in."""
    block = np.random.default_rng(5).standard_normal(BLOCK >> 3, dtype=np.float32)
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        with torch.no_grad():
            if not p.is_floating_point():
                p.copy_(
                    torch.arange(p.numel()).reshape(p.shape)
                    if name == "places_of"
                    else torch.zeros_like(p)
                )
            elif p.ndim > 1:
                scale = 0.02 if "words" in name or "places" in name else 1 / math.sqrt(p[0].numel())
                p.copy_(torch.from_numpy(np.resize(block, p.numel())).reshape(p.shape) * scale)
            elif name.endswith(("bias", "running_mean")):
                p.zero_()
            elif name == "angles":
                p.copy_(torch.linspace(0, 3, p.numel()))
            else:
                p.fill_(1)
    return model


class Job:
    """A model with its inputs; start() moves it to a device and gives the function that runs it
    once. `autocast`: the type that matrix products of a float32 model have; `fused`: the optimizer;
    `compiled`: by torch.compile. `options` are the network's own."""

    def __init__(
        self,
        name: str,
        mode: str,
        batch: int,
        size: int,
        dtype: str = "float32",
        autocast: str = "",
        channels_last: bool = False,
        fused: bool = False,
        compiled: bool = False,
        **options: Any,
    ) -> None:
        self.autocast, self.fused, self.compiled = autocast, fused, compiled
        build, kind = NETWORKS[name]
        with torch.device("meta"):
            model = build(**options)
        self.model = (
            randomise(model.to_empty(device="cpu")).to(getattr(torch, dtype)).train(mode == "train")
        )
        torch.manual_seed(3)
        self.mode, self.kind, self.adam = mode, kind, name in ADAM or kind.startswith("words")
        if kind.startswith("words"):
            words = self.model.words.num_embeddings
            self.inputs, self.labels = (
                torch.randint(words, (batch, size)),
                torch.randint(words, (batch, size)),
            )
        elif kind == "sound to states":
            self.inputs = self.labels = torch.randn(batch, 80, size)
        else:
            self.inputs = torch.randn(batch, 3, size, size)
            self.labels = (
                torch.randint(2, (batch, size, size))
                if kind == "pixels"
                else torch.randint(1000, (batch,))
            )
        if self.inputs.is_floating_point():
            self.inputs = self.inputs.to(getattr(torch, dtype))
        if channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.inputs = self.inputs.to(memory_format=torch.channels_last)

    def loss(self, results: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self.kind.endswith("states"):
            return results.float().square().mean()
        if self.kind == "words":
            return F.cross_entropy(results.flatten(0, 1), labels.flatten())
        return F.cross_entropy(results, labels)

    def start(self, device: torch.device) -> Body:
        model, inputs, labels = (
            self.model.to(device),
            self.inputs.to(device),
            self.labels.to(device),
        )
        mixed = torch.autocast(
            device.type, getattr(torch, self.autocast or "bfloat16"), enabled=bool(self.autocast)
        )
        called = torch.compile(model) if self.compiled else model
        if self.mode == "eval":

            @torch.no_grad()
            def forward() -> torch.Tensor:
                with mixed:
                    return called(inputs)

            return forward
        more = {"fused": True} if self.fused else {}
        optimizer = (
            torch.optim.AdamW(model.parameters(), lr=1e-4, **more)
            if self.adam
            else torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **more)
        )

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            with mixed:
                loss = self.loss(called(inputs), labels)
            loss.backward()
            optimizer.step()
            return loss

        return step


def model(device: torch.device, *args: Any, **more: Any) -> Body:
    name, mode, batch, size, dtype, options = args
    return Job(name, mode, batch, size, dtype, **options, **more).start(device)


def _custom_add(device: torch.device, count: int, prepared: bool) -> Callable[..., None]:
    """out = a + b by a custom kernel; by PyTorch where there are none."""
    if device.type != "ocl":
        return lambda out, a, b: torch.add(a, b, out=out)
    kernel = torch.ocl.compile_kernel(
        """
        __kernel void add(__global float *out, ulong out_at, __global const float *a, ulong a_at,
                          __global const float *b, ulong b_at, int count) {
          __global float *y = (__global float *)((__global char *)out + out_at);
          __global const float *x = (__global const float *)((__global const char *)a + a_at);
          __global const float *z = (__global const float *)((__global const char *)b + b_at);
          for (int i = get_global_id(0); i < count; i += get_global_size(0)) y[i] = x[i] + z[i];
        }""",
        device=device,
    ).add
    if not prepared:
        return lambda out, a, b: kernel(out, a, b, count, threads=1, group_size=1)
    launch = kernel.prepare(threads=1, group_size=1)
    return lambda out, a, b: launch(out, a, b, count)


def small(device: torch.device, what: str, count: int) -> Body:
    """Calls on `count` elements."""
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(count, generator=generator).to(device) for _ in range(2))
    out = torch.zeros_like(a)
    edge = math.isqrt(count)
    if "kernel" in what:
        add = _custom_add(device, count, "prepared" in what)
        return lambda: (add(out, a, b), out)[1]
    return {
        "a + b": lambda: a + b,
        "out.add_(b)": lambda: out.add_(b),
        "torch.add(out=)": lambda: torch.add(a, b, out=out),
        "relu": lambda: torch.relu(a),
        "a.sum()": lambda: a.sum(),
        "a @ b": lambda: a.view(edge, edge) @ b.view(edge, edge),
        "a[1:] * 2": lambda: a[1:] * 2,
    }[what]


def optimizer(device: torch.device, kind: str, name: str) -> Body:
    """A step over the parameters of a network."""
    net = Job(name, "train", 1, 32).model.to(device)
    for p in net.parameters():
        p.grad = p.detach() * 0.1
    stepper = {
        "AdamW": lambda: torch.optim.AdamW(net.parameters(), lr=1e-4),
        "AdamW fused": lambda: torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True),
        "SGD momentum": lambda: torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9),
    }[kind]()
    first = max(net.parameters(), key=torch.Tensor.numel)

    def step() -> torch.Tensor:
        stepper.step()
        return first

    return step


BUILDERS = {"model": model, "small": small, "optimizer": optimizer}
