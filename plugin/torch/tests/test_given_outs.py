"""Results that follow the tensor given, as on the CPU: its shape, its type, elements it repeats."""

import unittest
import warnings

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed


def given(device: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.full(shape, 77, dtype=dtype, device=device)


class GivenOuts(unittest.TestCase):
    def test_sequences_keep_a_shape_of_as_many_elements(self) -> None:
        for write in (
            lambda out: torch.arange(6, out=out),
            lambda out: torch.arange(1, 2.5, 0.25, out=out),
            lambda out: torch.linspace(-1, 4, 6, out=out),
            lambda out: torch.logspace(0, 5, 6, base=2, out=out),
            lambda out: torch.range(0, 5, out=out),
            lambda out: torch.linspace(3, 4, 1, out=out),
            lambda out: torch.arange(0, out=out),
        ):
            for shape in ((2, 3), (6,), (1, 6, 1), (2, 2), (), (0, 2)):
                for dtype in (torch.float32, torch.float64, torch.bfloat16):
                    results = []
                    for device in ("cpu", "ocl"):
                        out = given(device, shape, dtype)
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            write(out)
                        results.append(out.cpu())
                    with self.subTest(shape=shape, dtype=dtype):
                        torch.testing.assert_close(results[1], results[0])

    def test_sequences_of_integers(self) -> None:
        for dtype in (torch.int64, torch.int16):
            for shape in ((2, 3), (6,), (3,), (0, 2)):
                ours, theirs = (given(device, shape, dtype) for device in ("ocl", "cpu"))
                for write in (
                    lambda out: torch.arange(-3, 9, 2, out=out),
                    lambda out: torch.linspace(-3, 7, 6, out=out),
                ):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        write(ours)
                        write(theirs)
                    self.assertTrue(torch.equal(ours.cpu(), theirs))

    def test_sequences_keep_memory(self) -> None:
        out = given("ocl", (3, 2), torch.float32).t()
        torch.arange(6, out=out)
        self.assertEqual((out.tolist(), out.stride()), ([[0, 1, 2], [3, 4, 5]], (1, 2)))

    def test_bools_are_one_before_they_are_numbers(self) -> None:
        a, b = torch.rand(100) < 0.6, torch.rand(100) < 0.6
        for function in (torch.add, torch.mul, torch.maximum, torch.bitwise_or, torch.logical_xor):
            for dtype in (torch.int32, torch.uint8, torch.float32, torch.bfloat16):
                out = torch.full((100,), 77, dtype=dtype, device="ocl")
                function(a.to("ocl"), b.to("ocl"), out=out)
                with self.subTest(function=function.__name__, dtype=dtype):
                    self.assertTrue(torch.equal(out.cpu(), function(a, b).to(dtype)))

    def test_scans_take_the_type(self) -> None:
        values = torch.tensor([[1.75, -2.5, 3.25], [0.5, 2.0, -1.5]])
        for scan in (torch.cumsum, torch.cumprod):
            for source in (values, values.to(torch.int16)):
                for dtype in (
                    torch.int32,
                    torch.int64,
                    torch.uint8,
                    torch.float64,
                    torch.float16,
                    torch.complex64,
                ):
                    theirs = scan(source, 1, out=given("cpu", (2, 3), dtype))
                    ours = scan(source.to("ocl"), 1, out=given("ocl", (2, 3), dtype))
                    with self.subTest(scan=scan.__name__, source=source.dtype, dtype=dtype):
                        torch.testing.assert_close(ours.cpu(), theirs)
            for device in ("cpu", "ocl"):
                out = given(device, (2, 3), torch.int32)
                with self.assertRaises(RuntimeError):
                    scan(values.to(device), 1, dtype=torch.float32, out=out)
                with self.assertRaises(RuntimeError):
                    scan(values.to(device), 1, out=given(device, (2, 3), torch.bool))
            small = (values * 40).to(torch.int8)
            mine = getattr(small.to("ocl"), scan.__name__ + "_")(1)
            self.assertTrue(torch.equal(mine.cpu(), getattr(small.clone(), scan.__name__ + "_")(1)))
            self.assertEqual(scan(small.to("ocl"), 1).dtype, torch.int64)

    def test_bernoulli_of_any_type(self) -> None:
        p = torch.tensor([0.0, 1.0, 1.0, 0.0], device="ocl")
        for dtype in (torch.int32, torch.float64, torch.bool, torch.uint8):
            out = given("ocl", (0,), dtype)
            self.assertIs(torch.bernoulli(p, out=out), out)
            self.assertEqual(out.tolist(), [0, 1, 1, 0])
        with self.assertRaises(NotImplementedError):
            torch.bernoulli(p, out=given("ocl", (4,), torch.complex64))
        self.assertEqual(torch.bernoulli(p).tolist(), [0, 1, 1, 0])
        p = torch.full((10000,), 0.3, device="ocl")
        out = torch.bernoulli(p, out=given("ocl", (10000,), torch.int64))
        self.assertLess(abs(out.sum().item() - 3000), 300)  # over 6 standard deviations

    def test_fills_of_repeated_elements(self) -> None:
        for fill in (lambda t: t.fill_(3), lambda t: t.zero_()):
            results = []
            for device in ("cpu", "ocl"):
                base = given(device, (4, 1, 3), torch.float32)
                view = base[1:3].expand(2, 5, 3)
                self.assertIs(fill(view), view)
                whole = given(device, (), torch.float32)
                fill(whole.expand(7))
                results.append((base.tolist(), view.tolist(), whole.tolist()))
                self.assertEqual(fill(base[:0].expand(0, 5, 3)).numel(), 0)
            self.assertEqual(results[1], results[0])

    def test_changes_of_repeated_elements(self) -> None:
        """An element changes if one of its repetitions does."""
        generator = torch.Generator().manual_seed(1)
        shapes = (((4, 1, 3), (4, 5, 3)), ((1, 4, 1), (3, 4, 4)), ((1, 1), (3, 3)), ((1,), (6,)))
        for small, large in shapes:
            mask = torch.rand(large, generator=generator) < 0.2
            few = torch.zeros(large, dtype=torch.bool)
            few.view(-1)[few.numel() // 2] = True
            places = tuple(torch.randint(n, (3,), generator=generator) for n in large)
            middle = large[len(large) // 2]
            some = torch.randint(middle, (2, 1), generator=generator)
            last = (None,) * (len(large) // 2) + (some,)
            changes = {
                "masked_fill_": lambda t: t.masked_fill_(mask.to(t.device), 9),
                "masked_fill_ one": lambda t: t.masked_fill_(few.to(t.device), 9),
                "masked_fill_ broadcast": lambda t: t.masked_fill_(mask[..., :1].to(t.device), 9),
                "masked_fill_ tensor": lambda t: t.masked_fill_(
                    mask.to(t.device), torch.tensor(9, dtype=t.dtype, device=t.device)
                ),
                "index_put_": lambda t: t.index_put_(
                    tuple(p.to(t.device) for p in places),
                    torch.tensor(5, dtype=t.dtype, device=t.device),
                ),
                "index_put_ mask": lambda t: t.index_put_(
                    (mask.to(t.device),), torch.tensor(5, dtype=t.dtype, device=t.device)
                ),
                "index_put_ add": lambda t: t.index_put_(
                    tuple(p.to(t.device) for p in places),
                    torch.arange(3, device=t.device).to(t.dtype),
                    accumulate=True,
                ),
                "index_fill_": lambda t: t.index_fill_(
                    len(large) // 2, some.flatten().to(t.device), 8
                ),
                "setitem": lambda t: t.__setitem__(
                    tuple(slice(None) if n is None else n.to(t.device) for n in last),
                    torch.tensor(6, dtype=t.dtype, device=t.device),
                ),
                "threshold_": lambda t: torch.nn.functional.threshold_(t, 2, 7),
                "threshold_ below": lambda t: torch.nn.functional.threshold_(t, 2, 1),
            }
            if len(large) > 1:
                for k in (-1, 0, 1, 5):
                    changes[f"tril_ {k}"] = lambda t, k=k: t.tril_(k)
                    changes[f"triu_ {k}"] = lambda t, k=k: t.triu_(k)
            for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
                numbers = (torch.rand(small, generator=generator) * 5).to(dtype)
                for name, change in changes.items():
                    if name.startswith("threshold") and (dtype in (torch.bool, torch.complex64)):
                        continue
                    results = []
                    for device in ("cpu", "ocl"):
                        base = numbers.to(device, copy=True)
                        view = base.expand(large)
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            change(view)
                        results.append(base.cpu())
                    with self.subTest(name, shape=large, dtype=dtype):
                        self.assertTrue(torch.equal(results[1], results[0]), results)

    def test_the_last_of_several_numbers_stays(self) -> None:
        base = torch.zeros(2, 1, device="ocl")
        view = base.expand(2, 3)
        rows = torch.tensor([0, 0, 0], device="ocl")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            view[rows, torch.arange(3, device="ocl")] = torch.tensor([4.0, 5.0, 6.0], device="ocl")
        self.assertEqual(base.tolist(), [[6], [0]])

    def test_refusals_of_repeated_elements(self) -> None:
        """ATen refuses all but the last two, whose result depends on an order."""
        ones = torch.ones(3, 3, 3, device="ocl")
        for refused in (
            lambda t: t.add_(1),
            lambda t: t.relu_(),
            lambda t: t.copy_(ones[0]),
            lambda t: t.fill_(ones[0, 0, 0]),
            lambda t: t.normal_(),
            lambda t: t.scatter_(0, torch.zeros(1, 1, dtype=torch.int64, device="ocl"), 3),
            lambda t: t.index_add_(0, torch.zeros(1, dtype=torch.int64, device="ocl"), ones[0, :1]),
            lambda t: t[0].addmv_(ones[0], ones[0, 0]),
            lambda t: t.expand(3, 3, 3).baddbmm_(ones, ones),
        ):
            base = torch.ones(1, 1, device="ocl")
            with self.assertRaisesRegex(RuntimeError, "more than one element of the written-to"):
                refused(base.expand(3, 3))
            self.assertEqual(base.item(), 1)


if __name__ == "__main__":
    unittest.main()
