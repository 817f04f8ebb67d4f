"""Gamma, Dirichlet, Poisson and binomial numbers: distributions, seeds, edges, gradients."""

import math
import unittest

import torch
import torch_ocl  # noqa: F401
from torch import distributions as D

# A seed is fixed, so a test that passed passes again; the bounds say how rarely a right kernel
# would fail with another seed: 1e-6 per comparison.
COUNT = 40_000
# Kolmogorov: P(sqrt(n) sup |F_n - F| > k) = 2 exp(-2 k^2) (A. Kolmogorov, 1933), 1e-6 at k = 2.69.
KOLMOGOROV = 2.69
# A normal number is further than this from its mean with a probability of 1e-6.
SIGMAS = 4.9
NARROW = (torch.float16, torch.bfloat16)


def drawn(kernel, *parameters, dtype=torch.float32, seed=3):
    torch.manual_seed(seed)
    return kernel(*(torch.full((COUNT,), p, dtype=dtype, device="ocl") for p in parameters)).cpu()


class Case(unittest.TestCase):
    def follows(self, numbers: torch.Tensor, cdf) -> None:
        """Numbers of a continuous distribution, by Kolmogorov and Smirnov's test."""
        x = numbers.double().sort()[0]
        n = x.numel()
        expected = cdf(x)
        steps = torch.arange(n + 1, dtype=torch.float64) / n
        distance = max((expected - steps[:-1]).max().item(), (steps[1:] - expected).max().item())
        self.assertLess(distance * math.sqrt(n), KOLMOGOROV)

    def counts(self, numbers: torch.Tensor, log_prob, most: int) -> None:
        """Whole numbers, by Pearson's chi-square over those expected at least 20 times. Its bound
        is the quantile of 1 - 1e-6 by Wilson and Hilferty's approximation (1931)."""
        values = torch.arange(most + 1, dtype=torch.float64)
        expected = log_prob(values).exp() * numbers.numel()
        found = numbers.long().bincount(minlength=most + 1)[: most + 1].double()
        common = expected >= 20
        chi = ((found - expected)[common] ** 2 / expected[common]).sum().item()
        rest = numbers.numel() - expected[common].sum().item()
        if rest >= 20:
            chi += (numbers.numel() - found[common].sum().item() - rest) ** 2 / rest
        k = common.sum().item()
        self.assertLess(chi, k * (1 - 2 / (9 * k) + 4.753 * math.sqrt(2 / (9 * k))) ** 3)

    def moments(self, numbers: torch.Tensor, mean: float, variance: float, kurtosis: float) -> None:
        n = numbers.numel()
        x = numbers.double()
        self.assertLess(abs(x.mean().item() - mean), SIGMAS * math.sqrt(variance / n))
        spread = variance * math.sqrt((kurtosis + 2) / n)  # of the sample's variance
        self.assertLess(abs(x.var().item() - variance), SIGMAS * spread)


class Gamma(Case):
    def test_distribution(self) -> None:
        for dtype in (torch.float32, torch.float64):
            for alpha in (0.05, 0.5, 1.0, 2.5, 30.0, 4000.0):
                with self.subTest(dtype=dtype, alpha=alpha):
                    x = drawn(torch._standard_gamma, alpha, dtype=dtype)
                    shape = torch.full((COUNT,), alpha, dtype=dtype).double()
                    self.follows(x, lambda v, a=shape: torch.special.gammainc(a, v))
                    a = shape[0].item()
                    self.moments(x, a, a, 6 / a)

    def test_narrow_types(self) -> None:
        for dtype in NARROW:
            x = drawn(torch._standard_gamma, 2.5, dtype=dtype)
            self.assertEqual(x.dtype, dtype)
            self.moments(x, 2.5, 2.5, 6 / 2.5)  # roundings are unbiased, and far below the spread

    def test_edges(self) -> None:
        for dtype in (torch.float32, torch.float64, *NARROW):
            tiny = torch.finfo(dtype).tiny
            x = torch.tensor([0, math.nan, -2, math.inf, 1e-4], dtype=dtype, device="ocl")
            got = torch._standard_gamma(x).tolist()
            self.assertEqual(got[0], tiny)
            self.assertTrue(math.isnan(got[1]) and math.isnan(got[2]))
            self.assertEqual(got[3], math.inf)
            self.assertGreaterEqual(got[4], tiny)


