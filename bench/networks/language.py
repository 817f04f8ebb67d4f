"""BERT-base (Devlin et al. 2018), GPT-2 small (Radford et al. 2019), a Llama-like model over whole
sequences and for one token with its cache, T5's encoder (Raffel et al. 2019), an LSTM model."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer layer. It normalises first (GPT-2, images) or last (BERT)."""

    def __init__(
        self,
        width: int,
        heads: int,
        causal: bool,
        first: bool | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first = causal if first is None else first
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        q, k, v = self.mix(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        dropout = self.drop.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, n, c)))

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.wide(x), approximate="tanh" if self.causal else "none")
        return self.drop(self.narrow(y))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.first:
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
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(
            *(Block(width, heads, causal, dropout=dropout) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.register_buffer("places_of", torch.zeros(length, dtype=torch.int64))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(self.places_of[: ids.shape[1]])
        return F.linear(self.norm(self.blocks(x)), self.words.weight)


def plain(*ends: tuple[int, int]) -> list[nn.Linear]:
    """Linear layers without a bias."""
    return [nn.Linear(*pair, bias=False) for pair in ends]


def turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The rotary embedding (Su et al. 2021) of queries or keys."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Decoder(nn.Module):
    """One Llama-like layer for one new token: RMS norm, rotary embedding, grouped heads, SwiGLU,
    keys and values kept."""

    def __init__(
        self, width: int, heads: int, groups: int, wide: int, context: int, batch: int = 1
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.query, self.out, self.pair, self.gate, self.up, self.down = plain(
            (width, width),
            (width, width),
            (width, 2 * groups * self.head),
            (width, wide),
            (width, wide),
            (wide, width),
        )
        self.norm_a, self.norm_b = nn.RMSNorm(width), nn.RMSNorm(width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, groups, context, self.head))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        b, place = x.shape[0], self.keys.shape[2] - 1
        y = self.norm_a(x)
        q = turn(self.query(y).view(b, self.heads, 1, self.head), cos, sin)
        k, v = self.pair(y).view(b, 2, self.groups, 1, self.head).unbind(1)
        self.keys[:, :, place:] = turn(k, cos, sin)
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


class LlamaBlock(nn.Module):
    """A Llama-like layer over a whole sequence."""

    def __init__(self, width: int, heads: int, groups: int, wide: int) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.mix, self.out, self.gate, self.up, self.down = plain(
            (width, width + 2 * groups * self.head),
            (width, width),
            (width, wide),
            (width, wide),
            (wide, width),
        )
        self.norm_a, self.norm_b = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        heads = self.mix(self.norm_a(x)).view(b, n, -1, self.head).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.groups, self.groups), 1)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, c))
        y = self.norm_b(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(
        self, width: int, layers: int, heads: int, groups: int, wide: int, words: int = 32000
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, wide) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("angles", torch.zeros(width // heads))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        angles = torch.arange(ids.shape[1], device=x.device)[:, None] * self.angles
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


class T5Block(nn.Module):
    """A layer of T5's encoder: scores are not scaled, and have a bias by distance."""

    def __init__(self, width: int, heads: int, wide: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out, self.wide, self.narrow = plain(
            *[(width, width)] * 4, (width, wide), (wide, width)
        )
        self.norm_a, self.norm_b = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.drop = nn.Dropout(dropout)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        y = self.norm_a(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        weights = self.drop(torch.softmax(q @ k.mT + bias, -1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).reshape(x.shape)))
        y = self.drop(F.relu(self.wide(self.norm_b(x))))
        return x + self.drop(self.narrow(y))


class T5Encoder(nn.Module):
    DISTANCES = 32  # buckets; half of them for each direction

    def __init__(
        self,
        words: int = 32128,
        width: int = 512,
        layers: int = 6,
        heads: int = 8,
        wide: int = 2048,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.distances = nn.Embedding(words, width), nn.Embedding(self.DISTANCES, heads)
        self.blocks = nn.ModuleList(T5Block(width, heads, wide, dropout) for _ in range(layers))
        self.norm, self.drop = nn.RMSNorm(width, eps=1e-6), nn.Dropout(dropout)

    def buckets(self, length: int, device: torch.device) -> torch.Tensor:
        """Small distances have buckets of their own, larger ones share by the logarithm."""
        half = self.DISTANCES // 2
        exact, most = half // 2, 128
        places = torch.arange(length, device=device)
        apart = places[None] - places[:, None]
        far = apart.abs().clamp(min=1).float()
        shared = exact + (far / exact).log() / math.log(most / exact) * (half - exact)
        by_size = torch.where(apart.abs() < exact, apart.abs(), shared.long().clamp(max=half - 1))
        return by_size + (apart > 0) * half

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.words(ids))
        bias = self.distances(self.buckets(ids.shape[1], ids.device)).permute(2, 0, 1)[None]
        for block in self.blocks:
            x = block(x, bias)
        return self.drop(self.norm(x))


class Recurrent(nn.Module):
    """A language model of LSTM layers (Zaremba et al. 2014)."""

    def __init__(
        self, words: int = 10000, width: int = 512, layers: int = 2, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.drop = nn.Embedding(words, width), nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.lstm(self.drop(self.words(ids)))[0]))
