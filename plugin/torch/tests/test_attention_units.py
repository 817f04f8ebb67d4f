"""Attention by mma.sync with the matrix units in OpenCL C: what the rule gives to it, and results
beside the other algorithms in float32."""

import os
import unittest

os.environ["OCLTENSOR_KERNEL_STYLE"] = "gpu"
os.environ["OCLTENSOR_NVIDIA_MMA"] = "emulated80"
os.environ["OCLTENSOR_DISABLED_PROVIDERS"] = "nvidia_hopper"

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401
from attention_case import check_rows_of_a_low_number  # noqa: E402
from torch.backends import ocl  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as attention  # noqa: E402

# Operands, weights, in backward the weights' gradients, and results are rounded once each, relative
# to the largest element; a wrong key, row or head changes elements by tenths.
LIMITS = {torch.float16: 3e-3, torch.bfloat16: 2e-2}


def ran() -> list[str]:
    choices = ocl.last_choices()
    return [choices["attention_forward"], choices["attention_backward"]]


class AttentionUnits(unittest.TestCase):
    def solve(self, leaves, grad, options):
        torch.manual_seed(4)
        out = attention(*leaves, **options)
        grads = torch.autograd.grad(out, leaves, grad, retain_graph=True)
        again = torch.autograd.grad(out, leaves, grad)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(grads, again, strict=True)))
        return [out.detach(), *grads]

    def check(self, dtype, sizes, options) -> None:
        """Beside float32 by other algorithms, which drop the same weights."""
        batch, heads, key_heads, queries, keys, depth, width = sizes
        shapes = ((queries, heads, depth), (keys, key_heads, depth), (keys, key_heads, width))
        tensors = [torch.randn(batch, n, h, c).to(dtype) for n, h, c in shapes]
        grad = torch.randn(batch, queries, heads, width).to(dtype)
        results = []
        for own in (dtype, torch.float32):
            leaves = [t.to("ocl").to(own).transpose(1, 2).requires_grad_() for t in tensors]
            there = {
                k: (v.to("ocl") if v.dtype == torch.bool else v.to("ocl", own))
                if isinstance(v, torch.Tensor)
                else v
                for k, v in options.items()
            }
            results.append(self.solve(leaves, grad.to("ocl").to(own).transpose(1, 2), there))
            self.assertEqual(
                ran() == ["attention_forward.mma", "attention_backward.mma"], own == dtype, ran()
            )
        for got, want in zip(*results, strict=True):
            error = (got.float() - want).abs().max() / want.abs().max()
            self.assertLess(error.item(), LIMITS[dtype])

    def test_causal_dropout_and_grouped_heads(self) -> None:
        torch.manual_seed(0)
        options = {"is_causal": True, "dropout_p": 0.3, "enable_gqa": True}
        self.check(torch.float16, (2, 4, 2, 70, 75, 64, 64), options)

    def test_masks_and_heads_that_are_copied(self) -> None:
        torch.manual_seed(1)
        mask = torch.rand(2, 1, 65, 40) > 0.3
        mask[..., 0] = True
        self.check(torch.bfloat16, (2, 2, 2, 65, 40, 21, 30), {"attn_mask": mask})

    def test_broadcast_mask(self) -> None:
        torch.manual_seed(2)
        mask = torch.randn(3, 1, 66)  # of heads and keys
        self.check(torch.bfloat16, (1, 3, 3, 35, 66, 32, 32), {"attn_mask": mask})

    def test_rows_of_a_low_number(self) -> None:
        check_rows_of_a_low_number(self, torch.bfloat16, LIMITS[torch.bfloat16])
        self.assertEqual(ran(), ["attention_forward.mma", "attention_backward.mma"])

    def test_few_queries_are_left_to_pieces_of_keys(self) -> None:
        key = torch.randn(1, 2, 300, 64, dtype=torch.float16, device="ocl")
        for heads, queries, name in ((2, 8, "split"), (8, 2, "split"), (8, 3, "mma")):
            query = torch.randn(1, heads, queries, 64, dtype=torch.float16, device="ocl")
            attention(query, key, key, enable_gqa=True)
            self.assertEqual(
                ocl.last_choices()["attention_forward"], f"attention_forward.{name}", queries
            )

    def test_reasons(self) -> None:
        query = torch.randn(1, 1, 12, 160, dtype=torch.float16, device="ocl")
        attention(query, query, query)
        self.assertEqual(ocl.last_choices()["attention_forward"], "attention_forward.blocks")


if __name__ == "__main__":
    unittest.main()