class Poisson(Case):
    def test_distribution(self) -> None:
        for dtype in (torch.float32, torch.float64):
            for rate in (0.3, 4.0, 9.9, 10.0, 55.5, 3000.0):
                with self.subTest(dtype=dtype, rate=rate):
                    x = drawn(torch.poisson, rate, dtype=dtype)
                    rate = torch.tensor(rate, dtype=dtype).double()
                    law = D.Poisson(rate)
                    self.counts(x, law.log_prob, int(rate + 12 * math.sqrt(rate) + 12))
                    self.moments(x, rate.item(), rate.item(), 1 / rate.item())

    def test_narrow_types(self) -> None:
        for dtype in NARROW:
            self.counts(drawn(torch.poisson, 6.5, dtype=dtype), D.Poisson(6.5).log_prob, 60)

    def test_large_rates(self) -> None:
        for rate in (1e6, 1e12):
            x = drawn(torch.poisson, rate, dtype=torch.float64)
            self.moments(x, rate, rate, 1 / rate)

    def test_edges(self) -> None:
        self.assertEqual(torch.poisson(torch.zeros(5, device="ocl")).tolist(), [0] * 5)
        for wrong in (-1.0, math.nan):
            with self.assertRaisesRegex(RuntimeError, "rate is negative or not a number"):
                torch.poisson(torch.tensor([1.0, wrong], device="ocl"))
                torch.ocl.synchronize()


class Binomial(Case):
    def test_distribution(self) -> None:
        for dtype in (torch.float32, torch.float64):
            for n, p in ((1, 0.3), (17, 0.5), (40, 0.9), (100, 0.2), (1000, 0.97), (2048, 0.5)):
                with self.subTest(dtype=dtype, n=n, p=p):
                    x = drawn(torch.binomial, n, p, dtype=dtype)
                    p = torch.tensor(p, dtype=dtype).double()
                    self.counts(x, D.Binomial(n, p).log_prob, n)
                    variance = n * p.item() * (1 - p.item())
                    self.moments(x, n * p.item(), variance, (1 - 6 * variance / n) / variance)

    def test_large_counts(self) -> None:
        n, p = 1e12, 0.25
        x = drawn(torch.binomial, n, p, dtype=torch.float64)
        self.moments(x, n * p, n * p * (1 - p), 0)

    def test_edges(self) -> None:
        count = torch.tensor([5.0, -1, 5, 5, 5, math.nan], device="ocl")
        prob = torch.tensor([math.nan, 0.5, -1, 2, 0, 0.5], device="ocl")
        got = torch.binomial(count, prob).tolist()
        self.assertTrue(math.isnan(got[0]) and math.isnan(got[5]))
        self.assertEqual(got[1:5], [0, 0, 5, 0])

    def test_broadcast_and_errors(self) -> None:
        count = torch.full((3, 1), 5.0, device="ocl")
        got = torch.binomial(count, torch.tensor([0.0, 1.0], device="ocl")).cpu()
        self.assertTrue(torch.equal(got, torch.tensor([[0.0, 5.0]] * 3)))
        with self.assertRaisesRegex(Exception, "binomial only supports floating-point"):
            torch.binomial(count.int(), count)
        with self.assertRaises(RuntimeError):
            torch.binomial(count, count.double())


class Dirichlet(Case):
    def test_distribution(self) -> None:
        alpha = torch.tensor([0.2, 1.0, 4.0])
        torch.manual_seed(5)
        x = torch._sample_dirichlet(alpha.expand(COUNT, 3).to("ocl")).cpu().double()
        # A sum of three shares, each rounded to float32.
        torch.testing.assert_close(
            x.sum(1), torch.ones(COUNT, dtype=torch.float64), rtol=0, atol=3e-7
        )
        total = alpha.double().sum()
        for k in range(3):
            a = alpha[k].double()
            mean = (a / total).item()
            self.moments(x[:, k], mean, mean * (1 - mean) / (total.item() + 1), 6)

    def test_tiny_shapes_are_not_nan(self) -> None:
        x = torch._sample_dirichlet(torch.full((100, 4), 1e-2, device="ocl")).cpu()
        self.assertFalse(x.isnan().any().item())
        self.assertGreater(x.min().item(), 0)


