"""Models written here: U-Net, a VAE, a diffusion step, graph networks, a diffusion transformer, a
detector."""

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


class Attention(nn.Module):
    """A layer of a graph attention network (Velickovic et al. 2018)."""

    def __init__(self, inside: int, outside: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, outside
        self.map = nn.Linear(inside, heads * outside, bias=False)
        self.source, self.target = map(nn.Parameter, torch.randn(2, heads, outside) * 0.3)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = self.map(nodes).view(-1, self.heads, self.width)
        source, target = edges
        score = (x * self.source).sum(-1)[source] + (x * self.target).sum(-1)[target]
        score = F.leaky_relu(score, 0.2)
        place = target[:, None].expand_as(score)
        none = score.new_zeros(x.shape[:2])
        top = (none - torch.inf).scatter_reduce(0, place, score.detach(), "amax")
        weight = (score - top[target]).exp()
        total = none.scatter_add(0, place, weight)
        messages = x[source] * (weight / total[target]).unsqueeze(-1)
        return messages.new_zeros(x.shape).index_add(0, target, messages).flatten(1)


class Gat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = Attention(12, 8, 4), Attention(32, 5, 1)

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        logits = self.last(F.elu(self.first(nodes, edges)), edges)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def gat() -> Case:
    edges = torch.cat([torch.randint(40, (2, 150)), torch.arange(40).expand(2, 40)], 1)
    inputs = {"nodes": torch.randn(40, 12), "edges": edges, "labels": torch.randint(5, (40,))}
    return Case(Gat(), inputs, lambda out: out["loss"])


class DiTBlock(nn.Module):
    """Of a diffusion transformer (Peebles and Xie 2023): the step shifts, scales and gates."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.modulate = nn.Linear(width, 6 * width)

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        shift_a, scale_a, gate_a, shift_b, scale_b, gate_b = (
            self.modulate(F.silu(step)).unsqueeze(1).chunk(6, -1)
        )
        y = self.norm(x) * (1 + scale_a) + shift_a
        q, k, v = self.mix(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + gate_a * self.out(y)
        y = self.norm(x) * (1 + scale_b) + shift_b
        return x + gate_b * self.narrow(F.gelu(self.wide(y), approximate="tanh"))


class DiT(nn.Module):
    def __init__(self, width: int = 32, size: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(4, width, size, size)
        self.steps, self.classes = nn.Embedding(100, width), nn.Embedding(10, width)
        self.blocks = nn.ModuleList(DiTBlock(width, 4) for _ in range(2))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.head, self.back = nn.Linear(width, 4 * size * size), nn.PixelShuffle(size)

    def forward(
        self, images: torch.Tensor, noise: torch.Tensor, step: torch.Tensor, label: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        kept = (1 - step / 100)[:, None, None, None]
        x = self.patches(kept.sqrt() * images + (1 - kept).sqrt() * noise)
        size, x = x.shape[2:], x.flatten(2).transpose(1, 2)
        given = self.steps(step) + self.classes(label)
        for block in self.blocks:
            x = block(x, given)
        predicted = self.back(self.head(self.norm(x)).transpose(1, 2).unflatten(2, size))
        return {"loss": F.mse_loss(predicted, noise), "predicted": predicted}


def dit() -> Case:
    images, noise = torch.randn(2, 3, 4, 16, 16)
    numbers = {"step": torch.tensor([7, 61, 93]), "label": torch.tensor([1, 0, 9])}
    return Case(DiT(), {"images": images, "noise": noise, **numbers}, lambda out: out["loss"])


class Detector(nn.Module):
    """Boxes and classes at each position of two maps (RetinaNet's losses, Lin et al. 2017)."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.first, self.second = _double(3, 16), _double(16, 16)
        self.top = nn.Conv2d(16, 16, 1)
        self.head = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU())
        self.kinds, self.boxes = (nn.Conv2d(16, n, 3, padding=1) for n in (classes, 4))

    def forward(
        self, images: torch.Tensor, found: torch.Tensor, labels: torch.Tensor, boxes: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        fine = self.first(F.max_pool2d(images, 2))
        coarse = self.second(F.max_pool2d(fine, 2))
        fine = fine + F.interpolate(self.top(coarse), scale_factor=2, mode="nearest")
        maps = [self.head(level) for level in (fine, coarse)]
        logits = torch.cat([self.kinds(m).flatten(2) for m in maps], 2).mT
        offsets = torch.cat([self.boxes(m).flatten(2) for m in maps], 2).mT
        wanted = F.one_hot(labels, logits.shape[-1]).to(logits.dtype) * found.unsqueeze(-1)
        p = logits.sigmoid()
        right = p * wanted + (1 - p) * (1 - wanted)
        entropy = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        focal = (0.25 * (1 - right).square() * entropy).sum()
        apart = F.smooth_l1_loss(offsets[found], boxes[found], beta=0.1, reduction="sum")
        scores, best = p.flatten(1).topk(5)
        loss = (focal + apart) / found.sum().clamp(min=1)
        return {"loss": loss, "logits": logits, "scores": scores, "best": best}


def detector() -> Case:
    places = 16 * 16 + 8 * 8
    inputs = {
        "images": torch.randn(2, 3, 32, 32),
        "found": torch.rand(2, places) < 0.1,
        "labels": torch.randint(3, (2, places)),
        "boxes": torch.randn(2, places, 4) * 0.3,
    }
    return Case(Detector(), inputs, lambda out: out["loss"])


OWN = {
    "unet": unet,
    "unet_bicubic": lambda: unet("bicubic"),
    "vae": vae,
    "diffusion": diffusion,
    "graph": graph,
    "gat": gat,
    "dit": dit,
    "detector": detector,
}
