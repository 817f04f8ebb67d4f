"""Fused scaled dot product attention: forward, backward, dropout, masks, grouped heads, and when it
is chosen."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401
from attention_case import check_rows_of_a_low_number
from torch.backends import ocl
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Products and sums of up to 100 terms, exp of scores of magnitude 5: a few roundings each, relative
# to the largest element. PyTorch's own CPU kernel needs 6e-7 for float32 and 6e-3 for bfloat16
# here.
LIMITS = {torch.float64: 5e-15, torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}
# (batch, heads, key heads, queries, keys, depth, width), causal, mask
CASES = [
    ((2, 4, 4, 33, 47, 16, 16), False, None),
    ((2, 4, 2, 40, 40, 32, 24), True, None),
    ((2, 6, 2, 7, 19, 8, 8), False, None),
    ((1, 3, 3, 17, 20, 8, 8), False, torch.bool),
    ((2, 2, 2, 9, 20, 8, 8), False, torch.float32),
    ((1, 2, 2, 1, 33, 5, 3), False, None),
]


def draw(sizes, dtype, transposed):
    batch, heads, key_heads, queries, keys, depth, width = sizes
    shapes = [
        (queries, heads, depth),
        (keys, key_heads, depth),
        (keys, key_heads, width),
        (queries, heads, width),
    ]
    if transposed:  # [batch, length, heads, size], as projections give it
        return [torch.randn(batch, n, h, c, dtype=dtype).transpose(1, 2) for n, h, c in shapes]
    return [torch.randn(batch, h, n, c, dtype=dtype) for n, h, c in shapes]


def ran_on_matrix_units():
    return ocl.last_choices()["attention_forward"] == "attention_forward.hopper"


def forward_and_backward(tensors, device, dtype, mask, causal):
    query, key, value, grad = (t.detach().to(dtype).to(device).requires_grad_() for t in tensors)
    if mask is not None:
        mask = mask.to(device) if mask.dtype == torch.bool else mask.to(dtype).to(device)
    grouped = query.shape[1] != key.shape[1]
    out = attention(query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=grouped)
    out.backward(grad)
    return [t.detach().cpu().double() for t in (out, query.grad, key.grad, value.grad)]


class Attention(unittest.TestCase):
    def test_agrees_with_float64(self) -> None:
        torch.manual_seed(0)
        for dtype, limit in LIMITS.items():
            for i, (sizes, causal, mask_type) in enumerate(CASES):
                with self.subTest(dtype=dtype, sizes=sizes, causal=causal, mask=mask_type):
                    tensors = draw(sizes, dtype, i % 2)
                    mask = None
                    if mask_type == torch.bool:
                        mask = torch.rand(sizes[3], sizes[4]) > 0.3
                        mask[:, 0] = True
                    elif mask_type is not None:
                        mask = torch.randn(sizes[0], 1, sizes[3], sizes[4])
                    expected = forward_and_backward(tensors, "cpu", torch.float64, mask, causal)
                    actual = forward_and_backward(tensors, "ocl", dtype, mask, causal)
                    for a, e in zip(actual, expected, strict=True):
                        self.assertLess(((a - e).abs().max() / e.abs().max()).item(), limit)

    def test_algorithms_agree(self) -> None:
        """More keys than a block of any algorithm has; dropout drops the same weights in each."""
        torch.manual_seed(3)
        for sizes, options in (
            ((1, 2, 2, 70, 600, 40, 40), {}),
            ((1, 4, 2, 150, 520, 32, 64), {"is_causal": True, "enable_gqa": True}),
            ((2, 2, 1, 600, 75, 16, 24), {"is_causal": True, "enable_gqa": True, "dropout_p": 0.2}),
            (
                (1, 1, 1, 65, 530, 8, 300),
                {"dropout_p": 0.5, "attn_mask": torch.rand(65, 530) > 0.2},
            ),
            ((4, 6, 6, 230, 410, 16, 24), {"dropout_p": 0.3, "attn_mask": torch.randn(230, 410)}),
            ((2, 3, 3, 20, 140, 48, 32), {"attn_mask": torch.randn(2, 1, 140, 20).mT}),
            ((2, 3, 3, 130, 33, 20, 20), {"attn_mask": torch.rand(2, 1, 1, 33) > 0.5}),
        ):
            tensors = draw(sizes, torch.float32, True)
            options = {
                k: v.to("ocl") if isinstance(v, torch.Tensor) else v for k, v in options.items()
            }
            results = []
            for disabled in ("", "attention_*.flash", "attention_*.hopper_bf16x6"):
                with ocl.algorithms_disabled(disabled):
                    leaves = [t.to("ocl").requires_grad_() for t in tensors]
                    torch.manual_seed(4)
                    out = attention(*leaves[:3], **options)
                    results.append(
                        [
                            out,
                            *torch.autograd.grad(
                                out, leaves[:3], leaves[3].detach(), retain_graph=True
                            ),
                        ]
                    )
                    again = torch.autograd.grad(out, leaves[:3], leaves[3].detach())
                    self.assertTrue(
                        all(torch.equal(a, b) for a, b in zip(results[-1][1:], again, strict=True))
                    )
            for a, b in itertools.chain(
                *(zip(results[0], other, strict=True) for other in results[1:])
            ):
                with self.subTest(sizes=sizes, options=list(options)):
                    self.assertGreater(b.abs().max().item(), 0.01)
                    self.assertLess((a - b).abs().max().item(), 1e-5 * b.abs().max().item())

    def test_16_bit_types_of_any_layout(self) -> None:
        """What Hopper's matrix units take: sizes around their tiles, grouped and expanded heads,
        strides."""
        torch.manual_seed(6)
        packed = (
            torch.randn(2, 150, 3, 4, 64).half().to("ocl")
        )  # [batch, length, query key value, heads, size]
        one = torch.randn(1, 1, 300, 64, dtype=torch.float16, device="ocl").expand(1, 4, 300, 64)
        cases = [([packed[:, :, i].transpose(1, 2) for i in range(3)], {"is_causal": True})]
        cases.append(([torch.randn(1, 4, 77, 64).half().to("ocl"), one, one], {"scale": 0.3}))
        mask = torch.rand(77, 300, device="ocl") > 0.1
        cases.append(([torch.randn(1, 4, 77, 64).half().to("ocl"), one, one], {"attn_mask": mask}))
        for i, sizes in enumerate(
            (
                (1, 2, 2, 1, 129, 64, 64),
                (2, 4, 2, 130, 257, 80, 80),
                (1, 2, 1, 200, 131, 128, 128),
                (1, 2, 2, 1300, 140, 8, 8),
            )
        ):
            for dtype in (torch.float16, torch.bfloat16):
                tensors = [t.to("ocl") for t in draw(sizes, dtype, i % 2)[:3]]
                cases.append((tensors, {"enable_gqa": True, "is_causal": i >= 2}))
        for tensors, options in cases:
            expected = attention(
                *(t.cpu().double() for t in tensors),
                **{k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in options.items()},
            )
            error = (
                attention(*tensors, **options).cpu().double() - expected
            ).abs().max() / expected.abs().max()
            with self.subTest(
                sizes=[t.shape for t in tensors], dtype=tensors[0].dtype, options=options
            ):
                self.assertLess(error.item(), LIMITS[tensors[0].dtype])
                self.assertEqual(ran_on_matrix_units(), ocl.nvidia_hopper.available)

    def test_what_matrix_units_refuse(self) -> None:
        query = torch.randn(1, 2, 40, 64, dtype=torch.float16, device="ocl")
        wide = torch.randn(1, 2, 40, 73, dtype=torch.float16, device="ocl")
        for tensor, options in (
            (query, {"scale": -0.1}),
            (query.float(), {}),
            (query[..., :60].contiguous(), {}),
            (torch.randn(1, 1, 40, 136, dtype=torch.float16, device="ocl"), {}),
            (wide[..., :64], {}),
            (wide[:, :, :, 1:65], {}),
        ):
            actual = attention(tensor, tensor, tensor, **options)
            with self.subTest(shape=tensor.shape, strides=tensor.stride(), options=list(options)):
                self.assertFalse(ran_on_matrix_units())
                expected = attention(*[tensor.cpu().double()] * 3, **options)
                self.assertLess((actual.cpu().double() - expected).abs().max().item(), 5e-3)

    def test_what_is_not_finite(self) -> None:
        for place in ("query", "key"):
            for number in (float("nan"), float("inf"), -float("inf")):
                torch.manual_seed(5)
                query, key, value, _ = draw((1, 1, 1, 16, 530, 8, 8), torch.float32, False)
                (query[0, 0, 3] if place == "query" else key[0, 0, 520])[2] = number
                expected = attention(query, key, value)
                actual = attention(query.to("ocl"), key.to("ocl"), value.to("ocl")).cpu()
                with self.subTest(place=place, number=number):
                    self.assertTrue(expected.isnan().any())
                    torch.testing.assert_close(actual, expected, equal_nan=True)

    def test_memory_grows_with_the_length(self) -> None:
        def peak(length):
            query = torch.randn(1, 8, length, 32, device="ocl").requires_grad_()
            torch.ocl.synchronize()
            torch.ocl.reset_peak_memory_stats()
            before = torch.ocl.memory_allocated()
            attention(query, query, query).sum().backward()
            torch.ocl.synchronize()
            return torch.ocl.max_memory_allocated() - before

        total = torch.ocl.get_device_properties().total_memory
        block = min(max(total >> 8, 32 << 20), 512 << 20)  # of scores, as GPUs have them
        length = 8192 if block > 64 << 20 else 2048
        least, most = peak(256), peak(length)  # two matrices of scores would take 4 GiB, or 256 MiB
        # Two blocks of scores; on matrix units also their planes, with which float32 is multiplied.
        blocks = block * 5 if ocl.nvidia_hopper.available else block * 2
        if ocl.last_choices()["attention_backward"].endswith("flash"):
            blocks = 0
        self.assertLess(most, length / 200 * least + blocks)

    def test_a_row_without_keys_is_zero(self) -> None:
        query, key, value, _ = (
            t.to("ocl").requires_grad_() for t in draw((1, 1, 1, 4, 5, 3, 3), torch.float32, False)
        )
        mask = torch.ones(4, 5, dtype=torch.bool)
        mask[2] = False
        out = attention(query, key, value, attn_mask=mask.to("ocl"))
        out.sum().backward()
        self.assertTrue((out[0, 0, 2] == 0).all())
        self.assertTrue((query.grad[0, 0, 2] == 0).all())
        self.assertTrue(torch.isfinite(key.grad).all())

    def test_rows_of_a_low_number(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype=dtype):
                check_rows_of_a_low_number(self, dtype, LIMITS[dtype])

    def test_dropout_has_a_gradient_and_follows_the_seed(self) -> None:
        torch.manual_seed(1)
        tensors = [
            t.to("ocl").requires_grad_()
            for t in draw((1, 2, 2, 5, 6, 4, 3), torch.float64, False)[:3]
        ]

        def dropped(*args):
            torch.manual_seed(5)
            return attention(*args, dropout_p=0.4)

        self.assertTrue(torch.autograd.gradcheck(dropped, tensors))
        self.assertTrue(torch.equal(dropped(*tensors), dropped(*tensors)))
        first = attention(*tensors, dropout_p=0.4)
        self.assertFalse(torch.equal(first, attention(*tensors, dropout_p=0.4)))

    def test_dropout_keeps_the_mean(self) -> None:
        torch.manual_seed(2)
        query, ones = (
            torch.randn(1, 1, 1000, 8, device="ocl"),
            torch.ones(1, 1, 512, 8, device="ocl"),
        )
        # The variance of a row's mean is below sum(w^2) * p / (1 - p) with w about 1 / 100: 5 sigma
        # of 1000 rows.
        mean = attention(query, torch.randn_like(ones), ones, dropout_p=0.3).mean().item()
        self.assertLess(abs(mean - 1), 5 * (0.3 / 0.7 / 100 / 1000) ** 0.5)

    def test_the_choice_of_the_backend(self) -> None:
        query = torch.randn(1, 2, 8, 4, device="ocl")
        choice = torch._fused_sdp_choice
        self.assertEqual(choice(query, query, query), SDPBackend.OVERRIDEABLE.value)
        # Since 2.14 PyTorch gives tensors without a batch one of size 1.
        unbatched = SDPBackend.OVERRIDEABLE if VERSION >= (2, 14) else SDPBackend.MATH
        self.assertEqual(choice(query[0], query[0], query[0]), unbatched.value)
        matrix = query[0, 0]
        self.assertEqual(choice(matrix, matrix, matrix), SDPBackend.MATH.value)
        with sdpa_kernel(SDPBackend.MATH):
            self.assertEqual(choice(query, query, query), SDPBackend.MATH.value)
            torch.testing.assert_close(
                attention(query, query, query).cpu(), attention(*[query.cpu()] * 3)
            )
        with (
            sdpa_kernel(SDPBackend.OVERRIDEABLE),
            self.assertRaisesRegex(RuntimeError, "of other than 4 dimensions"),
        ):
            attention(matrix, matrix, matrix)

    def test_tensors_without_a_batch(self) -> None:
        torch.manual_seed(0)
        heads = [torch.randn(2, length, 4) for length in (6, 5, 5)]
        allowed = torch.rand(2, 6, 5) > 0.4
        allowed[..., 0] = True
        for inputs, mask in (
            (heads, None),
            (heads, torch.randn(6, 5)),
            (heads, torch.randn(2, 1, 5)),
            (heads, allowed),
            ([t[0] for t in heads], None),
            ([t[0] for t in heads], torch.randn(6, 5)),
        ):
            results = []
            for device in ("cpu", "ocl"):
                leaves = [t.to(device).detach().requires_grad_() for t in inputs]
                out = attention(*leaves, attn_mask=None if mask is None else mask.to(device))
                out.square().sum().backward()
                results.append([out.cpu(), *(t.grad.cpu() for t in leaves)])
            torch.testing.assert_close(results[1], results[0])

    def test_a_mask_with_a_gradient_goes_through_the_plain_operators(self) -> None:
        query = torch.randn(1, 2, 6, 4)
        grads = []
        for device in ("cpu", "ocl"):
            q, mask = query.detach().to(device), torch.zeros(6, 6).to(device).requires_grad_()
            attention(q, q, q, attn_mask=mask).square().sum().backward()
            grads.append(mask.grad.cpu())
        torch.testing.assert_close(grads[1], grads[0])

    def test_no_queries_and_no_keys(self) -> None:
        for queries, keys in ((0, 3), (3, 0)):
            tensors = [
                t.to("ocl").requires_grad_()
                for t in draw((1, 2, 2, queries, keys, 4, 4), torch.float32, False)
            ]
            out = attention(*tensors[:3])
            out.backward(tensors[3])
            self.assertEqual(out.shape, (1, 2, queries, 4))
            self.assertTrue((out == 0).all() and all((t.grad == 0).all() for t in tensors[:3]))


if __name__ == "__main__":
    unittest.main()
