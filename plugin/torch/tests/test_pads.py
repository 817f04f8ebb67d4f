"""Padding by reflection and replication against its definition and torch's CPU: types, strides,
negative padding, gradients of all orders, launches."""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle, some

pad = torch.nn.functional.pad
aten = torch.ops.aten
FLOATING = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Sums of up to a few hundred numbers around 1, in float; those of 16 bits are rounded once.
LIMITS = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.complex64: 2e-5}


def numbers(sizes: list[int], dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, dtype=torch.complex128 if dtype.is_complex else None).to(dtype)
    return torch.randint(-100, 100, sizes).to(dtype)


def strided(x: torch.Tensor, kind: str) -> torch.Tensor:
    """The same numbers on ocl in other places."""
    here = x.to("ocl")
    if kind == "transposed":
        return here.transpose(-1, -2).contiguous().transpose(-1, -2)
    if kind == "apart":
        wide = torch.full([*x.shape[:-1], 2 * x.shape[-1] + 3], 77, dtype=x.dtype, device="ocl")
        view = wide[..., 3::2]
        view.copy_(here)
        return view
    if kind == "channels_last":
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        return here.contiguous(memory_format=formats.get(x.dim(), torch.contiguous_format))
    if kind == "expanded":
        return here[:1].expand(x.shape)
    return here


