"""Decoding with a GPT-2: a token at a time, eagerly and as replays of a recorded graph.

usage: graphs.py [--device ocl|cuda] [--layers 12] [--width 768] [--heads 12] [--words 50257]
                 [--context 256] [--tokens 64] [--rounds 5] [--dtype float32]

Weights are random; keys and values lie in a cache of `--context` places; the largest logit is the
next token. Both ways compute the same tokens, which is checked. Columns: ms a token; launches a
token; launches a second; `host`: microseconds that the caller's thread needs for a launch (until it
has enqueued the last of all tokens, per launch; it includes waiting where the queue is full).
Rounds of both take turns; the median counts, and the range of the ratios is told.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """A transformer's layer that attends to its cache of keys and values."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        cache = torch.zeros(1, heads, context, width // heads)
        self.register_buffer("keys", cache)
        self.register_buffer("values", cache.clone())

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).view(1, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        attended = functional.scaled_dot_product_attention(q, self.keys, self.values, mask)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh"))


class Decoder(nn.Module):
    """Its state, token and place, is on the device: a step needs nothing of the host."""

    def __init__(self, a: argparse.Namespace) -> None:
        super().__init__()
        self.words = nn.Embedding(a.words, a.width)
        self.places = nn.Embedding(a.context, a.width)
        self.layers = nn.ModuleList(Layer(a.width, a.heads, a.context) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        self.register_buffer("token", torch.zeros(1, 1, dtype=torch.long))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("all_places", torch.arange(a.context))

    def forward(self) -> None:
        mask = (self.all_places <= self.place).view(1, 1, 1, -1)
        x = self.words(self.token) + self.places(self.place)
        for layer in self.layers:
            x = layer(x, self.place, mask)
        logits = functional.linear(self.norm(x), self.words.weight)
        self.token.copy_(logits[:, -1].argmax(-1, keepdim=True))
        self.place.add_(1)


def launches_so_far(device: str) -> int:
    """Torch's CUDA does not count them: 0."""
    return torch.ocl.counters()["launches"] if device == "ocl" else 0


def run(decoder: Decoder, step: Callable[[], None], tokens: int) -> tuple[float, float, int]:
    """Seconds until all was enqueued, seconds until all was done, and the last token."""
    synchronize = torch.get_device_module(decoder.token.device).synchronize
    decoder.token.fill_(1)
    decoder.place.zero_()
    synchronize()
    begin = time.perf_counter()
    for _ in range(tokens):
        step()
    left = time.perf_counter()
    synchronize()
    return left - begin, time.perf_counter() - begin, int(decoder.token)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="ocl")
    parser.add_argument("--dtype", default="float32")
    for name, value in {
        "layers": 12,
        "width": 768,
        "heads": 12,
        "words": 50257,
        "context": 256,
        "tokens": 64,
        "rounds": 5,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    a = parser.parse_args()
    if a.tokens > a.context:
        parser.error("there are more tokens than the context has places")
    torch.manual_seed(0)
    module = torch.get_device_module(a.device)
    decoder = Decoder(a).to(a.device, getattr(torch, a.dtype)).eval()
    with torch.no_grad():
        run(decoder, decoder, 2)
        before = launches_so_far(a.device)
        decoder()
        launches = launches_so_far(a.device) - before
        graph = torch.ocl.OCLGraph() if a.device == "ocl" else torch.cuda.CUDAGraph()
        begin = time.perf_counter()
        with module.graph(graph):
            decoder()
        recording = time.perf_counter() - begin
        ways = {"eager": decoder, "replay": graph.replay}
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(a.rounds):
            last = set()
            for name, step in ways.items():
                enqueued, done, token = run(decoder, step, a.tokens)
                taken[name].append((enqueued, done))
                last.add(token)
            if len(last) != 1:
                raise SystemExit(f"the ways differ in their last token: {last}")
    info = graph.info() if a.device == "ocl" else {"launches": 0}
    print(f"{module.get_device_name()}: {a.layers} layers of {a.width}, {a.dtype}; ", end="")
    print(f"{info}, recorded in {recording * 1e3:.1f} ms")
    for name, times in taken.items():
        enqueued, done = (statistics.median(column) for column in zip(*times, strict=True))
        count = launches if name == "eager" else info["launches"]
        print(f"{name:8} {done / a.tokens * 1e3:9.3f} ms a token", end="")
        if count > 0:
            print(
                f" {count:6} launches a token {count * a.tokens / done:10.0f} launches a second",
                end="",
            )
            print(f" {enqueued / a.tokens / count * 1e6:8.2f} us of the host a launch", end="")
        print()
    ratios = [e[1] / r[1] for e, r in zip(taken["eager"], taken["replay"], strict=True)]
    print(
        f"eager / replay {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