class Calls(unittest.TestCase):
    KERNELS = (
        (torch._standard_gamma, 1),
        (torch.poisson, 1),
        (torch.binomial, 2),
        (torch._sample_dirichlet, 1),
    )

    def test_seeds(self) -> None:
        for kernel, count in self.KERNELS:
            with self.subTest(kernel=kernel.__name__):
                p = [
                    torch.full((7, 9), 20.0 if k == 0 else 0.4, device="ocl") for k in range(count)
                ]
                torch.manual_seed(11)
                first, second = kernel(*p).cpu(), kernel(*p).cpu()
                torch.manual_seed(11)
                self.assertTrue(torch.equal(kernel(*p).cpu(), first))
                self.assertFalse(torch.equal(first, second))
                g = torch.Generator("ocl").manual_seed(4)
                mine = kernel(*p, generator=g).cpu()
                self.assertTrue(torch.equal(kernel(*p, generator=g.manual_seed(4)).cpu(), mine))
                # The default one was not used.
                self.assertTrue(torch.equal(kernel(*p).cpu(), second))

    def test_layouts(self) -> None:
        for kernel, count in self.KERNELS:
            with self.subTest(kernel=kernel.__name__):
                p = [torch.rand(6, 4).to("ocl") * (20 if k == 0 else 1) for k in range(count)]
                strided = [t.t().contiguous().t() for t in p]
                torch.manual_seed(1)
                want = kernel(*p)
                torch.manual_seed(1)
                self.assertTrue(torch.equal(kernel(*strided), want))
                self.assertEqual(kernel(*(t[:0] for t in p)).shape, (0, 4))
                scalars = [t[0, 0] for t in p]
                self.assertEqual(kernel(*scalars).shape, ())

    def test_integers_are_refused(self) -> None:
        for kernel in (torch._standard_gamma, torch.poisson, torch._sample_dirichlet):
            with self.assertRaises((RuntimeError, NotImplementedError)):
                kernel(torch.ones(3, dtype=torch.int64, device="ocl"))

    def test_distributions(self) -> None:
        one = torch.ones(3, device="ocl")
        laws = (
            D.Gamma(one * 2, one * 3),
            D.Beta(one * 2, one * 0.5),
            D.Dirichlet(one * 0.7),
            D.StudentT(one * 5),
            D.Chi2(one * 4),
            D.Poisson(one * 6),
            D.Binomial(12, one * 0.3),
            D.NegativeBinomial(3, one * 0.4),
            D.FisherSnedecor(one * 3, one * 4),
        )
        for law in laws:
            with self.subTest(law=type(law).__name__):
                x = law.sample((5,))
                self.assertEqual(x.device.type, "ocl")
                self.assertTrue(law.log_prob(x).isfinite().all().item())