def wanted(x: torch.Tensor, padding: list[int], mode: str) -> torch.Tensor:
    """The definition, along one dimension after the other."""
    for k in range(len(padding) // 2):
        size = x.shape[-1 - k]
        places = torch.arange(-padding[2 * k], size + padding[2 * k + 1])
        if mode == "reflect":
            places = torch.where(places < 0, -places, places)
            places = torch.where(places >= size, 2 * (size - 1) - places, places)
        x = x.index_select(x.dim() - 1 - k, places.clamp(0, size - 1))
    return x


def some_padding(sizes: list[int], mode: str) -> list[int]:
    """Between cutting off all but one element and all that the mode allows."""
    padding = []
    for size in reversed(sizes):
        most = size - 1 if mode == "reflect" else 6
        before = random.randint(1 - size if random.random() < 0.3 else 0, most)
        after = random.randint(1 - size if random.random() < 0.3 else 0, most)
        padding += [before, max(after, 1 - size - before)]
    return padding


def cases(count: int, dtypes: tuple[torch.dtype, ...]) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        mode, dims = random.choice(("reflect", "replicate")), random.randint(1, 3)
        sizes = [random.randint(1, 12 if dims < 3 else 6) for _ in range(dims)]
        others = [random.randint(1, 4) for _ in range(random.randint(1, 2))]
        kinds = ("plain", "transposed", "apart", "channels_last", "expanded")
        yield {
            "mode": mode,
            "sizes": [*others, *sizes],
            "padding": some_padding(sizes, mode),
            "dtype": random.choice(dtypes),
            "kind": random.choice(kinds),
        }


def launches(call: Callable[[], object]) -> int:
    call()  # builds programs
    before = torch.ocl.counters()["launches"]
    call()
    return torch.ocl.counters()["launches"] - before


class Pads(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def setUp(self) -> None:
        random.seed(11)
        torch.manual_seed(11)

    def near(self, got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> None:
        limit = LIMITS.get(dtype, 1e-12)
        self.assertEqual(got.dtype, dtype)
        torch.testing.assert_close(got.cpu().to(want.dtype), want, rtol=limit, atol=limit)

    def test_every_type(self) -> None:
        """Bits are moved, so results are equal. One launch each."""
        for case in cases(some(120), FLOATING + COMPLEX + INTEGERS):
            with self.subTest(**case):
                self.check_forward(**case)

    def check_forward(
        self, mode: str, sizes: list[int], padding: list[int], dtype: torch.dtype, kind: str
    ) -> None:
        x = numbers(sizes, dtype)
        if kind == "expanded":
            x = x[:1].expand(sizes)
        here = strided(x, kind)
        self.assertTrue(torch.equal(pad(here, padding, mode).cpu(), wanted(x, padding, mode)))
        self.assertEqual(launches(lambda: pad(here, padding, mode)), 1)

    def test_gradients(self) -> None:
        for case in cases(some(120), FLOATING + COMPLEX):
            with self.subTest(**case):
                self.check_gradient(**case)

    def check_gradient(
        self, mode: str, sizes: list[int], padding: list[int], dtype: torch.dtype, kind: str
    ) -> None:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        leaf = numbers(sizes, dtype).to(wide).requires_grad_()
        result = wanted(leaf, padding, mode)
        grad = numbers(list(result.shape), dtype)
        if kind == "expanded":
            grad = grad[:1].expand(grad.shape)
        want = torch.autograd.grad(result, leaf, grad.to(wide))[0]
        here, factor = leaf.detach().to(dtype).to("ocl").requires_grad_(), strided(grad, kind)
        out = pad(here, padding, mode)

        def back() -> torch.Tensor:
            return torch.autograd.grad(out, here, factor, retain_graph=True)[0]

        got = back()
        self.near(got, want, dtype)
        self.assertTrue(torch.equal(got, back()))
        self.assertEqual(launches(back), 1)

    def test_as_on_the_cpu(self) -> None:
        """Also strides, of images in both formats."""
        for case in cases(some(60), (torch.float32, torch.float64)):
            with self.subTest(**case):
                self.check_cpu(**case)

    def check_cpu(
        self, mode: str, sizes: list[int], padding: list[int], dtype: torch.dtype, kind: str
    ) -> None:
        x = numbers(sizes, dtype)
        if kind == "channels_last" and x.dim() == 4 and len(padding) == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        here, leaf = x.to("ocl").requires_grad_(), x.clone().requires_grad_()
        got, want = pad(here, padding, mode), pad(leaf, padding, mode)
        self.assertTrue(torch.equal(got.cpu(), want))
        if len(padding) == 4:
            self.assertEqual(got.stride(), want.stride())
        grad = torch.randn(want.shape).to(dtype)
        got.backward(grad.to("ocl"))
        want.backward(grad)
        self.near(here.grad, leaf.grad, dtype)

    def test_results_given(self) -> None:
        """What an output held before is gone; its strides may be any."""
        x = torch.randn(2, 3, 6, 7)
        want = pad(x, (3, 2, 1, 5), "reflect")
        grad = torch.randn(want.shape)
        wanted_grad = aten.reflection_pad2d_backward(grad, x, [3, 2, 1, 5])
        for order in ((0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 3, 1), (1, 3, 0, 2)):
            back = [order.index(d) for d in range(4)]
            with self.subTest(order=order):
                out = torch.full([want.shape[d] for d in order], torch.nan, device="ocl")
                out = out.permute(back)
                aten.reflection_pad2d.out(x.to("ocl"), [3, 2, 1, 5], out=out)
                self.assertTrue(torch.equal(out.cpu(), want))
                out = torch.full([x.shape[d] for d in order], torch.nan, device="ocl")
                out = out.permute(back)
                aten.reflection_pad2d_backward.grad_input(
                    grad.to("ocl"), x.to("ocl"), [3, 2, 1, 5], grad_input=out
                )
                self.near(out, wanted_grad, torch.float32)

    def test_empty_batches(self) -> None:
        for mode in ("reflect", "replicate"):
            for sizes, padding in (([0, 3, 5], [1, 2]), ([0, 3, 5, 4], [1, 2, 0, 3])):
                x = torch.empty(sizes, device="ocl", requires_grad=True)
                out = pad(x, padding, mode)
                self.assertEqual(out.shape, pad(torch.empty(sizes), padding, mode).shape)
                out.sum().backward()
                self.assertEqual(x.grad.shape, x.shape)

    def test_gradients_of_gradients(self) -> None:
        for mode in ("reflect", "replicate"):
            for sizes, padding in (
                ([2, 5], [3, -1]),
                ([2, 3, 4], [2, 1, 0, 2]),
                ([1] * 5, [0] * 6),
            ):
                x = torch.randn(sizes, dtype=torch.float64, device="ocl", requires_grad=True)
                with self.subTest(mode=mode, sizes=sizes):

                    def call(v: torch.Tensor) -> torch.Tensor:
                        return pad(v, padding, mode).sin()  # noqa: B023

                    self.assertTrue(torch.autograd.gradcheck(call, x))
                    self.assertTrue(torch.autograd.gradgradcheck(call, x))

    def test_larger(self) -> None:
        """Rows in several pieces, on CPU drivers."""
        for mode, sizes, padding in (
            ("reflect", [1, 70000], [5000, 69999]),
            ("replicate", [1, 1, 50000], [3, 20000]),
            ("reflect", [2, 40, 33, 65], [4, 8, 16, 32]),
        ):
            x = torch.randn(sizes)
            got, want = pad(x.to("ocl"), padding, mode), pad(x, padding, mode)
            self.assertTrue(torch.equal(got.cpu(), want))
            leaf, here = x.double().requires_grad_(), x.to("ocl").requires_grad_()
            grad = torch.rand(want.shape)
            wanted = torch.autograd.grad(pad(leaf, padding, mode), leaf, grad.double())[0]
            got = torch.autograd.grad(pad(here, padding, mode), here, grad.to("ocl"))[0]
            torch.testing.assert_close(got.cpu().double(), wanted, rtol=1e-5, atol=1e-5)

    def test_wrong_calls(self) -> None:
        x = torch.randn(2, 3, 4, device="ocl")
        for padding, mode in (((4, 0), "reflect"), ((-2, -2), "replicate"), ((1,), "reflect")):
            with self.subTest(padding=padding), self.assertRaises((RuntimeError, IndexError)):
                pad(x, padding, mode)
        with self.assertRaisesRegex(RuntimeError, "grad"):
            aten.reflection_pad2d_backward(x, x, [1, 1, 0, 0])


if __name__ == "__main__":
    unittest.main()
