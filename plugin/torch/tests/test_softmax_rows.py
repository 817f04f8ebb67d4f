"""softmax and log_softmax of rows that one work-group holds in registers, with their gradients,
beside float64: rows that start in the middle of a vector, and neighbours of infinities and NaN."""

import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401

TYPES = (torch.float32, torch.bfloat16, torch.float16)
FUNCTIONS = (torch.softmax, torch.log_softmax)
# float32's roundings of a sum in which each work-item adds up at most 64 numbers and ten levels of
# a tree add up the work-items', of an exponential or a logarithm (3 units), and of x - max (up to
# 16): 93 one-sided, each half a unit of 2**-23.
ARITHMETIC = 93 * 2**-24


class SoftmaxRows(gpu_style.InGpuStyle, unittest.TestCase):
    def rows(self) -> int:
        """Enough: with fewer than compute units, several work-groups share a row."""
        return torch.ocl.get_device_properties(0).multi_processor_count + 3

    def compare(self, got: torch.Tensor, wanted: torch.Tensor, scale: torch.Tensor) -> None:
        """Within the rounding of the result and that of float32 numbers of `scale`."""
        info = torch.finfo(got.dtype)
        got = got.detach().cpu().double()
        special = ~wanted.isfinite()
        self.assertTrue(torch.equal(got[special].nan_to_num(7), wanted[special].nan_to_num(7)))
        bound = info.eps * wanted.abs() + ARITHMETIC * scale + info.smallest_normal * info.eps
        self.assertLess(((got - wanted).abs() / bound)[~special].max().item(), 1)

    def check(self, function, x: torch.Tensor) -> None:  # noqa: ANN001
        grad = torch.randn(x.shape).to(x.dtype)
        device = x.to("ocl").requires_grad_()
        result = function(device, -1)
        wanted = function(x.double(), -1)
        is_log = function is torch.log_softmax
        self.compare(result, wanted, 1 + wanted.abs() if is_log else wanted.abs())
        # Of what the device gave, so that the rounding of that is not counted again.
        result.backward(grad.to("ocl"))
        y, g = result.detach().cpu().double(), grad.double()
        terms = g if is_log else g * y
        weights = y.exp() if is_log else y
        total, most = terms.sum(-1, keepdim=True), terms.abs().sum(-1, keepdim=True)
        wanted = (g if is_log else terms) - weights * total
        self.compare(device.grad, wanted, terms.abs() + weights * most)

    def each(self, columns: int, dtype: torch.dtype):  # noqa: ANN201
        torch.manual_seed(columns)
        for function in FUNCTIONS:
            with self.subTest(function=function.__name__, dtype=dtype, columns=columns):
                yield function, (4 * torch.randn(self.rows(), columns)).to(dtype)

    def test_random_rows(self) -> None:
        for dtype in TYPES:
            for columns in (4097, 8200, 8201, 30522):
                for function, x in self.each(columns, dtype):
                    self.check(function, x)

    def test_neighbours(self) -> None:
        for dtype in TYPES:
            for function, x in self.each(8195, dtype):
                x[1::4] = -torch.inf
                x[2::4, 5] = torch.nan
                x[3::4, -1] = torch.inf
                x[4::4, :8000] = -torch.inf
                self.check(function, x)

    def test_memory_that_starts_in_the_middle_of_a_vector(self) -> None:
        for dtype in TYPES:
            for function, x in self.each(8193, dtype):
                memory = torch.full((x.numel() + 3,), torch.nan, dtype=dtype, device="ocl")
                memory[3:] = x.to("ocl").flatten()
                got = function(memory[3:].view(x.shape), -1)
                wanted = function(x.double(), -1)
                self.compare(got, wanted, 1 + wanted.abs())


if __name__ == "__main__":
    unittest.main()
