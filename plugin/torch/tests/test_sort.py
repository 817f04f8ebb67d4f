"""topk gives the first elements of the stable sort, however it finds them: ties, NaN, signed zeros,
long rows."""

import unittest

import torch
import torch_ocl  # noqa: F401

SHAPES = (
    (3, 17, 8),
    (40, 300, 1),
    (40, 300, 149),
    (5, 5000, 64),
    (1, 70000, 50),
    (2, 9001, 2100),
    (1, 3000, 1500),
)


def rows(dtype: torch.dtype, kind: str, count: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    if kind == "ties":
        return torch.randint(0, 9, (count, length), generator=generator).to(dtype)
    x = torch.randn(count, length, generator=generator)
    if kind == "rising":
        x = x.sort(dim=1)[0]
    if kind == "falling":
        x = x.sort(dim=1, descending=True)[0]
    if kind == "special" and dtype.is_floating_point:
        for i, value in enumerate((float("nan"), float("inf"), -float("inf"), 0.0, -0.0)):
            x[:, i::11] = value
    return (x if dtype.is_floating_point else x * 100).to(dtype)


class TopK(unittest.TestCase):
    def test_first_of_the_stable_sort(self) -> None:
        for dtype in (
            torch.float32,
            torch.bfloat16,
            torch.float16,
            torch.int32,
            torch.int8,
            torch.int64,
        ):
            for kind in ("random", "ties", "rising", "falling", "special"):
                for count, length, k in SHAPES:
                    x = rows(dtype, kind, count, length)
                    for largest in (True, False):
                        with self.subTest(
                            dtype=dtype, kind=kind, shape=(count, length), k=k, largest=largest
                        ):
                            values, indices = torch.topk(x.to("ocl"), k, largest=largest)
                            want, at = torch.sort(x, dim=1, descending=largest, stable=True)
                            torch.testing.assert_close(indices.cpu(), at[:, :k])
                            torch.testing.assert_close(
                                values.cpu(), want[:, :k], rtol=0, atol=0, equal_nan=True
                            )

    def test_one_of_long_rows(self) -> None:
        torch.manual_seed(4)
        for length, infected in ((5000, False), (5000, True), (300_000, False), (300_000, True)):
            x = torch.randint(-900, 900, (2, length)).float()  # ties
            if infected:
                x[1, 77] = x[1, 99] = torch.nan
            for name, args in (
                ("median", (1,)),
                ("nanmedian", (1,)),
                ("kthvalue", (length // 3, 1)),
            ):
                with self.subTest(name=name, length=length, infected=infected):
                    values, indices = getattr(x.to("ocl"), name)(*args)
                    expected = getattr(x, name)(*args)[0]
                    torch.testing.assert_close(
                        values.cpu(), expected, rtol=0, atol=0, equal_nan=True
                    )
                    order = torch.sort(x, dim=1, stable=True)[1]
                    there = x.gather(1, indices.cpu()[:, None])[:, 0]
                    torch.testing.assert_close(there, expected, rtol=0, atol=0, equal_nan=True)
                    for row in range(2):  # of equal ones the one that a stable sort puts there
                        place = (order[row] == indices[row].item()).nonzero().item()
                        nans = int(x[row].isnan().sum())
                        middle = {"median": length - nans if nans else (length - 1) // 2}
                        middle |= {
                            "nanmedian": (length - nans - 1) // 2,
                            "kthvalue": length // 3 - 1,
                        }
                        self.assertEqual(place, middle[name])


if __name__ == "__main__":
    unittest.main()
