"""A case of attention that the tests of several algorithms share."""

import unittest

import torch
from torch.nn.functional import scaled_dot_product_attention as attention


def check_rows_of_a_low_number(test: unittest.TestCase, dtype: torch.dtype, limit: float) -> None:
    """Of a row that is masked by one large negative number throughout, all keys have the same
    weight, as scores are lost beside it, in float64, too; keys that are masked so in other rows
    have none. Models write such masks instead of minus infinity."""
    torch.manual_seed(3)
    query, key, value = (torch.randn(1, 3, n, 32).to(dtype) for n in (35, 72, 72))
    for low in (torch.finfo(dtype).min, -1e30, -1e20):
        mask = torch.zeros(35, 72)
        mask[:, 40:] = low
        mask[7] = low
        mask = mask.to(dtype)
        leaves = [t.to("ocl").requires_grad_() for t in (query, key, value)]
        out = attention(*leaves, attn_mask=mask.to("ocl"))
        out[:, :, :7].sum().backward()  # the others' log-sum-exp has no room for the weights' sum
        doubles = [t.double().requires_grad_() for t in (query, key, value)]
        want = attention(*doubles, attn_mask=mask.double())
        want[:, :, :7].sum().backward()
        results = zip([out, *(t.grad for t in leaves)], [want, *(t.grad for t in doubles)])
        for got, right in results:
            error = (got.cpu().double() - right).abs().max() / right.abs().max()
            test.assertLess(error.item(), limit, low)
