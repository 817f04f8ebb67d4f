"""Image models: transformers' classes made small, and MobileNetV3 written here.

timm would be another source; it needs torchvision, whose PyPI build does not load beside a CPU
torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case


def _images(size: int, batch: int) -> dict[str, torch.Tensor]:
    return {
        "pixel_values": torch.randn(batch, 3, size, size),
        "labels": torch.randint(10, (batch,)),
    }


def _case(name: str, size: int, batch: int, **options: Any) -> Case:
    import transformers

    config = getattr(transformers, name + "Config")(num_labels=10, **options)
    return Case(
        getattr(transformers, name + "ForImageClassification")(config), _images(size, batch)
    )


def resnet(layer_type: str, depths: tuple[int, ...], widths: tuple[int, ...]) -> Case:
    return _case(
        "ResNet",
        64,
        8,
        embedding_size=64,
        layer_type=layer_type,
        depths=list(depths),
        hidden_sizes=list(widths),
    )


class _Inverted(nn.Module):
    """Expand, filter by channel, squeeze and excite, project: MobileNetV3's block (Howard 2019)."""

    def __init__(self, inside: int, wide: int, outside: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.filter = nn.Sequential(
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
        )
        self.squeeze, self.excite = nn.Conv2d(wide, wide // 4, 1), nn.Conv2d(wide // 4, wide, 1)
        self.project = nn.Sequential(
            nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside)
        )
        self.residual = stride == 1 and inside == outside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.hardswish(self.filter(F.hardswish(self.expand(x))))
        gate = self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1))))
        y = self.project(y * F.hardsigmoid(gate))
        return x + y if self.residual else y


class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()
        )
        self.blocks = nn.Sequential(
            _Inverted(16, 32, 24, 3, 2),
            _Inverted(24, 64, 24, 3, 1),
            _Inverted(24, 96, 40, 5, 2),
            _Inverted(40, 120, 40, 5, 1),
        )
        self.head = nn.Sequential(nn.Linear(40, 64), nn.Hardswish(), nn.Linear(64, 10))

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.head(self.blocks(self.stem(pixel_values)).mean((2, 3)))
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        return {"loss": loss, "logits": logits}


def mobilenetv3() -> Case:
    return Case(MobileNetV3(), _images(64, 8), lambda out: out["loss"])


VISION = {
    "resnet18": lambda: resnet("basic", (2, 2, 2, 2), (32, 48, 64, 96)),
    "resnet50": lambda: resnet("bottleneck", (3, 4, 6, 3), (32, 64, 96, 128)),
    "mobilenetv3": mobilenetv3,
    "convnext": lambda: _case(
        "ConvNext", 64, 4, depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 48, 64]
    ),
    "vit": lambda: _case(
        "ViT",
        32,
        4,
        image_size=32,
        patch_size=8,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=96,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
    "swin": lambda: _case(
        "Swin",
        32,
        4,
        image_size=32,
        patch_size=4,
        window_size=4,
        embed_dim=24,
        depths=[2, 2],
        num_heads=[2, 4],
        drop_path_rate=0.0,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
}
