"""The encoder of Whisper-base (Radford et al. 2022)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class WhisperEncoder(nn.Module):
    """Two convolutions along time, of which the second halves it, and PyTorch's own encoder layers,
    which have a fast path for inference."""

    def __init__(
        self, bands: int = 80, width: int = 512, layers: int = 6, heads: int = 8, length: int = 1500
    ) -> None:
        super().__init__()
        self.begin = nn.Conv1d(bands, width, 3, padding=1)
        self.halve = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.halve(F.gelu(self.begin(x)))).mT
        return self.blocks(x + self.places[: x.shape[1]])
