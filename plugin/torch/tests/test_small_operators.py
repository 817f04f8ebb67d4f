"""Operators that layers and other operators consist of, against torch's CPU: shifts, masked
softmax, assertions, products with another result type, indices of rows, older names."""

import unittest

import running
import torch
import torch_ocl  # noqa: F401
from torch import nn

aten = torch.ops.aten
NARROW = (torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def to_ocl(value):
    if isinstance(value, torch.Tensor):
        return value.to("ocl")
    return [to_ocl(v) for v in value] if isinstance(value, list) else value


class Case(unittest.TestCase):
    def same(self, call, *arguments, **tolerance) -> None:
        """The call's results on ocl are those of the CPU: exactly, unless a tolerance is given."""
        want, got = call(*arguments), call(*map(to_ocl, arguments))
        if isinstance(want, torch.Tensor):
            want, got = (want,), (got,)
        for a, b in zip(got, want, strict=True):
            self.assertEqual(a.device.type, "ocl")
            torch.testing.assert_close(
                a.cpu(), b, **(tolerance or {"rtol": 0, "atol": 0}), equal_nan=True
            )


class Shifts(Case):
    def test_shifts(self) -> None:
        torch.manual_seed(1)
        for dtype in INTEGERS:
            x = torch.randint(0, 100, (4, 5)).to(dtype)
            by = torch.randint(0, 7, (5,)).to(dtype)
            for op in ("lshift", "rshift"):
                plain, in_place = getattr(aten, f"__{op}__"), getattr(aten, f"__i{op}__")
                with self.subTest(dtype=dtype, op=op):
                    self.same(plain.Tensor, x, by)
                    self.same(plain.Scalar, x, 3)
                    self.same(lambda a, b, f=in_place: f.Tensor(a.clone(), b), x, by)
                    self.same(lambda a, f=in_place: f.Scalar(a.clone(), 2), x)
                    self.same(plain.Tensor, x[:0], by)


class MaskedSoftmax(Case):
    # A sum of some exponentials: a few roundings.
    TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}

    def test_masks(self) -> None:
        torch.manual_seed(2)
        x = torch.randn(2, 3, 5, 5)
        masks = {0: torch.rand(5, 5) < 0.4, 1: torch.rand(2, 5) < 0.4, 2: torch.rand(x.shape) < 0.4}
        for kind, mask in masks.items():
            self.same(
                lambda a, b, k=kind: torch._masked_softmax(a, b, 3, k), x, mask, **self.TOLERANCE
            )
        full = torch.ones(x.shape, dtype=torch.bool)  # nothing is left: NaN
        self.same(lambda a, b: torch._masked_softmax(a, b, None, 2), x, full, **self.TOLERANCE)
        for dim in (None, 1):
            self.same(
                lambda a, b, d=dim: torch._masked_softmax(a, b, d, 2), x, masks[2], **self.TOLERANCE
            )

    def test_backward(self) -> None:
        torch.manual_seed(3)
        x, dy = torch.randn(2, 3, 5, 5), torch.randn(2, 3, 5, 5)
        mask = torch.rand(x.shape) < 0.4
        y = torch._masked_softmax(x, mask, 3, 2)
        y = torch.where(y.isnan(), 0, y)
        self.same(lambda *t: aten._masked_softmax_backward(*t, 3), dy, y, mask, **self.TOLERANCE)

    def test_errors(self) -> None:
        x = torch.randn(2, 2, 3, 3, device="ocl")
        mask = torch.ones(3, 3, dtype=torch.bool, device="ocl")
        for text, arguments in (
            ("should be a boolean", (mask.float(), 3, 0)),
            ("should be defined", (mask,)),
            ("should be 0", (mask, 3, 7)),
            ("should match input", (mask, 3, 2)),
        ):
            with self.assertRaisesRegex(RuntimeError, text):
                torch._masked_softmax(x, *arguments)

    def test_transform_bias_rescale(self) -> None:
        torch.manual_seed(4)
        qkv, bias = torch.randn(2, 7, 24), torch.randn(24)
        self.same(
            lambda a, b: torch._transform_bias_rescale_qkv(a, b, 2), qkv, bias, rtol=1e-6, atol=1e-6
        )


