"""Models written here: U-Net, a VAE, a diffusion step, a graph network."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case


def _double(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Two levels; one goes up by interpolation, one by a transposed convolution."""

    def __init__(self, mode: str = "bilinear") -> None:
        super().__init__()
        self.down = nn.ModuleList([_double(3, 8), _double(8, 16), _double(16, 32)])
        self.pool = nn.MaxPool2d(2)
        self.lift = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.scale = nn.Upsample(scale_factor=2, mode=mode, align_corners=False)
        self.up = nn.ModuleList([_double(32, 16), _double(24, 8)])
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        a = self.down[0](images)
        b = self.down[1](self.pool(a))
        c = self.down[2](self.pool(b))
        c = self.up[0](torch.cat([self.lift(c), b], 1))
        logits = self.head(self.up[1](torch.cat([self.scale(c), a], 1)))
        return {"loss": F.cross_entropy(logits, labels, ignore_index=3), "logits": logits}


def unet(mode: str = "bilinear") -> Case:
    inputs = {"images": torch.randn(2, 3, 32, 32), "labels": torch.randint(4, (2, 32, 32))}
    return Case(UNet(mode), inputs, lambda out: out["loss"])


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1),
            nn.LeakyReLU(0.1),
            nn.ReflectionPad2d(1),
            nn.Conv2d(8, 16, 4, 2),
            nn.ELU(),
            nn.Flatten(),
        )
        self.moments = nn.Linear(16 * 8 * 8, 16)
        self.decoder = nn.Sequential(
            nn.Linear(8, 16 * 8 * 8),
            nn.Unflatten(1, (16, 8, 8)),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(8, 1, 3, 2, 1, output_padding=1),
        )

    def forward(self, images: torch.Tensor, noise: torch.Tensor) -> dict[str, torch.Tensor]:
        mean, log_var = self.moments(self.encoder(images)).chunk(2, 1)
        logits = self.decoder(mean + noise * torch.exp(0.5 * log_var))
        loss = F.binary_cross_entropy_with_logits(logits, images)
        divergence = -0.5 * (1 + log_var - mean.square() - log_var.exp()).mean()
        return {"loss": loss + 0.1 * divergence, "logits": logits, "mean": mean}


def vae() -> Case:
    inputs = {"images": torch.rand(3, 1, 32, 32), "noise": torch.randn(3, 8)}
    return Case(Vae(), inputs, lambda out: out["loss"])


class DiffusionBlock(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inside), nn.GroupNorm(4, outside)
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
        self.time = nn.Linear(32, 2 * outside)
        self.skip = nn.Conv2d(inside, outside, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, 1)
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y) * (1 + scale) + shift))
        return y + self.skip(x)


class Diffusion(nn.Module):
    """Noise prediction with a time embedding and attention, and one denoising step by it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.middle = DiffusionBlock(16, 32), DiffusionBlock(32, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.up = DiffusionBlock(48, 16)
        self.last = nn.Conv2d(16, 3, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0))

    def embed(self, step: torch.Tensor) -> torch.Tensor:
        half = torch.arange(8, device=step.device, dtype=self.kept.dtype)
        angles = step[:, None] * torch.exp(-math.log(1e4) * half / 8)
        return self.time(torch.cat([angles.sin(), angles.cos()], 1))

    def forward(
        self, images: torch.Tensor, noise: torch.Tensor, step: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        kept = self.kept[step][:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        time = self.embed(step)
        a = self.first(noisy)
        b = self.middle(self.down(F.avg_pool2d(a, 2), time), time)
        tokens = b.flatten(2).transpose(1, 2)
        b = b + self.attention(tokens, tokens, tokens, need_weights=False)[0].mT.reshape(b.shape)
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        predicted = self.last(F.silu(self.up(torch.cat([a, b], 1), time)))
        clean = ((noisy - (1 - kept).sqrt() * predicted) / kept.sqrt()).clamp(-3, 3)
        return {"loss": F.mse_loss(predicted, noise), "predicted": predicted, "clean": clean}


def diffusion() -> Case:
    images, noise = torch.randn(2, 3, 3, 16, 16)
    inputs = {"images": images, "noise": noise, "step": torch.tensor([7, 61, 93])}
    return Case(Diffusion(), inputs, lambda out: out["loss"])


class Graph(nn.Module):
    """Message passing: sums by index_add, means by scatter_add, attention by scatter_reduce."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 24), nn.Linear(24, 24)
        self.score, self.head = nn.Linear(48, 1), nn.Linear(24, 5)

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        source, target = edges
        x = F.gelu(self.first(nodes))
        x = x + torch.zeros_like(x).index_add(0, target, self.second(x)[source])
        degree = torch.zeros_like(x[:, 0]).scatter_add(
            0, target, torch.ones_like(target, dtype=x.dtype)
        )
        mean = torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, 24), x[source])
        x = F.layer_norm(x + mean / degree.clamp(min=1)[:, None], (24,))
        score = F.leaky_relu(self.score(torch.cat([x[source], x[target]], 1)).squeeze(1))
        top = torch.full_like(degree, -torch.inf).scatter_reduce(0, target, score.detach(), "amax")
        weight = (score - top[target]).exp()
        total = torch.zeros_like(degree).index_add(0, target, weight)
        x = torch.zeros_like(x).index_add(0, target, x[source] * (weight / total[target])[:, None])
        pooled = torch.zeros_like(x).scatter_reduce(
            0, target[:, None].expand(-1, 24), x[source], "amax", include_self=False
        )
        logits = self.head(x + pooled)
        return {"loss": F.nll_loss(F.log_softmax(logits, 1), labels), "logits": logits}


def graph() -> Case:
    inputs = {
        "nodes": torch.randn(40, 12),
        "edges": torch.randint(40, (2, 150)),
        "labels": torch.randint(5, (40,)),
    }
    return Case(Graph(), inputs, lambda out: out["loss"])


OWN = {
    "unet": unet,
    "unet_bicubic": lambda: unet("bicubic"),
    "vae": vae,
    "diffusion": diffusion,
    "graph": graph,
}
