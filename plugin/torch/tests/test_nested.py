"""Nested tensors on ocl against the CPU: the jagged layout, which PyTorch makes of plain operators,
and the strided one, whose kernels are PyTorch's own."""

import copy
import unittest
from collections.abc import Callable

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import Tensor, nn

LENGTHS, WIDTH = (3, 5, 1, 7), 8
OTHER = torch.arange(WIDTH * 4.0).reshape(WIDTH, 4) / 16


def parts() -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(n, WIDTH) for n in LENGTHS]


def jagged(device: str) -> Tensor:
    return torch.nested.nested_tensor(
        parts(), layout=torch.jagged, device=device, requires_grad=True
    )


def strided(device: str) -> Tensor:
    return torch.nested.nested_tensor(parts(), device=device, requires_grad=True)


def plain(value: Tensor) -> list[Tensor]:
    return list(value.unbind()) if value.is_nested else [value]


def attention(x: Tensor) -> Tensor:
    heads = x.unflatten(-1, [2, WIDTH // 2]).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)


def of_module(module: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda x: copy.deepcopy(module).to(x.device)(x)


torch.manual_seed(2)
FUNCTIONS = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2,
    "gelu": F.gelu,
    "silu": F.silu,
    "softmax": lambda x: x.softmax(-1),
    "linear": of_module(nn.Linear(WIDTH, 16)),
    "layer norm": of_module(nn.LayerNorm(WIDTH)),
    "matmul": lambda x: x @ OTHER.to(x.device),
    "padded": lambda x: torch.nested.to_padded_tensor(x, -1.0),
    "where": lambda x: torch.where(x > 0, x, -x),
    "clone": torch.clone,
    "select": lambda x: x[1],
}
JAGGED = {
    "attention": attention,
    "largest": lambda x: x.amax(1),
    "softmax of the jagged dimension": lambda x: x.softmax(1),
    "rms norm": lambda x: F.rms_norm(x, (WIDTH,)),
    "cat": lambda x: torch.cat([x, x], -1),
    "masked fill": lambda x: x.masked_fill(x > 1, 1.0),
}
# What the strided layout lacks on any device, and layer normalisation, whose kernel is the CPU's.
NOT_STRIDED = {"matmul", "where", "layer norm"}


class Nested(unittest.TestCase):
    def compare(self, name: str, make: Callable[[str], Tensor], call: Callable) -> None:
        # Sums of at most 16 products, whose order differs: some eps of float32.
        bounds = {"rtol": 1e-5, "atol": 1e-5}
        results, gradients = [], []
        for device in ("cpu", "ocl"):
            x = make(device)
            y = call(x)
            self.assertEqual(y.device.type, device)
            results.append([t.detach().cpu() for t in plain(y)])
            ramps = [torch.linspace(0.5, 1.5, t.numel()).reshape(t.shape) for t in plain(y)]
            loss = sum((t * ramp.to(device)).sum() for t, ramp in zip(plain(y), ramps))
            gradients.append([t.cpu() for t in plain(torch.autograd.grad(loss, x)[0])])
        for theirs, ours in (results, gradients):
            self.assertEqual(len(theirs), len(ours))
            for a, b in zip(ours, theirs):
                torch.testing.assert_close(a, b, **bounds)

    def test_jagged(self) -> None:
        for name, call in {**FUNCTIONS, **JAGGED}.items():
            with self.subTest(name):
                self.compare(name, jagged, call)

    def test_strided(self) -> None:
        for name, call in FUNCTIONS.items():
            if name not in NOT_STRIDED:
                with self.subTest(name):
                    self.compare(name, strided, call)

    def test_made_of_rows_and_offsets(self) -> None:
        for device in ("cpu", "ocl"):
            rows = torch.arange(24.0, device=device).view(6, 4)
            x = torch.nested.nested_tensor_from_jagged(rows, torch.tensor([0, 2, 6], device=device))
            self.assertEqual([t.shape[0] for t in x.unbind()], [2, 4])
            mask = torch.tensor([[1, 0, 0, 1]] * 6, dtype=torch.bool, device=device)
            chosen = torch.nested.masked_select(rows, mask)
            self.assertEqual(
                chosen.values().tolist(), [4.0 * (i // 2) + 3 * (i % 2) for i in range(12)]
            )

    def test_what_strided_ones_lack_is_an_error(self) -> None:
        x = strided("ocl").detach()
        with self.assertRaisesRegex(NotImplementedError, "layout=torch.jagged"):
            x.sum(-1)
        y = strided("ocl")
        with self.assertRaisesRegex(NotImplementedError, "layout=torch.jagged"):
            sum(
                t.sum() for t in torch.native_layer_norm(y, [WIDTH], None, None, 1e-5)[0].unbind()
            ).backward()

    def test_layer_norm(self) -> None:
        weight, bias = torch.linspace(0.5, 1.5, WIDTH), torch.linspace(-1, 1, WIDTH)
        right = torch.native_layer_norm(strided("cpu").detach(), [WIDTH], weight, bias, 1e-5)[0]
        with torch.no_grad():
            got = torch.native_layer_norm(
                strided("ocl"), [WIDTH], weight.to("ocl"), bias.to("ocl"), 1e-5
            )[0]
        for a, b in zip(got.unbind(), right.unbind(), strict=True):
            torch.testing.assert_close(a.cpu(), b)


if __name__ == "__main__":
    unittest.main()