class Gradients(unittest.TestCase):
    """The derivative of a draw by its parameter, for a fixed value of the distribution function: by
    finite differences of that function in float64. torch's own are approximations of 1e-3.
    """

    # Central differences of float64, at a step of 1e-5: 1e-10 of the second derivative, and
    # rounding errors of 1e-15 / 1e-5 over the density.
    TOLERANCE = 1e-5

    def test_gamma(self) -> None:
        for alpha in (0.05, 0.6, 1.0, 3.0, 40.0, 900.0):
            a = torch.full((200,), alpha, dtype=torch.float64)
            torch.manual_seed(2)
            x = torch._standard_gamma(a).clamp_min(1e-30)
            step = a * 1e-5
            difference = torch.special.gammainc(a + step, x) - torch.special.gammainc(a - step, x)
            density = ((a - 1) * x.log() - x - a.lgamma()).exp()
            want = -difference / (2 * step) / density
            middle = torch.special.gammainc(a, x).sub(0.5).abs() < 0.45
            for dtype, bound in ((torch.float64, self.TOLERANCE), (torch.float32, 1e-5)):
                got = torch._standard_gamma_grad(a.to("ocl", dtype), x.to("ocl", dtype)).cpu()
                torch.testing.assert_close(got.double()[middle], want[middle], rtol=bound, atol=0)
            # The whole range against torch's approximation, whose error is below 1e-3.
            got = torch._standard_gamma_grad(a.to("ocl"), x.to("ocl")).cpu()
            theirs = torch._standard_gamma_grad(a, x)
            torch.testing.assert_close(got, theirs, rtol=3e-3, atol=1e-12)

    def test_dirichlet(self) -> None:
        for alpha, beta in (
            (0.3, 0.4),
            (0.5, 3.0),
            (2.0, 2.0),
            (9.0, 1.0),
            (30.0, 50.0),
            (0.4, 90),
        ):
            a = torch.full((200,), alpha, dtype=torch.float64)
            total = a + beta
            torch.manual_seed(2)
            x = D.Beta(a, total - a).sample().clamp(1e-12, 1 - 1e-12)
            got = torch._dirichlet_grad(x.to("ocl"), a.to("ocl"), total.to("ocl")).cpu()
            # torch's own is an approximation, with errors up to 1e-2 for these.
            torch.testing.assert_close(
                got, torch._dirichlet_grad(x, a, total), rtol=2e-2, atol=1e-10
            )

    def test_dirichlet_of_two_uniform_numbers(self) -> None:
        # Beta(a, 1): F = x^a, so dx/da = -x ln(x) / a, in closed form.
        a = torch.linspace(0.1, 30, 64, dtype=torch.float64)
        x = torch.linspace(0.01, 0.99, 64, dtype=torch.float64)
        want = -x * x.log() / a / (1 - x)
        got = torch._dirichlet_grad(x.to("ocl"), a.to("ocl"), (a + 1).to("ocl")).cpu()
        torch.testing.assert_close(got, want, rtol=1e-12, atol=0)  # some hundred roundings
        # Beta(1, b) by b is 1 - x of Beta(b, 1).
        mirrored = torch._dirichlet_grad((1 - x).to("ocl"), a.to("ocl"), (a + 1).to("ocl")).cpu()
        torch.testing.assert_close(mirrored, -(1 - x) * torch.log1p(-x) / a / x, rtol=1e-12, atol=0)

    def test_edges(self) -> None:
        grad = torch._standard_gamma_grad
        a = torch.tensor([0.5, 1, 2, 3, 0, -1], device="ocl")
        x = torch.tensor([0.0, math.nan, math.inf, -1, 1, 1], device="ocl")
        got = grad(a, x).tolist()
        self.assertEqual((got[0], got[3]), (0, 0))
        self.assertTrue(all(math.isnan(got[k]) for k in (1, 2, 4, 5)))
        self.assertEqual(grad(a[:0], x[:0]).shape, (0,))

    def test_rsample(self) -> None:
        """A gamma number of a fixed seed grows with its shape, as its gradient says."""
        for law in (
            lambda p: D.Gamma(p, torch.ones_like(p)),
            lambda p: D.Beta(p, p * 2),
            lambda p: D.StudentT(p),
            lambda p: D.Chi2(p),
        ):
            p = torch.full((4000,), 3.0, device="ocl", requires_grad=True)
            torch.manual_seed(8)
            law(p).rsample().sum().backward()
            self.assertTrue(p.grad.isfinite().all().item())
        p = torch.full((20_000,), 3.0, device="ocl", requires_grad=True)
        torch.manual_seed(8)
        D.Gamma(p, torch.ones_like(p)).rsample().sum().backward()
        # The mean of Gamma(a) is a: the gradients' mean is 1; each has a deviation below 0.5.
        self.assertLess(abs(p.grad.mean().item() - 1), SIGMAS * 0.5 / math.sqrt(20_000))
        p = torch.full((20_000, 2), 3.0, device="ocl", requires_grad=True)
        torch.manual_seed(8)
        D.Dirichlet(p).rsample()[:, 0].sum().backward()
        # The mean of a share is a / (a + b): its derivative by a is b / (a + b)^2 = 1/12.
        self.assertLess(abs(p.grad[:, 0].mean().item() - 1 / 12), SIGMAS * 0.1 / math.sqrt(20_000))


if __name__ == "__main__":
    unittest.main()
