"""torch.compile: what users of other devices' compilers reported as wrong or as not compiling."""

import unittest

import torch
import torch.nn.functional as F
from compile_case import CompileCase
from gpu_style import InGpuStyle
from torch.utils.checkpoint import checkpoint


class Defects(InGpuStyle, CompileCase):
    """Numbers are those of threads of pytorch/pytorch."""

    OPTIMISED = False

    def test_a_sum_that_is_broadcast(self) -> None:  # 170360: wrong by a factor
        self.check(
            lambda x, y: (x.sum(-1, keepdim=True) * y).sum(-1), torch.randn(8, 70), torch.ones(8, 3)
        )

    def test_running_statistics(self) -> None:  # 150121, 184328
        def train(x, mean, var):
            return F.batch_norm(x, mean, var, training=True, momentum=0.3)

        self.check(train, torch.randn(5, 3, 9, 9), torch.zeros(3), torch.ones(3))

    def test_a_long_row_and_what_follows(self) -> None:  # 152155: out of scope
        def norm(x):
            y = x - x.mean(-1, keepdim=True)
            return y / y.pow(2).mean(-1, keepdim=True).sqrt(), y.abs().amax(-1), x.softmax(-1)

        self.check(norm, torch.randn(3, 5000))

    def test_nested_masks(self) -> None:  # 186369
        def pads(x):
            return F.pad(torch.cat([F.pad(x, (1, 2)), x.new_ones(4, 2)], 1), (2, 0, 1, 1))

        self.check(pads, torch.randn(4, 6))

    def test_moments_with_sizes_that_vary(self) -> None:  # 169292
        self.check(lambda x: torch.var_mean(x, (0, 2)), torch.randn(4, 5, 33), dynamic=True)

    def test_loops(self) -> None:  # 184206: names clash
        def count(x):
            def step(i, y):
                return i + 1, (y * 2).sin()

            zero = torch.zeros((), dtype=torch.int64, device=x.device)
            return torch._higher_order_ops.while_loop(lambda i, y: i < 3, step, (zero, x))[1]

        self.check(count, torch.randn(20))

    def test_float64_numbers(self) -> None:  # ComfyUI-TeaCache 26
        self.check(lambda x, s: x * s, torch.randn(20), torch.tensor(2.5, dtype=torch.float64))

    def test_layer_norm_of_512(self) -> None:  # 191976: off by 1.8
        self.check(lambda x: F.layer_norm(x, (512,)), torch.randn(6, 512) * 3 + 2)

    def test_adaptive_max_pooling(self) -> None:  # 169738
        self.check(lambda x: F.adaptive_max_pool2d(x, (3, 2)), torch.randn(2, 3, 11, 9))

    def test_small_variances(self) -> None:  # 190491, 186367
        x = torch.randn(4, 300) * 1e-4
        self.check(lambda x: x.var(-1), x, rtol=1e-4, atol=0)
        self.check(lambda x: F.layer_norm(x, (300,), eps=1e-12), x, rtol=1e-4, atol=1e-4)

    def test_polygamma_of_integers(self) -> None:  # 152205
        self.check(lambda x: torch.polygamma(1, x), torch.arange(1, 30))

    def test_chained_modulated_norms(self) -> None:  # 193061: gradients
        x0, scale, shift = torch.randn(3, 10, 48), torch.randn(3, 1, 48), torch.randn(3, 1, 48)

        def gradients(x, scale, shift):
            y = x
            for _ in range(2):
                y = F.layer_norm(y, (48,)) * (1 + scale) + shift
            return y

        def run(device, call):
            given = [t.to(device).requires_grad_() for t in (x0, scale, shift)]
            call(*given).square().sum().backward()
            return [t.grad for t in given]

        got = run("ocl", torch.compile(gradients))
        self.close(got, run("cpu", gradients), 2e-4, 2e-4)

    def test_a_norm_and_its_reciprocal(self) -> None:  # 186577
        self.check(lambda x: 1 / (F.layer_norm(x, (33,)).abs() + 1), torch.randn(7, 33))

    def test_changes_of_one_copy_in_order(self) -> None:  # Inductor's own, on every device
        def change(x, places, mask):
            x = x.clone()
            x[places] = 7.0
            x[mask] = 0.0
            return x

        x, mask = torch.tensor([1.0, 2, 3, 4]), torch.tensor([True, True, False, False])
        self.check(change, x, torch.tensor([0, 2]), mask)
        self.check(change, x.half(), torch.tensor([0, 2]), mask)

    def test_a_copy_that_reads_itself(self) -> None:  # Inductor's own, on every device
        def reverse(x):
            y, back = x * 2, torch.arange(x.shape[0], device=x.device).flip(0)
            z = (x * 4).t()
            return y.index_put((back,), y), z.index_put((back[-5:],), z.t().t()[:5])

        self.check(reverse, torch.arange(200).view(20, 10).float())
        places = torch.tensor([2, 0, 1, 1])
        self.check(lambda x: (x + 0).index_put((x + 0,), x + 5), places)

    def test_a_change_of_a_piece(self) -> None:  # Inductor's own, on GPUs
        def join(x):
            y = x[torch.arange(x.shape[0], device=x.device).flip(0)]
            places = torch.arange(x.shape[1], device=x.device)[::2]
            return torch.cat([y, y.flip(1)], 1), y.index_fill(1, places, 1)

        self.check(join, torch.arange(21).view(3, 7))

    def test_a_size_that_varies_and_is_one(self) -> None:  # Inductor's own, on every device
        def last(x, y):
            return x.split((x.shape[1] + 1) // 2, 1)[-1] * y

        compiled = torch.compile(last, dynamic=True, fullgraph=True)
        for n in (3, 6, 5, 3):
            x, y = torch.randn(20, n), torch.randn(20, 36 if n == 3 else n // 2)
            self.close([compiled(x.to("ocl"), y.to("ocl"))], [last(x, y)], 0, 0)

    def test_truths_and_numbers_of_one_text(self) -> None:
        x = torch.tensor([[-2, -1, 0, 1, 2]], dtype=torch.int32)
        self.check(lambda x: torch.fmax((x > 1) & (x > 0) | (x == x), x), x)
        self.check(lambda x: torch.where(x > 0, x, -1) + torch.full_like(x, True, dtype=bool), x)

    def test_any_of_bytes(self) -> None:  # Inductor's own, on every device: bool
        x = torch.randint(0, 2, (5, 3), dtype=torch.uint8)
        for y in (x, x[:, :0]):
            self.check(lambda x: (~x.any(1), x.any() + 1, x.all(0), x.any((0, 1))), y)

    def test_sums_of_long_rows(self) -> None:
        """In float32 by blocks: one sum of a million numbers near 1 is 1e-5 off."""
        x = torch.rand(1 << 20, 2)
        for function in (torch.sum, torch.var, lambda x: x.sum(0), lambda x: x.var(0)):
            want = function(x.double()).float()
            for dynamic in (False, True):
                with self.subTest(dynamic=dynamic):
                    torch._dynamo.reset()
                    got = torch.compile(function, dynamic=dynamic)(x.to("ocl"))
                    self.close([got], [want], 1e-6, 0)

    def test_names_of_many_operators(self) -> None:  # PoCL 3.1 ends the process
        def chain(x):
            for name in ("sin", "cos", "tanh", "sigmoid", "atan", "erf", "exp", "sqrt", "floor"):
                x = getattr(torch, name)(x).abs().add(0.5).clamp(0.25, 4).log1p().rsqrt().asinh()
            return x

        self.check(chain, torch.randn(40))

    def test_dropout_of_a_checkpoint(self) -> None:  # the same numbers again in the backward pass
        def part(x, w):
            return F.dropout((x @ w).sin(), 0.5)

        def run(x, w):
            return checkpoint(part, x, w, use_reentrant=False)

        a, b = torch.linspace(-1, 1, 64).view(8, 8), torch.linspace(1, 2, 64).view(8, 8)
        for backend in ("inductor", "aot_eager"):
            with self.subTest(backend):
                torch._dynamo.reset()
                x, w = (t.to("ocl").requires_grad_() for t in (a, b))
                y = torch.compile(run, backend=backend)(x, w)
                y.sum().backward()
                kept = (y.detach().cpu() != 0) * 2.0
                self.assertTrue(10 < kept.count_nonzero() < 54)
                slope = kept * (a @ b).cos()
                want = [kept * (a @ b).sin(), slope @ b.t(), a.t() @ slope]
                self.close([y.detach(), x.grad, w.grad], want, 2e-5, 2e-5)

    def test_names_that_tell_nothing(self) -> None:
        with torch._inductor.config.patch({"triton.descriptive_names": False}):
            self.check(lambda x: 2 * x, torch.randn(8))

    def test_a_fill_of_a_slice(self) -> None:
        def fill(x, m):
            y = torch.zeros_like(x)
            y[1:, ::2] = x[1:, ::2] * 2
            return y.masked_fill(m, 5)

        self.check(fill, torch.randn(6, 8), torch.rand(6, 8) > 0.5)


if __name__ == "__main__":
    unittest.main()
