"""Training steps and inference of small models on "ocl", for the programs that they ask for.

usage: models.py [DTYPE...]    of float32, float16, bfloat16, amp (bfloat16 by autocast)

All four by default. The null layer runs nothing: results are zeros, and only which kernels are
asked for matters. A model that raises is reported, and fails the corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401
from torch import nn

DEVICE = "ocl"


class Block(nn.Module):
    """A transformer's, with grouped heads of keys and values where `kv` is less than `heads`."""

    def __init__(self, width: int, heads: int, kv: int) -> None:
        super().__init__()
        self.heads, self.kv = heads, kv
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.q, self.o = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = (nn.Linear(width, width // heads * kv) for _ in range(2))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        y = self.norm1(x)
        counts = ((self.q, self.heads), (self.k, self.kv), (self.v, self.kv))
        q, k, v = (f(y).view(b, t, n, d // self.heads).transpose(1, 2) for f, n in counts)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=self.kv != self.heads
        )
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def gpt(width: int, heads: int, kv: int, vocabulary: int = 32000) -> nn.Module:
    blocks = [Block(width, heads, kv) for _ in range(2)]
    head = nn.Linear(width, vocabulary, bias=False)
    return nn.Sequential(nn.Embedding(vocabulary, width), *blocks, head)


class Residual(nn.Module):
    def __init__(self, i: int, o: int, stride: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.n, self.m = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.down = nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.m(self.b(F.relu(self.n(self.a(x))))) + self.down(x))


def resnet() -> nn.Module:
    first = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    layers = [first, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(channels, out, stride), Residual(out, out, 1)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def mobile() -> nn.Module:
    def inverted(i: int, o: int, stride: int) -> nn.Module:
        n, window = 4 * i, 5 if stride == 2 else 3
        depthwise = nn.Conv2d(n, n, window, stride, stride, groups=n)
        widen = [nn.Conv2d(i, n, 1), nn.BatchNorm2d(n), nn.Hardswish()]
        return nn.Sequential(
            *widen, depthwise, nn.BatchNorm2d(n), nn.ReLU6(), nn.Conv2d(n, o, 1), nn.BatchNorm2d(o)
        )

    stages = [inverted(16, 24, 2), inverted(24, 40, 1), inverted(40, 80, 2)]
    last = [nn.Conv2d(80, 160, 3, 1, 1, groups=8), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), *stages, *last, nn.Linear(160, 1000))


def unet() -> nn.Module:
    def conv(i: int, o: int) -> nn.Module:
        return nn.Sequential(nn.GroupNorm(min(8, i), i), nn.SiLU(), nn.Conv2d(i, o, 3, 1, 1))

    down = [nn.Conv2d(4, 64, 3, 1, 1), conv(64, 128), nn.Conv2d(128, 128, 3, 2, 1), conv(128, 256)]
    up = [nn.Upsample(scale_factor=2), conv(256, 64), nn.ConvTranspose2d(64, 64, 4, 2, 1)]
    return nn.Sequential(*down, *up, nn.InstanceNorm2d(64, affine=True), nn.Conv2d(64, 4, 3, 1, 1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True)
        self.gru, self.head = nn.GRU(256, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


def ids(*shape: int, most: int = 1000) -> torch.Tensor:
    return torch.randint(0, most, shape)


def symmetric(n: int) -> torch.Tensor:
    a = torch.randn(n, n).to(DEVICE)
    return a + a.T


# Name: model, input, target, loss, optimizer.
MODELS: dict[str, Callable[[], tuple]] = {
    "resnet": lambda: (resnet(), torch.randn(8, 3, 224, 224), ids(8), "adam"),
    "mobile": lambda: (mobile(), torch.randn(8, 3, 224, 224), ids(8), "sgd"),
    "unet": lambda: (unet(), torch.randn(2, 4, 64, 64), torch.randn(2, 4, 128, 128), "adam"),
    "gpt64": lambda: (gpt(768, 12, 12), ids(2, 512), ids(1024), "adam"),
    "gpt128": lambda: (gpt(1024, 8, 2), ids(1, 1024), ids(1024), "adam"),
    "rnn": lambda: (Recurrent(), torch.randn(16, 32, 128), ids(16, most=10), "rmsprop"),
}
OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop}
CALLS: dict[str, Callable[[], object]] = {
    "sort": lambda: torch.sort(torch.randn(64, 5000).to(DEVICE)),
    "topk": lambda: torch.topk(torch.randn(64, 50000).to(DEVICE), 50),
    "median": lambda: torch.median(torch.randn(64, 500).to(DEVICE), 1),
    "cumsum": lambda: torch.randn(64, 5000).to(DEVICE).cumsum(1),
    "fft": lambda: torch.fft.fft2(torch.randn(4, 512, 500).to(DEVICE)),
    "inverse": lambda: torch.linalg.inv(torch.randn(4, 200, 200).to(DEVICE)),
    "cholesky": lambda: torch.linalg.cholesky(torch.randn(200, 200).to(DEVICE)),
    "eigh": lambda: torch.linalg.eigh(symmetric(300)),
    "eigh_small": lambda: torch.linalg.eigh(symmetric(20)),
    "eig": lambda: torch.linalg.eigvals(torch.randn(300, 300).to(DEVICE)),
    "svd": lambda: torch.linalg.svd(torch.randn(2, 120, 60).to(DEVICE)),
    "solve": lambda: torch.linalg.solve(
        torch.randn(200, 200).to(DEVICE), torch.randn(200, 70).to(DEVICE)
    ),
    "ldl": lambda: torch.linalg.ldl_factor(symmetric(100)),
    "qr": lambda: torch.linalg.qr(torch.randn(200, 100).to(DEVICE)),
    "multinomial": lambda: torch.multinomial(torch.rand(4, 1000).to(DEVICE), 5),
    "conv3d": lambda: F.conv3d(
        torch.randn(1, 8, 16, 32, 32).to(DEVICE), torch.randn(16, 8, 3, 3, 3).to(DEVICE)
    ),
    "conv1d": lambda: F.conv1d(
        torch.randn(4, 80, 3000).to(DEVICE), torch.randn(512, 80, 3).to(DEVICE)
    ),
}


def step(name: str, dtype: torch.dtype, amp: bool) -> None:
    """Two training steps, and inference."""
    model, x, y, optimizer = MODELS[name]()
    model = model.to(DEVICE, None if amp else dtype)
    x = (x.to(dtype) if x.is_floating_point() and not amp else x).to(DEVICE)
    y = y.to(DEVICE)
    optimizer = OPTIMIZERS[optimizer](model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=amp):
            out = model(x)
        if y.is_floating_point():
            loss = F.mse_loss(out.float(), y)
        else:
            loss = F.cross_entropy(out.flatten(0, -2).float(), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(x)


@torch.no_grad()
def decode(head: int, dtype: torch.dtype) -> None:
    """One token beside a cache of keys, a mask, and products of few rows."""
    q = torch.randn(1, 16, 1, head).to(DEVICE, dtype)
    k = torch.randn(1, 16, 1000, head).to(DEVICE, dtype)
    F.scaled_dot_product_attention(q, k, k)
    mask = torch.ones(1000, 1000, dtype=torch.bool).tril().to(DEVICE)
    F.scaled_dot_product_attention(k, k, k, attn_mask=mask)
    weight = torch.randn(4096, 1024).to(DEVICE, dtype)
    for rows in (1, 3, 8, 32, 200):
        F.linear(torch.randn(rows, 1024).to(DEVICE, dtype), weight)


def attempt(name: str, call: Callable[[], object]) -> bool:
    try:
        call()
        torch.ocl.synchronize()
    except Exception as error:  # noqa: BLE001
        print(f"raised: {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        return False
    return True


def main() -> int:
    dtypes = sys.argv[1:] or ["float32", "float16", "bfloat16", "amp"]
    good = True
    for text in dtypes:
        amp = text == "amp"
        dtype = torch.float32 if amp else getattr(torch, text)
        for name in MODELS:
            good &= attempt(f"{name} {text}", lambda n=name, d=dtype, a=amp: step(n, d, a))
        for head in (64, 80, 128) if not amp else ():
            good &= attempt(f"decode {head} {text}", lambda h=head, d=dtype: decode(h, d))
    for name, call in CALLS.items():
        good &= attempt(name, call)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
