"""ResNet-18 and ResNet-50 (He et al. 2015), MobileNetV3-Large (Howard et al. 2019), U-Net
(Ronneberger et al. 2015), ViT-B/16 (Dosovitskiy et al. 2020), ConvNeXt-T (Liu et al. 2022)."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional as F

from networks.language import Block


def unit(
    inside: int,
    outside: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    act: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """Convolution, batch norm, activation."""
    parts: list[nn.Module] = [
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
    ]
    return nn.Sequential(*parts, *([act(inplace=True)] if act else []))


class Residual(nn.Module):
    def __init__(self, inside: int, width: int, stride: int, deep: bool) -> None:
        super().__init__()
        outside = 4 * width if deep else width
        if deep:
            self.body = nn.Sequential(
                unit(inside, width, 1),
                unit(width, width, 3, stride),
                unit(width, outside, 1, act=None),
            )
        else:
            self.body = nn.Sequential(unit(inside, width, 3, stride), unit(width, width, act=None))
        self.past = (
            unit(inside, outside, 1, stride, act=None)
            if stride > 1 or inside != outside
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu_(self.body(x) + self.past(x))


class ResNet(nn.Sequential):
    def __init__(self, blocks: tuple[int, ...], deep: bool) -> None:
        layers: list[nn.Module] = [unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        inside = 64
        for stage, count in enumerate(blocks):
            for block in range(count):
                layers.append(Residual(inside, 64 << stage, 2 if block == 0 and stage else 1, deep))
                inside = (64 << stage) * (4 if deep else 1)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


class Squeeze(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        inner = (width // 4 + 4) // 8 * 8
        self.down, self.up = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    def __init__(
        self,
        inside: int,
        kernel: int,
        wide: int,
        outside: int,
        squeeze: bool,
        act: type[nn.Module],
        stride: int,
    ) -> None:
        super().__init__()
        parts = [unit(inside, wide, 1, act=act)] if wide != inside else []
        parts += [
            unit(wide, wide, kernel, stride, wide, act),
            *([Squeeze(wide)] if squeeze else []),
            unit(wide, outside, 1, act=None),
        ]
        self.body, self.residual = nn.Sequential(*parts), stride == 1 and inside == outside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.residual else self.body(x)


RE, HS = nn.ReLU, nn.Hardswish
LARGE = [
    (3, 16, 16, False, RE, 1),
    (3, 64, 24, False, RE, 2),
    (3, 72, 24, False, RE, 1),
    (5, 72, 40, True, RE, 2),
    (5, 120, 40, True, RE, 1),
    (5, 120, 40, True, RE, 1),
    (3, 240, 80, False, HS, 2),
    (3, 200, 80, False, HS, 1),
    (3, 184, 80, False, HS, 1),
    (3, 184, 80, False, HS, 1),
    (3, 480, 112, True, HS, 1),
    (3, 672, 112, True, HS, 1),
    (5, 672, 160, True, HS, 2),
    (5, 960, 160, True, HS, 1),
    (5, 960, 160, True, HS, 1),
]  # kernel, wide, out, squeeze, act, stride


class MobileNetV3(nn.Sequential):
    def __init__(self) -> None:
        layers: list[nn.Module] = [unit(3, 16, 3, 2, act=HS)]
        inside = 16
        for kernel, wide, outside, squeeze, act, stride in LARGE:
            layers.append(Inverted(inside, kernel, wide, outside, squeeze, act, stride))
            inside = outside
        head = [
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(960, 1280),
            nn.Hardswish(),
            nn.Linear(1280, 1000),
        ]
        super().__init__(*layers, unit(160, 960, 1, act=HS), *head)


class UNet(nn.Module):
    """Four levels; transposed convolutions lead up."""

    def __init__(self, base: int, classes: int = 2) -> None:
        super().__init__()
        widths = [base << i for i in range(5)]

        def pair(a: int, b: int) -> nn.Module:
            return nn.Sequential(unit(a, b), unit(b, b))

        self.down = nn.ModuleList(
            [pair(3, base), *(pair(a, b) for a, b in itertools.pairwise(widths))]
        )
        self.lift = nn.ModuleList(
            [nn.ConvTranspose2d(b, a, 2, 2) for a, b in itertools.pairwise(widths)]
        )
        self.up = nn.ModuleList([pair(2 * a, a) for a in widths[:-1]])
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(4)):
            x = self.up[i](torch.cat([self.lift[i](x), kept[i]], 1))
        return self.head(x)


class VisionTransformer(nn.Module):
    def __init__(
        self, size: int = 224, width: int = 768, layers: int = 12, heads: int = 12
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (size // 16) ** 2 + 1, width))
        self.blocks = nn.Sequential(
            *(Block(width, heads, False, first=True) for _ in range(layers))
        )
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).mT
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of maps."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)
        return x + self.scale * y


class ConvNeXt(nn.Sequential):
    def __init__(
        self,
        blocks: tuple[int, ...] = (3, 3, 9, 3),
        widths: tuple[int, ...] = (96, 192, 384, 768),
    ) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(3, widths[0], 4, 4),
            ChannelNorm(widths[0], eps=1e-6),
        ]
        for stage, (count, width) in enumerate(zip(blocks, widths, strict=True)):
            if stage:
                before = widths[stage - 1]
                layers += [ChannelNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(count)]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1], eps=1e-6)]
        super().__init__(*layers, *head, nn.Linear(widths[-1], 1000))