class Assertions(unittest.TestCase):
    def test_assertions(self) -> None:
        one, zero = torch.ones(1, device="ocl"), torch.zeros((), device="ocl")
        torch._assert_async(one)
        aten._assert_async.msg(one, "mine")
        with self.assertRaisesRegex(RuntimeError, "Expected Tensor with single nonzero value"):
            torch._assert_async(zero)
        with self.assertRaisesRegex(RuntimeError, "mine"):
            aten._assert_async.msg(zero, "mine")
        with self.assertRaisesRegex(RuntimeError, "ambiguous"):
            torch._assert_async(torch.ones(2, device="ocl"))
        token = aten._functional_assert_async.msg(one, "mine", torch.ones(2, device="ocl"))
        self.assertEqual(token.tolist(), [1, 1])
        with self.assertRaisesRegex(RuntimeError, "theirs"):
            aten._functional_assert_async.msg(zero, "theirs", token)


class Products(Case):
    def test_wide_results(self) -> None:
        torch.manual_seed(5)
        for dtype in NARROW:
            a, b = torch.randn(3, 6, 4).to(dtype), torch.randn(3, 4, 5).to(dtype)
            c = torch.randn(3, 6, 5).to(dtype)
            x, y, z = (t.to("ocl") for t in (a, b, c))
            # Products of 16-bit numbers are exact in float32; sums of 4 of them are rounded.
            near = {"rtol": 1e-6, "atol": 1e-6}
            want = a.double() @ b.double()
            for got, expected in (
                (torch.mm(x[0], y[0], out_dtype=torch.float32), want[0]),
                (torch.bmm(x, y, out_dtype=torch.float32), want),
                (
                    torch.addmm(z[0], x[0], y[0], out_dtype=torch.float32, beta=2, alpha=3),
                    2 * c[0].double() + 3 * want[0],
                ),
                (
                    torch.baddbmm(z.float(), x, y, out_dtype=torch.float32, beta=2),
                    2 * c.double() + want,
                ),
            ):
                self.assertEqual(got.dtype, torch.float32)
                torch.testing.assert_close(got.cpu().double(), expected, **near)
            self.assertEqual(torch.mm(x[0], y[0], out_dtype=dtype).dtype, dtype)
            out = torch.empty(6, 5, device="ocl")
            torch.mm(x[0], y[0], out_dtype=torch.float32, out=out)
            torch.testing.assert_close(out.cpu().double(), want[0], **near)
            with self.assertRaisesRegex(RuntimeError, "out_dtype must be the same"):
                torch.mm(x[0], y[0], out_dtype=torch.float64)

    def test_activation(self) -> None:
        torch.manual_seed(6)
        bias, a, b = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
        for gelu in (False, True):
            self.same(
                lambda *t, g=gelu: torch._addmm_activation(*t, beta=0.5, alpha=2, use_gelu=g),
                bias,
                a,
                b,
                rtol=1e-5,
                atol=1e-5,
            )

    def test_bytes(self) -> None:
        torch.manual_seed(7)
        a = torch.randint(-128, 128, (17, 24)).to(torch.int8)
        b = torch.randint(-128, 128, (24, 8)).to(torch.int8)
        self.same(torch._int_mm, a, b)
        signed, unsigned = (-128, 128, torch.int8), (0, 256, torch.uint8)
        for terms in (0, 1, 256, 257, 1024, 1025, 3000):
            for of_left in (signed, unsigned):
                for of_right in (signed, unsigned):
                    left = torch.randint(*of_left[:2], (19, terms)).to(of_left[2])
                    right = torch.randint(*of_right[:2], (9, terms)).to(of_right[2]).t()
                    left[:2], right[:, :2] = of_left[0], of_right[0]
                    most_left, most_right = of_left[1], of_right[1]
                    left[2:4].random_(most_left - 9, most_left)  # sums above 2^24 of any parity
                    right[:, 2:4].random_(most_right - 9, most_right)
                    got = torch._int_mm(left.to("ocl"), right.to("ocl"))
                    self.assertEqual(got.dtype, torch.int32)
                    self.assertTrue(torch.equal(got.cpu().long(), left.long() @ right.long()))
        wide = torch.randint(-128, 128, (2, 40, 70)).to(torch.int8)
        left, right = wide[0, 1:20:2, 3:36], wide[1, :33, 5:60:3]  # not aligned, with gaps
        out = torch.empty(19, 10, dtype=torch.int32, device="ocl").t()
        wide = wide.to("ocl")
        torch._int_mm(wide[0, 1:20:2, 3:36], wide[1, :33, 5:60:3], out=out)
        self.assertTrue(torch.equal(out.cpu().long(), left.long() @ right.long()))
        with self.assertRaisesRegex(RuntimeError, "int8 or uint8"):
            torch._int_mm(a.float().to("ocl"), b.to("ocl"))
        x = torch.randn(5, 24).bfloat16()
        scales = torch.rand(8).bfloat16()
        want = (x.double() @ b.double()) * scales.double()
        got = torch._weight_int8pack_mm(x.to("ocl"), b.t().contiguous().to("ocl"), scales.to("ocl"))
        torch.testing.assert_close(got.cpu().double(), want, rtol=8e-3, atol=1e-2)  # 2^-8

    def test_operands_are_not_copied(self) -> None:
        """Weights of int8 and factors of 16 bits beside a float32 result are read as they are."""
        x = torch.randn(2, 1024, device="ocl").bfloat16()
        weight = torch.randint(-128, 128, (2048, 1024), device="ocl").to(torch.int8)
        scales = torch.rand(2048, device="ocl").bfloat16()
        wide = torch.randn(1024, 2048, device="ocl").bfloat16()
        work = {
            "int8": lambda: torch._weight_int8pack_mm(x, weight, scales),
            "float32": lambda: torch.mm(x, wide, out_dtype=torch.float32),
        }
        for name, run in work.items():
            with self.subTest(name):
                self.assertLess(running.peak_of(run), weight.numel() // 2)

    def test_bytes_by_other_names(self) -> None:
        """Sums of int32 by way of out_dtype are those of _int_mm, and made by it."""
        from torch._higher_order_ops.out_dtype import out_dtype

        torch.manual_seed(7)
        a = torch.randint(100, 128, (17, 8192)).to(torch.int8)
        b = torch.randint(100, 128, (8192, 9)).to(torch.int8)
        b[:, ::2] -= 101
        want = a.long() @ b.long()
        self.assertGreater(want.max().item(), 2**25)  # float32 has not all of them
        got = out_dtype(aten.mm.default, torch.int32, a.to("ocl"), b.to("ocl"))
        self.assertEqual(got.dtype, torch.int32)
        self.assertTrue(torch.equal(got.cpu().long(), want))
        self.assertIn("int8", str(torch.backends.ocl.last_choices()["matmul"]))
        self.same(lambda x, y: out_dtype(aten.mm.default, torch.int32, x.int(), y.int()), a, b)

    def test_linear_combination(self) -> None:
        torch.manual_seed(8)
        self.same(
            torch._compute_linear_combination,
            torch.randn(4, 3, 3),
            torch.randn(2, 4),
            rtol=1e-5,
            atol=1e-6,
        )

    def test_grouped(self) -> None:
        torch.manual_seed(9)
        a, b = torch.randn(16, 32).bfloat16(), torch.randn(2, 32, 16).bfloat16()
        offsets = torch.tensor([7, 16], dtype=torch.int32)
        got = torch._grouped_mm(a.to("ocl"), b.to("ocl"), offs=offsets.to("ocl")).cpu()
        want = torch.cat([a[:7].double() @ b[0].double(), a[7:].double() @ b[1].double()])
        torch.testing.assert_close(got.double(), want, rtol=8e-3, atol=3e-2)  # bfloat16: 2^-8


class Rows(Case):
    def test_compressed_indices(self) -> None:
        rows = torch.tensor([0, 0, 2, 2, 2, 5])
        columns = torch.tensor([1, 3, 0, 1, 2, 4])
        crow = torch._convert_indices_from_coo_to_csr(rows, 7)
        for dtype in (torch.int64, torch.int32):
            for narrow in (False, True):
                self.same(
                    lambda r, n=narrow: torch._convert_indices_from_coo_to_csr(r, 7, out_int32=n),
                    rows.to(dtype),
                )
                for transpose in (False, True):
                    self.same(
                        lambda a, b, n=narrow, t=transpose: torch._convert_indices_from_csr_to_coo(
                            a, b, out_int32=n, transpose=t
                        ),
                        crow.to(dtype),
                        columns.to(dtype),
                    )
        self.same(lambda r: torch._convert_indices_from_coo_to_csr(r, 3), rows[:0])
        batch = torch.stack([crow, torch.tensor([0, 1, 2, 3, 4, 5, 6, 6])])
        self.same(torch._convert_indices_from_csr_to_coo, batch, columns.expand(2, 6).contiguous())

    def test_jagged(self) -> None:
        torch.manual_seed(10)
        values, offsets = torch.randn(9, 4), torch.tensor([0, 2, 2, 7, 9])
        for length in (5, 3):
            padded = lambda v, o, n=length: aten._jagged_to_padded_dense_forward(v, [o], [n], -1.5)  # noqa: E731
            self.same(padded, values, offsets)
        dense = padded(values, offsets, 5)
        self.same(lambda d, o: aten._padded_dense_to_jagged_forward(d, [o], 9), dense, offsets)
        back = aten._padded_dense_to_jagged_forward(dense.to("ocl"), [offsets.to("ocl")])
        self.assertTrue(torch.equal(back.cpu(), values))


class Names(Case):
    def test_out_forms(self) -> None:
        torch.manual_seed(11)
        x = torch.randn(2, 3, 6, 6)

        def out(op, *arguments, like=x, count=1):
            def call(*tensors):
                outs = [
                    torch.empty(0, dtype=like.dtype, device=tensors[0].device) for _ in range(count)
                ]
                op(*tensors, *arguments, *outs)
                return outs

            return call

        near = {"rtol": 1e-5, "atol": 1e-6}
        self.same(out(lambda a, o: aten.adaptive_avg_pool2d.out(a, [2, 3], out=o)), x, **near)
        self.same(out(lambda a, o: aten.mvlgamma.out(a, 2, out=o)), x.abs() + 1, **near)
        self.same(out(lambda a, o: aten.narrow_copy.out(a, 2, 1, 3, out=o)), x)
        self.same(
            out(
                lambda a, o: aten.log_sigmoid_forward.output(
                    a, output=o, buffer=torch.empty(0, device=a.device)
                )
            ),
            x,
            **near,
        )
        self.same(
            out(lambda g, a, o: aten.adaptive_avg_pool3d_backward.grad_input(g, a, grad_input=o)),
            torch.randn(2, 3, 1, 2, 2),
            torch.randn(2, 3, 2, 4, 4),
            **near,
        )
        self.same(torch._aminmax, x)
        self.same(lambda a: torch._aminmax(a, 1, True), x)
        eye = torch.empty(0, device="ocl")
        self.assertTrue(torch.equal(aten.eye.out(4, out=eye).cpu(), torch.eye(4)))

    def test_range(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
            for start, end, step in ((0, 5, 2), (5, -1, -3), (1, 1, 1), (0, 2, 0.5)):
                if step == 0.5 and not dtype.is_floating_point:
                    continue
                outs = [torch.empty(0, dtype=dtype, device=d) for d in ("cpu", "ocl")]
                for o in outs:
                    aten.range.out(start, end, step, out=o)
                self.assertTrue(torch.equal(outs[1].cpu(), outs[0]), (dtype, start, end, step))

    def test_add_relu(self) -> None:
        torch.manual_seed(12)
        a, b = torch.randn(4, 5), torch.randn(5)
        self.same(lambda *t: aten._add_relu.Tensor(*t, alpha=2), a, b, rtol=1e-6, atol=1e-6)
        self.same(lambda x, y: aten._add_relu_.Tensor(x.clone(), y), a, b)
        self.same(lambda x, y: aten._add_relu.out(x, y, out=torch.empty_like(x)), a, b)

    def test_older_dropout(self) -> None:
        torch.manual_seed(13)
        x = torch.randn(4000, device="ocl")
        y, mask = aten._fused_dropout(x, 0.25)
        self.assertTrue(torch.equal(y, x * mask * 4))
        # A binomial count: 4.9 deviations are exceeded with a probability of 1e-6.
        self.assertLess(abs(mask.sum().item() - 1000), 4.9 * (4000 * 0.25 * 0.75) ** 0.5)
        self.assertTrue(torch.equal(aten._masked_scale(x, mask, 4.0), y))

    def test_convolutions(self) -> None:
        torch.manual_seed(14)
        near = {"rtol": 1e-4, "atol": 1e-5}  # sums of some dozen products
        image, volume = torch.randn(2, 3, 7, 8), torch.randn(2, 3, 5, 6, 7)
        w2, w3, bias = torch.randn(4, 3, 3, 2), torch.randn(4, 3, 2, 3, 2), torch.randn(4)
        self.same(
            lambda *t: aten._slow_conv2d_forward(t[0], t[1], [3, 2], t[2], [2, 1], [1, 0]),
            image,
            w2,
            bias,
            **near,
        )
        self.same(
            lambda *t: aten.slow_conv3d_forward(t[0], t[1], [2, 3, 2], t[2], [1, 2, 1], [0, 1, 1]),
            volume,
            w3,
            bias,
            **near,
        )
        self.same(
            lambda *t: aten.slow_conv_dilated2d(t[0], t[1], [3, 2], t[2], [1, 1], [1, 1], [2, 1]),
            image,
            w2,
            bias,
            **near,
        )
        self.same(
            lambda *t: aten.slow_conv_dilated3d(
                t[0], t[1], [2, 3, 2], t[2], [1, 1, 1], [0, 0, 0], [1, 1, 2]
            ),
            volume,
            w3,
            bias,
            **near,
        )
        w2, w3, bias = torch.randn(3, 4, 3, 2), torch.randn(3, 4, 2, 3, 2), torch.randn(4)
        self.same(
            lambda *t: aten.slow_conv_transpose2d(
                t[0], t[1], [3, 2], t[2], [2, 2], [1, 0], [1, 0], [1, 1]
            ),
            image,
            w2,
            bias,
            **near,
        )
        self.same(
            lambda *t: aten.slow_conv_transpose3d(
                t[0], t[1], [2, 3, 2], t[2], [1, 2, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]
            ),
            volume,
            w3,
            bias,
            **near,
        )
        each = torch.randn(3, 1, 3, 3)
        want = nn.functional.conv2d(image, each, torch.ones(3), padding=1, groups=3)
        got = aten._conv_depthwise2d(
            image.to("ocl"),
            each.to("ocl"),
            [3, 3],
            torch.ones(3, device="ocl"),
            [1, 1],
            [1, 1],
            [1, 1],
        )
        torch.testing.assert_close(got.cpu(), want, **near)
        w2, dy = torch.randn(4, 3, 3, 2), torch.randn(2, 4, 5, 7)
        self.same(
            lambda *t: aten._slow_conv2d_backward.output_mask(
                *t, [3, 2], [1, 1], [0, 0], [True, True, True]
            ),
            dy,
            image,
            w2,
            **near,
        )

    def test_glu_second_derivatives(self) -> None:
        torch.manual_seed(15)
        x, dx = torch.randn(3, 8), torch.randn(3, 8)
        g, dg = torch.randn(3, 4), torch.randn(3, 4)
        out = aten.glu_backward(g, x, 1)
        self.same(lambda *t: aten.glu_backward_jvp(*t, 1), out, g, x, dg, dx, rtol=1e-5, atol=1e-6)
        self.same(
            lambda *t: aten.glu_jvp(nn.functional.glu(t[0], 1), *t, 1), x, dx, rtol=1e-5, atol=1e-6
        )


if __name__ == "__main__":
    unittest.main()
