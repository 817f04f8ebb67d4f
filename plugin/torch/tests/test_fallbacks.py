"""What a device declines for its type, and what a setting disables, runs on the CPU when the
fallback is on: with the CPU's numbers, gradients and changes of arguments."""

from __future__ import annotations

import os
import unittest
import warnings
from collections.abc import Callable, Iterator

os.environ["OCLTENSOR_FLOAT64"] = "0"
os.environ["OCLTENSOR_ENABLE_FALLBACK"] = "1"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_ocl  # noqa: E402, F401
from torch import nn  # noqa: E402


def drawn(device: str, dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    """The same leaves on every device."""
    seed = iter(range(1000))

    def draw(*shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(next(seed))
        values = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1
        return values.to(dtype).to(device).requires_grad_()

    return draw


def batch_norm(x: Callable[..., torch.Tensor], train: bool) -> list[torch.Tensor]:
    given = x(4, 3, 5)
    layer = nn.BatchNorm1d(3).to(given.device, given.dtype).train(train)
    out = layer(given)
    return [out, layer.running_mean, layer.running_var]


def sparse(x: Callable[..., torch.Tensor]) -> torch.Tensor:
    where = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = x(3)
    return torch.sparse_coo_tensor(where.to(values.device), values, (2, 3)) @ x(3, 4)


def steps(name: str, **options: object) -> Callable:
    def body(x: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        leaf = x(5)
        optimizer = getattr(torch.optim, name)([leaf], lr=0.1, fused=True, **options)
        for _ in range(3):
            leaf.grad = leaf.detach().cos()
            optimizer.step()
        return [leaf.detach()]

    return body


# name: results of leaves that `x` draws. Their operators are called below autograd, by kernels
# written by hand, or by names that the CPU does not know.
CALLS: dict[str, Callable] = {
    "conv1d": lambda x: F.conv1d(x(2, 3, 9), x(4, 3, 3), x(4), padding=1),
    "conv2d": lambda x: F.conv2d(x(1, 3, 9, 8), x(2, 3, 3, 3)),
    "conv3d": lambda x: F.conv3d(x(1, 4, 5, 6, 5), x(4, 2, 2, 3, 2), x(4), stride=2, groups=2),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x(1, 3, 5, 4), x(3, 2, 3, 3), x(2)),
    "numbers on the left": lambda x: [1 - x(3, 4), 2 ** x(3), 1 / x(2), torch.tensor(2.0) * x(3)],
    "complex": lambda x: torch.view_as_real(torch.complex(x(3, 2), x(3, 2)).clone()),
    "complex parts": lambda x: torch.complex(x(3, 2), x(3, 2)).T.conj().contiguous().real,
    "attention": lambda x: F.scaled_dot_product_attention(
        x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4)
    ),
    "rms_norm": lambda x: F.rms_norm(x(2, 3, 4), (3, 4), x(3, 4)),
    "rms_norm without weights": lambda x: F.rms_norm(x(3, 4), (4,)),
    "layer_norm": lambda x: F.layer_norm(x(3, 4), (4,), x(4), x(4)),
    "group_norm": lambda x: F.group_norm(x(2, 4, 3), 2, x(4), x(4)),
    "batch_norm in training": lambda x: batch_norm(x, True),
    "batch_norm": lambda x: batch_norm(x, False),
    "batch_norm without statistics": lambda x: F.batch_norm(x(4, 3), None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x(4, 3, 5)),
    "logsigmoid": lambda x: F.logsigmoid(x(7) - 0.5),
    "searchsorted": lambda x: torch.searchsorted(x(6).detach().sort().values, x(4).detach()),
    "bucketize": lambda x: torch.bucketize(x(4).detach(), x(6).detach().sort().values),
    "cummax": lambda x: x(3, 4).cummax(1).values,
    "cummin": lambda x: x(3, 4).cummin(0).values,
    "histogram": lambda x: torch.histogram(
        x(3, 4).detach(), 3, weight=x(3, 4).detach(), density=True
    ),
    "histogramdd": lambda x: (
        torch.histogramdd(x(3, 4, 2).detach(), [2, 2], weight=x(3, 4).detach()).hist
    ),
    "cumsum": lambda x: x(3, 4).cumsum(0),
    "sparse": sparse,
    "bag": lambda x: F.embedding_bag(
        torch.tensor([0, 2, 1, 1]).to(x(1).device), x(3, 2), torch.tensor([0, 2]).to(x(1).device)
    ),
    "lstm": lambda x: torch.lstm_cell(
        x(2, 3), (x(2, 4), x(2, 4)), x(16, 3), x(16, 4), x(16), x(16)
    ),
    "gru": lambda x: torch.gru_cell(x(2, 3), x(2, 4), x(12, 3), x(12, 4), x(12), x(12)),
    "interpolate": lambda x: F.interpolate(x(1, 2, 4, 4), size=(7, 5), mode="bilinear"),
    "pool": lambda x: F.max_pool2d(x(1, 2, 6, 6), 2),
    "ctc_loss": lambda x: F.ctc_loss(
        x(5, 1, 4).log_softmax(2),
        torch.tensor([[1, 2]]).to(x(1).device),
        torch.tensor([5]),
        torch.tensor([2]),
    ),
    "svd": lambda x: torch.linalg.svdvals(x(4, 3)),
    "solve": lambda x: torch.linalg.solve(x(3, 3) + 3 * torch.eye(3).to(x(1)), x(3, 2)),
    "fft": lambda x: torch.fft.rfft(x(3, 8)).abs(),
    "adam": steps("Adam", weight_decay=0.1),
    "adamw": steps("AdamW", amsgrad=True),
    "sgd": steps("SGD", momentum=0.9),
    "adagrad": steps("Adagrad"),
    "foreach": lambda x: torch._foreach_add([x(3), x(2)], 1.5),
    "dropout of nothing": lambda x: F.dropout(x(3, 4), 0.0),
    "embedding": lambda x: F.embedding(torch.tensor([0, 2]).to(x(1).device), x(3, 2)),
    "grid_sample": lambda x: F.grid_sample(x(1, 2, 4, 4), x(1, 3, 3, 2), align_corners=False),
    "pdist": lambda x: F.pdist(x(4, 3)),
    "loss": lambda x: F.binary_cross_entropy(x(4) / 2, x(4).detach() / 2),
}


def flat(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from flat(v)


def results(call: Callable, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """What it gives, and the gradients of its leaves."""
    leaves = []
    draw = drawn(device, dtype)

    def x(*shape: int) -> torch.Tensor:
        leaves.append(draw(*shape))
        return leaves[-1]

    found = [t.to_dense() if t.layout != torch.strided else t for t in flat(call(x))]
    ends = [t for t in found if t.requires_grad and t.grad_fn is not None]
    if ends:
        sum(
            (t * torch.linspace(0.5, 1.5, t.numel()).to(t).view(t.shape)).sum() for t in ends
        ).backward()
    return [t.detach().cpu() for t in found] + [
        leaf.grad.cpu() for leaf in leaves if leaf.grad is not None and ends
    ]


class Fallbacks(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore")

    def check(self, name: str, dtype: torch.dtype) -> None:
        call = CALLS[name]
        ours, theirs = results(call, "ocl", dtype), results(call, "cpu", dtype)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, check_stride=False)

    def test_float64(self) -> None:
        self.assertFalse(torch.ocl.get_device_properties(0).has_fp64)
        for name in CALLS:
            with self.subTest(name):
                self.check(name, torch.float64)

    def test_everything_disabled(self) -> None:
        with torch.backends.ocl.operations_disabled("*"):
            for name in CALLS:
                with self.subTest(name):
                    self.check(name, torch.float32)

    def test_scaler(self) -> None:
        leaf = torch.ones(3, dtype=torch.float64, device="ocl")
        leaf.grad = torch.tensor([1.0, 2.0, float("inf")], dtype=torch.float64, device="ocl")
        found = torch.zeros(1, device="ocl")
        torch._amp_foreach_non_finite_check_and_unscale_(
            [leaf.grad], found, torch.full((), 0.5, device="ocl")
        )
        self.assertEqual(found.item(), 1)
        self.assertEqual(leaf.grad.tolist(), [0.5, 1.0, float("inf")])

    def test_they_are_counted(self) -> None:
        before = torch.ocl.fallback_counts().get("aten::convolution_overrideable", 0)
        self.check("conv2d", torch.float64)
        after = torch.ocl.fallback_counts()
        self.assertEqual(after["aten::convolution_overrideable"], before + 1)
        self.assertIn("aten::convolution_backward", after)

    def test_without_the_fallback_the_error_names_the_setting(self) -> None:
        torch.backends.ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 0)
        try:
            for name in ("conv2d", "batch_norm", "logsigmoid", "adam", "searchsorted"):
                with (
                    self.subTest(name),
                    self.assertRaisesRegex(NotImplementedError, "OCLTENSOR_ENABLE_FALLBACK=1"),
                ):
                    results(CALLS[name], "ocl", torch.float64)
        finally:
            torch.backends.ocl.set_setting("OCLTENSOR_ENABLE_FALLBACK", 1)


if __name__ == "__main__":
    unittest.main()
