"""BERT-base (Devlin et al. 2018), GPT-2 small (Radford et al. 2019), and one token of a Llama-like
model with its cache."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer layer; `causal` ones normalise first (GPT-2), others last (BERT)."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        q, k, v = self.mix(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, c))

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        return self.narrow(F.gelu(self.wide(x), approximate="tanh" if self.causal else "none"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.causal:
            x = x + self.attend(self.norm_a(x))
            return x + self.feed(self.norm_b(x))
        x = self.norm_a(x + self.attend(x))
        return self.norm_b(x + self.feed(x))


class Transformer(nn.Module):
    """Token and position embeddings, layers, and the embedding once more as the head."""

    def __init__(
        self,
        words: int,
        length: int,
        width: int = 768,
        layers: int = 12,
        heads: int = 12,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("places_of", torch.zeros(length, dtype=torch.int64))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(self.places_of[: ids.shape[1]])
        return F.linear(self.norm(self.blocks(x)), self.words.weight)


class Decoder(nn.Module):
    """One Llama-like layer for one new token: RMS norm, rotary embedding, grouped heads, SwiGLU,
    keys and values kept."""

    def __init__(
        self, width: int, heads: int, groups: int, wide: int, context: int, batch: int = 1
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.query, self.out = (
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width, bias=False),
        )
        self.pair = nn.Linear(width, 2 * groups * self.head, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(*ends, bias=False) for ends in ((width, wide), (width, wide), (wide, width))
        )
        self.norm_a, self.norm_b = nn.RMSNorm(width), nn.RMSNorm(width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, groups, context, self.head))

    def turn(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        b, place = x.shape[0], self.keys.shape[2] - 1
        y = self.norm_a(x)
        q = self.turn(self.query(y).view(b, self.heads, 1, self.head), cos, sin)
        k, v = self.pair(y).view(b, 2, self.groups, 1, self.head).unbind(1)
        self.keys[:, :, place:] = self.turn(k, cos, sin)
        self.values[:, :, place:] = v
        y = F.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True)
        x = x + self.out(y.reshape(b, -1))
        y = self.norm_b(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LlamaToken(nn.Module):
    def __init__(
        self,
        width: int,
        layers: int,
        heads: int,
        groups: int,
        wide: int,
        context: int,
        words: int = 32000,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(
            Decoder(width, heads, groups, wide, context) for _ in range(layers)
        )
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("angles", torch.zeros(width // heads))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x, cos, sin = self.words(ids[:, 0]), self.angles.cos(), self.angles.sin()
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))
